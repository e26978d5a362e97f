"""The README's commands do what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from connector.cli.demo import COUNTS as DEMO_COUNTS
from connector.sandbox.server import Sandbox
from tests.readme.sessions import parse_session, read_code_blocks
from tests.repository import ROOT
from tests.support.processes import find_free_port

README = (ROOT / "README.md").read_text()
DEMO, *TOUR = [parse_session(each) for each in read_code_blocks("console", README)]
"""The README's sessions. The first one runs in the tests of the demo."""

PICTURE_BYTES_MAX = 150_000
STATUSES = {"push": (0, 3)}
"""Exit statuses of commands that need not succeed: some rows of the example are invalid."""


def normalize_output(lines: list[str]) -> Iterator[list[str]]:
    """Yield the words of each line without table borders and durations."""
    for line in lines:
        if words := re.sub(r"in [\d.]+ s", "in N s", line.replace("─", " ")).split():
            yield words


def type_in(command: str, own: Sandbox, port: int) -> str:
    """Return a command of the README with our addresses, and with what a reader types into it."""
    command = command.replace("8000", str(port)).replace("https://acme.example", own.base_url)
    if command.endswith(" &"):
        log = "until grep -q ready sandbox.log; do :; done; cat sandbox.log"
        return f"{command.removesuffix('&')} > sandbox.log 2>&1 &\n{log}"
    return f"{command} <<< {own.key}" if "cat > acme.key" in command else command


@pytest.mark.slow
def test_all_commands_of_the_readme_print_what_it_shows_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    tour, port = [each for session in TOUR for each in session], find_free_port()
    ours = {name: value for name, value in os.environ.items() if "CONNECTOR" not in name}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with Sandbox(seed=9, counts={"jobs": 3}) as own:
        typed = [f'{type_in(each, own, port)}\necho "<<< $?"' for each, _ in tour]
        done = subprocess.run(
            ["bash", "-c", "\n".join(["set -m", *typed])],  # noqa: S607  # as a reader's shell
            cwd=tmp_path,
            env={**ours, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )

    *printed, rest = re.split(r"^<<< (\d+)\n", done.stdout, flags=re.MULTILINE)
    assert ("", 2 * len(tour)) == (rest, len(printed)), done.stdout
    for (command, shown), text, status in zip(tour, printed[::2], printed[1::2], strict=True):
        name = command.removeprefix("connector ").split()[0]
        assert int(status) in STATUSES.get(name, (0,)), (command, text)
        lines = normalize_output(text.replace(str(port), "8000").splitlines())
        for words in normalize_output(shown):
            assert words in lines, f"{command} does not print {words} here:\n{text}"
    folder = tmp_path / "tour"
    with duckdb.connect(str(folder / "data" / "recruitment.duckdb"), read_only=True) as data:
        assert [(3,)] == data.execute("SELECT count(*) FROM landing.jobs").fetchall()
    assert 0o600 == (folder / "acme.key").stat().st_mode & 0o777
    assert (folder / "sandbox-data" / "seeds" / "people.csv").is_file()
    assert (folder / "export" / "marts" / "fct_placements.parquet").is_file()
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


def test_pictures_are_small_and_load_no_external_resource() -> None:
    pages = [README, *(each.read_text() for each in (ROOT / "docs").glob("*.md"))]
    shown = {Path(name).name for page in pages for name in re.findall(r"pictures/[\w.-]+", page)}
    taken = {each.name: each for each in (ROOT / "docs" / "pictures").iterdir()}

    assert shown == set(taken)
    for each in taken.values():
        assert each.stat().st_size < PICTURE_BYTES_MAX, each
        hosts = re.findall(r"https?://[^\s\"']+", each.read_text()) if each.suffix == ".svg" else []
        assert set() == {host for host in hosts if "www.w3.org" not in host}, each


def test_the_demo_is_announced_with_its_number_of_records() -> None:
    assert ["make demo", "source .venv/bin/activate"] == [command for command, _ in DEMO]
    line = f"Pulling {sum(DEMO_COUNTS.values()):,} sample records as Dagster assets."
    assert line in DEMO[0][1]


def test_the_architecture_page_names_every_package() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:connector/|pipelines|benchmarks)\w*)`", page))
    faces = (ROOT / "connector").glob("*/__init__.py")
    rooms = {f"connector/{each.parent.name}" for each in faces}

    assert set() == rooms - named
    assert all((ROOT / room).is_dir() or (ROOT / f"{room}.py").is_file() for room in named), named


def test_pages_for_analysts_name_the_packages_to_install() -> None:
    # DuckDB needs pytz for every time with a time zone that `fetchall()` returns.
    questions = (ROOT / "docs" / "QUERIES.md").read_text(encoding="utf-8")
    for page in (README, questions):
        (sentence,) = re.findall(r"In Python, install ([^(:.]+)", page)
        assert ["duckdb", "pandas", "pytz"] == re.findall(r"`(\w+)`", sentence)

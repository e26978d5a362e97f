"""The README's commands do what it shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import duckdb
import pytest

from connector.cli import COMMANDS
from connector.sandbox.server import Sandbox
from tests.readme.sessions import parse_session, read_code_blocks
from tests.repository import ROOT
from tests.support.command import call
from tests.support.processes import find_free_port

README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent

PICTURE_BYTES_MAX = 150_000
DEMO, FIRST, ANALYTICS, SPREADSHEET, OWN_ACCOUNT = range(5)
"""The README's sessions, by their places. The first one runs in the tests of the demo."""

_CALLED = ("export ", "unset ", *(f"connector {name} " for name in COMMANDS if name != "sandbox"))


def run_bash(commands: list[str], folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the commands as one bash session. Standard output and error are in `stdout`."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith("CONNECTOR_")}
    return subprocess.run(
        ["bash", "-c", "set -m\n" + "\n".join(commands)],  # noqa: S607  # as a reader's shell
        cwd=folder,
        env={**ours, "PATH": f"{BIN}:{os.environ['PATH']}", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def run_commands(commands: list[str], folder: Path, **environ: str) -> tuple[list[int], str]:
    """Run connector commands in this process and others in bash. Returns the exit statuses and the
    output.
    """
    statuses, printed = [], ""
    with chdir(folder):
        for command in commands:
            name, *words = shlex.split(command)
            if name == "export":
                environ |= dict(word.split("=", 1) for word in words)
            elif name == "unset":
                environ = {each: value for each, value in environ.items() if each not in words}
            elif name == "connector":
                *words, file = (*words[:-2], words[-1]) if ">" in words else (*words, "")
                ended = call(words, environ)
                statuses.append(ended.status)
                printed += ended.out + ended.err
                if file:
                    Path(file).write_text(ended.out)
            else:
                done = run_bash([command], folder)
                statuses.append(done.returncode)
                printed += done.stdout
    return statuses, printed


def normalize_output(text: str) -> Iterator[list[str]]:
    """Yield the words of each line without table borders and durations."""
    for line in text.splitlines():
        if words := re.sub(r"in [\d.]+ s", "in N s", line.replace("─", " ")).split():
            yield words


def test_the_first_session_prints_the_documented_output(tmp_path: Path) -> None:
    commands, expected = parse_session(read_code_blocks("console", README)[FIRST])
    port = str(find_free_port())
    typed = [c.replace("8000", port) for c in commands]
    wait = "until grep -q ready sandbox.log; do :; done; cat sandbox.log"
    typed[0] = typed[0].removesuffix("&") + "> sandbox.log 2>&1 &\n" + wait
    done = run_bash([*typed, "kill %1"], tmp_path)

    assert 0 == done.returncode, done.stdout
    printed = list(normalize_output(done.stdout))
    for words in normalize_output("\n".join(expected).replace("8000", port)):
        assert words in printed, done.stdout


@pytest.mark.slow
def test_all_sessions_of_the_readme_run_in_order(tmp_path: Path) -> None:
    (tmp_path / "acme.key").touch(mode=0o600)
    counts = {"jobs": 9, "candidates": 40, "companies": 4, "bookings": 30, "leads": 9}
    with Sandbox(counts=counts) as sandbox, Sandbox(seed=9, counts={"jobs": 3}) as own:
        (tmp_path / "acme.key").write_text(own.key + "\n")
        places = {
            "http://127.0.0.1:8000": sandbox.base_url,
            "sandbox-key": sandbox.key,
            "https://acme.example": own.base_url,
        }
        # The spreadsheet has its own test, and the first session's programs run in that one.
        blocks = read_code_blocks("console", README)
        sessions = [parse_session(blocks[n])[0] for n in (FIRST, ANALYTICS, OWN_ACCOUNT)]
        commands = [each for some in sessions for each in some if f"{each} ".startswith(_CALLED)]
        for name, place in places.items():
            commands = [each.replace(name, place) for each in commands]
        statuses, printed = run_commands(commands, tmp_path)

    assert {0} == set(statuses), printed
    with duckdb.connect(str(tmp_path / "data" / "recruitment.duckdb"), read_only=True) as data:
        assert [(3,)] == data.execute("SELECT count(*) FROM landing.jobs").fetchall()
    assert (tmp_path / "sandbox-data" / "seeds" / "people.csv").is_file()
    assert (tmp_path / "export" / "marts" / "fct_placements.parquet").is_file()
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_the_spreadsheet_session_prints_the_documented_output(tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    commands, expected = parse_session(read_code_blocks("console", README)[SPREADSHEET])
    with Sandbox(counts={"jobs": 1}) as sandbox:
        address, key = sandbox.base_url, sandbox.key
        named = {"CONNECTOR_BASE_URL": address, "CONNECTOR_API_KEY": key}
        statuses, text = run_commands(commands, tmp_path, **named)
        people = {each["email"] for each in sandbox.store.records("candidates").values()}

    assert 0 == statuses[-1], text
    printed = list(normalize_output(text))
    for words in normalize_output("\n".join(expected)):
        assert words in printed, text
    # The second push was undone, the first one stays.
    assert people == {"zoe.oneill@people.example", "mary.byrne@people.example"}


def test_pictures_are_small_and_load_no_external_resource() -> None:
    pages = [README, *(each.read_text() for each in (ROOT / "docs").glob("*.md"))]
    shown = {Path(name).name for page in pages for name in re.findall(r"pictures/[\w.-]+", page)}
    taken = {each.name: each for each in (ROOT / "docs" / "pictures").iterdir()}

    assert shown == set(taken)
    for each in taken.values():
        assert each.stat().st_size < PICTURE_BYTES_MAX, each
        hosts = re.findall(r"https?://[^\s\"']+", each.read_text()) if each.suffix == ".svg" else []
        assert set() == {host for host in hosts if "www.w3.org" not in host}, each


def test_every_session_of_the_readme_is_tested() -> None:
    blocks = re.findall(r"```.*?```", README, re.DOTALL)

    assert OWN_ACCOUNT + 1 == len(blocks) == len(read_code_blocks("console", README))


def test_the_architecture_page_names_every_package() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:connector/|pipelines|benchmarks)\w*)`", page))
    faces = (ROOT / "connector").glob("*/__init__.py")
    rooms = {f"connector/{each.parent.name}" for each in faces}

    assert set() == rooms - named
    assert all((ROOT / room).is_dir() or (ROOT / f"{room}.py").is_file() for room in named), named

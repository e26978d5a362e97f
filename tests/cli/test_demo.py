"""`connector demo`: its output, its files, what it never replaces, and its exit."""

from __future__ import annotations

import json
import re
import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from connector.cli.demo import COUNTS, MARKER, QUESTIONS, create_demo_folder
from connector.errors import SettingsError
from connector.warehouse.user_query import query
from tests.pipelines.running import open_instance
from tests.support.command import call, check_fields, start

FEW = {name: max(3, count // 5) for name, count in COUNTS.items()}
"""The demonstration's agency, a fifth of its size: `make demo` shows the whole one."""

SMALLER = f"""\
import tests.pipelines.unsynced
import connector.cli.demo as demo
demo.COUNTS = {FEW}
"""


def is_listening(base_url: str) -> bool:
    """Return True if a process listens at the address."""
    parts = urlsplit(base_url)
    with socket.socket() as caller:
        return caller.connect_ex((str(parts.hostname), parts.port or 0)) == 0


@pytest.mark.slow
def test_the_demo_pulls_queries_and_exits(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    arguments = ["demo", "--keep", "--json", "--data-dir", str(folder)]
    with start(arguments, {}, SMALLER) as process:
        try:
            assert process.stderr is not None
            output = ""
            while not (ready := re.search(r"is running at (http://\S+) with", output)):
                line = process.stderr.readline()
                assert line, output
                output += line
            assert is_listening(ready[1])
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()

    shown = json.loads(out)
    check_fields("demo", "", shown)
    assert 0 == process.returncode
    assert not is_listening(ready[1])
    assert FEW == {name: each["live"] for name, each in shown["resources"].items()}
    assert [len(QUESTIONS), True] == [
        len(shown["answers"]),
        all(a["rows"] for a in shown["answers"]),
    ]
    landed = query(Path(shown["published"]), "SELECT count(*) FROM landing.candidates").rows
    assert ((FEW["candidates"],),) == landed
    assert 0 < shown["models"] < shown["checks"]
    with open_instance(folder / "dagster") as instance:
        (run,) = instance.get_runs()
        assert (shown["dagster"]["run_id"], True) == (run.run_id, run.is_success)
        assert not instance.telemetry_enabled
    assert "Amara Okafor" in Path(shown["report"]).read_text(encoding="utf-8")
    create_demo_folder(folder)
    assert [MARKER] == [path.name for path in folder.iterdir()]


def test_the_folder_of_an_earlier_demo_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    create_demo_folder(folder)
    (folder / "work.duckdb").write_text("old")

    create_demo_folder(folder)

    assert [MARKER] == [path.name for path in folder.iterdir()]
    assert 0o700 == folder.stat().st_mode & 0o777


def make_foreign_folder(path: Path) -> None:
    """Make a folder with a file that is not from a demo."""
    path.mkdir()
    (path / "thesis.txt").write_text("years of work")


def make_file(path: Path) -> None:
    path.write_text("years of work")


def make_link(path: Path) -> None:
    """Make a link to the folder of an earlier demo."""
    create_demo_folder(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("make", [make_foreign_folder, make_file, make_link])
def test_the_demo_never_replaces_foreign_files_folders_or_links(
    tmp_path: Path, make: object
) -> None:
    assert callable(make)
    folder = tmp_path / "precious"
    make(folder)
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))

    called = call(["demo", "--data-dir", str(folder)], {})

    assert 2 == called.status
    assert "--data-dir" in called.err
    assert before == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    with pytest.raises(SettingsError):
        create_demo_folder(folder)

"""Created files are private to their owner under any umask; existing wider files are reported."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from connector.atomic_files import find_wide_permissions
from connector.sandbox.server import Sandbox
from tests.support.command import KEY, call, variables

COUNTS = {"jobs": 2, "candidates": 2}
PEOPLE = "First name,Last name,Email,Employment type\nAnn,Lee,ann@new.example,permanent\n"


def find_wide_modes(folder: Path) -> dict[str, str]:
    """Return the mode of each file and folder that other users can access, by path."""
    return {
        str(path.relative_to(folder)): oct(mode)
        for path in sorted(folder.rglob("*"))
        if (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077
    }


def test_every_created_file_is_private_to_its_owner(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    former = os.umask(0)
    try:
        with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
            environ = variables(sandbox.base_url, tmp_path / "above" / "data")
            people.write_text(PEOPLE, encoding="utf-8")
            people.chmod(0o600)
            id = next(iter(sandbox.store.records("candidates")))
            for words in (
                "pull jobs candidates",
                f"push candidates {people} --mode create --apply",
                f"backup {tmp_path / 'kept' / 'here'}",
                "pull candidates",
                f"person purge {id} --apply",
                "status",
            ):
                if words == "pull candidates":
                    sandbox.store.delete("candidates", id)
                assert 0 == call(words.split(), environ).status, words
    finally:
        os.umask(former)

    made = {path.name for path in tmp_path.rglob("*")}
    assert {"work.duckdb", "state.sqlite", "recruitment.duckdb"} <= made
    assert {} == find_wide_modes(tmp_path)


def test_files_with_wider_permissions_are_reported_and_unchanged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    for name in ("state.sqlite", "recruitment.duckdb"):
        (data / name).touch()
        (data / name).chmod(0o644)
    data.chmod(0o755)
    (data / "state.sqlite").unlink()
    environ = variables(None, data, None)

    status = call(["status"], environ)
    doctor = call(["doctor", "--json"], environ)

    assert f"Warning: other users can open {data} (mode 0755)" in status.err
    assert "chmod 700" in status.err
    (check,) = (each for each in doctor.object["checks"] if each["name"] == "permissions")
    assert "warning" == check["state"]
    assert 0o755 == stat.S_IMODE(data.stat().st_mode)
    (data / "work.duckdb").touch(mode=0o644)
    assert ["data", "work.duckdb"] == [each.path.name for each in find_wide_permissions(data)]
    data.chmod(0o700)
    assert [] == list(find_wide_permissions(data))

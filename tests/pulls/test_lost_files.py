"""Files of a data folder that are gone: what a pull says about them."""

from __future__ import annotations

from pathlib import Path

from connector.sandbox.server import Sandbox
from tests.support.agency import differences
from tests.support.command import KEY, CommandResult, call, start, variables


def test_a_folder_without_its_two_databases_is_read_again_and_says_so(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 3}, keys={KEY: ("*",)}) as sandbox:
        data = tmp_path / "data"
        environ = variables(sandbox.base_url, data)
        first = call(["pull", "jobs"], environ)
        for name in ("work.duckdb", "recruitment.duckdb"):
            (data / name).unlink()
        # A process of its own: tests in this process begin with a copy of an empty work file.
        with start(["pull", "jobs"], environ) as process:
            out, err = process.communicate()
        again = CommandResult(process.returncode, out, err)
        last = call(["pull", "jobs"], environ)
        found = differences(sandbox, data / "recruitment.duckdb")

    said = "work.duckdb and recruitment.duckdb were missing, but other files of the account exist"
    assert [False, True, False] == [said in each.err for each in (first, again, last)]
    assert "The pull reads every record" in again.err
    assert [0, 0, 0] == [each.status for each in (first, again, last)]
    assert [] == found

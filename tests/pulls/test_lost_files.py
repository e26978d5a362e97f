"""Pulls report lost files of a data folder."""

from __future__ import annotations

from pathlib import Path

from connector.sandbox.server import Sandbox
from tests.support.agency import differences
from tests.support.command import KEY, CommandResult, call, start, variables


def test_a_pull_after_losing_both_databases_reads_everything_and_reports_it(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 3}, keys={KEY: ("*",)}) as sandbox:
        data = tmp_path / "data"
        environ = variables(sandbox.base_url, data)
        first = call(["pull", "jobs"], environ)
        for name in ("work.duckdb", "recruitment.duckdb"):
            (data / name).unlink()
        # A separate process: tests in this process begin with a copy of an empty work file.
        with start(["pull", "jobs"], environ) as process:
            out, err = process.communicate()
        again = CommandResult(process.returncode, out, err)
        last = call(["pull", "jobs"], environ)
        found = differences(sandbox, data / "recruitment.duckdb")

    message = (
        "work.duckdb and recruitment.duckdb were missing, but other files of the account exist"
    )
    assert [False, True, False] == [message in each.err for each in (first, again, last)]
    assert "The pull reads every record" in again.err
    assert [0, 0, 0] == [each.status for each in (first, again, last)]
    assert [] == found

"""Unattended runs: quiet on success, run and account in the log, and one bar per phase."""

from __future__ import annotations

import json

import pytest

from connector.cli.terminal import ProgressBar
from connector.models.runner import BuiltModel
from connector.pulls.report import Progress
from connector.sandbox.server import Sandbox
from tests.support.command import COUNTS, KEY, CommandResult, call, variables


@pytest.fixture(scope="module")
def pulls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CommandResult]:
    """Results of pulls: quiet, with --reverify, with a JSON log, and with a rejected key."""
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path_factory.mktemp("data"))
        environ["CONNECTOR_MODELS"] = "off"
        return {
            "quiet": call(["pull", "--quiet"], environ),
            "reverify": call(["pull", "candidates", "--reverify", "5"], environ),
            "json": call(["pull", "jobs"], environ | {"CONNECTOR_LOG": "json"}),
            "refused": call(["pull", "--quiet"], environ | {"CONNECTOR_API_KEY": "revoked"}),
        }


def test_quiet_prints_only_errors(pulls: dict[str, CommandResult]) -> None:
    assert (0, "", "") == (pulls["quiet"].status, pulls["quiet"].out, pulls["quiet"].err)
    assert (1, "") == (pulls["refused"].status, pulls["refused"].out)
    assert "Error: GET /api/v1/" in pulls["refused"].err
    assert "Check CONNECTOR_API_KEY" in pulls["refused"].err


def test_a_pull_with_reverify_reports_the_verified_records(pulls: dict[str, CommandResult]) -> None:
    assert "No changes. 5 records re-verified, no differences (" in pulls["reverify"].err


def test_json_log_lines_contain_the_run_and_the_account(pulls: dict[str, CommandResult]) -> None:
    lines = [json.loads(line) for line in pulls["json"].err.splitlines()]
    (resource,) = [line for line in lines if "resource" in line]

    assert ("jobs", "jobs done") == (resource["resource"], resource["message"])
    assert {None} == {line["account"] for line in lines}
    assert 1 == len({line["run_id"] for line in lines if "run_id" in line})
    assert any(line["message"].startswith("No changes") and line["requests"] for line in lines)


class RecordingBar(ProgressBar):
    """Progress bar that records the completed and total steps of each phase."""

    def __init__(self) -> None:
        super().__init__()
        self.phases: list[list[int]] = []

    def begin(self, doing: str, total: int | None = None) -> None:
        """Start a phase."""
        self.phases.append([0, total or 0])

    def update(self, doing: str, *, total: int | None = None, steps: int | None = None) -> None:
        """Add the steps to the phase; `total` replaces its total."""
        phase = self.phases[-1]
        phase[:] = phase[0] + (steps or 0), phase[1] if total is None else total


def test_the_progress_bar_of_each_phase_never_exceeds_its_total() -> None:
    bar = RecordingBar()
    for name, count in (("jobs", 40), ("candidates", 300)):
        bar(Progress(name))
        for read in range(0, count + 1, 20):
            bar(Progress(name, read=read, pending=count - read, requests=read))
    built = BuiltModel("fct_jobs", "marts", "table", 3, 0.1)
    for _ in range(2):
        bar.on_build(built, 2)

    assert [[40, 40], [300, 300], [2, 2]] == bar.phases

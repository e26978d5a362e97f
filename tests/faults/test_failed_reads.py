"""Failed and slow responses to reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.client.session import Limits
from connector.pulls import streams
from connector.pulls.streams import UNREAD_MAX
from connector.sandbox.faults import Drip, HtmlPage, Status
from connector.sandbox.server import Sandbox
from tests.faults.network_faults import DETAILS, LISTS, add_fault
from tests.support.agency import differences, published
from tests.support.clock import Time, count_deleted_candidates, pull_until_done, pulled

COUNTS = {"candidates": 110, "jobs": 6, "content_types": 2, "content_items": 4}
FEW = {"candidates": 40, "jobs": 4}


def test_server_errors_at_thirty_percent_leave_an_exact_copy(tmp_path: Path) -> None:
    time = Time()
    with Sandbox(counts=COUNTS, clock=time.server_now) as sandbox:
        # Each fault is drawn only if the ones before it did not occur: 30 % of all requests fail.
        for fault, share in (
            (Status(500), 0.075),
            (HtmlPage(502), 0.0811),
            (Status(503), 0.0882),
            (HtmlPage(504), 0.0968),
        ):
            sandbox.faults.add(fault, method="GET", times=None, probability=share)
        reports = pull_until_done(sandbox, tmp_path, time=time, runs_max=6)

        assert "done" == reports[-1].outcome, reports[-1].as_json()
        assert [] == differences(sandbox, published(tmp_path))
        failed = sum(each.status in (500, 502, 503, 504) for each in sandbox.log)
        assert 0.2 < failed / len(sandbox.log) < 0.4
        assert len(sandbox.log) == sum(each.requests for each in reports)
        assert max(time.waits) <= 30
        assert sum(time.waits) <= 20 * failed
        assert 0 == count_deleted_candidates(tmp_path)


@pytest.mark.parametrize("path", [LISTS, DETAILS], ids=["list", "detail"])
def test_a_slowly_dripping_response_fails_at_the_deadline_and_is_requested_again(
    tmp_path: Path, path: str
) -> None:
    limits = Limits(deadline_seconds=1.0)
    with Sandbox(counts={"candidates": 8}) as sandbox:
        clean = pulled(sandbox, tmp_path / "clean", "candidates")
        # Eight parts; the first seven arrive before the deadline.
        drip = sandbox.faults.add(Drip(0.14), path=path)
        report = pulled(sandbox, tmp_path, "candidates", limits=limits)

        assert 1 == drip.hits
        assert "done" == report.outcome, report.as_json()
        assert clean.requests + 1 == report.requests
        assert len(sandbox.log) == clean.requests + report.requests
        assert [] == differences(sandbox, published(tmp_path))


def test_a_pull_whose_reads_keep_failing_ends_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BATCH_SECONDS_MAX", -1.0)
    time = Time()
    with Sandbox(counts={"candidates": 60}, clock=time.server_now) as sandbox:
        add_fault(sandbox, Status(500), DETAILS)
        report = pulled(sandbox, tmp_path, "candidates", time=time)

        assert ("failed", "server_failed") == (
            report.outcome,
            report.resources["candidates"].error_code,
        )
        assert report.requests <= 1 + 5 * (UNREAD_MAX + 4)

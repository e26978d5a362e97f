"""Budgets, quotas and server failures stop a push early."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from connector.pushes.run import Report
from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import CANDIDATES, Pusher, list_emails, list_writes, make_creates
from tests.support.clock import Time


def count_outcomes(report: Report) -> dict[str, int]:
    """Return the number of rows by outcome; assert that they add up to all rows."""
    counts = {str(outcome): count for outcome, count in report.counts.items()}
    assert sum(counts.values()) == len(report.rows)
    return counts


def test_a_push_stops_at_the_monthly_quota_and_continues_next_month(tmp_path: Path) -> None:
    time = Time()
    with Sandbox(clock=time.server_now) as sandbox:
        limits = {"monthly_requests": 8, "billing_day": 1}
        pusher = Pusher(sandbox, tmp_path, time, **limits)
        first = pusher.push(make_creates(10))
        sent = len(sandbox.log)
        pusher.time.pass_minutes(timedelta(days=31).total_seconds() / 60)
        second = pusher.push(make_creates(10))

    assert ("stopped", 4, 8) == (first.outcome, first.exit_status, sent)
    assert {"created": 7, "not_sent": 3} == count_outcomes(first)
    assert {"created": 10} == count_outcomes(second)


def test_a_missing_scope_stops_the_push_and_is_named(tmp_path: Path) -> None:
    keys = {"reader": ("candidates.read",)}
    with Sandbox(keys=keys) as sandbox:
        report = Pusher(sandbox, tmp_path, connections=1).push(make_creates(5))
        sent = len(list_writes(sandbox))

    assert ("failed", 1, 1) == (report.outcome, report.exit_status, sent)
    assert report.error is not None
    assert "candidates.write" in report.error.action
    assert {"not_sent": 5} == count_outcomes(report)


def test_a_push_stops_if_the_server_stops_answering(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path, connections=1)
        sandbox.faults.add(Drop("applied"), method="POST", path=CANDIDATES, times=None)
        first = pusher.push(make_creates(12))
        sent = len(list_writes(sandbox))
        sandbox.faults.clear()
        second = pusher.push(make_creates(12))
        made = list_emails(sandbox)

    assert ("failed", 1, 5) == (first.outcome, first.exit_status, sent)
    assert first.error is not None
    assert "in_doubt" == first.error.code
    # Four records were found immediately; the fifth request ended the push.
    assert {"created": 4, "held": 1, "not_sent": 7} == count_outcomes(first)
    assert {"created": 12} == count_outcomes(second)
    assert 12 == len({*made}) == len(made)


def test_an_unreachable_server_leaves_no_row_in_doubt(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        sandbox.stop()
        first = pusher.push(make_creates(3))
        sandbox.start()
        second = pusher.push(make_creates(3))

    assert ("failed", 1) == (first.outcome, first.exit_status)
    assert first.error is not None
    assert "connection_refused" == first.error.code
    assert {"not_sent": 3} == count_outcomes(first)
    assert {"created": 3} == count_outcomes(second)

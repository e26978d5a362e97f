"""And what ends a push early besides."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from connector.errors import Misused
from connector.errors_api import LeaseHeld
from connector.ledger.journal_writer import PUSH_LEASE
from connector.ledger.lease import LeaseOwner
from connector.ledger.ledger import Ledger
from connector.ledger.quota import MonthUse
from connector.pulls.outcome import Progress
from connector.pushes.batch_report import BatchReport
from connector.sandbox.faults import Drop, Limited, Status
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    create,
    creates,
    emails,
    file_of,
    listed,
    outcomes,
    writes,
)
from tests.support.agency import settings_of
from tests.support.clock import Time


def counted(report: BatchReport) -> dict[str, int]:
    """The counts, which add up to the rows."""
    counts = {str(outcome): count for outcome, count in report.counts.items()}
    assert sum(counts.values()) == len(report.rows)
    return counts


def test_a_budget_ends_a_push_before_the_send(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        first = pusher.push(creates(10), budget=5)
        sent = len(sandbox.log)
        second = pusher.push(creates(10), budget=5)
        third = pusher.push(creates(10))
        made = emails(sandbox)

    assert ("stopped", 4, 5) == (first.outcome, first.exit_status, sent)
    assert {"created": 4, "not_sent": 6} == counted(first)
    assert {"created": 8, "not_sent": 2} == counted(second)
    assert (0, {"created": 10}) == (third.exit_status, counted(third))
    assert first.batch == second.batch == third.batch
    assert sorted(task.fields["email"] for task in creates(10)) == made


def test_a_budget_ends_an_update_after_its_comparison(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path, connections=1)
        rows = [create(2, status="screening"), create(3)]
        first = pusher.push(rows, budget=2)
        second = pusher.push(rows)
        made = {
            each["email"]: each["status"] for each in sandbox.store.records("candidates").values()
        }

    assert {2: "not_applied", 3: "not_sent"} == outcomes(first)
    assert listed(first)[0].record_id is not None
    assert {2: "created", 3: "created"} == outcomes(second)
    assert {"ann2@example.com": "screening", "ann3@example.com": "new_lead"} == made


def test_the_months_allowance_is_never_passed(tmp_path: Path) -> None:
    time = Time()
    with Sandbox(clock=time.servers) as sandbox:
        limits = {"monthly_requests": 8, "monthly_reserve_requests": 0, "billing_day": 1}
        pusher = Pusher(sandbox, tmp_path, time, **limits)
        first = pusher.push(creates(10))
        sent = len(sandbox.log)
        pusher.time.pass_minutes(timedelta(days=31).total_seconds() / 60)
        second = pusher.push(creates(10))

    assert ("stopped", 4, 8) == (first.outcome, first.exit_status, sent)
    assert {"created": 7, "not_sent": 3} == counted(first)
    assert isinstance(first.month, MonthUse)
    assert 8 == first.month.used
    assert {"created": 10} == counted(second)


def test_a_budget_of_nothing_is_refused(tmp_path: Path) -> None:
    with Sandbox() as sandbox, pytest.raises(Misused, match="--max-requests is 0"):
        Pusher(sandbox, tmp_path).push(creates(1), budget=0)


def test_a_second_push_sends_nothing(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        with Ledger(pusher.settings.folder) as ledger:
            now = pusher.time.ours()
            ledger.take_lease("pull", LeaseOwner.of_this_process("p", "pull"), now)
            ledger.take_lease(PUSH_LEASE, LeaseOwner.of_this_process("other", "push"), now)
            with pytest.raises(LeaseHeld, match=r"another push is running: .*run other"):
                pusher.push(creates(2))
            assert [] == sandbox.log
            with pusher.journal() as journal:
                assert () == journal.batches()
            ledger.release_lease(PUSH_LEASE, "other")
            report = pusher.push(creates(2))
            assert ["pull"] == [each.name for each in ledger.leases()]

    assert {"created": 2} == counted(report)


def test_a_push_that_lost_its_turn_sends_no_more(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path, connections=1)

        def between(_: Any) -> None:
            if len(writes(sandbox)) == 3:
                pusher.time.pass_minutes(3)
                with Ledger(pusher.settings.folder) as ledger:
                    owner = LeaseOwner.of_this_process("other", "push")
                    ledger.take_lease(PUSH_LEASE, owner, pusher.time.ours())

        sandbox.between = between
        report = pusher.push(creates(10))
        sent = len(writes(sandbox))
        with Ledger(pusher.settings.folder) as ledger:
            assert ["other"] == [each.owner.run_id for each in ledger.leases()]
            ledger.release_lease(PUSH_LEASE, "other")
        sandbox.between = None
        second = pusher.push(creates(10))
        made = emails(sandbox)

    assert ("stopped", 4) == (report.outcome, report.exit_status)
    assert report.error is not None
    assert "lease_lost" == report.error.code
    assert sent <= 4
    assert {"created": 10} == counted(second)
    assert 10 == len({*made}) == len(made)


def test_a_key_that_is_refused_ends_the_push(tmp_path: Path) -> None:
    """401: nothing was applied, so that no row is blamed; all are sent once the key is right."""
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path, connections=1)
        sandbox.faults.add(Status(401), method="POST", nth=3)
        first = pusher.push(creates(5))
        sent = len(writes(sandbox))
        second = pusher.push(creates(5))

    assert ("failed", 1, 3) == (first.outcome, first.exit_status, sent)
    assert first.error is not None
    assert "unauthorized" == first.error.code
    assert {"created": 2, "not_sent": 3} == counted(first)
    assert {"created": 5} == counted(second)


def test_a_scope_that_is_missing_ends_the_push(tmp_path: Path) -> None:
    keys = {"reader": ("candidates.read",)}
    with Sandbox(keys=keys) as sandbox:
        report = Pusher(sandbox, tmp_path, connections=1).push(creates(5))
        sent = len(writes(sandbox))

    assert ("failed", 1, 1) == (report.outcome, report.exit_status, sent)
    assert report.error is not None
    assert "candidates.write" in report.error.action
    assert {"not_sent": 5} == counted(report)


def test_a_server_that_answers_nothing_is_left_alone(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path, connections=1)
        sandbox.faults.add(Drop("applied"), method="POST", path=CANDIDATES, times=None)
        first = pusher.push(creates(12))
        sent = len(writes(sandbox))
        sandbox.faults.clear()
        second = pusher.push(creates(12))
        made = emails(sandbox)

    assert ("failed", 1, 5) == (first.outcome, first.exit_status, sent)
    assert first.error is not None
    assert "in_doubt" == first.error.code
    # Four were looked for at once and found; the fifth ended the push.
    assert {"created": 4, "held": 1, "not_sent": 7} == counted(first)
    assert {"created": 12} == counted(second)
    assert 12 == len({*made}) == len(made)


def test_a_server_that_is_down_sends_nothing_into_doubt(tmp_path: Path) -> None:
    """No connection: nothing was sent, so that nothing is in doubt."""
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        sandbox.stop()
        first = pusher.push(creates(3))
        sandbox.start()
        second = pusher.push(creates(3))

    assert ("failed", 1) == (first.outcome, first.exit_status)
    assert first.error is not None
    assert "unreachable" == first.error.code
    assert {"not_sent": 3} == counted(first)
    assert {"created": 3} == counted(second)


def test_a_429_is_no_attempt(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path, connections=1)
        sandbox.faults.add(Limited("missing"), method="POST", nth=2)
        report = pusher.push(creates(3))
        with pusher.journal() as journal:
            attempts = [each.number for each in journal.attempts(report.batch)]
        made = emails(sandbox)

    assert {"created": 3} == counted(report)
    assert (1, [2, 3, 4]) == (report.rate_limited, attempts)
    assert 3 == len(made)


def test_whoever_watches_is_told(tmp_path: Path) -> None:
    told: list[Progress] = []
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path, connections=2)
        sandbox.faults.add(Drop("none"), method="POST", nth=2)
        pusher.push(creates(4), watch=told.append)

    assert {("candidates", told[0].batch)} == {(each.resource, each.batch) for each in told}
    moved = [(each.read, each.pending) for each in told if each.until is None]
    assert [(n, 4 - n) for n in range(5)] == moved
    waits = [n for n, each in enumerate(told) if each.until is not None]
    assert [(3, 1)] == [(told[n].read, told[n].pending) for n in waits[:1]] == [moved[waits[0] - 1]]


def test_no_row_is_nothing_to_do(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        report = Pusher(sandbox, tmp_path).push(file_of(()))
        assert [] == sandbox.log
        assert settings_of(sandbox, tmp_path).folder.exists()

    assert ("done", 0, []) == (report.outcome, report.exit_status, [*report.rows])

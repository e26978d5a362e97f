"""Push health read from rows of the journal."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from connector.ledger.journal import Journal
from connector.ledger.journal_records import PushHealth, UnknownRows
from connector.ledger.journal_writer import PUSH_LEASE, JournalWriter
from connector.ledger.ledger import LeaseOwner, Ledger
from connector.ledger.push_plan import PushPlan, PushPolicy
from tests.alerts.agency import START


def test_an_empty_journal_reports_no_push_runs(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        assert PushHealth() == Journal(ledger).push_health()


def test_push_health_lists_the_last_run_per_resource_and_counts_unknown_rows(
    tmp_path: Path,
) -> None:
    with Ledger(tmp_path) as ledger:
        now = START
        for n, resource in enumerate(("jobs", "leads", "jobs")):
            now = START + timedelta(hours=n)
            run_id = f"b-{n}"
            ledger.take_lease(PUSH_LEASE, LeaseOwner.of_this_process(run_id, "push"), now)
            journal = JournalWriter(ledger, run_id, now=lambda moment=now: moment)  # type: ignore[misc]
            plan = PushPlan(resource, "create", f"{n}.csv", f"digest-{n}", (), ())
            journal.create_batch(plan, PushPolicy())
            if n < 2:
                journal.record_run_end(run_id, "partial", requests=1, seconds=1.0)
            ledger.release_lease(PUSH_LEASE, run_id)
        with ledger.writing() as connection:
            for number, (batch, state, undone_at) in enumerate(
                [
                    ("b-0", "rejected", None),
                    ("b-1", "invalid", None),
                    ("b-1", "conflict", None),
                    ("b-1", "rejected", START.isoformat()),
                    ("b-1", "applied", None),
                    ("b-1", "held", None),
                    ("b-1", "ambiguous", None),
                    ("b-2", "unknown", None),
                ]
            ):
                connection.execute(
                    "INSERT INTO push_rows (batch, number, state, code, is_begun, is_in_doubt,"
                    " is_altered, undone_at, moved_at, change) VALUES (?, ?, ?, '', 0, 0, 0, ?, ?,"
                    " 1)",
                    (
                        batch,
                        number,
                        state,
                        undone_at,
                        (START + timedelta(hours=number)).isoformat(),
                    ),
                )
        found = Journal(ledger).push_health()

    assert [
        ("b-2", "jobs", None, 0),
        ("b-1", "leads", "partial", 2),
        ("b-0", "jobs", "partial", 1),
    ] == [(each.batch, each.resource, each.outcome, each.refused) for each in found.runs]
    assert UnknownRows(2, START + timedelta(hours=5)) == found.held
    assert UnknownRows(1, START + timedelta(hours=7)) == found.open

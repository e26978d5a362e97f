"""Showing analysts what was pushed: the journal's rows beside those that have landed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from connector.errors import WarehouseError
from connector.ledger import Ledger
from connector.ledger.journal import Journal
from connector.ledger.push_reads import AttemptRecord, Changes, RowRecord
from connector.warehouse import Warehouse
from connector.warehouse.pushes import PushChanges


def publish(folder: Path) -> bool:
    """Copy what the journal has and the warehouse has not, and publish; a run has just prepared the
    files. False where that could not be done now: what was written is in the journal, and the next
    push shows it.
    """
    warehouse = Warehouse(folder)
    try:
        while not warehouse.copy_pushes(_changes(folder, warehouse.pushes_copied())):
            # Another push has copied meanwhile, and what it knew may be later than this.
            pass
        warehouse.publish()
    except WarehouseError:
        return False
    return True


def _changes(folder: Path, copied: int) -> PushChanges:
    """What has changed in the journal since that change of it."""
    with Ledger(folder) as ledger:
        journal = Journal(ledger)
        changes = journal.since(copied)
        if changes.last < copied:
            # Another journal has taken the place of the one that was copied.
            changes = journal.since(0)
    return _as_tables(changes, copied)


def _as_tables(changes: Changes, copied: int) -> PushChanges:
    """The changes as rows of the tables that analysts see."""
    return PushChanges(
        copied,
        batches=[asdict(each) for each in changes.batches],
        rows=[_row(each) for each in changes.rows],
        attempts=[_attempt(each) for each in changes.attempts],
        problems=[
            {"batch": row.batch, "number": row.number, "place": place, **asdict(problem)}
            for row in changes.rows
            for place, problem in enumerate(row.problems)
        ],
        before_images=[asdict(each) for each in changes.before_images],
    )


def _row(row: RowRecord) -> Mapping[str, Any]:
    same_batch, same_number = row.same or (None, None)
    return {**asdict(row), "same_batch": same_batch, "same_number": same_number}


def _attempt(attempt: AttemptRecord) -> Mapping[str, Any]:
    body = None if attempt.body is None else attempt.body.decode("utf-8")
    return {**asdict(attempt), "body": body}

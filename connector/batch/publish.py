"""Showing analysts what was pushed: the journal's rows beside those that have landed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from connector.errors import ConnectorError
from connector.ledger import Ledger
from connector.ledger.journal import Journal
from connector.ledger.push_reads import AttemptRecord, Changes, RowRecord
from connector.publication import publish as publish_file
from connector.settings import Settings
from connector.warehouse import Warehouse
from connector.warehouse.pushes import PushChanges


def publish(settings: Settings) -> ConnectorError | None:
    """Copy what the journal has and the warehouse has not, and publish; a run has just prepared the
    files. Returns what kept it from being done now, None where nothing did: what was written is in
    the journal, and the next publication shows it.
    """
    try:
        copy(settings)
        publish_file(settings)
    except ConnectorError as error:
        return error
    return None


def copy(settings: Settings) -> None:
    """Copy what the journal has and the warehouse has not. Raises a `WarehouseError`."""
    folder = settings.folder
    warehouse = Warehouse(folder)
    while not warehouse.copy_pushes(_changes(folder, warehouse.pushes_copied())):
        # Another push has copied meanwhile, and what it knew may be later than this.
        pass


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

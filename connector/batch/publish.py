"""Showing analysts what was pushed: the journal's rows beside those that have landed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, fields
from typing import Any

from connector.engine.push_plan import RowProblem
from connector.errors import ConnectorError
from connector.ledger import Ledger
from connector.ledger.journal import Journal
from connector.ledger.push_reads import AttemptRecord, BeforeImage, Changes, RowRecord
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
    warehouse = Warehouse(settings.folder)
    with Ledger(settings.folder) as ledger:
        journal, is_copied = Journal(ledger), False
        while not is_copied:
            copied = warehouse.pushes_copied()
            with closing(journal.since(copied)) as changes:
                # False where another push has copied meanwhile: what it knew may be later.
                is_copied = warehouse.copy_pushes(copied, map(_as_tables, changes))


def _as_tables(changes: Changes) -> PushChanges:
    """The changes as rows of the tables that analysts see."""
    return PushChanges(
        batches=[asdict(each) for each in changes.batches],
        rows=[_row(each) for each in changes.rows],
        attempts=[_attempt(each) for each in changes.attempts],
        problems=[
            {"batch": row.batch, "number": row.number, "place": place, **_shown(problem)}
            for row in changes.rows
            for place, problem in enumerate(row.problems)
        ],
        before_images=[_shown(each) for each in changes.before_images],
    )


def _shown(value: RowRecord | AttemptRecord | BeforeImage | RowProblem) -> dict[str, Any]:
    """The fields by their names. There may be a million of them: no value is copied."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


def _row(row: RowRecord) -> Mapping[str, Any]:
    same_batch, same_number = row.same or (None, None)
    return {**_shown(row), "same_batch": same_batch, "same_number": same_number}


def _attempt(attempt: AttemptRecord) -> Mapping[str, Any]:
    body = None if attempt.body is None else attempt.body.decode("utf-8")
    return {**_shown(attempt), "body": body}

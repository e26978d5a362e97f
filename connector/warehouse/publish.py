"""Draft of a publication: the work file, with whole tables of the state for analysts.

A file is replaced by copy, sync, atomic rename and sync of the folder: a reader with the old file
open keeps reading it, a new reader opens the new one, and a crash leaves one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from connector.catalog.field import parse_datetime
from connector.errors import WarehouseError
from connector.state.database import Database, to_record
from connector.state.database import columns as columns_of
from connector.state.journal import Batch, Journal
from connector.state.quota import RequestUse, billing_period, request_uses
from connector.state.row import to_columns
from connector.state.runs import Publication, ResourceRun, Run
from connector.warehouse.file import (
    Connection,
    open_file,
    open_read_only,
    quoted,
    remove_file,
    run_staged,
    transaction,
)
from connector.warehouse.schema import (
    Table,
    as_json,
    columns,
    complete_tables,
    create_table,
    record_columns,
    replace_surrogates,
)
from connector.warehouse.warehouse import Warehouse

_RUN = columns({"run_id VARCHAR": "The run (`sync.runs.run_id`)."})
_RESOURCE = "The resource, by the name of its table in `landing`."

STATE_TABLES = (
    Table("sync.runs", (*record_columns(Run),), str(Run.__doc__)),
    Table("sync.run_resources", (*_RUN, *record_columns(ResourceRun)), str(ResourceRun.__doc__)),
    Table("sync.events", columns({
        "run_id VARCHAR": "The run (`sync.runs.run_id`).",
        "seen_at TIMESTAMPTZ": "Time of the event.",
        "resource VARCHAR": _RESOURCE,
        "parent VARCHAR": "Content type of the items; null for other resources.",
        "id VARCHAR": "Id of the record that the event is about. Null if it is about several.",
        "kind VARCHAR": "Kind of the event; docs/PULL.md explains each kind.",
        "detail VARCHAR": "Details, such as the name of an unknown field.",
    }), "Unusual findings of pulls, such as deletions and unknown fields or values."),
    Table("sync.quota", (*columns({
        "cycle_begins DATE": "First day of the billing cycle that the day belongs to.",
    }), *record_columns(RequestUse)), str(RequestUse.__doc__)),
    Table("sync.publications", (*record_columns(Publication),), str(Publication.__doc__)),
    Table("push.batches", (*record_columns(Batch),), str(Batch.__doc__)),
    Table("push.rows", columns({
        "batch VARCHAR": "The pushed file's batch (`push.batches.batch`).",
        "number BIGINT": "Row number in the spreadsheet; the headings are row 1.",
        "resource VARCHAR": _RESOURCE,
        "operation VARCHAR": "Operation: `create`, `update` or `convert`; null if the row was "
        "rejected before.",
        "state VARCHAR": "State of the row (docs/PUSH.md).",
        "outcome VARCHAR": "Outcome in the report.",
        "code VARCHAR": "Code of the problem (docs/IMPORT.md), or empty.",
        "record_id VARCHAR": "Created or changed record.",
        "updated_at TIMESTAMPTZ": "The record's `updated_at` after the row's last write.",
        "same_batch VARCHAR": "Batch of the row whose values this row repeats.",
        "same_number BIGINT": "Number of the row whose values this row repeats.",
        "moved_at TIMESTAMPTZ": "Time of the last change of state.",
        "undone_at TIMESTAMPTZ": "Time of the undo, or null.",
        "before JSON": "The record before an update, or as the create made it.",
        "after JSON": "Values that the row writes, with personal data.",
        "answer JSON": "Problems, warnings, and the attempts to send the row: each with its "
        "exact body, its time and its end.",
    }), "One row per row of a pushed file, with its state and its record."),
)  # fmt: skip
"""Tables of the state that are copied as a whole, with the columns for analysts."""


def make_draft(warehouse: Warehouse, draft: Path, database: Database, billing_day: int) -> None:
    """Copy the work file and the tables of the state to a new file `draft`.

    The caller holds the account's lock. Raises a `WarehouseError`.
    """
    remove_file(draft)
    warehouse.copy_to(draft)
    journal = Journal(database)
    rows: dict[str, list[Mapping[str, Any]]] = {
        "sync.quota": [
            {**columns_of(each), "cycle_begins": billing_period(each.day, billing_day).begins}
            for each in request_uses(database)
        ],
        # A row that follows another one is shown with the outcome of that row.
        "push.rows": [
            to_columns(row) for each in journal.batches() for row in journal.rows(each.batch)
        ],
    }
    with open_file(draft) as connection, transaction(connection):
        for table in STATE_TABLES:
            stored = f"SELECT * FROM {table.name.split('.')[1]}"
            found = rows[table.name] if table.name in rows else map(dict, database.rows(stored))
            create_table(connection, table)
            insert_rows(connection, table, found)


def create_published_tables(connection: Connection) -> None:
    """Create all tables that a published file has before the models, without rows."""
    complete_tables(connection, "the new file")
    for table in STATE_TABLES:
        create_table(connection, table)


def insert_rows(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows of the state into a table; columns that analysts do not need are left out."""
    stored = list(rows)
    stage = {
        each.name: [_value(row[each.name], each.type) for row in stored] for each in table.columns
    }
    run_staged(connection, stage, f"INSERT INTO {quoted(table.name)} BY NAME SELECT * FROM stage")


def _value(value: Any, type: str) -> Any:
    """Return a value of the state for a column of this type."""
    if value is None:
        return None
    if type == "JSON":
        return as_json(value)
    if type.endswith("[]"):
        return list(value)
    if isinstance(value, str) and type == "TIMESTAMPTZ":
        with suppress(ValueError, OverflowError):  # A text of the API may be no timestamp.
            return parse_datetime(value)
        return None
    return replace_surrogates(value) if isinstance(value, str) else value


_PUBLICATIONS = next(each for each in STATE_TABLES if each.name == "sync.publications")


def own_publication(path: Path) -> Publication | None:
    """Return the publication that a published file contains, with the file's size.

    None if there is no file, or if it was published without the schema `sync`.
    """
    if not path.exists():
        return None
    names = [each.name for each in _PUBLICATIONS.columns]
    try:
        with open_read_only(path) as connection:
            found = connection.execute(
                f"SELECT {', '.join(names)} FROM sync.publications ORDER BY started_at DESC LIMIT 1"
            ).fetchall()
    except (WarehouseError, duckdb.Error):
        return None
    for row in found:
        values = dict(zip(names, row, strict=True)) | {"bytes": path.stat().st_size}
        return to_record(Publication, values)
    return None


def write_publication(connection: Connection, publication: Publication) -> None:
    """Replace the record of a publication in its draft."""
    connection.execute(
        "DELETE FROM sync.publications WHERE publication = ?", [publication.publication]
    )
    insert_rows(connection, _PUBLICATIONS, [columns_of(publication)])


def data_time(connection: Connection) -> datetime | None:
    """Return the time of the data in a draft, which the models use as "now".

    It is the latest time up to which a resource is verified, or the time of the last run before
    the first verification.
    """
    row: tuple[datetime | None] | None = connection.execute(
        "SELECT coalesce((SELECT max(proven_at) FROM sync.bookmarks), "
        "(SELECT max(coalesce(ended_at, started_at)) FROM sync.runs))"
    ).fetchone()
    return row[0] if row is not None else None

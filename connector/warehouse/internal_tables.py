"""Declarations and rows of the connector's own tables, `sync` and `push`.

Each table is declared once: its columns, their types and their descriptions for analysts. To add a
column, add one line here; `schema.complete_tables` adds it to existing files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

import duckdb

from connector.warehouse.duckdb_file import from_microseconds, quoted, to_iso

T = TypeVar("T")

_RUN = "The run (`sync.runs.run_id`)."
_RESOURCE = "The resource, by the name of its table in `landing`."
_PARENT = "Content type of the items; null for other resources."
_CODE = "Error code if it ended early (docs/ERRORS.md), else null."
_MESSAGE = "Error message if it ended early, else null."
_BATCH = "The pushed file's batch (`push.batches.batch`)."
_NUMBER = "Row number in the spreadsheet; the headings are row 1."
_STEP = "Write of the row: `create`, `update` or `convert`."
_CHANGE = "Number of the last change in the journal. A later change has a greater number."

OWN_TABLES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "sync.schema_version": (
        "Format of the file: one row.",
        {
            "version BIGINT": (
                "Version of the file format. Older versions of the connector cannot open a file "
                "with a greater number."
            )
        },
    ),
    "sync.folder": (
        "Data folder of the file: one row.",
        {
            "folder VARCHAR": "Random name of the data folder; `state.sqlite` has the same.",
            "address VARCHAR": "Address of the workspace whose records are in the file.",
            "written_by VARCHAR": "Version of the connector that wrote the file last.",
        },
    ),
    "sync.runs": (
        "One row per run, with its outcome and requests.",
        {
            "run_id VARCHAR": "Id of the run: its start time (UTC) and random characters.",
            "command VARCHAR": "Command of the run: `pull`, `push`, `dagster` and so on.",
            "started_at TIMESTAMPTZ": "Start time.",
            "ended_at TIMESTAMPTZ": "End time; null while it is running.",
            "outcome VARCHAR": "Outcome: `done`, `partial`, `stopped`, `failed` or "
            "`interrupted`; null while it is running.",
            "seconds DOUBLE": "Duration.",
            "waited_seconds DOUBLE": "Total time that its requests waited for the rate limit.",
            "requests BIGINT": "Number of requests, including retries.",
            "rate_limited BIGINT": "Responses with status 429.",
            "error_code VARCHAR": _CODE,
            "message VARCHAR": _MESSAGE,
            "budget BIGINT": "Maximum number of requests; null if there is no limit.",
            "month_share DOUBLE": "Requests divided by `monthly_requests`; null if that is "
            "not set.",
        },
    ),
    "sync.run_resources": (
        "One row per run and resource, with records by change and requests by kind.",
        {
            "run_id VARCHAR": _RUN,
            "resource VARCHAR": _RESOURCE,
            "outcome VARCHAR": "Outcome: `done`, `partial`, `stopped`, `failed`, `skipped`, "
            "or `not_started` if the run ended before this resource.",
            "proven BOOLEAN": "True if the records are verified until `bookmark_after`.",
            "requests BIGINT": "Number of requests for the resource, including retries.",
            "lists BIGINT": "Requests that read a page of a list.",
            "details BIGINT": "Requests that read one record.",
            "new BIGINT": "New records.",
            "changed BIGINT": "Changed records.",
            "unchanged BIGINT": "Records that were read and had not changed.",
            "deleted BIGINT": "Records that were found deleted.",
            "live BIGINT": "Loaded records that are not deleted, after the run.",
            "total BIGINT": "Number of records that the API's last list reported. Null if no list "
            "was read.",
            "pending BIGINT": "Records that must still be read.",
            "bookmark_before TIMESTAMPTZ": "Server time until which the resource was "
            "verified before the run.",
            "bookmark_after TIMESTAMPTZ": (
                "Server time until which the resource is verified after the run."
            ),
            "error_code VARCHAR": _CODE,
            "message VARCHAR": "Reason why it is not verified, or why it ended early.",
            "sweeps BIGINT DEFAULT 0": "Requests that searched for deleted and missing records.",
            "scrubs BIGINT DEFAULT 0": "Requests that re-verified records.",
            "waited_seconds DOUBLE DEFAULT 0": "Total time that requests waited for the rate "
            "limit.",
            "rate_limited BIGINT DEFAULT 0": "Responses with status 429.",
            "lateness_seconds DOUBLE": "Lateness: the longest time until a change becomes "
            "visible, as observed so far.",
            "oldest_read_at TIMESTAMPTZ": "Time of the oldest reading among the live records.",
            "anomalies JSON DEFAULT '{}'": "Number of the run's events (sync.events) by "
            "kind, without deletions.",
            "month_share DOUBLE": "Requests divided by `monthly_requests`; null if that is "
            "not set.",
        },
    ),
    "sync.bookmarks": (
        (
            "One row per stream (a resource or the items of a content type): until when it "
            "is verified."
        ),
        {
            "resource VARCHAR": _RESOURCE,
            "parent VARCHAR": _PARENT,
            "proven_at TIMESTAMPTZ": "Server time until which the stream is verified (R); "
            "null if never.",
            "lateness_seconds DOUBLE": "Lateness (L): records with `updated_at` up to "
            "`proven_at` less this time are verified.",
            "opened_at TIMESTAMPTZ": (
                "Server time at which an unfinished pull of the stream started."
            ),
            "load_page BIGINT": "Pages that a first load has loaded; null if there is no "
            "first load.",
            "verify_page BIGINT": "Pages that a first load has checked again; null if there "
            "is no first load.",
            "run_id VARCHAR": "Run that wrote the row (`sync.runs.run_id`).",
            "scrubbed_to TIMESTAMPTZ": "The current round of re-verification has read the records "
            "up to this `created_at`. Null at the start of a round.",
            "alarms BIGINT DEFAULT 0": ("Number of pulls in a row that found the list unsorted."),
            "late_seconds_seen DOUBLE DEFAULT 0": "Longest observed time until a change "
            "became visible.",
            "unsorted_at TIMESTAMPTZ": "Server time at which the API last did not sort the list; "
            "null if it sorts.",
            "deletions BIGINT DEFAULT 0": "Deletions since the stream was last verified.",
            "is_total_exact BOOLEAN DEFAULT FALSE": "True if the list's total agreed with its rows "
            "when its end was last read.",
            "closed_by VARCHAR": "Id of the record at which the last verified reading of the list "
            "ended.",
            "closed_floor TIMESTAMPTZ": "Smallest `updated_at` of the last verified reading of the "
            "list.",
            "clock_ahead_seconds DOUBLE": "Difference of the server's clock to this "
            "machine's clock at the last verification.",
        },
    ),
    "sync.queue": (
        "Records that must be read or read again, with the reason.",
        {
            "resource VARCHAR": _RESOURCE,
            "parent VARCHAR": _PARENT,
            "id VARCHAR": "Record that must be read.",
            "reason VARCHAR": "Reason for reading it.",
            "created_at TIMESTAMPTZ": "The record's `created_at`.",
            "error_code VARCHAR": "Error code of the last failed attempt (docs/ERRORS.md); "
            "null if no attempt failed.",
            "error VARCHAR": "Error message of the last failed attempt.",
            "failed_runs BIGINT DEFAULT 0": "Number of runs in which the reading failed.",
            "failed_since TIMESTAMPTZ": "Time of the first failed attempt.",
            "run_id VARCHAR": "Last run in which the reading failed (`sync.runs.run_id`).",
        },
    ),
    "sync.events": (
        "Unusual findings of pulls, such as deletions and unknown fields or values.",
        {
            "run_id VARCHAR": _RUN,
            "seen_at TIMESTAMPTZ": "Time of the event.",
            "resource VARCHAR": _RESOURCE,
            "parent VARCHAR": _PARENT,
            "id VARCHAR": "Id of the record that the event is about. Null if it is about several.",
            "kind VARCHAR": "Kind of the event; docs/PULL.md explains each kind.",
            "detail VARCHAR": "Details, such as the name of an unknown field.",
        },
    ),
    "sync.quota": (
        "Requests spent with this folder's key: one row per day (UTC), command and kind of "
        "request.",
        {
            "cycle_begins DATE": "The first day of the billing cycle that the day belongs to.",
            "day DATE": "The day, in UTC.",
            "command VARCHAR": "Command: `pull`, `push` and so on.",
            "kind VARCHAR": "Kind of request. `unsettled`: requests that a running or interrupted "
            "run counted in advance. Not all of them may have been sent.",
            "requests BIGINT": "Number of requests.",
        },
    ),
    "sync.publications": (
        "One row per attempt to publish. In the published file, the latest row is its own.",
        {
            "publication VARCHAR": (
                "Id of the attempt: its start time (UTC) and random characters."
            ),
            "started_at TIMESTAMPTZ": "Start time.",
            "ended_at TIMESTAMPTZ": "End time; null while it is running.",
            "true_of TIMESTAMPTZ": "Latest time up to which a resource is verified"
            " (sync.bookmarks). The models use it as the current time.",
            "run_id VARCHAR": "Last run whose records are in the published file "
            "(`sync.runs.run_id`).",
            "outcome VARCHAR": "published, refused (a blocking check failed), failed or "
            "interrupted.",
            "models BIGINT": "Number of models and seeds.",
            "checks BIGINT": "Number of tests and audits.",
            "failed_checks VARCHAR[]": "Names of the failed checks; warnings if the outcome "
            "is published.",
            "failed_rows BIGINT[]": "Number of rows found by each failed check.",
            "failed_samples VARCHAR[]": "Id of one record found by each failed check, or null.",
            "unfilled_seeds VARCHAR[]": "Seeds that are not filled in. Their checks do not "
            "count as failed.",
            "unfilled_rows BIGINT[]": "Number of values that each of these seeds lacks.",
            "personal VARCHAR": "Personal fields: keep, drop or hash.",
            "left_out VARCHAR[]": "Schemas and columns that are left out of the file.",
            "time_zone VARCHAR": "Time zone of the account, used for days in the models.",
            "error_code VARCHAR": _CODE,
            "message VARCHAR": "Error message if it was refused or failed, else null.",
            "bytes BIGINT": "Size of the file; null in the published file itself.",
            "seconds DOUBLE": "Duration.",
        },
    ),
    "push.batches": (
        (
            "One row per pushed file, with its options, the outcome of its last run, and the "
            "requests of all runs."
        ),
        {
            "batch VARCHAR": "Id of the batch: one file with one set of options, including "
            "continued runs.",
            "resource VARCHAR": _RESOURCE,
            "mode VARCHAR": "Mode: `create`, `update`, `upsert` or `convert`.",
            "file VARCHAR": "Name of the file, without its folder.",
            "digest VARCHAR": "SHA-256 of the file.",
            "policy JSON": "Options of the push.",
            "begun_at TIMESTAMPTZ": "Time at which the push wrote its first rows to the journal.",
            "ended_at TIMESTAMPTZ": "End of its last run; null while it is running.",
            "outcome VARCHAR": "Outcome of its last run.",
            "error_code VARCHAR": _CODE,
            "message VARCHAR": _MESSAGE,
            "requests BIGINT": "Number of requests of all runs.",
            "seconds DOUBLE": "Duration of all runs in seconds.",
            "sent_by VARCHAR": "User who sent the import on the import page, else null.",
            "undone_by VARCHAR": "User who last undid the import on the import page.",
        },
    ),
    "push.rows": (
        "One row per row of a pushed file, with its state and its record.",
        {
            "batch VARCHAR": _BATCH,
            "number BIGINT": "Row number in the spreadsheet; the headings are row 1.",
            "resource VARCHAR": _RESOURCE,
            "operation VARCHAR": "Operation: `create`, `update` or `convert`; null if the "
            "row was rejected before.",
            "state VARCHAR": "State of the row (docs/HOW_A_PUSH_WORKS.md).",
            "outcome VARCHAR": "Outcome in the report.",
            "code VARCHAR": "Code of the problem (docs/PUSH.md, docs/ERRORS.md), or null.",
            "record_id VARCHAR": "Created or changed record.",
            "updated_at TIMESTAMPTZ": "The record's `updated_at` after the row's last write.",
            "same_batch VARCHAR": "Batch of the row whose values this row repeats (see "
            "same_number).",
            "same_number BIGINT": "Number of the row whose values this row repeats (see "
            "same_batch).",
            "undone_at TIMESTAMPTZ": "Time of the undo, or null.",
            "moved_at TIMESTAMPTZ": "Time of the last change of state.",
            "before JSON": "The record before an update, or as the create made it.",
            "after JSON": "Values that the row writes, with personal data.",
            "answer JSON": "Problems, warnings, and the attempts to send the row: each with its "
            "exact body, its time and its end.",
        },
    ),
}
"""By table: its description and, by column with type, the description of each column."""


def column_types(table: str) -> dict[str, str]:
    """Return the DuckDB type of each column of one of the connector's own tables."""
    return _parse_types(OWN_TABLES[table][1])


def _parse_types(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the type by column name from keys such as `seen_at TIMESTAMPTZ`."""
    return {name: type for name, type, *_ in (each.split(" ") for each in texts)}


class RowMapper(Generic[T]):
    """Maps rows of one table to objects of a dataclass and back; its fields are the columns.

    `columns` declares the columns, in the format of `OWN_TABLES`, of a table that is not there.
    """

    def __init__(self, kind: type[T], table: str, columns: Mapping[str, str] | None = None) -> None:
        self._kind, self._table = kind, table
        self._all = _parse_types(OWN_TABLES[table][1] if columns is None else columns)
        fields: tuple[str, ...] = tuple(kind.__dataclass_fields__)  # type: ignore[attr-defined]
        self._types = {name: self._all[name] for name in fields}

    @property
    def select_list(self) -> str:
        """Columns for a SELECT, in the form that `read` expects."""
        return ", ".join(
            f"epoch_us({quoted(name)})" if type == "TIMESTAMPTZ" else quoted(name)
            for name, type in self._types.items()
        )

    def read(self, row: Sequence[Any]) -> T:
        """Return the object for a row that was selected with `select_list`."""
        pairs = zip(self._types.items(), row, strict=True)
        return self._kind(**{name: _from_sql(value, type) for (name, type), value in pairs})

    def insert(self, connection: duckdb.DuckDBPyConnection, value: T, **more: object) -> None:
        """Insert the object as a row; `more` are columns that are not fields of the dataclass."""
        values = {**more, **{name: getattr(value, name) for name in self._types}}
        connection.execute(
            f"INSERT INTO {self._table} ({', '.join(map(quoted, values))}) "
            f"VALUES ({', '.join(f'?::{self._all[name]}' for name in values)})",
            [_to_sql(each) for each in values.values()],
        )


def _from_sql(value: Any, type: str) -> Any:
    """Return the Python value for a selected value of a column of this type."""
    match type:
        case "TIMESTAMPTZ":
            return from_microseconds(value)
        case "JSON":
            return json.loads(value)
        case "VARCHAR[]" | "BIGINT[]":
            return tuple(value or ())
    return value


def _to_sql(value: object) -> object:
    """Return the parameter for a Python value: times and mappings as text, tuples as lists."""
    match value:
        case datetime():
            return to_iso(value)
        case Mapping():
            return json.dumps(value)
        case tuple():
            return list(value)
    return value

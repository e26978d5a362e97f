"""The connector's own tables, `sync` and `push`: declarations, and their rows.

Each table is declared once: its columns with their types, and what they mean to analysts. A new
column is one line here, and `schema.complete_tables` adds it to existing files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

import duckdb

from connector.warehouse.duckdb_file import from_microseconds, iso, quoted

T = TypeVar("T")

_RUN = "The run (`sync.runs.run_id`)."
_RESOURCE = "The resource, by the name of its table in `landing`."
_PARENT = "The content type whose items are meant; null for every other resource."
_CODE = "The code of what ended it early (docs/ERRORS.md); null where nothing did."
_MESSAGE = "What ended it early, in a sentence; null where nothing did."
_BATCH = "The pushed file's batch (`push.batches.batch`)."
_NUMBER = "The row of the file, as a spreadsheet counts: the headings are 1."
_STEP = "Which write of the row it was: `create`, `update` or `convert`."
_CHANGE = "The number of the journal's last change of it; greater is later."

OWN_TABLES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "sync.schema_version": (
        "The layout of the file: one row.",
        {"version BIGINT": "Number of the layout; older versions of the connector refuse it."},
    ),
    "sync.folder": (
        "The data folder that the file belongs to: one row.",
        {
            "folder VARCHAR": "Random name of the data folder; `ledger.sqlite` has the same.",
            "address VARCHAR": "Address of the workspace whose records are in the file.",
            "written_by VARCHAR": "Version of the connector that wrote the file last.",
        },
    ),
    "sync.runs": (
        "One row per run: how it ended, what it cost.",
        {
            "run_id VARCHAR": "The run: its beginning to the second (UTC), and chance.",
            "command VARCHAR": "What was run: `pull`, `push`, `dagster` and so on.",
            "started_at TIMESTAMPTZ": "When it began.",
            "ended_at TIMESTAMPTZ": "When it ended; null while it is under way.",
            "outcome VARCHAR": "How it ended: `done`, `partial`, `stopped`, `failed` or "
            "`interrupted`; null while it is under way.",
            "seconds DOUBLE": "How long it took.",
            "waited_seconds DOUBLE": "How long its requests waited for the rate limit, added up.",
            "requests BIGINT": "Requests that were sent, retries among them.",
            "rate_limited BIGINT": "Answers with the status 429.",
            "error_code VARCHAR": _CODE,
            "message VARCHAR": _MESSAGE,
            "budget BIGINT": "The most requests that the run was given; null: no limit.",
            "month_share DOUBLE": "Its requests as a part of the month's; null where the plan's "
            "figure is not set.",
        },
    ),
    "sync.run_resources": (
        "One row per run and resource: rows by fate, requests by kind.",
        {
            "run_id VARCHAR": _RUN,
            "resource VARCHAR": _RESOURCE,
            "outcome VARCHAR": "How the resource ended: `done`, `partial`, `stopped`, `failed`, "
            "`skipped`, or `not_started` where the run ended before its turn.",
            "proven BOOLEAN": "Whether the landing equals the API up to `bookmark_after`.",
            "requests BIGINT": "Requests that were sent for it, retries among them.",
            "lists BIGINT": "Those of the requests that read a page of a list.",
            "details BIGINT": "Those of the requests that read one record whole.",
            "new BIGINT": "Records that landed for the first time.",
            "changed BIGINT": "Records that landed differently from before.",
            "unchanged BIGINT": "Records that were read and were as before.",
            "deleted BIGINT": "Records that were found to be deleted.",
            "live BIGINT": "Landed rows that are not deleted, after the run.",
            "total BIGINT": "How many records the last list said there are; null where none was "
            "read.",
            "pending BIGINT": "Records that still wait to be read whole.",
            "bookmark_before TIMESTAMPTZ": "Up to which server time the resource was proven "
            "before the run.",
            "bookmark_after TIMESTAMPTZ": "Up to which server time it is proven after the run.",
            "error_code VARCHAR": _CODE,
            "message VARCHAR": "Why it is not proven, or what ended it early.",
            "sweeps BIGINT DEFAULT 0": "Those of the requests that looked for deleted and missing "
            "records.",
            "scrubs BIGINT DEFAULT 0": "Those of the requests that read again what seemed "
            "unchanged.",
            "waited_seconds DOUBLE DEFAULT 0": "Waits for the rate limit, added up over requests "
            "that waited side by side.",
            "rate_limited BIGINT DEFAULT 0": "Answers with the status 429.",
            "lateness_seconds DOUBLE": "How late a write may become visible, by all that was seen "
            "so far.",
            "oldest_read_at TIMESTAMPTZ": "When the live row was last read whose last reading is "
            "longest ago.",
            "anomalies JSON DEFAULT '{}'": "The run's events (sync.events) by kind, deletions "
            "left out.",
            "month_share DOUBLE": "The requests as a part of the month's; null where the plan's "
            "figure is not set.",
        },
    ),
    "sync.bookmarks": (
        "Per stream, up to which server time the landing is proven.",
        {
            "resource VARCHAR": _RESOURCE,
            "parent VARCHAR": _PARENT,
            "proven_at TIMESTAMPTZ": "The server time up to which the stream is proven landed "
            "(R); null while it never was.",
            "lateness_seconds DOUBLE": "How late a write may become visible (L): proven is what "
            "has an `updated_at` of at most `proven_at` less this.",
            "opened_at TIMESTAMPTZ": "The server time at which a pass began that has not ended.",
            "load_page BIGINT": "Pages of the list that a first load has landed; null outside of "
            "one.",
            "verify_page BIGINT": "Pages that a first load has looked at again; null outside of "
            "one.",
            "is_sorted BOOLEAN": "Whether the API was always seen to sort as it was asked to.",
            "run_id VARCHAR": "The run that wrote it (`sync.runs.run_id`).",
            "scrubbed_to TIMESTAMPTZ": "The `created_at` up to which the scrub of lists has come "
            "in its round; null at a round's beginning.",
            "total_offset BIGINT DEFAULT 0": "By how many the list's rows exceed its own total; "
            "null while that was not measured, so that the total proves nothing.",
            "alarms BIGINT DEFAULT 0": "Walks in a row that found the list out of order.",
            "late_seconds_seen DOUBLE DEFAULT 0": "The latest that a write was ever seen to "
            "become visible.",
            "listed BIGINT": "The list's total when it was last believed.",
            "closed_by VARCHAR": "The record whose clean reading closed the last proven walk.",
            "closed_floor TIMESTAMPTZ": "The `updated_at` down to which the last proven walk "
            "reached.",
            "clock_ahead_seconds DOUBLE": "How far the server's clock was ahead of ours when it "
            "was proven.",
        },
    ),
    "sync.queue": (
        "Records that must be read, or read again, and why.",
        {
            "resource VARCHAR": _RESOURCE,
            "parent VARCHAR": _PARENT,
            "id VARCHAR": "The record that waits to be read whole.",
            "reason VARCHAR": "Why it must be read, or read again.",
            "created_at TIMESTAMPTZ": "The record's own `created_at`, as the list showed it.",
            "error_code VARCHAR": "The code of the error of the last attempt to read it "
            "(docs/ERRORS.md); null if no attempt failed.",
            "error VARCHAR": "The same, in a part of a sentence.",
            "failed_runs BIGINT DEFAULT 0": "Number of runs in which reading it failed.",
            "failed_since TIMESTAMPTZ": "When reading it first failed.",
            "run_id VARCHAR": "The last run in which reading it failed (`sync.runs.run_id`).",
        },
    ),
    "sync.events": (
        "Deletions, unknown fields and values, and anything else to look up.",
        {
            "run_id VARCHAR": _RUN,
            "seen_at TIMESTAMPTZ": "When it was noticed.",
            "resource VARCHAR": _RESOURCE,
            "parent VARCHAR": _PARENT,
            "id VARCHAR": "The record that it is about; null where it is about none.",
            "kind VARCHAR": "What was noticed; docs/PULL.md explains each kind.",
            "detail VARCHAR": "What is to be known of it, such as the name of an unknown field.",
        },
    ),
    "sync.quota": (
        "Requests spent with this folder's key: one row per day (UTC), command and kind of "
        "request.",
        {
            "cycle_begins DATE": "The first day of the billing cycle that the day belongs to.",
            "day DATE": "The day, in UTC.",
            "command VARCHAR": "What spent them: `pull`, `push` and so on.",
            "kind VARCHAR": "The operation; unsettled: counted beforehand for a run that is under "
            "way or was cut off.",
            "requests BIGINT": "Requests that were sent.",
        },
    ),
    "sync.publications": (
        "One row per attempt to publish; the latest is the file's own, where this is a published "
        "one.",
        {
            "publication VARCHAR": "The attempt: its beginning to the second (UTC), and chance.",
            "started_at TIMESTAMPTZ": "When it began.",
            "ended_at TIMESTAMPTZ": "When it ended; null while it is under way.",
            "true_of TIMESTAMPTZ": "The newest moment that a resource is proven up to "
            '(sync.bookmarks); "now" in the models.',
            "run_id VARCHAR": "The last run whose rows it shows (`sync.runs.run_id`).",
            "outcome VARCHAR": "published, unchanged (nothing to publish; only the latest such row "
            "is kept), refused (checks that block have failed), failed or interrupted.",
            "models BIGINT": "Models and seeds in the file.",
            "checks BIGINT": "Tests and audits that were run.",
            "failed_checks VARCHAR[]": "Names of the checks that failed. Where the outcome is "
            "published, they are warnings.",
            "failed_rows BIGINT[]": "Number of rows that each failed check found.",
            "failed_samples VARCHAR[]": "Id of one record that each failed check found; null "
            "where it names none.",
            "unfilled_seeds VARCHAR[]": "Seeds that nobody has begun to fill in. Their checks are "
            "not among the failed ones.",
            "unfilled_rows BIGINT[]": "Number of values in the data that each of these seeds does "
            "not name.",
            "personal VARCHAR": "What became of personal fields: keep, drop or hash.",
            "time_zone VARCHAR": "The account's time zone, in which the models' days are.",
            "error_code VARCHAR": _CODE,
            "message VARCHAR": "Why it was refused or has failed, in a sentence; null where it "
            "was not.",
            "bytes BIGINT": "Size of the file; null in the file itself, which cannot know it.",
            "fingerprint VARCHAR": "Hash of the records, models, seeds and settings that the file "
            "was made of. A pull that finds the same hash publishes nothing.",
            "seconds DOUBLE": "How long it took.",
        },
    ),
    "sync.lakehouse": (
        "One row per attempt to bring a published file to the shared lakehouse.",
        {
            "started_at TIMESTAMPTZ": "When it began.",
            "ended_at TIMESTAMPTZ": "When it ended.",
            "outcome VARCHAR": "published, unchanged (the lakehouse had the file, or a "
            "newer one) or failed.",
            "publication VARCHAR": "The file (`sync.publications.publication`); null where it "
            "failed.",
            "snapshot BIGINT": "The snapshot of the lakehouse that shows it.",
            "tables BIGINT": "Number of tables with rows of the account.",
            "inserted BIGINT": "Number of rows written.",
            "removed BIGINT": "Number of rows that they replaced.",
            "error_code VARCHAR": "The code of what kept it from being done (docs/ERRORS.md).",
            "message VARCHAR": "The same, in a sentence.",
        },
    ),
    "sync.erased": (
        "One row per record that tells of nobody any more, since the person was erased.",
        {
            "resource VARCHAR": _RESOURCE,
            "id VARCHAR": "The record; its row stays, so that counts are as before.",
            "erasure VARCHAR": "The erasure, by the name of its receipt.",
            "erased_at TIMESTAMPTZ": "When the person was taken out of it.",
        },
    ),
    "push.batches": (
        "One row per pushed file: on which terms, how its last run ended, what all its runs cost.",
        {
            "batch VARCHAR": "The batch: one file, pushed on one set of terms, however often it "
            "was resumed.",
            "resource VARCHAR": _RESOURCE,
            "mode VARCHAR": "What was asked for: `create`, `update`, `upsert` or `convert`.",
            "file VARCHAR": "The file's name, without its folder.",
            "digest VARCHAR": "SHA-256 of the file.",
            "terms JSON": "The options that it was pushed with.",
            "run_id VARCHAR": "The last run that worked on it.",
            "begun_at TIMESTAMPTZ": "When its rows were first written down.",
            "ended_at TIMESTAMPTZ": "When its last run ended; null while one is under way.",
            "outcome VARCHAR": "How its last run ended.",
            "error_code VARCHAR": _CODE,
            "message VARCHAR": _MESSAGE,
            "requests BIGINT": "Requests that its writes cost, all runs together.",
            "seconds DOUBLE": "How long its runs took, all together.",
            "change BIGINT": "The number of the journal's last change of it; greater is later, in "
            "all tables alike.",
            "prepared_by VARCHAR": "Who prepared it for another person, on the import page.",
            "sent_by VARCHAR": "Who sent it from the import page; null for other ways.",
            "undone_by VARCHAR": "Who took it back last, on the import page.",
        },
    ),
    "push.rows": (
        "One row per row of a pushed file: how it stands, and the record that it made or changed.",
        {
            "batch VARCHAR": _BATCH,
            "number BIGINT": "The row as a spreadsheet counts: the headings are 1.",
            "operation VARCHAR": "What the row is to do: `create`, `update` or `convert`; null "
            "where it was refused before that was known.",
            "state VARCHAR": "Where it stands in the table of states (docs/HOW_A_PUSH_WORKS.md).",
            "outcome VARCHAR": "What the report calls it.",
            "code VARCHAR": "Why, by a code that docs/PUSH.md and docs/ERRORS.md explain; null "
            "where it went well.",
            "record_id VARCHAR": "The record that it made or changed.",
            "updated_at TIMESTAMPTZ": "The record's own, as the API showed it after the row's "
            "last write.",
            "same_batch VARCHAR": "With same_number: the row that this one repeats, or ends as.",
            "same_number BIGINT": "With same_batch: the row that this one repeats, or ends as.",
            "undone_at TIMESTAMPTZ": "When it was undone; null where it was not.",
            "moved_at TIMESTAMPTZ": "When it came to stand as it does.",
            "change BIGINT": _CHANGE,
        },
    ),
    "push.attempts": (
        "One row per attempt at a write, whatever came of it.",
        {
            "batch VARCHAR": _BATCH,
            "number BIGINT": _NUMBER,
            "attempt BIGINT": "Counts the row's attempts from 1.",
            "step VARCHAR": _STEP,
            "method VARCHAR": "The request's method.",
            "path VARCHAR": "The request's path.",
            "body JSON": "What was sent, personal data included, as the landing has them; the "
            "ledger keeps its bytes.",
            "intended_at TIMESTAMPTZ": "When the intent was on the disk, before a byte left.",
            "sent_after TIMESTAMPTZ": "The server's time before it was sent.",
            "ended_at TIMESTAMPTZ": "When its fate was written down; null where nobody knows it "
            "yet.",
            "fate VARCHAR": "accepted, refused, limited, unsent (both without effect), or lost: "
            "nobody knows.",
            "reason VARCHAR": "Why it was refused or lost, by a code; null where it was accepted.",
            "change BIGINT": _CHANGE,
        },
    ),
    "push.problems": (
        "What is told of a row, in the order of place.",
        {
            "batch VARCHAR": _BATCH,
            "number BIGINT": _NUMBER,
            "place BIGINT": "The problem's place among those of its row, from 0.",
            "code VARCHAR": "What is wrong, by a code that docs/PUSH.md explains.",
            "message VARCHAR": "What is wrong, in a sentence.",
            "field VARCHAR": "The field that it is about; null where it is about the row.",
            "column VARCHAR": "The file's heading of that field; null where it has none.",
            "received VARCHAR": "What the row asked for.",
            "found VARCHAR": "What the API shows in its place.",
            "allowed VARCHAR": "What would be right.",
            "fix VARCHAR": "What to write instead, or to do.",
        },
    ),
    "push.before_images": (
        "Records as they were before a row's step: before an update, or as they were created.",
        {
            "batch VARCHAR": _BATCH,
            "number BIGINT": _NUMBER,
            "step VARCHAR": _STEP,
            "record JSON": "The record, as the API showed it.",
            "noted_at TIMESTAMPTZ": "When it was kept.",
            "change BIGINT": _CHANGE,
        },
    ),
}
"""By table: what it holds, and for each column, named with its type, what it means."""


def column_types(table: str) -> dict[str, str]:
    """The types of a table's columns, by name."""
    return _types(OWN_TABLES[table][1])


def _types(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: type for name, type, *_ in (each.split(" ") for each in texts)}


class RowsOf(Generic[T]):
    """The rows of one table as values of a dataclass, whose fields are columns of it.

    `texts` are the table's columns, as in `OWN_TABLES`, for a table that is not there.
    """

    def __init__(self, kind: type[T], table: str, texts: Mapping[str, str] | None = None) -> None:
        self._kind, self._table = kind, table
        self._all = _types(OWN_TABLES[table][1] if texts is None else texts)
        fields: tuple[str, ...] = tuple(kind.__dataclass_fields__)  # type: ignore[attr-defined]
        self._types = {name: self._all[name] for name in fields}

    @property
    def selected(self) -> str:
        """The columns as what follows SELECT; `read` takes a row of these."""
        return ", ".join(
            f"epoch_us({quoted(name)})" if type == "TIMESTAMPTZ" else quoted(name)
            for name, type in self._types.items()
        )

    def read(self, row: Sequence[Any]) -> T:
        """The value that a selected row stands for."""
        pairs = zip(self._types.items(), row, strict=True)
        return self._kind(**{name: _read(value, type) for (name, type), value in pairs})

    def insert(self, connection: duckdb.DuckDBPyConnection, value: T, **more: object) -> None:
        """Insert the value as a row; `more` are columns that are no fields of it."""
        values = {**more, **{name: getattr(value, name) for name in self._types}}
        connection.execute(
            f"INSERT INTO {self._table} ({', '.join(map(quoted, values))}) "
            f"VALUES ({', '.join(f'?::{self._all[name]}' for name in values)})",
            [_written(each) for each in values.values()],
        )


def _read(value: Any, type: str) -> Any:
    match type:
        case "TIMESTAMPTZ":
            return from_microseconds(value)
        case "JSON":
            return json.loads(value)
        case "VARCHAR[]" | "BIGINT[]":
            return tuple(value or ())
    return value


def _written(value: object) -> object:
    match value:
        case datetime():
            return iso(value)
        case Mapping():
            return json.dumps(value)
        case tuple():
            return list(value)
    return value

"""What the columns of `sync` and `push` mean, as analysts read it in their tools.

The migrations that made these tables were written before; columns whose text they gave already are
not here, so that each has one.
"""

from __future__ import annotations

from collections.abc import Mapping

from connector.warehouse.duckdb_file import literal, quoted

_RUN = "The run (`sync.runs.run_id`)."
_RESOURCE = "The resource, by the name of its table in `landing`."
_PARENT = "The content type whose items are meant; null for every other resource."
_CODE = "The code of what ended it early (docs/ERRORS.md); null where nothing did."
_MESSAGE = "What ended it early, in a sentence; null where nothing did."
_BATCH = "The pushed file's batch (`push.batches.batch`)."
_NUMBER = "The row of the file, as a spreadsheet counts: the headings are 1."
_STEP = "Which write of the row it was: `create`, `update` or `convert`."
_CHANGE = "The number of the journal's last change of it; greater is later."

TEXTS: Mapping[str, Mapping[str, str]] = {
    "sync.migrations": {
        "number": "The change of the connector's own tables, counted from 1.",
        "name": "What it was for.",
        "applied_at": "When this file was brought up to it.",
    },
    "sync.runs": {
        "run_id": "The run: its beginning to the second (UTC), and chance.",
        "command": "What was run: `pull`, `push`, `dagster` and so on.",
        "started_at": "When it began.",
        "ended_at": "When it ended; null while it is under way.",
        "outcome": "How it ended: `done`, `partial`, `stopped`, `failed` or `interrupted`; null "
        "while it is under way.",
        "seconds": "How long it took.",
        "waited_seconds": "How long its requests waited for the rate limit, added up.",
        "requests": "Requests that were sent, retries among them.",
        "rate_limited": "Answers with the status 429.",
        "error_code": _CODE,
        "message": _MESSAGE,
    },
    "sync.run_resources": {
        "run_id": _RUN,
        "resource": _RESOURCE,
        "outcome": "How the resource ended: `done`, `partial`, `stopped`, `failed`, `skipped`, or "
        "`not_started` where the run ended before its turn.",
        "proven": "Whether the landing equals the API up to `bookmark_after`.",
        "requests": "Requests that were sent for it, retries among them.",
        "lists": "Those of the requests that read a page of a list.",
        "details": "Those of the requests that read one record whole.",
        "new": "Records that landed for the first time.",
        "changed": "Records that landed differently from before.",
        "unchanged": "Records that were read and were as before.",
        "deleted": "Records that were found to be deleted.",
        "live": "Landed rows that are not deleted, after the run.",
        "total": "How many records the last list said there are; null where none was read.",
        "pending": "Records that still wait to be read whole.",
        "bookmark_before": "Up to which server time the resource was proven before the run.",
        "bookmark_after": "Up to which server time it is proven after the run.",
        "error_code": _CODE,
    },
    "sync.bookmarks": {
        "resource": _RESOURCE,
        "parent": _PARENT,
        "proven_at": "The server time up to which the stream is proven landed (R); null while it "
        "never was.",
        "lateness_seconds": "How late a write may become visible (L): proven is what has an "
        "`updated_at` of at most `proven_at` less this.",
        "opened_at": "The server time at which a pass began that has not ended.",
        "load_page": "Pages of the list that a first load has landed; null outside of one.",
        "verify_page": "Pages that a first load has looked at again; null outside of one.",
        "is_sorted": "Whether the API was always seen to sort as it was asked to.",
        "run_id": "The run that wrote it (`sync.runs.run_id`).",
        "scrubbed_to": "The `created_at` up to which the scrub of lists has come in its round; "
        "null at a round's beginning.",
        "total_offset": "By how many the live rows exceed the API's own total, where every page "
        "was compared and it stayed so.",
        "alarms": "Walks in a row that found the list out of order.",
        "late_seconds_seen": "The latest that a write was ever seen to become visible.",
        "listed": "The list's total when it was last believed.",
        "closed_by": "The record whose clean reading closed the last proven walk.",
        "closed_floor": "The `updated_at` down to which the last proven walk reached.",
        "clock_ahead_seconds": "How far the server's clock was ahead of ours when it was proven.",
    },
    "sync.queue": {
        "resource": _RESOURCE,
        "parent": _PARENT,
        "id": "The record that waits to be read whole.",
        "reason": "Why it must be read, or read again.",
        "created_at": "The record's own `created_at`, as the list showed it.",
    },
    "sync.events": {
        "run_id": _RUN,
        "seen_at": "When it was noticed.",
        "resource": _RESOURCE,
        "parent": _PARENT,
        "id": "The record that it is about; null where it is about none.",
        "kind": "What was noticed; docs/PULL.md explains each kind.",
        "detail": "What is to be known of it, such as the name of an unknown field.",
    },
    "sync.quota": {
        "day": "The day, in UTC.",
        "command": "What spent them: `pull`, `push` and so on.",
        "requests": "Requests that were sent.",
    },
    "sync.publications": {
        "publication": "The attempt: its beginning to the second (UTC), and chance.",
        "started_at": "When it began.",
        "ended_at": "When it ended; null while it is under way.",
        "run_id": "The last run whose rows it shows (`sync.runs.run_id`).",
        "error_code": _CODE,
        "message": "Why it was refused or has failed, in a sentence; null where it was not.",
        "seconds": "How long it took.",
    },
    "push.batches": {
        "batch": "The batch: one file, pushed on one set of terms, however often it was resumed.",
        "resource": _RESOURCE,
        "mode": "What was asked for: `create`, `update`, `upsert` or `convert`.",
        "file": "The file's name, without its folder.",
        "terms": "The options that it was pushed with.",
        "run_id": "The last run that worked on it.",
        "begun_at": "When its rows were first written down.",
        "ended_at": "When its last run ended; null while one is under way.",
        "outcome": "How its last run ended.",
        "error_code": _CODE,
        "message": _MESSAGE,
        "requests": "Requests that its writes cost, all runs together.",
        "seconds": "How long its runs took, all together.",
    },
    "push.rows": {
        "batch": _BATCH,
        "operation": "What the row is to do: `create`, `update` or `convert`; null where it was "
        "refused before that was known.",
        "state": "Where it stands in the table of states (docs/PUSH.md).",
        "code": "Why, by a code that docs/PUSH.md and docs/ERRORS.md explain; null where it went "
        "well.",
        "record_id": "The record that it made or changed.",
        "same_batch": "With same_number: the row that this one repeats, or ends as.",
        "moved_at": "When it came to stand as it does.",
        "change": _CHANGE,
    },
    "push.attempts": {
        "batch": _BATCH,
        "number": _NUMBER,
        "attempt": "Counts the row's attempts from 1.",
        "step": _STEP,
        "method": "The request's method.",
        "path": "The request's path.",
        "intended_at": "When the intent was on the disk, before a byte left.",
        "ended_at": "When its fate was written down; null where nobody knows it yet.",
        "reason": "Why it was refused or lost, by a code; null where it was accepted.",
        "change": _CHANGE,
    },
    "push.problems": {
        "batch": _BATCH,
        "number": _NUMBER,
        "place": "The problem's place among those of its row, from 0.",
        "code": "What is wrong, by a code that docs/PUSH.md explains.",
        "message": "What is wrong, in a sentence.",
        "field": "The field that it is about; null where it is about the row.",
        "column": "The file's heading of that field; null where it has none.",
        "allowed": "What would be right.",
        "fix": "What to write instead, or to do.",
    },
    "push.before_images": {
        "batch": _BATCH,
        "number": _NUMBER,
        "step": _STEP,
        "record": "The record, as the API showed it.",
        "noted_at": "When it was kept.",
        "change": _CHANGE,
    },
}
"""The text of each column, by its table."""


TABLES: Mapping[str, str] = {
    "sync.migrations": "The changes of the connector's own tables that this file has.",
}
"""The text of each table that has none yet."""


def statements() -> str:
    """The statements that write every text into a warehouse."""
    return (
        ";".join(f"COMMENT ON TABLE {table} IS {literal(text)}" for table, text in TABLES.items())
        + ";"
        + ";".join(
            f"COMMENT ON COLUMN {table}.{quoted(column)} IS {literal(text)}"
            for table, columns in TEXTS.items()
            for column, text in columns.items()
        )
    )

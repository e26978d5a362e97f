"""Journal of pushes: every batch and every row with its attempts. One method is one transaction.

A row is saved before its first byte is sent, and after every change. The lock of the account lets
only one process write. The outcome of a row that follows another is that row's, at any time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from connector.errors import UnknownName
from connector.state.database import Database, columns, to_column
from connector.state.row import (
    Mode,
    Policy,
    Problem,
    Row,
    RowKey,
    fingerprint,
    from_columns,
    subject,
    to_columns,
)

BATCHES_READ = 20
"""Batches of each resource that `health` reads."""

_VALUES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Batch:
    """One row per pushed file, with its options and the outcome of its last run."""

    batch: Annotated[str, "Id of the batch: one file with one set of options."]
    resource: Annotated[str, "The resource, by the name of its table in `landing`."]
    mode: Annotated[Mode, "Mode: `create`, `update`, `upsert` or `convert`."]
    file: Annotated[str, "Name of the file, without its folder."]
    digest: Annotated[str, "SHA-256 of the file."]
    policy: Annotated[Policy, "Options of the push."]
    known_ids: frozenset[str]
    begun_at: Annotated[datetime, "Time at which the push wrote its first rows to the journal."]
    ended_at: Annotated[datetime | None, "End of its last run; null while it is running."] = None
    outcome: Annotated[str | None, "Outcome of its last run."] = None
    error_code: Annotated[str | None, "Error code if it ended early, else null."] = None
    message: Annotated[str | None, "Error message if it ended early, else null."] = None
    requests: Annotated[int, "Number of requests of all runs."] = 0
    seconds: Annotated[float, "Duration of all runs in seconds."] = 0.0
    sent_by: Annotated[str | None, "User who sent the import on the import page, else null."] = None
    undone_by: Annotated[str | None, "User who last undid the import on the import page."] = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All rows of one file for one resource. `digest` is the SHA-256 of the file."""

    resource: str
    mode: Mode
    file: str
    digest: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """Number of unconfirmed rows, and since when the first of them is."""

    rows: int
    since: datetime


@dataclass(frozen=True, slots=True)
class PushHealth:
    """Recent batches, and unconfirmed rows.

    Attributes:
        batches: Latest batches of each resource, newest first.
        refused: Number of rows of each of these batches that need a correction.
        held: Rows on which the user has to decide.
        open: Rows that were sent and not answered. A running push always has some.
    """

    batches: tuple[Batch, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict)
    held: Unconfirmed | None = None
    open: Unconfirmed | None = None


class Journal:
    """Journal of pushes of one account. Every method can raise a `WarehouseError`."""

    def __init__(
        self, database: Database, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._database, self._now = database, now

    # -- batches ----------------------------------------------------------------------------------

    def batches(self) -> tuple[Batch, ...]:
        """Return all batches, the latest first."""
        sql = "SELECT * FROM batches ORDER BY begun_at DESC, batch DESC"
        return tuple(self._database.records(_batch, sql))

    def batch(self, name: str) -> Batch:
        """Return the batch with this name. Raises `UnknownName`."""
        found = self._database.records(_batch, "SELECT * FROM batches WHERE batch = ?", name)
        if not found:
            raise UnknownName("batch", name, [each.batch for each in self.batches()])
        return found[0]

    def has_batch(self, resource: str) -> bool:
        """Return True if the resource was ever pushed."""
        return bool(self._database.rows("SELECT 1 FROM batches WHERE resource = ?", resource))

    def begin(
        self,
        plan: Plan,
        policy: Policy,
        name: str,
        *,
        known_ids: Collection[str] = (),
        sent_by: str | None = None,
    ) -> Batch:
        """Record a file with all of its rows, and return its batch.

        If the same file was pushed with the same policy and not finished, its batch continues: rows
        that were tried stay, and the others are replaced by those of the plan. Rows whose write
        another row has made, or may have made, end here.
        """
        with self._database.transaction() as connection:
            batch = self._unfinished_batch(plan, policy)
            if batch is None:
                at = self._now()
                batch = Batch(
                    *(name, plan.resource, plan.mode, plan.file, plan.digest, policy),
                    *(frozenset(known_ids), at),
                )
                self._database.put("batches", _batch_columns(batch))
            before = self.rows(batch.batch)
            kept = {row.number: row for row in before if _is_kept(row)}
            connection.executemany(
                "DELETE FROM rows WHERE batch = ? AND number = ?",
                [row.key for row in before if row.number not in kept],
            )
            rows = [row for row in plan.rows if row.number not in kept]
            for row in rows:
                row.batch, row.moved_at = batch.batch, self._now()
                row.outcome = "not_sent" if row.state == "planned" else row.outcome
            self._insert(rows)
            return self.resume(batch.batch, sent_by)

    def resume(self, name: str, sent_by: str | None = None) -> Batch:
        """Record that a run continues a batch, and return it. Raises `UnknownName`.

        Rows that were never sent end here if another row has made their write, or may have.
        """
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE batches SET ended_at = NULL, outcome = NULL, error_code = NULL,"
                " message = NULL, sent_by = coalesce(?, sent_by) WHERE batch = ?",
                (sent_by, name),
            )
            batch, rows = self.batch(name), self.rows(name)
            unsent = [row for row in rows if row.state == "planned" and not row.is_open]
            self._end_repeated(rows, unsent, batch.policy)
            for row in unsent:
                if row.state != "planned":
                    self.save(row)
            return batch

    def _unfinished_batch(self, plan: Plan, policy: Policy) -> Batch | None:
        """Return the latest unfinished batch of the same file, policy and rows."""
        found = self._database.records(
            _batch,
            "SELECT * FROM batches AS b WHERE digest = ? AND resource = ? AND mode = ?"
            " AND policy = ? AND (ended_at IS NULL OR EXISTS (SELECT 1 FROM rows"
            " WHERE batch = b.batch AND state IN ('planned', 'sent')))"
            " ORDER BY begun_at DESC, batch DESC",
            *(plan.digest, plan.resource, plan.mode, _policy_text(policy)),
        )
        wanted = {row.number for row in plan.rows}
        for each in found:
            numbers = self._database.rows("SELECT number FROM rows WHERE batch = ?", each.batch)
            if {number for (number,) in numbers} == wanted:
                return each
        return None

    def _end_repeated(self, rows: Sequence[Row], unsent: Sequence[Row], policy: Policy) -> None:
        """End unsent rows whose write another row of the batch or of another batch has made."""
        first = {
            fingerprint(row): row
            for row in rows
            if row.outcome not in ("duplicate", "invalid", "unchanged")
            and not row.is_followed
            and (row.state != "planned" or row.is_open)
        }
        for row in unsent:
            if (other := first.setdefault(fingerprint(row), row)) is not row:
                problem = Problem("same_row", f"row {other.number} of the file has the same values")
                row.end("refused", "duplicate", "same_row", problem)
                row.same = other.key
        left = {str(fingerprint(row)): row for row in unsent if row.state == "planned"}
        batch = next((row.batch for row in rows), "")
        for print_, other in self.earlier(left, exclude_batch=batch).items():
            row = left[print_]
            if policy.resend and other.operation != "convert" and not other.is_open:
                continue
            row.same = other.key
            if other.is_open:
                row.end("refused", "held", "taken_over")
            elif other.outcome == "not_applied":
                row.end("refused", "not_applied", "already_pushed")
            else:
                row.end("done", "unchanged", "already_pushed")
                row.record_id = other.record_id

    def _insert(self, rows: Sequence[Row]) -> None:
        """Insert rows into the journal."""
        if not rows:
            return
        stored = [to_columns(row) for row in rows]
        names = list(stored[0])
        sql = f"INSERT INTO rows ({', '.join(names)}) VALUES ({', '.join('?' for _ in names)})"
        with self._database.transaction() as connection:
            connection.executemany(
                sql, ([to_column(value) for value in each.values()] for each in stored)
            )

    def end(
        self,
        batch: str,
        outcome: str,
        *,
        requests: int,
        seconds: float,
        error_code: str | None = None,
        message: str | None = None,
    ) -> None:
        """Record how a run of the batch ended, and add its requests and seconds."""
        self._database.write(
            "UPDATE batches SET ended_at = ?, outcome = ?, error_code = ?, message = ?,"
            " requests = requests + ?, seconds = seconds + ? WHERE batch = ?",
            *(self._now(), outcome, error_code, message, requests, seconds, batch),
        )

    # -- rows -------------------------------------------------------------------------------------

    def rows(self, batch: str) -> list[Row]:
        """Return all rows of a batch by number. One that follows another has its outcome."""
        sql = "SELECT * FROM rows WHERE batch = ? ORDER BY number"
        return [self._resolved(row) for row in self._database.records(from_columns, sql, batch)]

    def row(self, key: RowKey) -> Row | None:
        """Return a row; None if it is missing."""
        sql = "SELECT * FROM rows WHERE batch = ? AND number = ?"
        found = self._database.records(from_columns, sql, *key)
        return self._resolved(found[0]) if found else None

    def _resolved(self, row: Row) -> Row:
        """Return the row with the outcome, the record and the problems of the row it follows."""
        if not row.is_followed or row.same is None:
            return row
        followed = self.row(row.same)
        if followed is not None:
            is_done = followed.outcome in ("created", "updated", "converted")
            row.outcome = "unchanged" if is_done else followed.outcome
            row.record_id, row.problems = followed.record_id, followed.problems
        return row

    def unfinished(self, batch: str) -> list[Row]:
        """Return the rows that a push of the batch can continue, by number.

        Before them come rows of earlier batches that rows of this batch follow.
        """
        return self._database.records(
            from_columns,
            "SELECT * FROM rows WHERE state IN ('planned', 'sent') AND (batch = ?1 OR is_open AND"
            " (batch, number) IN (SELECT same_batch, same_number FROM rows WHERE batch = ?1"
            " AND code = 'taken_over')) ORDER BY batch = ?1, batch, number",
            batch,
        )

    def unconfirmed(self) -> list[Row]:
        """Return the rows of all batches that were sent and whose fate is unknown."""
        sql = "SELECT * FROM rows WHERE state IN ('sent', 'held') ORDER BY batch, number"
        return self._database.records(from_columns, sql)

    def save(self, row: Row) -> None:
        """Replace a row by its present form. A row that has ended never changes again."""
        row.moved_at = self._now()
        stored = to_columns(row)
        sets = ", ".join(f"{name} = ?" for name in stored)
        count = self._database.write(
            f"UPDATE rows SET {sets} WHERE batch = ? AND number = ?"
            " AND state NOT IN ('done', 'refused')",
            *(*stored.values(), *row.key),
        )
        assert count == 1, f"row {row.key} is missing, or has ended"

    # -- comparing with other rows ----------------------------------------------------------------

    def earlier(self, prints: Iterable[str], *, exclude_batch: str = "") -> dict[str, Row]:
        """Return the latest row that made each write or may have, by fingerprint.

        Undone rows are left out. So is an update if the API returned other values, or if another
        row has changed the record since: it may be sent again.
        """
        wanted, found = list(prints), dict[str, Row]()
        for start in range(0, len(wanted), _VALUES_AT_ONCE):
            rows = self._database.records(
                lambda each: (each["fingerprint"], from_columns(each)),
                "SELECT * FROM rows AS r WHERE fingerprint IN (SELECT value FROM json_each(?))"
                " AND undone_at IS NULL AND batch <> ? AND (is_open OR outcome IN ('created',"
                " 'converted') OR (outcome = 'not_applied' AND operation = 'create')"
                " OR (outcome = 'updated' AND NOT EXISTS (SELECT 1 FROM rows AS l WHERE"
                " l.record_id = r.record_id AND l.operation = 'update' AND l.moved_at > r.moved_at"
                " AND l.outcome IN ('updated', 'not_applied'))))"
                " AND state <> 'refused' ORDER BY is_open DESC, moved_at DESC",
                *(wanted[start : start + _VALUES_AT_ONCE], exclude_batch),
            )
            for print_, row in rows:
                found.setdefault(print_, row)
        return found

    def taken(self, key: RowKey, ids: Collection[str]) -> frozenset[str]:
        """Return those of the ids that cannot be the record of a row.

        They were loaded before its batch began, or another row has created them.
        """
        made = self._database.rows(
            "SELECT record_id FROM rows WHERE record_id IN (SELECT value FROM json_each(?))"
            " AND operation = 'create' AND NOT (batch = ? AND number = ?)"
            " AND (outcome IN ('created', 'not_applied') OR (state = 'planned' AND is_open))",
            *(list(ids), *key),
        )
        known = self.batch(key[0]).known_ids & set(ids)
        return frozenset(id for (id,) in made) | known

    def rivals(self, row: Row) -> list[Row]:
        """Return other rows that may be creating a record of the same resource."""
        found = self._database.records(
            from_columns,
            "SELECT * FROM rows WHERE is_open AND operation = 'create' AND resource = ?"
            " AND NOT (batch = ? AND number = ?)",
            *(row.resource, *row.key),
        )
        return [each for each in found if each.parent == row.parent]

    def open_subjects(self) -> dict[str, RowKey]:
        """Return the row with an open write, by the record or identity that it writes."""
        found = self._database.records(from_columns, "SELECT * FROM rows WHERE is_open")
        return {str(subject(row)): row.key for row in found if not row.is_nameless}

    def empty(self, keys: Iterable[RowKey]) -> None:
        """Remove all values of rows that have ended. Their fingerprints stay."""
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE rows SET before = NULL, after = NULL, subject = NULL, answer ="
                """ '{"is_created": false, "problems": [], "warnings": [], "attempts": []}',"""
                " outcome = iif(state = 'planned', 'invalid', outcome),"
                " state = iif(state = 'planned', 'refused', state)"
                " WHERE batch = ? AND number = ? AND NOT is_open",
                list(keys),
            )

    # -- undo -------------------------------------------------------------------------------------

    def mark_undone(self, key: RowKey, updated_at: str | None, by: str | None = None) -> None:
        """Mark a row as undone, so that the same row may be pushed again.

        `updated_at` is that of its record after the undo; None if another user changed the record
        between the row and its undo.
        """
        with self._database.transaction():
            self._database.write(
                "UPDATE rows SET undone_at = ?, updated_at = coalesce(?, updated_at)"
                " WHERE batch = ? AND number = ?",
                *(self._now(), updated_at, *key),
            )
            self._database.write(
                "UPDATE batches SET undone_by = coalesce(?, undone_by) WHERE batch = ?", by, key[0]
            )

    def undone_updates(self, record_id: str) -> list[tuple[str, str]]:
        """Return `updated_at` before each undone update of a record, and after its undo."""
        found = self._database.rows(
            "SELECT * FROM rows WHERE record_id = ? AND operation = 'update'"
            " AND undone_at IS NOT NULL AND updated_at IS NOT NULL",
            record_id,
        )
        pairs = (((r["before"] or {}).get("updated_at"), r["updated_at"]) for r in found)
        return [(before, after) for before, after in pairs if before]

    # -- previews ---------------------------------------------------------------------------------

    def note_preview(self, digest: str, resource: str, at: datetime) -> None:
        """Record that the user saw at this time what a push of the file would change."""
        self._database.put("previews", {"digest": digest, "resource": resource, "at": at})

    def previewed_at(self, digest: str, resource: str) -> datetime | None:
        """Return the time of the last preview of the file; None if there was none."""
        sql = "SELECT at FROM previews WHERE digest = ? AND resource = ?"
        found = self._database.rows(sql, digest, resource)
        return found[0]["at"] if found else None

    # -- health -----------------------------------------------------------------------------------

    def health(self) -> PushHealth:
        """Return the latest batches and the unconfirmed rows, without contents."""
        seen: dict[str, int] = {}
        batches = []
        for each in self.batches():
            seen[each.resource] = seen.get(each.resource, 0) + 1
            if seen[each.resource] <= BATCHES_READ:
                batches.append(each)
        refused = self._database.rows(
            "SELECT batch, count(*) AS n FROM rows WHERE undone_at IS NULL AND outcome IN"
            " ('rejected', 'conflict', 'invalid', 'not_applied') GROUP BY batch"
        )
        return PushHealth(
            tuple(batches), dict(map(tuple, refused)), self._count("held"), self._count("sent")
        )

    def _count(self, state: str) -> Unconfirmed | None:
        """Return the rows in a state; None if there are none."""
        ((rows, since),) = self._database.rows(
            "SELECT count(*), min(moved_at) FROM rows WHERE state = ?", state
        )
        return Unconfirmed(rows, datetime.fromisoformat(since)) if rows else None


HELD_BACK = "warnings"
"""Code of a row that was not sent because of its warnings, which the user may accept."""


def _is_kept(row: Row) -> bool:
    """Return True if a new check of the file does not replace the row."""
    return bool(row.attempts) or (row.state != "planned" and row.code != HELD_BACK)


def _batch(found: Any) -> Batch:
    """Return a batch from its columns."""
    values = dict(found)
    policy, known_ids = values.pop("policy"), values.pop("known_ids")
    return Batch(**values, policy=Policy(**policy), known_ids=frozenset(known_ids))


def _batch_columns(batch: Batch) -> dict[str, Any]:
    """Return a batch by column."""
    own = {"policy": _policy_text(batch.policy), "known_ids": sorted(batch.known_ids)}
    return {**columns(batch), **own}


def _policy_text(policy: Policy) -> str:
    """Return the policy as JSON. Equal policies have equal texts."""
    return json.dumps(asdict(policy), sort_keys=True)

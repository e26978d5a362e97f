"""Journal of pushes: every batch and every row with its attempts. One method is one transaction.

A row is saved before its first byte is sent, and after every change. The lock of the account lets
only one process write. The outcome of a row that follows another is that row's, at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from connector.errors import UnknownName
from connector.state.database import Database, columns, convert_errors
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

HELD_BACK = "warnings"
"""Code of a row that was not sent because of its warnings, which the user may accept."""


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


class Journal:
    """Journal of pushes of one account. Every method can raise a `WarehouseError`."""

    def __init__(
        self, database: Database, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._database, self._now = database, now

    def _batches(self, condition: str, *values: Any) -> list[Batch]:
        """Return the batches with a condition, the latest first."""
        sql = f"SELECT * FROM batches AS b WHERE {condition} ORDER BY begun_at DESC, batch DESC"
        return self._database.find(Batch, sql, *values)

    def _rows(self, condition: str, *values: Any) -> list[Row]:
        """Return the rows with a condition, as they are stored."""
        return [row for _, row in self._stored(condition, *values)]

    def _stored(self, condition: str, *values: Any) -> list[tuple[str, Row]]:
        """Return fingerprint and row of the rows with a condition."""
        found = self._database.rows(f"SELECT * FROM rows AS r WHERE {condition}", *values)
        with convert_errors(self._database.path):
            return [(each["fingerprint"], from_columns(each)) for each in found]

    # -- batches ----------------------------------------------------------------------------------

    def batches(self) -> tuple[Batch, ...]:
        """Return all batches, the latest first."""
        return tuple(self._batches("TRUE"))

    def batch(self, name: str) -> Batch:
        """Return the batch with this name. Raises `UnknownName`."""
        for found in self._batches("batch = ?", name):
            return found
        raise UnknownName("batch", name, [each.batch for each in self.batches()])

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
                batch = Batch(
                    *(name, plan.resource, plan.mode, plan.file, plan.digest, policy),
                    *(frozenset(known_ids), self._now()),
                )
                self._database.insert("batches", columns(batch))
            before = self.rows(batch.batch)
            kept = {row.number for row in before if _is_kept(row)}
            connection.executemany(
                "DELETE FROM rows WHERE batch = ? AND number = ?",
                [row.key for row in before if row.number not in kept],
            )
            for row in plan.rows:
                if row.number not in kept:
                    row.batch, row.moved_at = batch.batch, self._now()
                    row.outcome = "not_sent" if row.state == "planned" else row.outcome
                    self._database.insert("rows", to_columns(row))
            return self.resume(batch.batch, sent_by)

    def resume(self, name: str, sent_by: str | None = None) -> Batch:
        """Record that a run continues a batch, and return it. Raises `UnknownName`.

        Rows that were never sent end here if another row has made their write, or may have.
        """
        with self._database.transaction():
            self._database.write(
                "UPDATE batches SET ended_at = NULL, outcome = NULL, error_code = NULL,"
                " message = NULL, sent_by = coalesce(?, sent_by) WHERE batch = ?",
                *(sent_by, name),
            )
            batch, rows = self.batch(name), self.rows(name)
            unsent = [row for row in rows if row.state == "planned" and not row.is_open]
            self._end_repeated(rows, unsent, batch)
            for row in unsent:
                if row.state != "planned":
                    self.save(row)
            return batch

    def _unfinished_batch(self, plan: Plan, policy: Policy) -> Batch | None:
        """Return the latest unfinished batch of the same file, policy and rows."""
        found = self._batches(
            "digest = ? AND resource = ? AND mode = ? AND (ended_at IS NULL OR EXISTS"
            " (SELECT 1 FROM rows WHERE batch = b.batch AND state IN ('planned', 'sent')))",
            *(plan.digest, plan.resource, plan.mode),
        )
        wanted = {row.number for row in plan.rows}
        for each in found:
            numbers = self._database.rows("SELECT number FROM rows WHERE batch = ?", each.batch)
            if each.policy == policy and {number for (number,) in numbers} == wanted:
                return each
        return None

    def _end_repeated(self, rows: Sequence[Row], unsent: Sequence[Row], batch: Batch) -> None:
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
        for print_, other in self.earlier(left, exclude_batch=batch.batch).items():
            row = left[print_]
            if batch.policy.resend and other.operation != "convert" and not other.is_open:
                continue
            row.same = other.key
            if other.is_open:
                row.end("refused", "held", "taken_over")
            elif other.outcome == "not_applied":
                row.end("refused", "not_applied", "already_pushed")
            else:
                row.end("done", "unchanged", "already_pushed")
                row.record_id = other.record_id

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
        return [self._resolved(row) for row in self._rows("batch = ? ORDER BY number", batch)]

    def row(self, key: RowKey) -> Row | None:
        """Return a row; None if it is missing."""
        found = self._rows("batch = ? AND number = ?", *key)
        return self._resolved(found[0]) if found else None

    def _resolved(self, row: Row) -> Row:
        """Return the row with the outcome, the record and the problems of the row it follows."""
        followed = self.row(row.same) if row.is_followed and row.same is not None else None
        if followed is not None:
            is_done = followed.outcome in ("created", "updated", "converted")
            row.outcome = "unchanged" if is_done else followed.outcome
            row.record_id, row.problems = followed.record_id, followed.problems
        return row

    def unfinished(self, batch: str) -> list[Row]:
        """Return the rows that a push of the batch can continue, by number.

        Before them come rows of earlier batches that rows of this batch follow.
        """
        return self._rows(
            "state IN ('planned', 'sent') AND (batch = ?1 OR is_open AND (batch, number) IN"
            " (SELECT same_batch, same_number FROM rows WHERE batch = ?1 AND code = 'taken_over'))"
            " ORDER BY batch = ?1, batch, number",
            batch,
        )

    def unconfirmed(self) -> list[Row]:
        """Return the rows of all batches that were sent and whose fate is unknown."""
        return self._rows("state IN ('sent', 'held') ORDER BY batch, number")

    def save(self, row: Row) -> None:
        """Replace a row by its present form. A row that has ended never changes again."""
        row.moved_at = self._now()
        with self._database.transaction():
            count = self._database.write(
                "DELETE FROM rows WHERE batch = ? AND number = ?"
                " AND state NOT IN ('done', 'refused')",
                *row.key,
            )
            assert count == 1, f"row {row.key} is missing, or has ended"
            self._database.insert("rows", to_columns(row))

    # -- comparing with other rows ----------------------------------------------------------------

    def earlier(self, prints: Iterable[str], *, exclude_batch: str = "") -> dict[str, Row]:
        """Return the latest row that made each write or may have, by fingerprint.

        Undone rows are left out. So is an update if the API returned other values, or if another
        row has changed the record since: it may be sent again.
        """
        rows = self._stored(
            "fingerprint IN (SELECT value FROM json_each(?)) AND undone_at IS NULL AND batch <> ?"
            " AND state <> 'refused' AND (is_open OR outcome IN ('created', 'converted')"
            " OR (outcome = 'not_applied' AND operation = 'create')"
            " OR (outcome = 'updated' AND NOT EXISTS (SELECT 1 FROM rows AS l WHERE"
            " l.record_id = r.record_id AND l.operation = 'update' AND l.moved_at > r.moved_at"
            " AND l.outcome IN ('updated', 'not_applied')))) ORDER BY is_open, moved_at",
            *(list(prints), exclude_batch),
        )
        return dict(rows)  # The last one of each fingerprint is kept.

    def taken(self, key: RowKey, ids: Collection[str]) -> frozenset[str]:
        """Return those of the ids that cannot be the record of a row.

        They were loaded before its batch began, or another row has created them.
        """
        made = self._rows(
            "record_id IN (SELECT value FROM json_each(?))"
            " AND operation = 'create' AND NOT (batch = ? AND number = ?)"
            " AND (outcome IN ('created', 'not_applied') OR (state = 'planned' AND is_open))",
            *(list(ids), *key),
        )
        known = self.batch(key[0]).known_ids & set(ids)
        return frozenset(str(row.record_id) for row in made) | known

    def rivals(self, row: Row) -> list[Row]:
        """Return other rows that may be creating a record of the same resource."""
        found = self._rows("is_open AND operation = 'create' AND resource = ?", row.resource)
        return [each for each in found if each.parent == row.parent and each.key != row.key]

    def open_subjects(self) -> dict[str, RowKey]:
        """Return the row with an open write, by the record or identity that it writes."""
        found = self._rows("is_open")
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
        rows = self._rows(
            "record_id = ? AND operation = 'update' AND undone_at IS NOT NULL", record_id
        )
        pairs = (((row.before or {}).get("updated_at"), row.updated_at) for row in rows)
        return [(before, after) for before, after in pairs if before and after]

    # -- previews ---------------------------------------------------------------------------------

    def note_preview(self, digest: str, resource: str, at: datetime) -> None:
        """Record that the user saw at this time what a push of the file would change."""
        self._database.note(f"preview/{resource}/{digest}", at)

    def previewed_at(self, digest: str, resource: str) -> datetime | None:
        """Return the time of the last preview of the file; None if there was none."""
        at = self._database.fact(f"preview/{resource}/{digest}")
        return at and datetime.fromisoformat(at)


def _is_kept(row: Row) -> bool:
    """Return True if a new check of the file does not replace the row."""
    return bool(row.attempts) or (row.state != "planned" and row.code != HELD_BACK)

"""Journal of pushes: one method, one transaction.

It lives in the ledger's file, where a commit is on the disk when it returns. Whoever writes to it
has the lease of pushes, and every transaction makes sure of that first: a push that was held up
and lost its lease can neither record nor intend anything any more.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeVar

from connector.client.request import Request
from connector.errors import LedgerDamaged, UnknownName
from connector.errors_api import LeaseLost
from connector.ledger import journal_reads as reads
from connector.ledger.journal_reads import (
    UNFINISHED,
    UNFINISHED_ROWS,
    WITHIN,
    AttemptRecord,
    BatchAction,
    BatchRecord,
    BeforeImage,
    Changes,
    PendingCount,
    PendingRow,
    RowKey,
    RowRecord,
    sql_list,
)
from connector.ledger.journal_records import Attempt, Transition
from connector.ledger.journal_writes import VALUES_AT_ONCE, JournalChange
from connector.ledger.ledger import Ledger
from connector.ledger.ledger_schema import OPEN
from connector.ledger.push_plan import PushPlan, PushPolicy
from connector.ledger.push_states import IN_DOUBT, State
from connector.ledger.sqlite_file import reader_of

PUSH_LEASE = "push"
"""Name of the lease for what writes to the API: one run of each account at a time."""

_NOBODY: Mapping[BatchAction, str] = MappingProxyType({})
_OF_BATCH = "batch = ?"
_OF_ROW = "mine.batch = ? AND mine.number = ?"

R = TypeVar("R")


class Journal:
    """Journal in a ledger; to write, give the run that has the lease of pushes.

    Every method raises a `WarehouseError` that names the file and says what to do; one that writes
    raises `LeaseLost` where the run has not the lease any more, and then nothing is written.
    """

    def __init__(
        self,
        ledger: Ledger,
        run_id: str | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._ledger, self._run_id, self._now = ledger, run_id, now

    # -- Writing ----------------------------------------------------------------------------------

    def create_batch(
        self,
        plan: PushPlan,
        terms: PushPolicy,
        landed_before: Iterable[str] = (),
        people: Mapping[BatchAction, str] = _NOBODY,
    ) -> str:
        """Write a file down with all of its rows, and return the batch that it is.

        A file that was pushed on these terms and not brought to an end goes on in its batch: rows
        that were tried stay as they are, and those that were not are as the plan has them now.
        """
        assert self._run_id is not None, "whoever writes to the journal has a run"
        with self._writing() as change:
            batch = _unfinished(change.connection, plan, terms)
            if batch is None:
                batch = self._run_id
                change.begin(batch, plan, terms, landed_before)
            else:
                change.remove_unsent(batch)
            change.add_rows(batch, plan)
            self._attach_run(change, batch, terms)
            change.note_people(batch, people)
            return batch

    def resume(self, batch: str) -> BatchRecord:
        """Go on with a batch. Raises `UnknownName`."""
        with self._writing() as change:
            found = _batch(change.connection, batch)
            self._attach_run(change, batch, found.terms)
            return found

    def mark_interrupted_rows(self) -> int:
        """Put rows in doubt that were under way when a push ended; returns how many."""
        with self._writing() as change:
            return change.mark_interrupted_rows()

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
        """Write down how a run has ended that worked at the batch, and what it took."""
        with self._writing() as change:
            change.connection.execute(
                "UPDATE push_batches SET ended_at = ?, outcome = ?, error_code = ?, message = ?,"
                " requests = requests + ?, seconds = seconds + ?, change = ? WHERE batch = ?",
                (
                    *(change.moment, outcome, error_code, message, requests, seconds),
                    *(change.number, batch),
                ),
            )

    def record_attempt(
        self,
        key: RowKey,
        request: Request,
        *,
        before: Mapping[str, Any] | None,
        sent_after: datetime,
    ) -> Attempt:
        """Write an attempt down, before a byte of it leaves."""
        with self._writing() as change:
            return change.record_attempt(key, request, before, sent_after)

    def record_transition(self, key: RowKey, what: Transition) -> State:
        """Write a transition down; returns the new state."""
        with self._writing() as change:
            return change.record_transition(key, what)

    def mark_blocked(self, key: RowKey, what: Transition, same: RowKey) -> None:
        """Note on a planned row that another one about the same thing is open."""
        with self._writing() as change:
            change.update_row(key, code=what.code, same_batch=same[0], same_number=same[1])
            change.set_problems(key, what.problems)

    def note_people(self, batch: str, people: Mapping[BatchAction, str]) -> None:
        """Note who did what with a batch."""
        with self._writing() as change:
            change.note_people(batch, people)

    def mark_undone(self, rows: Mapping[RowKey, str | None]) -> None:
        """Note that what these rows did was put back: the same rows may then be pushed
        again. With each goes the record's `updated_at` since, where it is known that no one
        else changed it between the row and its undo.
        """
        with self._writing() as change:
            for key, left_at in rows.items():
                known = {} if left_at is None else {"updated_at": left_at}
                change.update_row(key, undone_at=change.moment, **known)

    def _attach_run(self, change: JournalChange, batch: str, terms: PushPolicy) -> None:
        change.connection.execute(
            "UPDATE push_batches SET run_id = ?, ended_at = NULL, outcome = NULL,"
            " error_code = NULL, message = NULL, change = ? WHERE batch = ?",
            (self._run_id, change.number, batch),
        )
        change.end_answered_rows(batch, terms)

    @contextmanager
    def _writing(self) -> Iterator[JournalChange]:
        with self._ledger.writing() as connection:
            held = connection.execute(
                "SELECT 1 FROM leases WHERE name = ? AND run_id = ?", (PUSH_LEASE, self._run_id)
            ).fetchone()
            if held is None:
                raise LeaseLost(
                    f"this push (run {self._run_id}) was stopped, because another push "
                    "may have started"
                )
            yield JournalChange(connection, self._now())

    # -- Reading ----------------------------------------------------------------------------------

    def rows_to_push(self, batch: str) -> Iterator[PendingRow]:
        """The rows at which a push of the batch works: those of earlier batches that it
        follows, and its own that have not ended, as each stands when its turn comes to be
        read.
        """
        with self._ledger.reading() as connection:
            followed = reads.followed_rows(connection, batch)
        yield from followed
        yield from self._in_portions(batch, UNFINISHED_ROWS, reads.pending_rows)

    def rows(self, batch: str) -> Iterator[RowRecord]:
        """The rows of a batch with their outcomes and problems, by number."""
        return self._in_portions(batch, "1", reads.row_records)

    def _in_portions(
        self,
        batch: str,
        where: str,
        read: Callable[[sqlite3.Connection, str, tuple[Any, ...]], Iterable[R]],
    ) -> Iterator[R]:
        """Rows of a batch, read a portion at a time: others write between two."""
        number: int | None = -1
        while number is not None:
            with self._ledger.reading() as connection:
                last = reads.portion_end(connection, (batch, number), where)
                within = (batch, number, last)
                found = () if last is None else read(connection, f"{where} AND {WITHIN}", within)
            yield from found
            number = last

    def count_pending(self, batch: str) -> PendingCount:
        """Count the rows that a push of the batch works on, and the open ones."""
        with self._ledger.reading() as connection:
            return reads.pending(connection, batch)

    def row(self, key: RowKey) -> PendingRow | None:
        """One row with its task and state; None where nothing was undertaken for it."""
        with self._ledger.reading() as connection:
            return next(iter(reads.pending_rows(connection, _OF_ROW, key)), None)

    def row_record(self, key: RowKey) -> RowRecord | None:
        """One row with its outcome; None where there is no such row."""
        with self._ledger.reading() as connection:
            return next(iter(reads.row_records(connection, _OF_ROW, key)), None)

    def batch(self, batch: str) -> BatchRecord:
        """One batch. Raises `UnknownName`."""
        with self._ledger.reading() as connection:
            return _batch(connection, batch)

    def batches(self) -> tuple[BatchRecord, ...]:
        """All batches, the latest first."""
        with self._ledger.reading() as connection:
            return reads.batch_records(connection)

    def in_doubt(self) -> tuple[RowRecord, ...]:
        """The rows of all batches whose fate is not known, those just sent left out."""
        states = sql_list(IN_DOUBT - {"intent"})
        with self._ledger.reading() as connection:
            return reads.row_records(connection, f"mine.state IN ({states})")

    def attempts(self, batch: str) -> tuple[AttemptRecord, ...]:
        """The attempts of a batch's rows."""
        with self._ledger.reading() as connection:
            return reads.attempt_records(connection, _OF_BATCH, (batch,))

    def before_images(self, batch: str) -> tuple[BeforeImage, ...]:
        """The records that a batch's rows changed, as they were before."""
        with self._ledger.reading() as connection:
            return reads.before_images(connection, _OF_BATCH, (batch,))

    def changes_since(self, change: int) -> Generator[Changes]:
        """Everything that changed since a number, 0 for all, as of one time and in
        parts; all there is, where this journal never came as far. The ledger is held until
        they are read.
        """
        with self._ledger.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield from reads.changes(connection, change)
            finally:
                connection.execute("COMMIT")

    def damage_error(self, told: str) -> LedgerDamaged:
        """Error for rows that do not fit each other: no one wrote them so."""
        return LedgerDamaged(f"{self._ledger.path} is damaged: {told}")

    # -- Questions of a push ----------------------------------------------------------------------

    def has_rows_of(self, resource: str, digest: str | None = None) -> bool:
        """Whether any row of the resource, or of that file, was ever undertaken."""
        with self._ledger.reading() as connection:
            found = connection.execute(
                "SELECT 1 FROM push_batches WHERE resource = ?1 AND digest = coalesce(?2, digest)"
                " LIMIT 1",
                (resource, digest),
            ).fetchone()
        return found is not None

    def note_preview(self, digest: str, resource: str, at: datetime) -> None:
        """Record that a person sees what the file would change at this time."""
        with self._ledger.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO previews VALUES (?, ?, ?)",
                (digest, resource, at.isoformat()),
            )

    def previewed_at(self, digest: str, resource: str) -> datetime | None:
        """Time of the last preview of the file; None if there was none."""
        with self._ledger.reading() as connection:
            found = connection.execute(
                "SELECT at FROM previews WHERE digest = ? AND resource = ?", (digest, resource)
            ).fetchone()
            return None if found is None else reads.parse_moment(found[0])

    def earlier_pushes(self, fingerprints: Iterable[str]) -> dict[str, RowRecord]:
        """Rows that have applied these writes, or have them open, by fingerprint."""
        found: dict[str, RowRecord] = {}
        with self._ledger.reading() as connection:
            for print_, row in reads.earlier_writes(connection, fingerprints).items():
                (found[print_],) = reads.row_records(connection, _OF_ROW, row.key)
        return found

    def undone_updates(self, record_id: str) -> tuple[tuple[str, str], ...]:
        """Undone updates of a record: `updated_at` before each, and after the undo."""
        with self._ledger.reading() as connection:
            rows: list[tuple[str | None, str]] = connection.execute(
                "SELECT json_extract(record, '$.updated_at'), updated_at FROM push_rows"
                " JOIN push_before USING (batch, number) WHERE record_id = ?"
                " AND operation = 'update' AND undone_at IS NOT NULL AND updated_at IS NOT NULL"
                " AND step = 'first'",
                (record_id,),
            ).fetchall()
            text = reader_of(str)
            return tuple((text(before), text(after)) for before, after in rows if before)

    def open_subjects(self) -> dict[str, RowKey]:
        """Return the subjects with an open or unconfirmed write."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                f"SELECT subject, batch, number FROM push_rows WHERE subject IS NOT NULL AND {OPEN}"
            ).fetchall()
            text, whole = reader_of(str), reader_of(int)
            return {text(what): (text(batch), whole(number)) for what, batch, number in rows}

    def claimed_records(self, key: RowKey, ids: tuple[str, ...]) -> frozenset[str]:
        """Records that were landed before the row's batch, or that another row made."""
        with self._ledger.reading() as connection:
            ((landed,),) = connection.execute(
                "SELECT landed_before FROM push_batches WHERE batch = ?", key[:1]
            ).fetchall()
            return reads.claimed_ids(connection, ids, key) | (
                frozenset(json.loads(landed)) & set(ids)
            )

    def open_creates(self, key: RowKey) -> tuple[Mapping[str, Any], ...]:
        """Return the bodies of other open creates of the row's resource and parent."""
        with self._ledger.reading() as connection:
            return reads.open_creates(connection, key)


def _batch(connection: sqlite3.Connection, batch: str) -> BatchRecord:
    found = reads.batch_records(connection, _OF_BATCH, (batch,))
    if not found:
        known = [each.batch for each in reads.batch_records(connection)]
        raise UnknownName("batch", batch, known)
    return found[0]


def _unfinished(connection: sqlite3.Connection, plan: PushPlan, terms: PushPolicy) -> str | None:
    """The batch of this very file on these terms that was not brought to an end: rows
    are left, or the run that worked at it was cut off before it could say so.
    """
    rows = connection.execute(
        "SELECT batch FROM push_batches AS begun WHERE digest = ? AND resource = ? AND mode = ?"
        " AND terms = ? AND (ended_at IS NULL OR EXISTS (SELECT 1 FROM push_rows"
        f" WHERE batch = begun.batch AND state IN ({sql_list(UNFINISHED)})))"
        " ORDER BY begun_at DESC, rowid DESC",
        (plan.digest, plan.resource, plan.mode, reads.policy_text(terms)),
    ).fetchall()
    return next((batch for (batch,) in rows if _has_rows_of(connection, batch, plan)), None)


def _has_rows_of(connection: sqlite3.Connection, batch: str, plan: PushPlan) -> bool:
    """Whether the batch has just the rows that the plan has, by their numbers."""
    ((rows,),) = connection.execute("SELECT count(*) FROM push_rows WHERE batch = ?", (batch,))
    if rows != plan.rows:
        return False
    numbers = iter(plan.numbers)
    while some := list(islice(numbers, VALUES_AT_ONCE)):
        ((found,),) = connection.execute(
            "SELECT count(*) FROM push_rows WHERE batch = ?"
            " AND number IN (SELECT value FROM json_each(?))",
            (batch, json.dumps(some)),
        )
        if found != len(some):
            return False
    return True

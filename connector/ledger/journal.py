"""The journal of pushes: what was undertaken, and how each row stands. One method, one transaction.

It lives in the ledger's file, where a commit is on the disk when it returns. Whoever writes to it
holds the lease of pushes, and every transaction makes sure of that first: a push that was held up
and lost its turn can neither record nor intend anything any more.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from connector.client.request import Request
from connector.engine.push_commands import Attempt, Move
from connector.engine.push_plan import Plan, Terms
from connector.engine.push_states import FOR_A_PERSON, State
from connector.errors import UnknownName
from connector.errors_api import LeaseLost
from connector.ledger import claims
from connector.ledger import journal_portions as portions
from connector.ledger import journal_reads as reads
from connector.ledger import journal_writes as writes
from connector.ledger.journal_reads import (
    AttemptRecord,
    BatchRecord,
    BeforeImage,
    Changes,
    Key,
    Left,
    RowRecord,
    Work,
)
from connector.ledger.journal_writes import UNFINISHED
from connector.ledger.ledger import Ledger

PUSH_LEASE = "push"
"""What there is one of at a time, for each account: whatever writes to the API."""

_OF_BATCH = "batch = ?"

Row = TypeVar("Row", Work, RowRecord)


class Journal:
    """The journal in a ledger. To write to it, give the run that holds the lease of pushes.

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

    # -- a batch ----------------------------------------------------------------------------------

    def undertake(self, plan: Plan, terms: Terms, landed_before: Iterable[str] = ()) -> str:
        """Write a file down with all of its rows, and return the batch that it is.

        A file that was pushed on these terms and not brought to an end goes on in its batch: rows
        that were tried stay as they are, and those that were not are as the plan has them now.
        """
        assert self._run_id is not None, "whoever writes to the journal has a run"
        with self._writing() as (connection, stamp):
            batch = self._unfinished(connection, plan, terms)
            if batch is None:
                batch = self._run_id
                writes.begin_batch(
                    connection, batch, plan, terms, landed_before=landed_before, stamp=stamp
                )
            else:
                writes.remove_unsent(connection, batch)
                writes.add_rows(connection, batch, plan, stamp)
            self._take_up(connection, batch, terms, stamp)
            return batch

    def resume(self, batch: str) -> BatchRecord:
        """Go on with a batch. Raises `UnknownName`."""
        with self._writing() as (connection, stamp):
            found = self._batch(connection, batch)
            self._take_up(connection, batch, found.terms, stamp)
            return found

    def recover(self) -> int:
        """Put in doubt whatever was under way when an earlier push was cut off; says how many."""
        with self._writing() as (connection, stamp):
            return writes.recover(connection, stamp)

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
        with self._writing() as (connection, stamp):
            connection.execute(
                "UPDATE push_batches SET ended_at = ?, outcome = ?, error_code = ?, message = ?,"
                " requests = requests + ?, seconds = seconds + ?, change = ? WHERE batch = ?",
                (
                    *(stamp.text, outcome, error_code, message, requests, seconds),
                    *(stamp.change, batch),
                ),
            )

    # -- a row ------------------------------------------------------------------------------------

    def intend(
        self,
        key: Key,
        request: Request,
        *,
        before: Mapping[str, Any] | None,
        sent_after: datetime,
    ) -> Attempt:
        """Write an attempt down, before a byte of it leaves."""
        with self._writing() as (connection, stamp):
            return writes.intend(
                connection, key, request, before=before, sent_after=sent_after, stamp=stamp
            )

    def move(self, key: Key, what: Move) -> State:
        """Write a transition down; returns the new state."""
        with self._writing() as (connection, stamp):
            return writes.move(connection, key, what, stamp)

    def block(self, key: Key, what: Move, same: Key) -> None:
        """Tell of a planned row why it was not sent: another one about the same thing is open."""
        with self._writing() as (connection, stamp):
            connection.execute(
                "UPDATE push_rows SET code = ?, same_batch = ?, same_number = ?, change = ?"
                " WHERE batch = ? AND number = ? AND state = 'planned'",
                (what.code, *same, stamp.change, *key),
            )
            writes.set_problems(connection, key, what.problems, stamp)

    def mark_undone(self, rows: Mapping[Key, str | None]) -> None:
        """Note that what these rows did was put back: the same rows may then be pushed again. With
        each goes the record's `updated_at` since, where it is known that nobody else changed it
        between the row and its undo.
        """
        with self._writing() as (connection, stamp):
            connection.executemany(
                "UPDATE push_rows SET undone_at = ?, updated_at = coalesce(?, updated_at),"
                " change = ? WHERE batch = ? AND number = ?",
                [(stamp.text, left_at, stamp.change, *key) for key, left_at in rows.items()],
            )

    # -- reading ----------------------------------------------------------------------------------

    def work(self, batch: str) -> Iterator[Work]:
        """The rows at which a push of the batch works: those of earlier batches that it follows,
        and its own that have not ended, as each stands when its turn comes to be read.
        """
        with self._ledger.reading() as connection:
            page = portions.work_followed(connection, batch)
        yield from page
        yield from self._in_portions(portions.work_after, batch, lambda row: row.key[1])

    def left(self, batch: str) -> Left:
        """How many rows there are at which a push of the batch works, and which are open."""
        with self._ledger.reading() as connection:
            return portions.left(connection, batch)

    def row(self, key: Key) -> Work | None:
        """One row with its task and standing; None where nothing was undertaken for it."""
        with self._ledger.reading() as connection:
            return next(iter(reads.work(connection, "batch = ? AND number = ?", key)), None)

    def batch(self, batch: str) -> BatchRecord:
        """One batch. Raises `UnknownName`."""
        with self._ledger.reading() as connection:
            return self._batch(connection, batch)

    def batches(self) -> tuple[BatchRecord, ...]:
        """All batches, the latest first."""
        with self._ledger.reading() as connection:
            return reads.batch_records(connection)

    def rows(self, batch: str) -> Iterator[RowRecord]:
        """The rows of a batch with their outcomes and problems, by number."""
        return self._in_portions(portions.rows_after, batch, lambda row: row.number)

    def _in_portions(
        self,
        read: Callable[[sqlite3.Connection, str, int], Sequence[Row]],
        batch: str,
        number_of: Callable[[Row], int],
    ) -> Iterator[Row]:
        """The rows of a batch by number, each portion read when its turn has come: others write to
        the ledger between two.
        """
        number = -1
        while True:
            with self._ledger.reading() as connection:
                portion = read(connection, batch, number)
            if not portion:
                return
            yield from portion
            number = number_of(portion[-1])

    def stands(self, key: Key) -> RowRecord | None:
        """How one row stands; None where there is no such row."""
        with self._ledger.reading() as connection:
            found = reads.row_records(connection, "mine.batch = ? AND mine.number = ?", key)
            return next(iter(found), None)

    def taken_back(self, record_id: str) -> tuple[tuple[str, str], ...]:
        """The updates of a record that were undone: its `updated_at` before each, and after the
        undo.
        """
        with self._ledger.reading() as connection:
            return claims.taken_back(connection, record_id)

    def held(self) -> tuple[RowRecord, ...]:
        """The rows of all batches that wait for a person's decision."""
        states = ", ".join(f"'{state}'" for state in sorted(FOR_A_PERSON))
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

    def knows(self, resource: str) -> bool:
        """Whether any row of the resource was ever undertaken."""
        with self._ledger.reading() as connection:
            found = connection.execute(
                "SELECT 1 FROM push_batches WHERE resource = ? LIMIT 1", (resource,)
            ).fetchone()
        return found is not None

    def pushed(self, fingerprints: Iterable[str]) -> dict[str, RowRecord]:
        """Of these writes the rows that answer for them, by fingerprint: those that have applied
        them, or have them open.
        """
        found: dict[str, RowRecord] = {}
        with self._ledger.reading() as connection:
            for print_, row in claims.done(connection, fingerprints).items():
                where = "mine.batch = ? AND mine.number = ?"
                (found[print_],) = reads.row_records(connection, where, row.key)
        return found

    def open_subjects(self) -> dict[str, Key]:
        """What is written about at present, or was and nobody knows with what result."""
        with self._ledger.reading() as connection:
            return claims.open_subjects(connection)

    def of_others(self, key: Key, ids: tuple[str, ...]) -> frozenset[str]:
        """Which of these records are certainly not the row's: they were landed before its batch
        began, or another row has made them.
        """
        with self._ledger.reading() as connection:
            ((landed,),) = connection.execute(
                "SELECT landed_before FROM push_batches WHERE batch = ?", key[:1]
            ).fetchall()
            return claims.claimed(connection, ids, key) | (frozenset(json.loads(landed)) & set(ids))

    def open_creates(self, key: Key) -> tuple[Mapping[str, Any], ...]:
        """What other open creates of the row's resource and parent have sent."""
        with self._ledger.reading() as connection:
            return claims.open_creates(connection, key)

    def may_take(self, key: Key, batch: str, is_done: bool) -> bool:
        """Whether the row may take over a claim of that batch: the batch is in this journal, which
        then says what became of it; or its record `is_done`, and the row is wanted `again`.
        """
        with self._ledger.reading() as connection:
            if reads.batch_records(connection, _OF_BATCH, (batch,)):
                return True
            return is_done and self._batch(connection, key[0]).terms.again

    def since(self, change: int) -> Generator[Changes]:
        """Everything that changed since a number, 0 for all, as of one moment and in parts; all
        there is, where this journal never came as far. The ledger is held until they are read.
        """
        with self._ledger.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield from portions.changes(connection, change)
            finally:
                connection.execute("COMMIT")

    # -- within -----------------------------------------------------------------------------------

    def _take_up(
        self, connection: sqlite3.Connection, batch: str, terms: Terms, stamp: writes.Stamp
    ) -> None:
        connection.execute(
            "UPDATE push_batches SET run_id = ?, ended_at = NULL, outcome = NULL,"
            " error_code = NULL, message = NULL, change = ? WHERE batch = ?",
            (self._run_id, stamp.change, batch),
        )
        writes.relate(connection, batch, terms, stamp)

    @staticmethod
    def _unfinished(connection: sqlite3.Connection, plan: Plan, terms: Terms) -> str | None:
        """The batch of this very file on these terms that was not brought to an end: rows are left,
        or the run that worked at it was cut off before it could say so.
        """
        states = ", ".join(f"'{state}'" for state in UNFINISHED)
        rows = connection.execute(
            "SELECT batch FROM push_batches AS begun WHERE digest = ? AND resource = ? AND mode = ?"
            " AND terms = ? AND (ended_at IS NULL OR EXISTS (SELECT 1 FROM push_rows"
            f" WHERE batch = begun.batch AND state IN ({states})))"
            " ORDER BY begun_at DESC, rowid DESC",
            (plan.digest, plan.resource, plan.mode, reads.terms_text(terms)),
        ).fetchall()
        for (batch,) in rows:
            if claims.is_of(connection, batch, plan):
                return str(batch)
        return None

    @staticmethod
    def _batch(connection: sqlite3.Connection, batch: str) -> BatchRecord:
        found = reads.batch_records(connection, _OF_BATCH, (batch,))
        if not found:
            known = [each.batch for each in reads.batch_records(connection)]
            raise UnknownName("batch", batch, known)
        return found[0]

    @contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, writes.Stamp]]:
        with self._ledger.writing() as connection:
            held = connection.execute(
                "SELECT 1 FROM leases WHERE name = ? AND run_id = ?", (PUSH_LEASE, self._run_id)
            ).fetchone()
            if held is None:
                raise LeaseLost(
                    f"this push (run {self._run_id}) has not the lease any more, and another one"
                    " may have begun"
                )
            yield connection, writes.stamped(connection, self._now())

"""Journal of pushes, for reading: every batch, row and attempt, in the ledger's file.

The outcome of a row is computed from stored values, so that a report can be written again at any
time. A file may have a million rows, so long results are read in parts by row number. Writes
between two parts do not move rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, get_args

from connector.errors import UnknownName, WarehouseError
from connector.ledger.journal_records import (
    REFUSED,
    UNFINISHED,
    Attempt,
    AttemptRecord,
    BatchAction,
    BatchRecord,
    BeforeImage,
    EarlierWrite,
    JournalChanges,
    PendingCount,
    PendingRow,
    PushHealth,
    PushRun,
    RowKey,
    RowRecord,
    RowStatus,
    UnknownRows,
)
from connector.ledger.ledger import Ledger
from connector.ledger.ledger_schema import OPEN
from connector.ledger.push_plan import Problem, PushPolicy, task_from_json
from connector.ledger.push_states import (
    FOR_A_PERSON,
    IN_DOUBT,
    Operation,
    RowOutcome,
    State,
    outcome_of,
    outcome_of_follower,
)
from connector.ledger.sqlite_file import columns_of, read_records, reader_of

ROWS_AT_ONCE = 1_000
"""Maximum number of rows that are read together."""

BATCHES_READ = 20
"""Batches of each resource that `Journal.push_health` reads."""

T = TypeVar("T")


def quoted_sql_list(values: Iterable[str]) -> str:
    """Return constants as a list for SQL, quoted and separated by commas. Does not escape them."""
    return ", ".join(f"'{value}'" for value in sorted(values))


_whole, _text = reader_of(int), reader_of(str)

_UNFINISHED_ROWS = f"(task IS NOT NULL AND state IN ({quoted_sql_list(UNFINISHED)}))"
_FOLLOWED_ROWS = """
    batch <> ? AND (batch, number) IN
        (SELECT same_batch, same_number FROM push_rows WHERE batch = ? AND state = 'follows')
"""
_ONE_ROW = "mine.batch = ? AND mine.number = ?"
_PORTION = "mine.batch = ? AND mine.number > ? AND mine.number <= ?"
_CHANGED = "mine.change > ?"
_CHANGED_ROWS = """
    (mine.change > ? OR (mine.state = 'follows' AND EXISTS (
        SELECT 1 FROM push_rows AS followed WHERE followed.batch = mine.same_batch
        AND followed.number = mine.same_number AND followed.change > ?)))
"""
_BATCHES = "(SELECT *{}, rowid AS rowid FROM push_batches AS begun)".format(
    "".join(
        f", (SELECT person FROM push_people WHERE batch = begun.batch AND action = '{action}')"
        f" AS {action}_by"
        for action in get_args(BatchAction)
    )
)
_PROBLEM_JSON = ", ".join(f"'{each.name}', \"{each.name}\"" for each in fields(Problem))
_ROW_COLUMNS = ", ".join(
    f"mine.{each.name}"
    for each in fields(RowRecord)
    if each.name not in ("outcome", "record_id", "problems")
)


class Journal:
    """Reads the journal of pushes in a ledger. `JournalWriter` also writes.

    Every method raises a `WarehouseError` that names the file and the fix.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    # -- Reading ----------------------------------------------------------------------------------

    def batch(self, batch: str) -> BatchRecord:
        """Return the batch with this name. Raises `UnknownName`."""
        found = self._select_batches("batch = ?", (batch,))
        if not found:
            raise UnknownName("batch", batch, [each.batch for each in self.batches()])
        return found[0]

    def batches(self) -> tuple[BatchRecord, ...]:
        """Return all batches, the latest first."""
        return self._select_batches("1")

    def rows_to_push(self, batch: str) -> Iterator[PendingRow]:
        """Yield the unfinished rows of the batch, by number.

        Before them come unfinished rows of earlier batches whose outcome rows of this batch adopt.
        """
        yield from self._select_rows_with_tasks(
            f"{_UNFINISHED_ROWS} AND {_FOLLOWED_ROWS}", (batch, batch)
        )
        for portion in self._row_ranges("push_rows", _UNFINISHED_ROWS, batch=batch):
            yield from self._select_rows_with_tasks(f"{_UNFINISHED_ROWS} AND {_PORTION}", portion)

    def rows(self, batch: str) -> Iterator[RowRecord]:
        """Yield all rows of a batch with their outcomes and problems, by number."""
        for portion in self._row_ranges("push_rows", "1", batch=batch):
            yield from self._select_rows(_PORTION, portion)

    def count_pending(self, batch: str) -> PendingCount:
        """Return the number of rows that `rows_to_push` yields, and the keys of the open ones."""
        where = f"{_UNFINISHED_ROWS} AND (batch = ? OR {_FOLLOWED_ROWS})"
        given = (batch, batch, batch)
        with self._ledger.reading() as connection:
            ((rows,),) = connection.execute(f"SELECT count(*) FROM push_rows WHERE {where}", given)
            keys = connection.execute(
                f"SELECT batch, number FROM push_rows WHERE {where} AND {OPEN}", given
            ).fetchall()
            return PendingCount(rows, frozenset(keys))

    def row_with_task(self, key: RowKey) -> PendingRow | None:
        """Return a row with its task and status; None if the row is missing or was never to be
        sent.
        """
        return next(iter(self._select_rows_with_tasks(_ONE_ROW, key)), None)

    def row_record(self, key: RowKey) -> RowRecord | None:
        """Return a row with its outcome; None if the row is missing."""
        return next(iter(self._select_rows(_ONE_ROW, key)), None)

    def unconfirmed_rows(self) -> tuple[RowRecord, ...]:
        """Return the unconfirmed rows of all batches, without rows that are being sent."""
        return self._select_rows(f"mine.state IN ({quoted_sql_list(IN_DOUBT - {'intent'})})")

    def attempts(self, batch: str) -> tuple[AttemptRecord, ...]:
        """Return all attempts to send rows of a batch, by row number."""
        return self._select_attempts("batch = ?", (batch,))

    def before_images(self, batch: str) -> tuple[BeforeImage, ...]:
        """Return the records that rows of a batch changed, as they were before."""
        return self._select_before_images("batch = ?", (batch,))

    def changes_since(self, since: int) -> Generator[JournalChanges]:
        """Yield everything in the journal that changed after the change number `since`; 0 yields
        all.

        The changes come in parts, batches first, all from one snapshot: the ledger is locked until
        the last part is read. If this journal has not reached the number, the number is from
        another journal, and everything is yielded.
        """
        with self._ledger.reading() as connection:
            connection.execute("BEGIN")
            try:
                ((last,),) = connection.execute("SELECT last FROM push_changes").fetchall()
                since = since if since <= _whole(last) else 0
                yield JournalChanges(last, batches=self._select_batches("change > ?", (since,)))
                for portion in self._row_ranges("push_rows", _CHANGED_ROWS, (since, since)):
                    where, given = f"{_CHANGED_ROWS} AND {_PORTION}", (since, since, *portion)
                    yield JournalChanges(last, rows=self._select_rows(where, given))
                where = f"{_CHANGED} AND {_PORTION}"
                for portion in self._row_ranges("push_attempts", _CHANGED, (since,)):
                    attempts = self._select_attempts(where, (since, *portion))
                    yield JournalChanges(last, attempts=attempts)
                for portion in self._row_ranges("push_before", _CHANGED, (since,)):
                    images = self._select_before_images(where, (since, *portion))
                    yield JournalChanges(last, before_images=images)
            finally:
                connection.execute("COMMIT")

    def damage_error(self, reason: str) -> WarehouseError:
        """Return the error for a ledger whose rows contradict each other, with the reason."""
        return WarehouseError(f"{self._ledger.path} is damaged: {reason}", code="ledger_damaged")

    # -- Comparing with other rows ----------------------------------------------------------------

    def has_batch(self, resource: str, digest: str | None = None) -> bool:
        """Return True if a push of the resource was ever recorded.

        With a `digest`, only a push of the file with this SHA-256 counts.
        """
        with self._ledger.reading() as connection:
            found = connection.execute(
                "SELECT 1 FROM push_batches WHERE resource = ?1 AND digest = coalesce(?2, digest)"
                " LIMIT 1",
                (resource, digest),
            ).fetchone()
        return found is not None

    def record_preview(self, digest: str, resource: str, at: datetime) -> None:
        """Record that the user saw at this time what a push of the file would change."""
        with self._ledger.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO previews VALUES (?, ?, ?)",
                (digest, resource, at.isoformat()),
            )

    def previewed_at(self, digest: str, resource: str) -> datetime | None:
        """Return the time of the last preview of the file; None if there was none."""
        with self._ledger.reading() as connection:
            found = connection.execute(
                "SELECT at FROM previews WHERE digest = ? AND resource = ?", (digest, resource)
            ).fetchone()
            return None if found is None else datetime.fromisoformat(found[0])

    def find_earlier_rows(self, fingerprints: Iterable[str]) -> dict[str, RowRecord]:
        """Return the rows that applied these writes or may have, by fingerprint of the write."""
        found: dict[str, RowRecord] = {}
        with self._ledger.reading():
            for print_, row in self.find_earlier_writes(fingerprints).items():
                (found[print_],) = self._select_rows(_ONE_ROW, row.key)
        return found

    def undone_updates(self, record_id: str) -> tuple[tuple[str, str], ...]:
        """Return each undone update of a record, as (`updated_at` before it, `updated_at` after its
        undo).
        """
        with self._ledger.reading() as connection:
            rows: list[tuple[str | None, str]] = connection.execute(
                "SELECT json_extract(record, '$.updated_at'), updated_at FROM push_rows"
                " JOIN push_before USING (batch, number) WHERE record_id = ?"
                " AND operation = 'update' AND undone_at IS NOT NULL AND updated_at IS NOT NULL"
                " AND step = 'first'",
                (record_id,),
            ).fetchall()
            return tuple((_text(before), _text(after)) for before, after in rows if before)

    def open_rows_by_subject(self) -> dict[str, RowKey]:
        """Return the row that has an open write, by the hash of its record (`subject_hash`)."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                f"SELECT subject, batch, number FROM push_rows WHERE subject IS NOT NULL AND {OPEN}"
            ).fetchall()
            return {
                _text(subject): (_text(batch), _whole(number)) for subject, batch, number in rows
            }

    def records_of_others(self, key: RowKey, ids: tuple[str, ...]) -> frozenset[str]:
        """Return those of the ids that cannot be the row's own record.

        They were loaded before the row's batch began, or another row created them.
        """
        with self._ledger.reading() as connection:
            ((landed,),) = connection.execute(
                "SELECT landed_before FROM push_batches WHERE batch = ?", key[:1]
            ).fetchall()
            made = connection.execute(
                "SELECT record_id FROM push_rows"
                " WHERE record_id IN (SELECT value FROM json_each(?))"
                " AND operation = 'create' AND NOT (batch = ? AND number = ?)"
                " AND (is_begun = 1 OR state IN ('applied', 'not_applied'))",
                (json.dumps(list(ids)), *key),
            )
            return frozenset(id for (id,) in made) | (frozenset(json.loads(landed)) & set(ids))

    def other_open_creates(self, key: RowKey) -> tuple[Mapping[str, Any], ...]:
        """Return the bodies of other open creates of the row's resource and parent."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT batch, number, task FROM push_rows WHERE operation = 'create'"
                f" AND (batch = ? AND number = ? OR {OPEN})",
                key,
            ).fetchall()
            tasks = {(batch, number): task_from_json(task) for batch, number, task in rows}
            mine = tasks.pop(key)
            return tuple(
                task.fields
                for task in tasks.values()
                if (task.resource, task.parent) == (mine.resource, mine.parent)
            )

    def find_earlier_writes(
        self, fingerprints: Iterable[str], *, exclude_batch: str | None = None
    ) -> dict[str, EarlierWrite]:
        """Return the latest row that applied each write or may have, by fingerprint of the write.

        Rows of `exclude_batch` and undone rows are left out. An update is also left out if the API
        returned other values, or if another row has changed the record since: it may be sent again.
        """
        found: dict[str, EarlierWrite] = {}
        rows = self._read_records(
            EarlierWrite,
            "SELECT fingerprint, json_array(batch, number) AS key, operation, state, record_id,"
            f" {OPEN} AS is_open, change FROM push_rows"
            " WHERE fingerprint IN (SELECT value FROM json_each(?))"
            f" AND undone_at IS NULL AND batch IS NOT ?"
            f" AND (state IN ('applied', 'not_applied') OR {OPEN})"
            " ORDER BY state IN ('applied', 'not_applied'), change DESC",
            (json.dumps(list(fingerprints)), exclude_batch),
            {"key": _row_key_from_json},
        )
        for row in rows:
            is_update = row.operation == "update" and not row.is_open
            if is_update and (row.state != "applied" or self._was_changed_later(row)):
                continue
            found.setdefault(row.fingerprint, row)
        return found

    def _was_changed_later(self, row: EarlierWrite) -> bool:
        """Return True if another row has changed the record after this write."""
        with self._ledger.reading() as connection:
            later = connection.execute(
                "SELECT 1 FROM push_rows WHERE record_id = ? AND change > ?"
                " AND operation = 'update' AND state IN ('applied', 'not_applied') LIMIT 1",
                (row.record_id, row.change),
            ).fetchone()
            return later is not None

    # -- Health -----------------------------------------------------------------------------------

    def push_health(self) -> PushHealth:
        """Return the latest runs and the unconfirmed rows, without contents and file names."""
        with self._ledger.reading():
            runs = self._read_records(
                PushRun,
                "SELECT batch, resource, begun_at, ended_at, outcome, error_code, message,"
                " (SELECT count(*) FROM push_rows WHERE push_rows.batch = latest.batch"
                f" AND undone_at IS NULL AND state IN ({quoted_sql_list(REFUSED)})) AS refused"
                " FROM (SELECT *, coalesce(ended_at, begun_at) AS last_at, row_number() OVER"
                " (PARTITION BY resource ORDER BY coalesce(ended_at, begun_at) DESC, rowid DESC)"
                " AS place FROM push_batches) AS latest"
                " WHERE place <= ? ORDER BY last_at DESC, batch DESC",
                (BATCHES_READ,),
            )
            held, open = map(self._count_rows_in, (FOR_A_PERSON, IN_DOUBT - FOR_A_PERSON))
            return PushHealth(runs, held, open)

    def _count_rows_in(self, states: frozenset[State]) -> UnknownRows | None:
        """Return the number of rows in these states, and the time of the first; None if there are
        none.
        """
        with self._ledger.reading() as connection:
            ((rows, since),) = connection.execute(
                "SELECT count(*), min(moved_at) FROM push_rows"
                f" WHERE state IN ({quoted_sql_list(states)})"
            ).fetchall()
            return UnknownRows(int(rows), datetime.fromisoformat(since)) if rows else None

    # -- Queries ----------------------------------------------------------------------------------
    # Each reads the rows of its table, called `mine`, that a condition selects.

    def _read_records(
        self,
        kind: type[T],
        query: str,
        parameters: Iterable[Any] = (),
        readers: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> tuple[T, ...]:
        """Return the rows of a query as records of the dataclass `kind`."""
        with self._ledger.reading() as connection:
            return tuple(read_records(connection, kind, query, parameters, readers))

    def _select_batches(
        self, where: str, parameters: Iterable[Any] = ()
    ) -> tuple[BatchRecord, ...]:
        """Return the batches that a condition in SQL selects, the latest first."""
        query = (
            f"SELECT {columns_of(BatchRecord)} FROM {_BATCHES} WHERE {where}"
            " ORDER BY begun_at DESC, batch DESC"
        )
        return self._read_records(
            BatchRecord, query, parameters, {"terms": lambda text: PushPolicy(**json.loads(text))}
        )

    def _select_rows(self, where: str, parameters: Iterable[Any] = ()) -> tuple[RowRecord, ...]:
        """Return the rows that a condition selects, with their outcomes and problems.

        A row that follows another has the outcome, record and problems of that row.
        """
        return self._read_records(
            RowRecord,
            f"SELECT {_ROW_COLUMNS}, CASE mine.state WHEN 'follows' THEN other.record_id"
            " ELSE mine.record_id END AS record_id, CASE mine.state WHEN 'follows'"
            " THEN json_array(1, other.state, other.operation, other.is_begun, other.is_in_doubt)"
            " ELSE json_array(0, mine.state, mine.operation, mine.is_begun, mine.is_in_doubt)"
            " END AS outcome, (SELECT json_group_array(json_object("
            f"{_PROBLEM_JSON}))"
            " FROM (SELECT * FROM push_problems AS listed WHERE listed.batch = CASE mine.state"
            " WHEN 'follows' THEN mine.same_batch ELSE mine.batch END AND listed.number ="
            " CASE mine.state WHEN 'follows' THEN mine.same_number ELSE mine.number END"
            " ORDER BY listed.place)) AS problems"
            " FROM push_rows AS mine LEFT JOIN push_rows AS other"
            " ON mine.state = 'follows' AND other.batch = mine.same_batch"
            " AND other.number = mine.same_number"
            f" WHERE {where} ORDER BY mine.batch, mine.number",
            parameters,
            {
                "outcome": _outcome_from_json,
                "problems": lambda text: tuple(Problem(**each) for each in json.loads(text)),
            },
        )

    def _select_attempts(self, where: str, parameters: Iterable[Any]) -> tuple[AttemptRecord, ...]:
        """Return the attempts that a condition in SQL selects, by row and attempt."""
        query = (
            f"SELECT {columns_of(AttemptRecord)} FROM push_attempts AS mine WHERE {where}"
            " ORDER BY batch, number, attempt"
        )
        return self._read_records(AttemptRecord, query, parameters, {"body": _checked_json_text})

    def _select_before_images(
        self, where: str, parameters: Iterable[Any]
    ) -> tuple[BeforeImage, ...]:
        """Return the former records that a condition in SQL selects, by row and step."""
        query = (
            f"SELECT {columns_of(BeforeImage)} FROM push_before AS mine WHERE {where}"
            " ORDER BY batch, number, step"
        )
        return self._read_records(BeforeImage, query, parameters)

    def _select_rows_with_tasks(
        self, where: str, parameters: Iterable[Any]
    ) -> tuple[PendingRow, ...]:
        """Return the selected rows that have a task, with the attempts and former record of their
        step.
        """
        step = "step = CASE mine.is_begun WHEN 0 THEN 'first' ELSE 'afterwards' END"
        of_row = f"batch = mine.batch AND number = mine.number AND {step}"
        return self._read_records(
            PendingRow,
            "SELECT json_array(batch, number) AS key, task, subject, code, json_object("
            "'state', state, 'is_begun', is_begun, 'is_in_doubt', is_in_doubt,"
            " 'is_altered', is_altered, 'record_id', record_id,"
            f" 'before', json((SELECT record FROM push_before WHERE {of_row})),"
            " 'attempts', json((SELECT json_group_array(json_array("
            "attempt, step, intended_at, sent_after, fate, reason, answer)) FROM"
            f" (SELECT * FROM push_attempts WHERE {of_row} ORDER BY attempt)))) AS status"
            f" FROM push_rows AS mine WHERE task IS NOT NULL AND {where} ORDER BY batch, number",
            parameters,
            {"key": _row_key_from_json, "task": task_from_json, "status": _row_status_from_json},
        )

    def _row_ranges(
        self, table: str, where: str, parameters: tuple[Any, ...] = (), *, batch: str | None = None
    ) -> Iterator[tuple[str, int, int]]:
        """Yield ranges of at most `ROWS_AT_ONCE` rows of a table, or of one batch in it.

        A range is (batch, row number before the first row, row number of the last row).
        """
        with self._ledger.reading() as connection:
            batches = (
                [(batch,)]
                if batch is not None
                else connection.execute(
                    f"SELECT DISTINCT batch FROM {table} AS mine WHERE {where} ORDER BY batch",
                    parameters,
                ).fetchall()
            )
        for (name,) in batches:
            number = -1
            while (last := self._range_end(table, (name, number), where, parameters)) is not None:
                yield name, number, last
                number = last

    def _range_end(
        self, table: str, after: RowKey, where: str, parameters: tuple[Any, ...]
    ) -> int | None:
        """Return the number of the last row in the range that begins after a row; None if it is
        empty.
        """
        with self._ledger.reading() as connection:
            ((last,),) = connection.execute(
                f"SELECT max(number) FROM (SELECT DISTINCT number FROM {table} AS mine"
                f" WHERE batch = ? AND number > ? AND {where} ORDER BY number LIMIT ?)",
                (*after, *parameters, ROWS_AT_ONCE),
            ).fetchall()
            # A number with a fraction would end the next range as well, for ever.
            return None if last is None else _whole(last)


def policy_to_json(policy: PushPolicy) -> str:
    """Return the policy as JSON. Equal policies have equal texts."""
    return json.dumps(asdict(policy), sort_keys=True)


def _outcome_from_json(text: str) -> RowOutcome:
    """Return the outcome of a row from its state and flags. Raises `ValueError` for an unknown
    state.
    """
    is_follower, state, operation, is_begun, is_in_doubt = json.loads(text)
    is_known = state in get_args(State) and state != "follows"
    if not is_known or (state == "applied" and operation not in get_args(Operation)):
        raise ValueError("a row is in no such state")
    outcome = outcome_of(state, operation, is_begun=is_begun, is_in_doubt=is_in_doubt)
    return outcome_of_follower(outcome) if is_follower else outcome


def _checked_json_text(body: bytes) -> str:
    """Return the text of a stored body. Raises `ValueError` if it is not JSON."""
    json.loads(body)
    return body.decode("utf-8")


def _row_key_from_json(text: str) -> RowKey:
    """Return the key of a row from a JSON list of batch and number."""
    batch, number = json.loads(text)
    return _text(batch), _whole(number)


def _row_status_from_json(text: str) -> RowStatus:
    """Return the status of a row, with its attempts, from JSON."""
    found = json.loads(text)
    flags: dict[str, Any] = {
        name: bool(found.pop(name)) for name in ("is_begun", "is_in_doubt", "is_altered")
    }
    read = datetime.fromisoformat
    attempts = tuple(
        Attempt(_whole(number), step, read(intended_at), read(sent_after), *ended)
        for number, step, intended_at, sent_after, *ended in found.pop("attempts")
    )
    return RowStatus(**found, **flags, attempts=attempts)


def has_rows_to_look_up(folder: Path) -> bool:
    """Return True if the folder's ledger has unconfirmed rows that need no decision by the user.

    Raises a `WarehouseError`.
    """
    with Ledger(folder) as ledger:
        return ledger.exists and Journal(ledger).push_health().open is not None

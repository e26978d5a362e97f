"""The file `state.sqlite`: its tables, its connection, and its errors.

Times are stored as ISO 8601 text in UTC and structures as JSON. A column whose declared type is
TIME, JSON or BOOL is converted when it is read, so that `Dataclass(**row)` makes a record of a row.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, fields, is_dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter

from connector.atomic_files import create_private_file
from connector.errors import WarehouseError, file_error
from connector.state.lock import has_locks, no_locks_error

STATE_FILE = "state.sqlite"
VERSION = 1
"""Version of the tables. An older connector refuses a file with a greater one."""

APPLICATION_ID = 0x52435354
"""Mark of the connector's own files: "RCST"."""

BUSY_SECONDS = 10.0
"""Maximum time in seconds to wait for another process's commit. Each takes milliseconds."""

SCHEMA = """
-- Identity of the folder, clock and limits of the server, sent notifications, last restore,
-- backups, and when a user last saw the changes of a file.
CREATE TABLE facts (name TEXT PRIMARY KEY, value JSON NOT NULL) WITHOUT ROWID;

-- Requests, counted one by one before they are sent, by day (UTC), command and operation.
CREATE TABLE requests (
    day TEXT NOT NULL, command TEXT NOT NULL, kind TEXT NOT NULL, requests INTEGER NOT NULL,
    PRIMARY KEY (day, command, kind)
) WITHOUT ROWID;

-- Runs of commands, the result of each resource, and events.
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY, command TEXT NOT NULL, started_at TIME NOT NULL, ended_at TIME,
    outcome TEXT, seconds REAL, waited_seconds REAL, requests INTEGER, rate_limited INTEGER,
    error_code TEXT, message TEXT, budget INTEGER
) WITHOUT ROWID;
CREATE TABLE run_resources (
    run_id TEXT NOT NULL, resource TEXT NOT NULL, outcome TEXT NOT NULL, proven BOOL NOT NULL,
    requests INTEGER, lists INTEGER, details INTEGER, new INTEGER, changed INTEGER,
    unchanged INTEGER, deleted INTEGER, live INTEGER, total INTEGER, pending INTEGER,
    bookmark_before TIME, bookmark_after TIME, error_code TEXT, message TEXT, scrubs INTEGER,
    lateness_seconds REAL, oldest_read_at TIME, anomalies JSON NOT NULL,
    PRIMARY KEY (run_id, resource)
) WITHOUT ROWID;
CREATE TABLE events (
    run_id TEXT, resource TEXT, parent TEXT, kind TEXT NOT NULL, detail TEXT NOT NULL, id TEXT,
    seen_at TIME NOT NULL
);
CREATE INDEX events_of_a_resource ON events (resource, kind, detail);
CREATE TABLE publications (
    publication TEXT PRIMARY KEY, started_at TIME NOT NULL, run_id TEXT, ended_at TIME,
    true_of TIME, outcome TEXT, models INTEGER, checks INTEGER, failed_checks JSON,
    personal TEXT, left_out JSON, time_zone TEXT, error_code TEXT,
    message TEXT, bytes INTEGER, seconds REAL
) WITHOUT ROWID;

-- Journal of pushes: one batch for each file and policy, and one row for each row of the file.
CREATE TABLE batches (
    batch TEXT PRIMARY KEY, resource TEXT NOT NULL, mode TEXT NOT NULL, file TEXT NOT NULL,
    digest TEXT NOT NULL, policy JSON NOT NULL, known_ids JSON NOT NULL, begun_at TIME NOT NULL,
    ended_at TIME, outcome TEXT, error_code TEXT, message TEXT, requests INTEGER NOT NULL,
    seconds REAL NOT NULL, sent_by TEXT, undone_by TEXT
) WITHOUT ROWID;
CREATE INDEX batches_of_a_file ON batches (digest, resource, mode);
CREATE TABLE rows (
    batch TEXT NOT NULL REFERENCES batches, number INTEGER NOT NULL, resource TEXT NOT NULL,
    operation TEXT, state TEXT NOT NULL, outcome TEXT NOT NULL, code TEXT NOT NULL,
    is_open BOOL NOT NULL, fingerprint TEXT, subject TEXT, record_id TEXT, updated_at TEXT,
    same_batch TEXT, same_number INTEGER, moved_at TIME NOT NULL, undone_at TIME,
    before JSON, after JSON, answer JSON NOT NULL,
    PRIMARY KEY (batch, number)
) WITHOUT ROWID;
CREATE INDEX rows_of_a_fingerprint ON rows (fingerprint);
CREATE INDEX rows_of_a_record ON rows (record_id);
-- No write is open twice, and a lead is converted once, over all batches.
CREATE UNIQUE INDEX rows_open ON rows (fingerprint) WHERE is_open;
CREATE UNIQUE INDEX rows_converted ON rows (fingerprint)
WHERE operation = 'convert' AND (is_open OR outcome = 'converted');

-- Purges of people, with the ids of their records. One without an end was interrupted.
CREATE TABLE purges (at TIME PRIMARY KEY, ids JSON NOT NULL, ended_at TIME, counts JSON)
WITHOUT ROWID;
"""

T = TypeVar("T")

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_IO = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL)
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG)
_ERRORS: Mapping[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("the disk is full: {} cannot be written", "disk_full"),
    sqlite3.SQLITE_NOTADB: ("{} is not an SQLite database", "not_a_state"),
    **dict.fromkeys(
        _BUSY, (f"another process has used {{}} for {BUSY_SECONDS:g} s", "warehouse_busy")
    ),
    # Every statement fits the tables that were made here: after an error, they are not these.
    **dict.fromkeys((*_DAMAGE, sqlite3.SQLITE_ERROR), ("{} is damaged", "state_damaged")),
}
"""Message and code of an error, by SQLite's primary result code."""

sqlite3.register_converter("TIME", lambda text: datetime.fromisoformat(text.decode()))
sqlite3.register_converter("JSON", json.loads)
sqlite3.register_converter("BOOL", lambda text: bool(int(text)))


class Database:
    """The state of the account in `folder`, for any thread. Methods can raise a `WarehouseError`.

    The folder must exist. The file is made and opened when it is first needed.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / STATE_FILE
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file. A later call opens it again."""
        with self._lock:
            if self._connection is not None:
                # Closing moves the log into the file; on a full disk the log keeps all commits.
                with suppress(sqlite3.Error):
                    self._connection.close()
                self._connection = None

    @property
    def exists(self) -> bool:
        """Return True if the file exists."""
        return self.path.exists()

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection without a transaction. Other threads wait."""
        with self._lock, convert_errors(self.path):
            if self._connection is None:
                self._connection = _connect(self.path)
            yield self._connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a new transaction, or in the open one of this thread.

        It is on the disk when the block ends, and rolled back if the block raises an error.
        """
        with self.open() as connection:
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # Some errors have ended the transaction already.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """Return the rows of a query."""
        with self.open() as connection:
            return connection.execute(sql, [_to_column(each) for each in values]).fetchall()

    def find(self, kind: type[T], sql: str, *values: Any) -> list[T]:
        """Return the rows of a query as records of a dataclass."""
        with convert_errors(self.path):
            return [to_record(kind, each) for each in self.rows(sql, *values)]

    def write(self, sql: str, *values: Any) -> int:
        """Execute a statement in a transaction, and return the number of rows that it changed."""
        with self.transaction() as connection:
            return connection.execute(sql, [_to_column(each) for each in values]).rowcount

    def insert(self, table: str, record: Mapping[str, Any], verb: str = "INSERT") -> None:
        """Insert a row."""
        marks = ", ".join("?" for _ in record)
        sql = f"{verb} INTO {table} ({', '.join(record)}) VALUES ({marks})"
        self.write(sql, *record.values())

    def put(self, table: str, record: Mapping[str, Any]) -> None:
        """Insert a row, or replace the row with the same primary key."""
        self.insert(table, record, "INSERT OR REPLACE")

    # -- facts ------------------------------------------------------------------------------------

    def fact(self, name: str) -> Any:
        """Return a fact; None if it was never noted."""
        found = self.rows("SELECT value FROM facts WHERE name = ?", name)
        return found[0]["value"] if found else None

    def fact_as(self, kind: type[T], name: str) -> T | None:
        """Return a fact as a record of this class; None if it was never noted."""
        with convert_errors(self.path):
            found = self.fact(name)
            return None if found is None else to_record(kind, found)

    def note(self, name: str, value: Any) -> None:
        """Replace a fact by a value for JSON; None deletes it."""
        if value is None:
            self.write("DELETE FROM facts WHERE name = ?", name)
        else:
            self.put("facts", {"name": name, "value": _to_json(value)})

    # -- the file ---------------------------------------------------------------------------------

    def compact(self) -> None:
        """Write the file again without deleted bytes, and empty its log."""
        with self.open() as connection:
            connection.execute("VACUUM")
            ((is_busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if is_busy:
            message = f"another process is reading {self.path}, so deleted bytes stay in it"
            raise WarehouseError(message, code="warehouse_busy")


def columns(record: Any) -> dict[str, Any]:
    """Return the values of a dataclass record by field, without converting nested values."""
    return {name: getattr(record, name) for name in _names(record)}


def to_record(kind: type[T], values: Any) -> T:
    """Return a row or a fact as a record of a dataclass. A missing value is an error."""
    record: T = _adapter(kind).validate_python({name: values[name] for name in _names(kind)})
    return record


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def _names(kind: Any) -> list[str]:
    """Return the names of the fields of a dataclass or of one of its records."""
    return [each.name for each in fields(kind)]


def _to_column(value: Any) -> Any:
    """Convert times and paths to text and structures to JSON; return other values."""
    if isinstance(value, dict | list | tuple | frozenset) or is_dataclass(value):
        return _to_json(value)
    return _to_text(value) if isinstance(value, date | Path) else value


def _to_json(value: Any) -> str:
    """Return a structure as JSON. The elements of a set are sorted."""
    return json.dumps(value, default=_to_text)


def _to_text(value: Any) -> Any:
    """Return a value that JSON does not have as one that it has."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat()
        case frozenset():
            return sorted(value)
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


# -- Connection ------------------------------------------------------------------------------------


def _connect(path: Path) -> sqlite3.Connection:
    """Open the file, and create it with all of its tables if it is missing."""
    # SQLite gives the files next to it the mode of the file itself.
    if not path.exists():
        with suppress(FileExistsError):
            create_private_file(path).close()
    connection = _open(path)
    try:
        if not _has_tables(connection, path):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            if not _has_tables(connection, path):  # Another process may have made them.
                for statement in SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _open(path: Path) -> sqlite3.Connection:
    """Return a connection without automatic transactions, which any thread may use."""
    connection = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        detect_types=sqlite3.PARSE_DECLTYPES,
    )
    connection.row_factory = sqlite3.Row
    return connection


def _has_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Return True if the file has the tables, False if it is new. Raises a `WarehouseError`."""
    # One statement, for one time: another process may be making the tables.
    ((mark, version, tables),) = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
        " FROM pragma_application_id, pragma_user_version"
    ).fetchall()
    if mark != APPLICATION_ID and (tables or mark or version):
        raise WarehouseError(f"{path} is an SQLite database of another program", code="not_a_state")
    if version > VERSION:
        raise WarehouseError(
            f"{path} was written by a newer version of the connector",
            action="Install that version, or restore a backup of this version.",
            code="not_a_state",
        )
    return bool(version)


@contextmanager
def convert_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite and of the file system to a `WarehouseError` with the path.

    SQLite has no checksums, so that a damaged byte may also appear as a value that cannot be read.
    """
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.IntegrityError):
        raise  # A mistake of the program, and not of the file.
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        # SQLite reports a file system without locks as a busy file, or as a failed read.
        if code in (*_BUSY, *_IO) and not has_locks(path.parent):
            raise no_locks_error(path) from error
        if code in _ERRORS:
            message, name = _ERRORS[code]
            raise WarehouseError(message.format(path), code=name) from error
        raise WarehouseError(
            f"{path} cannot be used: {error}",
            action="Check the disk: free space, write permission, and the machine's log.",
        ) from error
    except (ValueError, TypeError, LookupError) as error:
        # The value is not shown: it may be personal.
        message = f"{path} is damaged ({type(error).__name__})"
        raise WarehouseError(message, code="state_damaged") from error
    except OSError as error:
        raise file_error(path, error) from error


# -- Copies ----------------------------------------------------------------------------------------


def copy(path: Path, target: Path) -> None:
    """Copy the file to a new file `target`, and check the copy.

    A transaction that another process commits meanwhile is in the copy as a whole, or not at all.
    """
    with convert_errors(target):
        create_private_file(target).close()
    with convert_errors(path), closing(_open(path)) as source, closing(_open(target)) as made:
        # All pages in one step: in several, the copy starts again with every commit.
        source.backup(made, pages=-1)
        made.execute("PRAGMA journal_mode = DELETE")  # One file, without a log next to it.
    check(target)


def check(path: Path) -> None:
    """Raise a `WarehouseError` if the file is damaged or is not the connector's."""
    with convert_errors(path), closing(_open(path)) as connection:
        ((found,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
        if found != "ok":
            raise WarehouseError(f"{path} is damaged", code="state_damaged")
        if not _has_tables(connection, path):
            raise WarehouseError(f"{path} has no tables", code="not_a_state")

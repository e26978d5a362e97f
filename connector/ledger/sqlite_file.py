"""Opening of the ledger's file, its errors, and its records.

Every error of the file system or of SQLite becomes a `WarehouseError` with the next step. A commit
is on the disk when it returns (`synchronous = FULL`), and readers and the writer do not wait for
each other (`journal_mode = WAL`).
"""

from __future__ import annotations

import errno
import fcntl
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from connector.atomic_files import create_private_file
from connector.errors import WarehouseError, file_error
from connector.ledger.ledger_schema import LEDGER_VERSION, SCHEMA

# -- File locks ------------------------------------------------------------------------------------
# Some file systems, such as network shares, refuse every lock.


_REFUSALS = frozenset((errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS))
"""Errors of a file system that has no locks."""


def means_no_locks(error: OSError) -> bool:
    """Return True if the error of a lock means that the file system has no locks."""
    return error.errno in _REFUSALS


def no_locks_error(path: Path) -> WarehouseError:
    """Return the error for a file or folder whose file system has no locks."""
    return WarehouseError(f"the file system of {path} has no file locks", code="no_file_locks")


def has_locks(folder: Path) -> bool:
    """Return True unless the file system of the folder refuses to lock a new file.

    DuckDB and SQLite report such a refusal as a lock that another process holds.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as handle:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not means_no_locks(error)
    return True


# -- Connection ------------------------------------------------------------------------------------


APPLICATION_ID = 0x52434C47
"""Mark of the connector's own files: "RCLG"."""

BUSY_SECONDS = 10.0
"""Maximum time in seconds to wait for another process's commit. Each takes milliseconds."""

_RETRY_SECONDS = 0.01
_MARKS = """
    SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
    FROM pragma_application_id, pragma_user_version
"""
_UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
"""Errors of parsing a value that was never written."""

_BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
_LOCK_CODES = _BUSY | {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL}


def connect_to_ledger(path: Path) -> sqlite3.Connection:
    """Open the ledger's file, and create it with all of its tables if it is missing.

    One thread at a time may use the connection. Raises `WarehouseError`.
    """
    with convert_sqlite_errors(path):
        # SQLite gives the files next to it the mode of the file itself.
        with suppress(FileExistsError):
            create_private_file(path).close()
        connection = _open_sqlite(path)
        try:
            _create_tables(connection, path)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection


def _open_sqlite(path: Path) -> sqlite3.Connection:
    """Return a connection without automatic transactions, which any thread may use."""
    return sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Begin a transaction, or join the open one. It is committed, or rolled back by an error."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have ended the transaction already.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def convert_sqlite_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite and of the file system to those of `errors.py`, naming the path.

    SQLite has no checksums, so that a damaged byte may also appear as a value that was never
    written: an error while parsing a value is a `WarehouseError` as well.
    """
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.IntegrityError):
        raise  # Misuse, or a write that the tables refuse, is our own mistake and not the file's.
    except sqlite3.Error as error:
        # SQLite reports a file system without locks as a busy file, or as a failed read.
        if _primary_code(error) in _LOCK_CODES and not has_locks(path.parent):
            raise no_locks_error(path) from error
        raise _error_for(path, error) from error
    except _UNREADABLE as error:
        raise _damage_error(path, error) from error
    except OSError as error:
        raise file_error(path, error) from error


def _damage_error(path: Path, error: Exception) -> WarehouseError:
    """Return the error for a file with a value that no one wrote. It does not show the value."""
    message = f"{path} is damaged ({type(error).__name__})"
    return WarehouseError(message, code="ledger_damaged")


def _primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's result code of an error, without its extended part."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def _error_for(path: Path, error: sqlite3.Error) -> WarehouseError:
    """Return the error for users, by SQLite's result code."""
    code = _primary_code(error)
    if code in _BUSY:
        return WarehouseError(
            f"another process has used {path} for {BUSY_SECONDS:g} s",
            action=(
                "Run the command again. If it fails again, stop the program that uses the file."
            ),
            code="warehouse_busy",
        )
    match code:
        case sqlite3.SQLITE_FULL:
            return WarehouseError(f"the disk is full: {path} cannot be written", code="disk_full")
        case sqlite3.SQLITE_CORRUPT:
            return WarehouseError(f"{path} is damaged", code="ledger_damaged")
        case sqlite3.SQLITE_NOTADB:
            return WarehouseError(f"{path} is not an SQLite database", code="not_a_ledger")
        case (
            sqlite3.SQLITE_ERROR
            | sqlite3.SQLITE_MISUSE
            | sqlite3.SQLITE_MISMATCH
            | sqlite3.SQLITE_TOOBIG
        ):
            # Every statement fits the tables that were made here.
            return _damage_error(path, error)
    return WarehouseError(
        f"{path} cannot be used: {error}",
        action=f"Check the disk of {path.parent}: free space, write permission, and errors in the"
        " machine's log. Then run 'connector doctor'.",
    )


def _create_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables, unless the file has them."""
    if _read_version(connection, path):
        return
    _enable_write_ahead_log(connection)
    with transaction(connection):
        if _read_version(connection, path):
            return  # Another process has created them.
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {LEDGER_VERSION}")


def _read_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the file's tables; 0 if it has none. Raises `WarehouseError`."""
    # One statement, for one time: another process may be making the tables just now.
    ((mark, version, tables),) = connection.execute(_MARKS).fetchall()
    if mark != APPLICATION_ID and (tables or mark or version):
        raise WarehouseError(
            f"{path} is an SQLite database of another program", code="not_a_ledger"
        )
    if version > LEDGER_VERSION:
        raise WarehouseError(
            f"{path} was written by a newer version of the connector",
            action="Install that version, or restore a backup of this version.",
            code="not_a_ledger",
        )
    assert isinstance(version, int)
    return version


def _enable_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging, and try again while another process does the same."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() >= until:
                raise
        time.sleep(_RETRY_SECONDS)


# -- Copying ---------------------------------------------------------------------------------------
# SQLite's own backup makes the copy while others read and write: a transaction that is committed
# during the copy is in it as a whole or not at all.


_PAGES = -1
"""All pages in one step: a copy in several steps starts again with every commit of another process.
"""


def copy_ledger(path: Path, target: Path) -> int:
    """Copy the ledger to a new file `target`, and return the version of its tables.

    Raises `WarehouseError` if the copy is not complete.
    """
    with convert_sqlite_errors(target):
        create_private_file(target).close()
    with (
        convert_sqlite_errors(path),
        closing(_open_sqlite(path)) as source,
        closing(_open_sqlite(target)) as copy,
    ):
        source.backup(copy, pages=_PAGES)
        # One file, without a log next to it.
        copy.execute("PRAGMA journal_mode = DELETE")
        ((version,),) = copy.execute("PRAGMA user_version").fetchall()
    check_ledger(target)
    assert isinstance(version, int)
    return version


def check_ledger(path: Path) -> None:
    """Raise a `WarehouseError` if the file is damaged or is not a ledger."""
    with convert_sqlite_errors(path), closing(_open_sqlite(path)) as connection:
        ((found,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
        if found != "ok":
            raise WarehouseError(f"{path} is damaged", code="ledger_damaged")
        ((mark,),) = connection.execute("PRAGMA application_id").fetchall()
        if mark != APPLICATION_ID:
            raise WarehouseError(
                f"{path} is an SQLite database of another program", code="not_a_ledger"
            )


def delete_leases(path: Path) -> None:
    """Delete all leases from a copied ledger. Their owners have them in the original file."""
    with convert_sqlite_errors(path), closing(_open_sqlite(path)) as connection:
        connection.execute("DELETE FROM leases")


# -- Ledger records --------------------------------------------------------------------------------
# Rows of the tables are read as dataclasses. Columns have the names of the fields, and a field's
# type says how its value is stored: times in ISO 8601, paths as text, and mappings as JSON. SQLite
# stores a value of any type in any column, so each value is checked: another type means a damaged
# file.


T = TypeVar("T")

_Reader = Callable[[Any], Any]


def reader_of(*kinds: type[Any]) -> _Reader:
    """Return a function that returns its argument, or raises `TypeError` if it has another type."""

    def read(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"not a {kinds[0].__name__}: {type(value).__name__}")
        return value

    return read


def _reader_of_values(*values: Any) -> _Reader:
    """Return a function that returns its argument, or raises `ValueError` for any other value."""

    def read(value: Any) -> Any:
        if value not in values:
            raise ValueError("not a value of this field")
        return value

    return read


_READERS: Mapping[Any, _Reader] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    bool: lambda value: bool(_reader_of_values(0, 1)(value)),
    int: reader_of(int),
    float: reader_of(float, int),
    str: reader_of(str),
    bytes: reader_of(bytes),
    Path: Path,
    Mapping: json.loads,
}


def read_records(
    connection: sqlite3.Connection,
    kind: type[T],
    query: str,
    parameters: Iterable[Any] = (),
    readers: Mapping[str, _Reader] | None = None,
) -> list[T]:
    """Return the rows of a query as records of the dataclass `kind`.

    The query selects the fields of the dataclass; those with a default may be missing. `readers`
    convert columns, by name, whose type does not say how.
    """
    cursor = connection.execute(query, tuple(parameters))
    names = [column for column, *_ in cursor.description]
    known = {**_readers_of(cast("Any", kind)), **(readers or {})}
    takes = [known.get(name) for name in names]
    return [
        kind(
            **{
                name: value if take is None or value is None else take(value)
                for name, value, take in zip(names, row, takes, strict=True)
            }
        )
        for row in cursor
    ]


def columns_of(kind: type[Any]) -> str:
    """Return the names of a dataclass's fields, separated by commas, for a SELECT."""
    return ", ".join(each.name for each in fields(kind))


def values_of(record: Any) -> dict[str, Any]:
    """Return the values of a dataclass record, by field."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def insert(connection: sqlite3.Connection, table: str, values: Mapping[str, Any]) -> int:
    """Add a row to a table, and return its row id."""
    marks = ", ".join("?" for _ in values)
    cursor = connection.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})",
        [to_column(value) for value in values.values()],
    )
    return cursor.lastrowid or 0


def to_column(value: Any) -> Any:
    """Convert times, dates, paths and mappings to text for a column; return other values."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return json.dumps(dict(value), default=to_column)
    return str(value) if isinstance(value, Path) else value


@cache
def _readers_of(kind: Hashable) -> Mapping[str, _Reader]:
    """Return the functions that convert a dataclass's columns, for fields whose type says how."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        # Of a value that may be None, the type is among the arguments.
        for each in (hint, *get_args(hint)):
            is_literal = get_origin(each) is Literal
            reader = _reader_of_values(*get_args(each)) if is_literal else None
            if (reader := reader or _READERS.get(get_origin(each) or each)) is not None:
                found[name] = reader
                break
    return found

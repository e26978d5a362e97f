"""A ledger as a file: copying it while others write to it, and comparing it with an earlier copy.

SQLite's own backup makes the copy, page by page: what is committed meanwhile is in it whole or not
at all, and neither reader nor writer waits for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from connector.disk import create
from connector.errors import LedgerDamaged, NotALedger
from connector.ledger.file import APPLICATION_ID, naming_errors
from connector.ledger.migrations import MIGRATIONS

LATEST = MIGRATIONS[-1][0]
"""The number of the last migration of a ledger."""

_DONE = (("push_batches", "batch"), ("erasures", "erasure"))
"""The tables of what was done by the ledger and cannot be done again, with what names a row."""

_PAGES = -1
"""All pages at once: a copy in steps begins anew with every commit of another process."""


def copy_ledger(path: Path, target: Path) -> int:
    """Copy the ledger to `target`, which is not there yet; returns the number of its last
    migration. Raises `LedgerDamaged` where the copy is not whole, `DiskFull` or another
    `WarehouseError`.
    """
    with naming_errors(target):
        create(target).close()
    with naming_errors(path), closing(_open(path)) as source, closing(_open(target)) as copy:
        source.backup(copy, pages=_PAGES)
        # One file, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        ((version,),) = copy.execute("PRAGMA user_version").fetchall()
    check_ledger(target)
    assert isinstance(version, int)
    return version


def check_ledger(path: Path) -> None:
    """Raise `LedgerDamaged`, `NotALedger` or another `WarehouseError` where the file is not whole
    or not ours.
    """
    with naming_errors(path), closing(_open(path)) as connection:
        ((found,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
        if found != "ok":
            raise LedgerDamaged(f"{path} is damaged")
        ((mark,),) = connection.execute("PRAGMA application_id").fetchall()
        if mark != APPLICATION_ID:
            raise NotALedger(f"{path} is an SQLite database that the connector did not make")


def continues(path: Path, earlier: Path) -> bool:
    """Whether the ledger is the one of which `earlier` is a copy: it has everything that was
    pushed, erased and spent by then. Raises a `WarehouseError`.
    """
    with naming_errors(path), closing(_open(path)) as now, closing(_open(earlier)) as then:
        return all(
            _rows(then, table, columns) <= _rows(now, table, columns) for table, columns in _DONE
        ) and _spent(then, now)


def is_blank(path: Path) -> bool:
    """Whether nothing was ever pushed or erased by the ledger, so that nothing is lost with it.
    Raises a `WarehouseError`.
    """
    with naming_errors(path), closing(_open(path)) as connection:
        return not any(_rows(connection, table, columns) for table, columns in _DONE)


def end_turns(path: Path) -> None:
    """Take every lease out of a copy: whoever had one has it elsewhere, or is gone."""
    with naming_errors(path), closing(_open(path)) as connection:
        if _has(connection, "leases"):
            connection.execute("DELETE FROM leases")


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=10.0, isolation_level=None)


def _has(connection: sqlite3.Connection, table: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    return bool(found)


def _rows(
    connection: sqlite3.Connection, table: str, columns: str
) -> frozenset[tuple[object, ...]]:
    """Rows of a table; none where an earlier version had no such table."""
    if not _has(connection, table):
        return frozenset()
    return frozenset(connection.execute(f"SELECT {columns} FROM {table}").fetchall())


def _spent(then: sqlite3.Connection, now: sqlite3.Connection) -> bool:
    """Whether no day, command and kind has fewer requests now: they are never counted down."""
    spent = "day, command, kind, requests"
    later = _by_key(_rows(now, "spent", spent))
    return all(later.get(key, 0) >= n for key, n in _by_key(_rows(then, "spent", spent)).items())


def _by_key(rows: Iterable[tuple[object, ...]]) -> dict[tuple[object, ...], int]:
    return {row[:-1]: int(str(row[-1])) for row in rows}

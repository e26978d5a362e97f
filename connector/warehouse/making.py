"""Making the work file: whole or not at all, and with the history of one that was lost.

It is made under another name and takes its own once its tables are in it and on the disk. So a disk
that fills up meanwhile leaves nothing that a later run would have to open.

A work file that is gone beside a published one was lost: its history is in no other place, and the
next publication would drop it there as well. So everything that the connector itself writes is
taken back from the published file, bookmarks too. They are valid there: each commit writes rows,
queue and bookmark in one transaction, and a publication copies the file after a checkpoint and
while nobody else has it open. The published file is therefore the work file as it was after one of
its commits, and its bookmark R says of its own rows that every change before R is in them. That
stays true however old the file is. The next pull reads what has changed since R, as it does after
a restore, and finds what was deleted since by its counts. Where columns or schemas were left out of
the published file its rows are not those that R is about, so nothing is taken back then.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from connector.catalog import CATALOG
from connector.engine.commands import Event
from connector.errors import WorkLost
from connector.suppression.listed import Noticing, Suppressed
from connector.suppression.person import Person, reduced
from connector.warehouse.duckdb_file import (
    literal,
    move_logs,
    naming_errors,
    opened,
    quoted,
    transaction,
)
from connector.warehouse.persons import Erasing, every_version, take_out
from connector.warehouse.query import query
from connector.warehouse.runs import published_in
from connector.warehouse.schema import migrate
from connector.warehouse.snapshot import compact, copy_file, put_in_place, remove
from connector.warehouse.state import write_notice

MAKING_ENDING = ".making"
"""What the file is called until it is whole, behind its own name."""

TAKEN_BACK = "work_taken_back"
"""The kind of the event that says that the work file was lost."""

_OWN_SCHEMAS = ("landing", "history", "sync", "push")
_HEADERS_BYTES = 3 * 4096
"""DuckDB writes three headers of one page each before anything else."""
_MARK_AT, _MARK = 8, b"DUCK"


def is_missing(work: Path) -> bool:
    """Whether there is no work file, or only what an earlier version left of one on a full disk:
    nothing, or DuckDB's first header and not all three.
    """
    with naming_errors(work):
        if not work.exists():
            return True
        if work.stat().st_size >= _HEADERS_BYTES:
            return False
        with work.open("rb") as file:
            begun = file.read(_MARK_AT + len(_MARK))
        return not begun or begun[_MARK_AT:] == _MARK


def make(work: Path, published: Path) -> None:
    """Make the work file with its tables, and with everything that the published file has of them
    where there is one. Does nothing where another process has made it meanwhile.

    Raises `WorkLost` where the published file cannot give back what was lost, `DiskFull`,
    `NotAWarehouse` or another `WarehouseError`; there is then no work file.
    """
    with _alone(work.parent):
        if not is_missing(work):
            return
        fresh = work.with_name(work.name + MAKING_ENDING)
        remove(fresh)
        try:
            if published.exists():
                _take_back(published, fresh)
            with opened(fresh) as connection:
                migrate(connection, str(fresh))
            now = datetime.now(UTC)
            # The log of a file that is gone would be taken for the new one's.
            move_logs(work, now)
            put_in_place(fresh, work)
        except BaseException:
            remove(fresh)
            raise


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the system takes back from a process that dies."""
    with naming_errors(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        with naming_errors(folder):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _take_back(published: Path, fresh: Path) -> None:
    """Make `fresh` of the published file, without whoever was erased since."""
    true_of = _check_whole(published)
    with naming_errors(fresh):
        copy_file(published, fresh)
    now = datetime.now(UTC)
    with opened(fresh) as connection:
        with transaction(connection):
            for schema in _foreign_schemas(connection):
                connection.execute(f"DROP SCHEMA {quoted(schema)} CASCADE")
        erased = _returned(connection, published.parent)
        with transaction(connection):
            if erased is not None:
                take_out(connection, erased, Erasing(TAKEN_BACK, now))
            detail = (
                f"the work file was gone: landing, history and bookmarks were taken back from"
                f" {published.name}, which is true of {true_of}"
            )
            write_notice(connection, Event(TAKEN_BACK, detail), now)
    if erased is not None:
        compact(fresh)


def _check_whole(published: Path) -> str:
    """The moment that the published file is true of. Raises `WorkLost` where it is no copy of the
    whole work file.
    """
    row = published_in(published)
    if row is None:
        why = "does not say how it was published"
    elif row.personal != "keep":
        why = f"was published with publish_personal = {row.personal}"
    elif missing := _missing_schemas(published):
        why = f"was published without {', '.join(missing)}"
    else:
        return "no moment yet" if row.true_of is None else f"{row.true_of:%Y-%m-%d %H:%M:%S}Z"
    raise WorkLost(f"the work file is gone, and {published} cannot give its history back: it {why}")


def _missing_schemas(published: Path) -> list[str]:
    found = query(published, "SELECT schema_name FROM duckdb_schemas()").rows
    return [each for each in _OWN_SCHEMAS if (each,) not in found]


def _foreign_schemas(connection: duckdb.DuckDBPyConnection) -> list[str]:
    own = ", ".join(map(literal, (*_OWN_SCHEMAS, "main")))
    rows = connection.execute(
        "SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database() "
        f"AND NOT internal AND schema_name NOT IN ({own})"
    ).fetchall()
    return [name for (name,) in rows]


def _returned(connection: duckdb.DuckDBPyConnection, folder: Path) -> Person | None:
    """Everybody on the list of erased people whom the file still has, as one person."""
    suppressed = Suppressed.of(folder)
    if suppressed is None:
        return None
    noticing = Noticing(suppressed)
    for resource, record in every_version(connection):
        reduced(CATALOG[resource], record, noticing)
    return noticing.as_person() if noticing.met else None

"""The databases in memory that files are attached to, each kept from one opening to the next.

Making one takes DuckDB three times as long as attaching a small file, committing to it and
detaching it, and a pull opens its file for every batch. All openings of one file at one time have
the same one, or they would keep each other out.

One that had a large file is not kept: a first load took 50 MiB more with it by the time that its
file had 80 MB.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from connector.warehouse.quoting import literal, quoted

IDLE_MAX = 2
"""So many are kept while no file is attached to them: a pull has one file open, and at its end the
one that it publishes beside it.
"""

STORAGE_VERSION = "v1.2.0"
"""The file format: old enough for the tools that analysts use, whichever DuckDB writes it."""

BLOCK_BYTES = 16_384
"""The size of a new file's blocks, the least that there is: columns of small row groups fill no
larger ones, and a batch's rows are read from blocks all over the file.
"""

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "storage_compatibility_version": STORAGE_VERSION,
    "default_block_size": str(BLOCK_BYTES),
    # Batches are small: a second thread costs them more than it does for them.
    "threads": "1",
}

Attach = Callable[[duckdb.DuckDBPyConnection], str]
"""Attaches the file, unless it is, and makes it what the connection uses; gives its name there."""


@dataclass(slots=True)
class _Place:
    """What all openings of one file have in common."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the file is attached or detached."""
    instance: duckdb.DuckDBPyConnection | None = None
    openings: int = 0
    users: int = 0
    """Openings, and those that are about to be."""


class _Instances:
    """Those of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.places: dict[Path, _Place] = {}
        self.idle: list[duckdb.DuckDBPyConnection] = []


_own = _Instances()


@contextmanager
def attached(
    path: Path, attach: Attach, settings: Mapping[str, str], *, keeps: bool
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of its own, with the file attached. The file is detached after its last opening,
    which writes a checkpoint; the first one's settings hold until then. The instance is kept for
    the next file if the last one `keeps` it. Raises what `attach` does.
    """
    with _own.lock:
        place = _own.places.setdefault(path, _Place())
        place.users += 1
    try:
        with place.lock:
            connection, name = _open(place, attach, settings)
        try:
            yield connection
        finally:
            with place.lock:
                _close(place, connection, name, keeps=keeps)
    finally:
        with _own.lock:
            place.users -= 1
            if not place.users:
                del _own.places[path]


def _open(
    place: _Place, attach: Attach, settings: Mapping[str, str]
) -> tuple[duckdb.DuckDBPyConnection, str]:
    instance = place.instance or _taken(settings)
    connection = instance.cursor()
    try:
        name = attach(connection)
    except BaseException:
        connection.close()
        if not place.openings:
            _give_back(instance, keeps=True)
        raise
    place.instance = instance
    place.openings += 1
    return connection, name


def _close(place: _Place, connection: duckdb.DuckDBPyConnection, name: str, *, keeps: bool) -> None:
    connection.close()
    place.openings -= 1
    instance = place.instance
    if place.openings or instance is None:
        return
    place.instance = None
    # A checkpoint fails where the disk is full; the log has all commits.
    with suppress(duckdb.Error):
        instance.execute(f"DETACH {quoted(name)}")
    _give_back(instance, keeps=keeps)


def _taken(settings: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """One that waits, or a new one."""
    with _own.lock:
        instance = _own.idle.pop() if _own.idle else None
    if instance is None:
        instance = duckdb.connect(":memory:", config=_CONFIG)
    for setting, value in settings.items():
        instance.execute(f"SET GLOBAL {setting} = {literal(value)}")
    return instance


def _give_back(instance: duckdb.DuckDBPyConnection, *, keeps: bool) -> None:
    """Keep it for the next file, if it is as it was: nothing is attached to it, nothing was written
    for want of memory, and no error has made it unfit for more.
    """
    with suppress(duckdb.Error):
        ((others,),) = instance.execute(
            "SELECT count(*) - 1 FROM duckdb_databases() WHERE NOT internal"
        ).fetchall()
        instance.execute("SET GLOBAL temp_directory = ''")
        with _own.lock:
            if keeps and not others and len(_own.idle) < IDLE_MAX:
                _own.idle.append(instance)
                return
    instance.close()

"""Interface to the two files of one account.

The process that holds the account's lock opens the work file; `keep_open` keeps it open for a run.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from connector.atomic_files import FILE_MODE, create_private_file
from connector.catalog import CATALOG
from connector.errors import WarehouseError
from connector.state.runs import Event
from connector.warehouse.file import (
    Connection,
    attach,
    convert_errors,
    make_folder,
    open_file,
    quoted,
    remove_file,
    replace_file,
    transaction,
)
from connector.warehouse.landing import Counts, Landing
from connector.warehouse.queries import ResourceState, StreamQueries, resource_state
from connector.warehouse.schema import complete_tables
from connector.warehouse.stream import Commit, Stream

P = ParamSpec("P")
T = TypeVar("T")

WORK_FILE = "work.duckdb"
PUBLISHED_FILE = "recruitment.duckdb"

ROWS_WRITTEN_MAX = 5_000
"""Rows after which the file is closed: until then DuckDB keeps replaced rows in memory."""


class Warehouse:
    """Work file and published file of one account, in `folder`.

    Every method raises a `WarehouseError` that names the file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / WORK_FILE
        self.published = folder / PUBLISHED_FILE
        self._open = ExitStack()
        self._connection: Connection | None = None
        self._keeps = self._is_complete = False
        self._rows_written = 0
        self._lock = threading.RLock()

    @property
    def exists(self) -> bool:
        """Return True if the work file exists. An empty one is as good as missing."""
        with convert_errors(self.work):
            return self.work.exists() and self.work.stat().st_size > 0

    @property
    def is_lost(self) -> bool:
        """Return True if the work file is missing although there is a published file."""
        return self.published.exists() and not self.exists

    def prepare(self, *, loads_again: bool = False) -> None:
        """Create the folder and the work file, or add missing tables and columns.

        The file is created under another name, so that a full disk leaves no partial file. A lost
        file is only created with `loads_again`, because the history is in it.
        """
        make_folder(self.folder)
        if self.is_lost and not loads_again:
            raise WarehouseError(
                f"{self.work} is missing, and the history is in it", code="work_lost"
            )
        if not self.exists:
            draft = self.work.with_name(f"{WORK_FILE}.making")
            remove_file(draft)
            try:
                with open_file(draft) as connection:
                    complete_tables(connection, str(draft))
                # A log beside the missing file would be applied to the new one.
                remove_file(self.work)
                replace_file(draft, self.work)
            except BaseException:
                remove_file(draft)
                raise
        self._is_complete = False
        self.read(lambda _: None)

    @contextmanager
    def keep_open(self) -> Iterator[None]:
        """Keep the file open between operations, until the end of the context."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False
            self.close()

    def close(self) -> None:
        """Close the file if it is open; the next use opens it again."""
        with self._lock:
            self._open.close()
            self._connection, self._rows_written = None, 0

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Open a connection to the work file, or use the one that is kept open."""
        with self._lock:
            if self._connection is None:
                if not self.exists:
                    raise WarehouseError(f"{self.work} does not exist", code="work_lost")
                self._connection = self._open.enter_context(open_file(self.work))
            try:
                with convert_errors(self.work):
                    if not self._is_complete:
                        complete_tables(self._connection, str(self.work))
                        self._is_complete = True
                    yield self._connection
            except BaseException:
                # A connection that failed may not work for another statement.
                self.close()
                raise
            if not self._keeps or self._rows_written >= ROWS_WRITTEN_MAX:
                self.close()

    def read(
        self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Call a function with a connection to the work file as its first argument."""
        with self.connection() as connection:
            return query(connection, *args, **options)

    def write(
        self, change: Callable[Concatenate[Connection, P], T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Call a function with a connection as its first argument, in one transaction."""
        with self.connection() as connection, transaction(connection):
            return change(connection, *args, **options)

    def commit(
        self, stream: Stream, commit: Commit, run_id: str, at: datetime
    ) -> tuple[Counts, tuple[Event, ...]]:
        """Write a commit in one transaction; return the row counts and the events.

        An empty commit does not open the file.
        """
        if commit == Commit():
            return Counts(), ()
        with self.connection() as connection, transaction(connection):
            self._rows_written += len(commit.items) + len(commit.records)
            return Landing(connection, stream, run_id, at).apply(commit)

    def query(self, stream: Stream, query: Callable[[StreamQueries], T]) -> T:
        """Call a function with the queries of one stream."""
        with self.connection() as connection:
            return query(StreamQueries(connection, stream))

    def status(self) -> tuple[ResourceState, ...]:
        """Return the state of every resource, in the API's order."""
        with self.connection() as connection:
            return tuple(resource_state(connection, name) for name in CATALOG)

    def copy_to(self, target: Path) -> None:
        """Copy the file to the new file `target`. The caller holds the account's lock."""
        with self.connection() as connection:
            # After a checkpoint all data is in the file and none in a log next to it.
            connection.execute("CHECKPOINT")
            with convert_errors(target):
                create_private_file(target).close()
                shutil.copyfile(self.work, target)

    def compact(self) -> None:
        """Write the file again without the bytes of deleted rows; it is unchanged after an error.

        DuckDB marks deleted rows and reuses their blocks later; until then their bytes stay.
        """
        self.close()
        fresh = self.work.with_name(f"{WORK_FILE}.compacting")
        remove_file(fresh)
        with open_file(self.work) as connection, convert_errors(self.work):
            # The log must be empty, or it would be applied to the new file.
            connection.execute("CHECKPOINT")
            attach(connection, fresh, "fresh")
            fresh.chmod(FILE_MODE)
            connection.execute(f"COPY FROM DATABASE {quoted(self.work.stem)} TO fresh")
            connection.execute("CHECKPOINT fresh; DETACH fresh")
            replace_file(fresh, self.work)

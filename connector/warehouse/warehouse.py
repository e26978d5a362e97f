"""Interface to the files of one account.

Every method opens the work file, runs one operation and closes it, so that a pull, a push and a
status can run at the same time. A pull keeps the file open, and closes it when another process
waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import duckdb
from duckdb import DuckDBPyConnection as Connection

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration
from connector.state.runs import Identity
from connector.warehouse import runs, state
from connector.warehouse.duckdb_file import (
    KEEP_METADATA,
    convert_errors,
    has_waiting_process,
    make_folder,
    open_file,
    quoted,
    transaction,
)
from connector.warehouse.landing import LandedCounts, LandingTable
from connector.warehouse.queries import StreamQueries
from connector.warehouse.runs import RunHealth
from connector.warehouse.schema import complete_tables
from connector.warehouse.state import ResourceState
from connector.warehouse.stream import Commit, Event, Stream
from connector.warehouse.work_file import compact, create_work_file, is_missing

P = ParamSpec("P")
T = TypeVar("T")

WORK_FILE = "work.duckdb"
PUBLISHED_FILE = "recruitment.duckdb"

LOST = f"{WORK_FILE} is missing, but {PUBLISHED_FILE} exists"
LOST_ACTION = f"Run 'connector pull', which restores the history from {PUBLISHED_FILE} first."

COMPACTED = "compacted"
"""Kind of the event for a compaction of the work file."""

RUNS_UNTIL_COMPACTION = 50
"""Number of runs with changes before a compaction; each run leaves separate row groups."""

ROWS_WRITTEN_MAX = 5_000
"""Number of rows after which the file is closed; until then DuckDB keeps replaced rows."""


class Warehouse:
    """Work file and published file of one account, in `folder`.

    Every method raises a `WarehouseError` that names the file and the next step.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / WORK_FILE
        self.published = folder / PUBLISHED_FILE
        self._open = ExitStack()
        self._connection: Connection | None = None
        self._keeps = self._has_yielded = self._is_complete = False
        self._rows_written = 0
        # One thread may run a query while another closes the file.
        self._lock = threading.RLock()

    @property
    def exists(self) -> bool:
        """Return True if the work file exists."""
        return not is_missing(self.work)

    @property
    def is_lost(self) -> bool:
        """Return True if the work file is missing although there is a published file."""
        return self.published.exists() and not self.exists

    def prepare(self, identity: Identity | None = None) -> None:
        """Create the folder and the work file, or add missing tables and columns.

        A file that many runs have changed is compacted.

        A lost work file is restored from the published file, if that file belongs to the folder
        with this `identity` (None: unknown). Raises a `WarehouseError` if this is impossible.
        """
        make_folder(self.folder)
        if not self.exists:
            create_work_file(self.work, self.published, identity)
        self._is_complete = False
        with self.open_connection() as connection:
            is_due = runs.count_runs_with_changes(connection, COMPACTED) >= RUNS_UNTIL_COMPACTION
        if is_due:
            self.release()
            compact(self.work)
            with self._open_transaction() as connection:
                event = Event(COMPACTED, "work file compacted")
                state.write_notice(connection, event, datetime.now(UTC), run_id="")

    def read(
        self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Call a function with a connection to the work file as its first argument."""
        with self.open_connection() as connection:
            return query(connection, *args, **options)

    def write(
        self, change: Callable[Concatenate[Connection, P], T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Call a function with a connection as its first argument, in one transaction."""
        with self._open_transaction() as connection:
            return change(connection, *args, **options)

    def health(self) -> RunHealth:
        """Return the health of runs and publications."""
        return self.read(state.read_health)

    def status(self) -> tuple[ResourceState, ...]:
        """Return the state of every resource, in the API's order."""
        with self.open_connection() as connection:
            return tuple(state.read_resource_state(connection, name) for name in CATALOG)

    def commit(self, stream: Stream, commit: Commit, run_id: str, at: datetime) -> LandedCounts:
        """Write a commit and its bookmark in one transaction; return the row counts.

        An empty commit does not open the file.
        """
        if commit == Commit():
            return LandedCounts()
        with self._open_transaction() as connection:
            counts, events = LandingTable(connection, stream).apply_commit(commit, run_id, at)
            state.write_events(connection, stream, events, run_id, at)
            if commit.bookmark is not None:
                state.write_bookmark(connection, stream, commit.bookmark, run_id)
            if commit.ends_stream:
                state.remove_bookmark(connection, stream)
        self._rows_written += len(commit.items) + len(commit.records)
        if self._rows_written >= ROWS_WRITTEN_MAX:
            self._close()
        return counts

    def query(self, stream: Stream, query: Callable[[StreamQueries], T]) -> T:
        """Call a function with the queries of one stream."""
        with self.open_connection() as connection:
            return query(StreamQueries(connection, stream, self.folder))

    def count_by(self, resource: Declaration, field: str) -> dict[Any, int]:
        """Return the number of live records for each value of the field, most frequent first."""
        name = quoted(resource.field(field).name)
        with self.open_connection() as connection:
            counts = connection.execute(
                f"SELECT {name}, count(*) FROM landing.{quoted(resource.name)} "
                "WHERE _deleted_at IS NULL GROUP BY 1 ORDER BY 2 DESC, 1"
            ).fetchall()
        return dict(counts)

    @contextmanager
    def keep_open(self) -> Iterator[None]:
        """Keep the file open from its first use until `release`.

        The caller must call `release_if_requested` between its steps and while it waits.
        """
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False
            self.release()

    def release(self) -> None:
        """Close the file if it is open; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                with suppress(duckdb.Error):
                    self._connection.execute(f"{KEEP_METADATA} = false")
            self._close()

    def _close(self) -> None:
        """Close the file without resetting its settings."""
        with self._lock:
            self._open.close()
            self._connection, self._rows_written = None, 0

    def release_if_requested(self) -> None:
        """Close the file if another process waits; the next use waits for that process."""
        if self._connection is not None and has_waiting_process(self.work):
            self.release()
            self._has_yielded = True

    @contextmanager
    def open_connection(self) -> Iterator[Connection]:
        """Open a connection to the work file, or use the one that is kept open."""
        with self._lock:
            if self._connection is None:
                opening = open_file(self.work, waits_in_turn=self._has_yielded)
                self._connection = self._open.enter_context(opening)
                if self._keeps:
                    self._connection.execute(f"{KEEP_METADATA} = true")
                self._has_yielded = False
            try:
                with convert_errors(self.work):
                    if not self._is_complete:
                        complete_tables(self._connection, str(self.work))
                        self._is_complete = True
                    yield self._connection
            except BaseException:
                # A connection that failed may not work for another statement.
                self.release()
                raise
            if not self._keeps:
                self.release()

    @contextmanager
    def _open_transaction(self) -> Iterator[Connection]:
        """Open a connection, and commit at the end or roll back after an error."""
        with self.open_connection() as connection, transaction(connection):
            yield connection

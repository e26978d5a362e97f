"""The warehouse of one account, as the rest of the connector sees it.

Every method opens the work file, does its one thing and closes it, so that a pull, a push and a
status run side by side. A pull keeps the file open, and closes it when another process waits for
it.
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
from connector.ledger.ledger import Identity
from connector.warehouse import pull_commands, runs, state
from connector.warehouse.bookmark import Stream
from connector.warehouse.duckdb_file import (
    KEEP_METADATA,
    is_requested,
    make_folder,
    naming_errors,
    open_file,
    quoted,
    transaction,
)
from connector.warehouse.landing import (
    LandedCounts,
    LandingTable,
    query_without_erased,
    without_erased,
)
from connector.warehouse.pull_commands import Commit, Event
from connector.warehouse.queries import StreamQueries
from connector.warehouse.runs import RunHealth
from connector.warehouse.schema import complete_tables
from connector.warehouse.state import ResourceState
from connector.warehouse.work_file import compact, create_work_file, is_missing

P = ParamSpec("P")
T = TypeVar("T")

WORK_FILE = "work.duckdb"
PUBLISHED_FILE = "recruitment.duckdb"

LOST = f"{WORK_FILE} is missing, but {PUBLISHED_FILE} exists"
LOST_ACTION = (
    f"Run 'connector pull', which restores the history from {PUBLISHED_FILE} first. Or "
    "restore a newer backup with 'connector restore FILE --replace'."
)

COMPACTED = "compacted"
"""Kind of the event that says that the work file was written again."""

RUNS_UNTIL_COMPACTION = 50
"""Runs with changes, each of which leaves row groups of its own in tables."""

ROWS_WRITTEN_MAX = 5_000
"""Rows after which the file is closed: until then DuckDB remembers the replaced."""


class Warehouse:
    """The files of one account under `folder`, which is made if it is not there.

    Every method raises a `WarehouseError` that names the file and says what to do.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / WORK_FILE
        self.published = folder / PUBLISHED_FILE
        self._open = ExitStack()
        self._connection: Connection | None = None
        self._keeps = self._has_yielded = self._is_complete = False
        self._rows_written = 0
        # One thread may be asking while another closes the file.
        self._lock = threading.RLock()

    @property
    def exists(self) -> bool:
        """Whether anything was ever landed here, and is here still."""
        return not is_missing(self.work)

    @property
    def is_lost(self) -> bool:
        """Whether the work file is gone, which the published one next to it shows."""
        return self.published.exists() and not self.exists

    def prepare(self, identity: Identity | None = None) -> None:
        """Make the folder and the work file, or add the tables and columns that it lacks.

        What a lost work file had is taken back from the published one, if that belongs to the
        folder of this `identity` (None: not known). Raises `WorkLost` where it cannot be, and other
        `WarehouseError`s.
        """
        make_folder(self.folder)
        if not self.exists:
            create_work_file(self.work, self.published, identity)
        self._is_complete = False
        with self.reading() as connection:
            is_due = runs.changed_since(connection, COMPACTED) >= RUNS_UNTIL_COMPACTION
        if is_due:
            self.release()
            compact(self.work)
            with self._writing() as connection:
                event = Event(COMPACTED, "made anew")
                state.write_notice(connection, event, datetime.now(UTC), run_id="")

    def read(
        self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Call a function of `runs`, `state` or `queries` with a connection to the work file."""
        with self.reading() as connection:
            return query(connection, *args, **options)

    def write(
        self, change: Callable[Concatenate[Connection, P], T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Call a function that writes, in one transaction."""
        with self._writing() as connection:
            return change(connection, *args, **options)

    def health(self) -> RunHealth:
        """Return the health of runs and publications."""
        return self.read(state.read_health)

    def status(self) -> tuple[ResourceState, ...]:
        """Return where every resource stands, in the API's order."""
        with self.reading() as connection:
            return tuple(state.read_status(connection, name) for name in CATALOG)

    def commit(self, stream: Stream, what: Commit, run_id: str, at: datetime) -> LandedCounts:
        """Carry out a commit in one transaction, bookmark and all; tells the rows' fates.

        One that holds nothing opens no file.
        """
        if what == Commit():
            return LandedCounts()
        with self._writing() as connection:
            what = without_erased(connection, stream, what, self.folder)
            fates, events = LandingTable(connection, stream).land(what, run_id, at)
            state.write_events(connection, stream, events, run_id, at)
            if what.bookmark is not None:
                state.write_bookmark(connection, stream, what.bookmark, run_id)
            if what.ends_stream:
                state.remove_bookmark(connection, stream)
        self._rows_written += len(what.items) + len(what.records)
        if self._rows_written >= ROWS_WRITTEN_MAX:
            self._close()
        return fates

    def query(self, stream: Stream, wanted: pull_commands.Query[Any]) -> Any:
        """Answer a query of the steps, as `warehouse/pull_commands.py` describes it."""
        with self.reading() as connection:
            asked = query_without_erased(wanted, self.folder)
            return StreamQueries(connection, stream).answer(asked)

    def count_by(self, resource: Declaration, field: str) -> dict[Any, int]:
        """Live landed records by the value of a field, the most frequent first."""
        name = quoted(resource.field(field).name)
        with self.reading() as connection:
            counts = connection.execute(
                f"SELECT {name}, count(*) FROM landing.{quoted(resource.name)} "
                "WHERE _deleted_at IS NULL GROUP BY 1 ORDER BY 2 DESC, 1"
            ).fetchall()
        return dict(counts)

    @contextmanager
    def keep_open(self) -> Iterator[None]:
        """Keep the file open from its first use on, until `release`.

        Whoever keeps it calls `release_if_requested` between its steps and in its waits.
        """
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False
            self.release()

    def release(self) -> None:
        """Close the file, if it is open; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                with suppress(duckdb.Error):
                    self._connection.execute(f"{KEEP_METADATA} = false")
            self._close()

    def _close(self) -> None:
        with self._lock:
            self._open.close()
            self._connection, self._rows_written = None, 0

    def release_if_requested(self) -> None:
        """Close the file if another process waits for it, which then has it first."""
        if self._connection is not None and is_requested(self.work):
            self.release()
            self._has_yielded = True

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to the work file, opened for this unless it is kept open."""
        with self._lock:
            if self._connection is None:
                opening = open_file(self.work, queues=self._has_yielded)
                self._connection = self._open.enter_context(opening)
                if self._keeps:
                    self._connection.execute(f"{KEEP_METADATA} = true")
                self._has_yielded = False
            try:
                with naming_errors(self.work):
                    if not self._is_complete:
                        complete_tables(self._connection, str(self.work))
                        self._is_complete = True
                    yield self._connection
            except BaseException:
                # A connection that failed may not be fit for another statement.
                self.release()
                raise
            if not self._keeps:
                self.release()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self.reading() as connection, transaction(connection):
            yield connection

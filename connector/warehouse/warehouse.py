"""The warehouse of one account, as the rest of the connector sees it.

Every method opens the work file, does its one thing and closes it, so that a pull, a push and a
status run side by side. A pull keeps the file open, and closes it when another process waits for
it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration
from connector.engine import commands
from connector.engine.bookmark import Bookmark, Stream
from connector.engine.commands import Commit, Event
from connector.engine.quota import Use
from connector.system.identity import Identity
from connector.warehouse import runs, state
from connector.warehouse.duckdb_file import (
    KEEP_METADATA,
    is_wanted,
    make_folder,
    naming_errors,
    opened,
    quoted,
    transaction,
)
from connector.warehouse.landing import Landed, LandingTable, query_without_erased, without_erased
from connector.warehouse.queries import StreamQueries, vanished_parents
from connector.warehouse.runs import (
    Health,
    Publication,
    ResourceRun,
    Run,
    SharedPublication,
    last_publications,
    last_shared,
    read_health,
)
from connector.warehouse.schema import complete_tables
from connector.warehouse.state import PushChanges, StreamState, UnreadRecord
from connector.warehouse.work_file import compact, is_missing, make

WORK_FILE = "work.duckdb"
PUBLISHED_FILE = "recruitment.duckdb"

LOST = f"{WORK_FILE} is gone, although {PUBLISHED_FILE} was made of it"
LOST_ACTION = (
    f"Run 'connector pull': it takes the history back from {PUBLISHED_FILE} first; or restore a"
    " newer backup with 'connector restore FILE --replace'."
)

COMPACTED = "compacted"
"""Kind of the event that says that the work file was written anew."""

QUOTA_DAYS_AGAIN = 7
"""Days of the requests spent that are copied again each time."""

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
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._keeps = self._has_yielded = False
        self._rows_written = 0
        # One thread may be asking while another closes the file.
        self._lock = threading.RLock()

    @property
    def exists(self) -> bool:
        """Whether anything was ever landed here, and is here still."""
        return not is_missing(self.work)

    @property
    def is_lost(self) -> bool:
        """Whether the work file is gone, which the published one beside it shows."""
        return self.published.exists() and not self.exists

    def prepare(self, identity: Identity | None = None) -> None:
        """Make the folder and the work file, or add the tables and columns that it lacks.

        What a lost work file had is taken back from the published one, if that belongs to the
        folder of this `identity` (None: not known). Raises `WorkLost` where it cannot be, and other
        `WarehouseError`s.
        """
        make_folder(self.folder)
        if not self.exists:
            make(self.work, self.published, identity)
        with self.reading() as connection:
            complete_tables(connection, str(self.work))
            is_due = runs.changed_since(connection, COMPACTED) >= RUNS_UNTIL_COMPACTION
        if is_due:
            self.release()
            compact(self.work)
            with self._writing() as connection:
                event = Event(COMPACTED, "made anew")
                state.write_notice(connection, event, datetime.now(UTC), run_id="")

    # -- identity ---------------------------------------------------------------------------------

    def identity(self) -> Identity | None:
        """Return the identity of the folder; None in a file that no run has used yet."""
        with self.reading() as connection:
            try:
                return state.read_identity(connection)
            except duckdb.CatalogException:
                return None

    def write_identity(self, identity: Identity) -> None:
        """Replace the identity of the folder."""
        with self._writing() as connection:
            state.write_identity(connection, identity)

    def known_ids(self, count: int) -> tuple[tuple[str, str], ...]:
        """Return landed records that live longest, as pairs of resource and id.

        Content items are left out: an id alone does not say where they are.
        """
        names = [each.name for each in CATALOG.values() if each.parent is None]
        selects = (
            f"SELECT '{name}' AS resource, id, created_at FROM landing.{quoted(name)}"
            " WHERE _deleted_at IS NULL AND _hydrated_at IS NOT NULL"
            for name in names
        )
        with self.reading() as connection:
            complete_tables(connection, str(self.work))
            rows = connection.execute(
                f"SELECT resource, id FROM ({' UNION ALL '.join(selects)})"
                f" ORDER BY created_at, id LIMIT {count}"
            ).fetchall()
        return tuple((resource, id) for resource, id in rows)

    # -- runs -------------------------------------------------------------------------------------

    def begin(self, run: Run) -> None:
        """Record that a run has begun; earlier ones that never ended are interrupted."""
        with self._writing() as connection:
            runs.name_interrupted(connection)
            runs.write_run(connection, run)

    def end(self, run: Run) -> None:
        """Record how a run ended."""
        with self._writing() as connection:
            runs.write_run(connection, run)

    def end_resource(self, run_id: str, done: ResourceRun) -> ResourceRun:
        """Record what a run did with one resource; returns it with its anomalies."""
        with self._writing() as connection:
            anomalies = runs.count_anomalies(connection, run_id, done.resource)
            done = replace(done, anomalies=anomalies)
            runs.write_resource_run(connection, run_id, done)
        return done

    def notices(self, run_id: str, more: Sequence[tuple[Event, datetime]]) -> tuple[str, ...]:
        """What a person should hear of the files, `more` among it, each once."""
        with self._writing() as connection:
            for event, at in more:
                state.write_notice(connection, event, at)
            return state.take_notices(connection, run_id)

    def copy_quota(self, read: Callable[[date | None], Sequence[Use]], billing_day: int) -> None:
        """Copy the requests spent for analysts; `read` gives those from a day on, or all.

        Some days are copied again, since a run under way settles its requests late.
        """
        with self._writing() as connection:
            last = runs.last_quota_day(connection)
            since = None if last is None else last - timedelta(days=QUOTA_DAYS_AGAIN)
            runs.write_quota(connection, read(since), since, billing_day)

    def copied_uses(self) -> tuple[Use, ...]:
        """Return the requests that were copied for analysts; those of cut-off runs are counted."""
        with self.reading() as connection:
            return runs.read_quota(connection)

    def count_pushed(self) -> tuple[int, int]:
        """Return the number of pushed files that were copied, and of records they created."""
        with self.reading() as connection:
            return state.count_pushed(connection)

    def pushed_at(self, digest: str, resource: str) -> tuple[str, datetime] | None:
        """Return batch and time of a pushed file whose created records were not undone."""
        with self.reading() as connection:
            return state.pushed_at(connection, digest, resource)

    def pushes_copied(self) -> int:
        """The last change of the journal that was copied; 0 where none was."""
        with self.reading() as connection:
            return state.last_copied(connection)

    def copy_pushes(self, copied: int, parts: Iterable[PushChanges]) -> bool:
        """Copy changes of the journal since `copied` for analysts, in one transaction.

        False where another process has copied meanwhile: then nothing is written, and the changes
        are to be read again.
        """
        changed = (part for part in parts if any(part.values()))
        first = next(changed, None)
        if first is None:
            return True
        with self._writing() as connection:
            return state.write_pushes(connection, copied, chain((first,), changed))

    def runs(self, count: int) -> tuple[Run, ...]:
        """The latest runs, newest first."""
        with self.reading() as connection:
            return runs.last_runs(connection, count)

    def health(self) -> Health:
        """Return the health of runs and publications; adds missing tables and columns."""
        with self.reading() as connection:
            complete_tables(connection, str(self.work))
            found = read_health(connection)
            events = {
                name: state.present_events(connection, name, run_id)
                for name, (run_id, _) in found.resources.items()
            }
            return replace(found, events=events)

    # -- streams ----------------------------------------------------------------------------------

    def bookmark(self, stream: Stream) -> Bookmark:
        """The stream's bookmark; a fresh one where it was never loaded."""
        with self.reading() as connection:
            return state.read_bookmark(connection, stream)

    def live_ids(self, stream: Stream) -> tuple[str, ...]:
        """Ids of the live landed records of a stream, in order of creation."""
        with self.reading() as connection:
            return StreamQueries(connection, stream).live_ids()

    def vanished(self, resource: Declaration) -> tuple[str, ...]:
        """Ids of parents that are not live and whose records are, or whose bookmark is kept."""
        assert resource.parent is not None, resource.name
        with self.reading() as connection:
            return vanished_parents(connection, resource)

    def last_run_of(self, resource: str) -> ResourceRun | None:
        """How the last recorded run left the resource; None if there was none."""
        with self.reading() as connection:
            found = runs.last_resource_runs(connection, resource)
            return found[resource][1] if resource in found else None

    def commit(self, stream: Stream, what: Commit, run_id: str, at: datetime) -> Landed:
        """Carry out a commit in one transaction, bookmark and all; tells the rows' fates.

        One that holds nothing opens no file.
        """
        if what == Commit():
            return Landed()
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

    def look(self, stream: Stream, wanted: commands.Query[Any]) -> Any:
        """Answer a question of an engine, as `engine/commands.py` describes it."""
        with self.reading() as connection:
            asked = query_without_erased(wanted, self.folder)
            return StreamQueries(connection, stream).answer(asked)

    def status_of(self, resource: str) -> StreamState:
        """Where one resource stands, but for its last run, which is not looked for."""
        with self.reading() as connection:
            return state.read_status(connection, resource, tells_last=False)

    def unread(self, resource: str) -> tuple[UnreadRecord, ...]:
        """Return the queued records of a resource that could not be read."""
        with self.reading() as connection:
            return state.read_unread(connection, resource)

    def events(self, resource: str, run_id: str) -> tuple[Event, ...]:
        """Return the events of a run on a resource, and those that the landing still shows."""
        with self.reading() as connection:
            return state.present_events(connection, resource, run_id)

    def status(self) -> tuple[StreamState, ...]:
        """Where every resource stands, in the API's order; adds missing tables and columns."""
        with self.reading() as connection:
            complete_tables(connection, str(self.work))
            return tuple(state.read_status(connection, name) for name in CATALOG)

    def count_by(self, resource: Declaration, field: str) -> dict[Any, int]:
        """Live landed records by the value of a field, the most frequent first."""
        name = quoted(resource.field(field).name)
        with self.reading() as connection:
            counts = connection.execute(
                f"SELECT {name}, count(*) FROM landing.{quoted(resource.name)} "
                "WHERE _deleted_at IS NULL GROUP BY 1 ORDER BY 2 DESC, 1"
            ).fetchall()
        return dict(counts)

    def named(self, resource: str, name: str) -> tuple[str, ...]:
        """Ids of the live landed records that the slug or the id `name` means."""
        with self.reading() as connection:
            found = connection.execute(
                f"SELECT id FROM landing.{quoted(resource)} "
                "WHERE (slug = $1 OR id = $1) AND _deleted_at IS NULL",
                [name],
            ).fetchall()
        return tuple(id for (id,) in found)

    # -- files ------------------------------------------------------------------------------------

    def publications(self, count: int) -> tuple[Publication, ...]:
        """The latest attempts to publish, newest first."""
        with self.reading() as connection:
            return last_publications(connection, count)

    def shared(self) -> SharedPublication | None:
        """The latest attempt to bring what was published to the lakehouse."""
        with self.reading() as connection:
            return last_shared(connection)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep the file open from its first use on, until `release`.

        Whoever keeps it calls `yield_if_wanted` between its steps and in its waits.
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

    def yield_if_wanted(self) -> None:
        """Close the file if another process waits for it, which then has it first."""
        if self._connection is not None and is_wanted(self.work):
            self.release()
            self._has_yielded = True

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to the work file, opened for this unless it is kept open."""
        with self._lock:
            if self._connection is None:
                opening = opened(self.work, queues=self._has_yielded)
                self._connection = self._open.enter_context(opening)
                if self._keeps:
                    self._connection.execute(f"{KEEP_METADATA} = true")
                self._has_yielded = False
            try:
                with naming_errors(self.work):
                    yield self._connection
            except BaseException:
                # A connection that failed may not be fit for another statement.
                self.release()
                raise
            if not self._keeps:
                self.release()

    @contextmanager
    def _writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self.reading() as connection, transaction(connection):
            yield connection

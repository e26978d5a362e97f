"""Runs of commands, the result of each resource, publications, events, and the folder's facts.

Another process may read them at any time, for `status`. They are copied to the tables `sync` of the
published file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from connector.catalog import CATALOG
from connector.state.database import Database, columns

BACKUPS_KEPT = 50
"""Number of records of backups that stay."""

ONCE = frozenset({"unknown_field", "unknown_value", "unreadable_value", "unsorted"})
"""Kinds of event that are only reported once for a resource."""

RUNS_READ, PUBLICATIONS_READ = 100, 10
"""Number of runs and publications that `Runs.health` reads."""


@dataclass(frozen=True, slots=True)
class Run:
    """Record of one execution of a command. One without an outcome runs, or was killed."""

    run_id: str
    command: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: str | None = None
    seconds: float | None = None
    waited_seconds: float | None = None
    requests: int | None = None
    rate_limited: int | None = None
    error_code: str | None = None
    message: str | None = None
    budget: int | None = None
    month_share: float | None = None


@dataclass(frozen=True, slots=True)
class ResourceRun:
    """Result of one run for one resource: requests by kind, and rows by result.

    Attributes:
        proven: True if the local copy is verified up to `bookmark_after`.
        message: Reason why it is not verified.
        sweeps: Number of requests that searched for deletions.
        scrubs: Number of requests that verified unchanged records.
        lateness_seconds: Assumed delay before a write becomes visible.
        oldest_read_at: Time of the least recently read detail of a live row.
        anomalies: Number of events by kind, except deletions.
        month_share: Share of the monthly quota; None if the quota is unknown.
    """

    resource: str
    outcome: str
    proven: bool
    requests: int
    lists: int
    details: int
    new: int
    changed: int
    unchanged: int
    deleted: int
    live: int
    total: int | None
    pending: int
    bookmark_before: datetime | None
    bookmark_after: datetime | None
    error_code: str | None = None
    message: str | None = None
    sweeps: int = 0
    scrubs: int = 0
    waited_seconds: float = 0.0
    rate_limited: int = 0
    lateness_seconds: float | None = None
    oldest_read_at: datetime | None = None
    anomalies: Mapping[str, int] = field(default_factory=dict)
    month_share: float | None = None


@dataclass(frozen=True, slots=True)
class Publication:
    """Attempt to publish. `outcome` is None while it is running.

    Attributes:
        publication: Id of the attempt.
        true_of: Time up to which the data is verified.
        failed_checks: Names of failed checks; in a published file, only warnings.
        failed_rows: Number of wrong rows of each failed check.
        failed_samples: Id of one wrong row of each failed check.
        unfilled_seeds: Seeds that the user has not started to fill in.
        unfilled_rows: Number of values that each of these seeds lacks.
        personal: Setting `publish_personal`.
        left_out: Setting `publish_without`.
        bytes: Size of the file; None within the file itself.
    """

    publication: str
    started_at: datetime
    run_id: str | None = None
    ended_at: datetime | None = None
    true_of: datetime | None = None
    outcome: str | None = None
    models: int = 0
    checks: int = 0
    failed_checks: tuple[str, ...] = ()
    failed_rows: tuple[int, ...] = ()
    failed_samples: tuple[str | None, ...] = ()
    unfilled_seeds: tuple[str, ...] = ()
    unfilled_rows: tuple[int, ...] = ()
    personal: str = "keep"
    left_out: tuple[str, ...] = ()
    time_zone: str | None = None
    error_code: str | None = None
    message: str | None = None
    bytes: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RunHealth:
    """Latest runs and publications of an account, newest first, to judge its health.

    Attributes:
        first_run_at: Start of the first recorded run.
        resources: Id and result of the latest run, by resource.
    """

    runs: tuple[Run, ...] = ()
    first_run_at: datetime | None = None
    resources: Mapping[str, tuple[str, ResourceRun]] = field(default_factory=dict)
    publications: tuple[Publication, ...] = ()

    @property
    def proven_at(self) -> dict[str, datetime | None]:
        """Time up to which the latest run of each resource verified it; None if it is not."""
        return {name: result.bookmark_after for name, (_, result) in self.resources.items()}


@dataclass(frozen=True, slots=True)
class Event:
    """Event to be stored and shown. `detail` contains no personal data."""

    kind: str
    detail: str
    id: str | None = None


class Runs:
    """Runs, publications and events of one account. Methods can raise a `WarehouseError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- runs -------------------------------------------------------------------------------------

    def begin(self, run: Run) -> None:
        """Record a run that starts now. Earlier ones without an outcome were interrupted.

        The caller holds the lock of the account, so that no other run is in progress.
        """
        with self._database.transaction():
            self._database.write("UPDATE runs SET outcome = 'interrupted' WHERE outcome IS NULL")
            self._database.put("runs", columns(run))

    def end(self, run: Run) -> None:
        """Replace the record of a run."""
        self._database.put("runs", columns(run))

    def add_resource(self, run_id: str, result: ResourceRun) -> None:
        """Record the result of a run for one resource."""
        self._database.put("run_resources", {"run_id": run_id, **columns(result)})

    def latest(self, count: int) -> tuple[Run, ...]:
        """Return the latest runs, newest first."""
        sql = "SELECT * FROM runs ORDER BY started_at DESC, run_id DESC LIMIT ?"
        return tuple(Run(**row) for row in self._database.rows(sql, count))

    def latest_of_resources(self) -> dict[str, tuple[str, ResourceRun]]:
        """Return run id and result of the latest run that reached each resource, in API order."""
        rows = self._database.rows(
            "SELECT r.* FROM run_resources AS r JOIN runs USING (run_id)"
            " WHERE r.outcome <> 'not_started' ORDER BY started_at, run_id"
        )
        names = [each.name for each in fields(ResourceRun)]
        found = {
            row["resource"]: (row["run_id"], ResourceRun(**{name: row[name] for name in names}))
            for row in rows
        }
        return {name: found[name] for name in CATALOG if name in found}

    def note_progress(self, run_id: str, resource: str, live: int, pending: int) -> None:
        """Replace the progress of the run, for `status` in another process."""
        self._database.note(
            "progress", {"run_id": run_id, "resource": resource, "live": live, "pending": pending}
        )

    def progress_of(self, run_id: str) -> tuple[str, int, int] | None:
        """Return the resource that a run is reading, with its live and its unread records."""
        found = self._database.fact("progress")
        if not found or found["run_id"] != run_id:
            return None
        return found["resource"], found["live"], found["pending"]

    def health(self) -> RunHealth:
        """Return the latest runs and publications."""
        first = self._database.rows("SELECT * FROM runs ORDER BY started_at LIMIT 1")
        return RunHealth(
            self.latest(RUNS_READ),
            first[0]["started_at"] if first else None,
            self.latest_of_resources(),
            self.publications(PUBLICATIONS_READ),
        )

    # -- events -----------------------------------------------------------------------------------

    def add_events(
        self,
        events: Iterable[Event],
        at: datetime,
        *,
        run_id: str | None = None,
        resource: str | None = None,
        parent: str | None = None,
    ) -> None:
        """Record events, except kinds that are reported once and are known already."""
        with self._database.transaction() as connection:
            for each in events:
                known = "SELECT 1 FROM events WHERE resource IS ? AND kind = ? AND detail = ?"
                place = (resource, each.kind, each.detail)
                if each.kind in ONCE and connection.execute(known, place).fetchone():
                    continue
                self._database.write(
                    "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)",
                    *(run_id, resource, parent, each.kind, each.detail, each.id, at),
                )

    def events(self, *, resource: str | None = None, run_id: str | None = None) -> list[Event]:
        """Return events, oldest first; of one resource or of one run if given."""
        rows = self._database.rows(
            "SELECT * FROM events WHERE (?1 IS NULL OR resource = ?1)"
            " AND (?2 IS NULL OR run_id = ?2) ORDER BY seen_at, rowid",
            *(resource, run_id),
        )
        return [Event(row["kind"], row["detail"], row["id"]) for row in rows]

    # -- publications -----------------------------------------------------------------------------

    def begin_publication(self, publication: Publication, shown: Publication | None) -> None:
        """Record a publication that begins now, and the end of earlier ones without a record of it.

        `shown` is the publication in the published file: its process ended after the file was
        replaced. Any other one was interrupted.
        """
        with self._database.transaction():
            if shown is not None and self._database.rows(
                "SELECT 1 FROM publications WHERE publication = ? AND outcome IS NULL",
                shown.publication,
            ):
                self.put_publication(shown)
            self._database.write(
                "UPDATE publications SET outcome = 'interrupted' WHERE outcome IS NULL"
            )
            self.put_publication(publication)

    def put_publication(self, publication: Publication) -> None:
        """Record a publication, or replace its record."""
        self._database.put("publications", columns(publication))

    def publications(self, count: int) -> tuple[Publication, ...]:
        """Return the latest publications, newest first."""
        sql = "SELECT * FROM publications ORDER BY started_at DESC, publication DESC LIMIT ?"
        rows = map(dict, self._database.rows(sql, count))
        return tuple(Publication(**{n: _as_tuple(v) for n, v in row.items()}) for row in rows)


def _as_tuple(value: Any) -> Any:
    """Return a list as a tuple; other values as they are."""
    return tuple(value) if isinstance(value, list) else value


# -- Identity --------------------------------------------------------------------------------------
# The work file and the state of a data folder have the same identity.


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity that all files of a data folder share.

    Attributes:
        folder: Random name of the folder, made by its first run.
        address: Address of the workspace whose records are in the folder.
        written_by: Version of the connector that wrote the file last.
    """

    folder: str
    address: str
    written_by: str


def read_identity(database: Database) -> Identity | None:
    """Return the identity of the data folder; None before the first run."""
    found = database.fact("identity")
    return Identity(**found) if found else None


def write_identity(database: Database, identity: Identity) -> None:
    """Replace the identity of the folder."""
    database.note("identity", columns(identity))


# -- Backups ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Backup:
    """Record of a backup. One without `ended_at` runs or was killed; one without `file` failed."""

    began_at: datetime
    ended_at: datetime | None = None
    file: str | None = None
    bytes: int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """Restore of the data folder from a backup. Pushes and requests since `made_at` are missing.

    `proven` has for each resource the server time up to which the restored files are verified.
    """

    restored_at: datetime
    made_at: datetime
    proven: Mapping[str, datetime | None]


def put_backup(database: Database, backup: Backup) -> None:
    """Record a backup, or replace the record with the same start."""
    with database.transaction():
        database.put("backups", columns(backup))
        database.write(
            "DELETE FROM backups WHERE began_at NOT IN"
            " (SELECT began_at FROM backups ORDER BY began_at DESC LIMIT ?)",
            BACKUPS_KEPT,
        )


def latest_backups(database: Database) -> tuple[Backup, ...]:
    """Return the records of backups, newest first."""
    found = database.rows("SELECT * FROM backups ORDER BY began_at DESC")
    return tuple(Backup(**row) for row in found)


def note_restore(database: Database, restore: Restore) -> None:
    """Record the latest restore."""
    database.note("restore", columns(restore))


def latest_restore(database: Database) -> Restore | None:
    """Return the latest restore; None if there is none."""
    found = database.fact("restore")
    if found is None:
        return None
    restored_at, made_at = (datetime.fromisoformat(found[n]) for n in ("restored_at", "made_at"))
    return Restore(
        restored_at,
        made_at,
        {name: at and datetime.fromisoformat(at) for name, at in found["proven"].items()},
    )

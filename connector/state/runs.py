"""Runs of commands, the result of each resource, publications, events, and the folder's facts.

Another process may read them at any time, for `status`. They are copied to the tables `sync` of the
published file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from connector.catalog import CATALOG
from connector.state.database import Database, columns, to_record

BACKUPS_KEPT = 50
"""Number of records of backups that stay."""

ONCE = frozenset({"unknown_field", "unknown_value", "unreadable_value", "unsorted"})
"""Kinds of event that are only reported once for a resource."""

RUNS_READ, PUBLICATIONS_READ = 100, 10
"""Number of runs and publications that `Runs.health` reads."""


@dataclass(frozen=True, slots=True)
class Run:
    """One row per run, with its outcome and requests."""

    run_id: Annotated[str, "Id of the run: its start time (UTC) and random characters."]
    command: Annotated[str, "Command of the run: `pull`, `push`, `dagster` and so on."]
    started_at: Annotated[datetime, "Start time."]
    ended_at: Annotated[datetime | None, "End time; null while it is running."] = None
    outcome: Annotated[str | None, "done, partial, stopped, failed or interrupted; or null."] = None
    seconds: Annotated[float | None, "Duration."] = None
    waited_seconds: Annotated[float | None, "Seconds of waiting for the rate limit."] = None
    requests: Annotated[int | None, "Number of requests, including retries."] = None
    rate_limited: Annotated[int | None, "Responses with status 429."] = None
    error_code: Annotated[str | None, "Error code if it ended early, else null."] = None
    message: Annotated[str | None, "Error message if it ended early, else null."] = None
    budget: Annotated[int | None, "Maximum number of requests; null for no limit."] = None


@dataclass(frozen=True, slots=True)
class ResourceRun:
    """One row per run and resource, with records by change and requests by kind."""

    resource: Annotated[str, "The resource, by the name of its table in `landing`."]
    outcome: Annotated[str, "done, partial, stopped, failed, skipped or not_started."]
    proven: Annotated[bool, "True if the records are verified until `bookmark_after`."]
    requests: Annotated[int, "Number of requests for the resource, including retries."]
    lists: Annotated[int, "Requests that read a page of a list."]
    details: Annotated[int, "Requests that read one record."]
    new: Annotated[int, "New records."]
    changed: Annotated[int, "Changed records."]
    unchanged: Annotated[int, "Records that were read and had not changed."]
    deleted: Annotated[int, "Records that were found deleted."]
    live: Annotated[int, "Loaded records that are not deleted, after the run."]
    total: Annotated[int | None, "Total of the last list; null if none was read."]
    pending: Annotated[int, "Records that must still be read."]
    bookmark_before: Annotated[datetime | None, "Server time until which it was verified before."]
    bookmark_after: Annotated[datetime | None, "Server time until which it is verified."]
    error_code: Annotated[str | None, "Error code if it ended early, else null."] = None
    message: Annotated[str | None, "Reason why it is not verified or ended early."] = None
    scrubs: Annotated[int, "Requests that re-verified records."] = 0
    lateness_seconds: Annotated[float | None, "Longest time until a change is visible."] = None
    oldest_read_at: Annotated[datetime | None, "Oldest reading of a live record."] = None
    anomalies: Annotated[Mapping[str, int], "Events by kind, without deletions."] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class Publication:
    """One row per attempt to publish. In the published file, the latest row is its own."""

    publication: Annotated[str, "Id of the attempt: its start time (UTC) and random characters."]
    started_at: Annotated[datetime, "Start time."]
    run_id: Annotated[str | None, "Last run with records in the file (`sync.runs.run_id`)."] = None
    ended_at: Annotated[datetime | None, "End time; null while it is running."] = None
    true_of: Annotated[datetime | None, "Current time of the models: latest `proven_at`."] = None
    outcome: Annotated[str | None, "published, refused by a check, failed or interrupted."] = None
    models: Annotated[int, "Number of models and seeds."] = 0
    checks: Annotated[int, "Number of tests and audits."] = 0
    failed_checks: Annotated[tuple[str, ...], "Failed checks; warnings if it is published."] = ()
    personal: Annotated[str, "Personal fields: keep, drop or hash."] = "keep"
    left_out: Annotated[tuple[str, ...], "Schemas and columns that are left out of the file."] = ()
    time_zone: Annotated[str | None, "Time zone of the days in the models."] = None
    error_code: Annotated[str | None, "Error code if it ended early, else null."] = None
    message: Annotated[str | None, "Error message if it was refused or failed, else null."] = None
    bytes: Annotated[int | None, "Size of the file; null in the published file itself."] = None
    seconds: Annotated[float | None, "Duration."] = None


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

    def latest_of_resources(self) -> dict[str, tuple[str, ResourceRun]]:
        """Return run id and result of the latest run that reached each resource, in API order."""
        rows = self._database.rows(
            "SELECT r.* FROM run_resources AS r JOIN runs USING (run_id)"
            " WHERE r.outcome <> 'not_started' ORDER BY started_at, run_id"
        )
        found = {row["resource"]: (row["run_id"], to_record(ResourceRun, row)) for row in rows}
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
        runs = self._database.find(Run, "SELECT * FROM runs ORDER BY started_at DESC, run_id DESC")
        return RunHealth(
            tuple(runs[:RUNS_READ]),
            runs[-1].started_at if runs else None,
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
            if shown is not None:
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
        return tuple(self._database.find(Publication, sql, count))


# -- Facts of the folder ---------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class Restore:
    """Restore of the data folder from a backup. Pushes and requests since `made_at` are missing.

    `proven` has for each resource the server time up to which the restored files are verified.
    """

    restored_at: datetime
    made_at: datetime
    proven: Mapping[str, datetime | None]


@dataclass(frozen=True, slots=True)
class Backup:
    """Record of a backup. One without `ended_at` runs or was killed; one without `file` failed."""

    began_at: datetime
    ended_at: datetime | None = None
    file: str | None = None
    bytes: int | None = None
    message: str | None = None


def put_backup(database: Database, backup: Backup) -> None:
    """Record a backup, or replace the record with the same start."""
    with database.transaction():
        others = [each for each in latest_backups(database) if each.began_at != backup.began_at]
        database.note("backups", [backup, *others][:BACKUPS_KEPT])


def latest_backups(database: Database) -> tuple[Backup, ...]:
    """Return the records of backups, newest first."""
    return tuple(to_record(Backup, each) for each in database.fact("backups") or ())

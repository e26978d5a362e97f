"""Publication of the loaded rows: copy, build, check and replace the published file.

A publication holds the account's lock, so that two of them run one after the other. A crash leaves
the old file or the new one: the draft is invisible until the rename, and a leftover draft is
overwritten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from connector.errors import ConnectorError, PublishingRefused, WarehouseError, count_noun
from connector.log import new_id
from connector.models.mask import Mask, write_masked
from connector.models.project import Project, load_project
from connector.models.runner import MEMORY_MAX, BuildResult, Watch, build
from connector.models.seeds import AUDIT, find_unmapped
from connector.settings import Settings
from connector.settings.folders import SEEDS_FOLDER
from connector.state.database import Database
from connector.state.lock import hold
from connector.state.runs import Publication, Runs
from connector.warehouse import queries
from connector.warehouse.file import open_file, remove_file, replace_file
from connector.warehouse.publish import data_time, make_draft, own_publication, write_publication
from connector.warehouse.warehouse import Warehouse

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PublishResult:
    """Published file, the record of its publication, and the results of the build."""

    file: Path
    publication: Publication
    built: BuildResult

    def as_json(self) -> dict[str, Any]:
        """Return the publication as `--json` prints it; times as ISO 8601."""
        row = self.publication
        names = ("outcome", "models", "checks", "personal", "bytes", "seconds")
        return {name: getattr(row, name) for name in names} | {
            "file": str(self.file),
            "true_of": row.true_of.isoformat() if row.true_of is not None else None,
            "failed_checks": list(row.failed_checks),
            "unfilled_seeds": list(row.unfilled_seeds),
        }


def load_account_project(settings: Settings) -> Project:
    """Return the shipped models with the account's own seeds and models.

    Raises a `ModelError`, and `SettingsError` if the folder of own models is not a folder.
    """
    seeds, own = settings.folder / SEEDS_FOLDER, settings.models_folder
    if own is not None and not own.is_dir():
        raise settings.invalid("models_folder", "a folder that exists")
    return load_project(seeds=seeds, own=own)


def _now() -> datetime:
    return datetime.now(UTC)


def publish(
    settings: Settings,
    *,
    run_id: str | None = None,
    watch: Watch | None = None,
    now: Callable[[], datetime] = _now,
) -> PublishResult:
    """Build the models over the loaded rows and publish the file for analysts.

    Args:
        settings: Settings of the account.
        run_id: Id of the run that publishes.
        watch: Called with the progress of the build.
        now: Clock.

    Raises:
        PublishingRefused: Checks of severity error have failed.
        ModelError: A model cannot be built.
        AccountBusy: Another process uses the account.
        WarehouseError: A file cannot be written. After every error the published file is unchanged,
            and `sync.publications` has the reason.
    """
    if not Warehouse(settings.folder).exists:
        raise WarehouseError(
            f"no records are loaded in {settings.folder}",
            action="Run 'connector pull' first, or check CONNECTOR_DATA_DIR.",
        )
    with hold(settings.folder, "publish"), Database(settings.folder) as database:
        return _Publishing(settings, database, run_id, now).run(watch)


class _Publishing:
    """One publication, whose record `row` is in the state from its begin to its end."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        run_id: str | None,
        now: Callable[[], datetime],
    ) -> None:
        self._warehouse, self._database = Warehouse(settings.folder), database
        self._runs, self._target = Runs(database), self._warehouse.published
        self._draft = self._target.with_name(f"{self._target.name}.publishing")
        self._masked = self._target.with_name(f"{self._target.name}.masking")
        self._settings, self._now = settings, now
        started_at = now()
        self._row = Publication(
            new_id(started_at),
            started_at,
            run_id=run_id,
            personal=settings.publish_personal,
            left_out=settings.publish_without,
            time_zone=settings.time_zone,
        )

    def run(self, watch: Watch | None) -> PublishResult:
        """Publish. After an error, remove the drafts and record the error."""
        self._log("publication_begun", "publication begins")
        try:
            built = self._publish(watch)
        except ConnectorError as error:
            outcome = "refused" if isinstance(error, PublishingRefused) else "failed"
            self._end(outcome, error_code=error.code, message=str(error))
            raise
        except BaseException:
            self._row = replace(self._row, outcome=None)
            raise
        finally:
            # A file that is in place is published even if this record cannot be written: the next
            # publication reads the record from the file.
            with suppress(WarehouseError):
                self._remove_drafts()
                self._runs.put_publication(self._row)
            outcome = self._row.outcome or "interrupted"
            text = f"publication ends: {outcome}"
            self._log("publication_ended", text, outcome=outcome, seconds=self._row.seconds)
        return PublishResult(self._target, self._row, built)

    def _log(self, event: str, text: str, **fields: object) -> None:
        fields = {"publication": self._row.publication, **fields}
        _LOGGER.info(text, extra={"event": event, "fields": fields})

    def _publish(self, watch: Watch | None) -> BuildResult:
        self._remove_drafts()
        is_off, mask = self._settings.models == "off", Mask.from_settings(self._settings)
        project = Project({}, {}, ()) if is_off else load_account_project(self._settings)
        if mask is not None:
            mask.check_names(project)
        self._check_purges()
        self._runs.begin_publication(self._row, own_publication(self._target))
        make_draft(self._warehouse, self._draft, self._database, self._settings.billing_day)
        with open_file(self._draft, memory=MEMORY_MAX) as connection:
            self._row = replace(self._row, true_of=data_time(connection))
            if mask is not None:
                mask.clear_fields(connection)
            built = build(connection, project, watch=watch)
            self._add_results(built, _count_unfilled(connection, project))
            if built.blocking:
                raise PublishingRefused([(e.check.name, e.failing) for e in built.blocking])
            self._end("published")
            write_publication(connection, self._row)
            connection.execute("CHECKPOINT")
        if mask is not None:
            write_masked(self._draft, self._masked, mask, project)
        finished = self._draft if mask is None else self._masked
        self._end("published", bytes=replace_file(finished, self._target))
        return built

    def _check_purges(self) -> None:
        """Refuse to publish people who were purged, and mark their purges as to be repeated."""
        purges = self._database.rows("SELECT at, ids FROM purges ORDER BY at")
        times = {id: each["at"] for each in purges for id in each["ids"]}
        back = self._warehouse.read(queries.returned_people, times) if times else []
        if back:
            for at in {times[id] for id in back}:
                self._database.write("UPDATE purges SET ended_at = NULL WHERE at = ?", at)
            people = count_noun(len(back), "purged person", "purged people")
            raise WarehouseError(
                f"{self._warehouse.work} has {people} again, so nothing was published",
                code="purge_undone",
            )

    def _remove_drafts(self) -> None:
        remove_file(self._draft)
        remove_file(self._masked)

    def _add_results(self, built: BuildResult, unfilled: Mapping[str, int]) -> None:
        """Add the results to the record. Values missing in `unfilled` seeds are not wrong rows."""
        waiting = {AUDIT: sum(unfilled.values())}
        failed = [
            each.check.name
            for each in (*built.blocking, *built.warnings)
            if each.failing > waiting.get(each.check.name, 0)
        ]
        self._row = replace(
            self._row,
            models=len(built.models),
            checks=len(built.checks),
            failed_checks=tuple(failed),
            unfilled_seeds=tuple(unfilled),
        )

    def _end(self, outcome: str, **more: Any) -> None:
        """Set the outcome, the time of the end and further fields of the record."""
        ended = self._now()
        seconds = (ended - self._row.started_at).total_seconds()
        self._row = replace(self._row, outcome=outcome, ended_at=ended, seconds=seconds, **more)


def _count_unfilled(connection: duckdb.DuckDBPyConnection, project: Project) -> dict[str, int]:
    """Return the number of missing values of each seed of which the user has no file."""
    if AUDIT not in (each.name for each in project.checks):
        return {}
    missing = find_unmapped(connection, project)
    return {name: len(each) for name, each in missing.items() if not project.nodes[name].is_own}

"""Publication of the loaded rows: copy, build, check and replace the published file.

A publication holds the account's lock, so that two of them run one after the other. A crash leaves
the old file or the new one: the draft is invisible until the rename, and a leftover draft is
overwritten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.errors import ConnectorError, PublishingRefused, WarehouseError, count_noun
from connector.log import new_id
from connector.models.mask import write_masked
from connector.models.project import Project, load_project
from connector.models.runner import MEMORY_MAX, BuildResult, Watch, build
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
        """Return the publication as `--json` prints it, with the time as ISO 8601."""
        row, names = (
            self.publication,
            ("outcome", "models", "checks", "personal", "bytes", "seconds"),
        )
        return {name: getattr(row, name) for name in names} | {
            "file": str(self.file),
            "true_of": row.true_of and row.true_of.isoformat(),
            "failed_checks": list(row.failed_checks),
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
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        raise WarehouseError(
            f"no records are loaded in {settings.folder}",
            action="Run 'connector pull' first, or check CONNECTOR_DATA_DIR.",
        )
    target = warehouse.published
    draft, masked = (target.with_name(f"{target.name}.{e}") for e in ("publishing", "masking"))
    with hold(settings.folder, "publish"), Database(settings.folder) as database:
        row = Publication(
            new_id(started_at := now()),
            started_at,
            run_id=run_id,
            personal=settings.publish_personal,
            left_out=settings.publish_without,
            time_zone=settings.time_zone,
        )
        _log("publication_begun", "publication begins", publication=row.publication)
        try:
            has_mask = settings.publish_personal != "keep" or bool(settings.publish_without)
            is_off = settings.models == "off"
            project = Project({}, {}, ()) if is_off else load_account_project(settings)
            _check_purges(warehouse, database)
            Runs(database).begin_publication(row, own_publication(target))
            remove_file(masked)
            make_draft(warehouse, draft, database, settings.billing_day)
            with open_file(draft, memory=MEMORY_MAX) as connection:
                row = replace(row, true_of=data_time(connection))
                built = build(connection, project, watch=watch)
                row = replace(
                    row,
                    models=len(built.models),
                    checks=len(built.checks),
                    failed_checks=tuple(e.check.name for e in built.failed("error", "warn")),
                )
                if blocking := built.failed("error"):
                    failed = [(each.check.name, each.failing) for each in blocking]
                    raise PublishingRefused(failed, built.checks)
                write_publication(connection, _end(row, now(), "published"))
                connection.execute("CHECKPOINT")
            if has_mask:
                write_masked(draft, masked, settings, project)
            size = replace_file(masked if has_mask else draft, target)
            row = _end(row, now(), "published", bytes=size)
        except ConnectorError as error:
            outcome = "refused" if isinstance(error, PublishingRefused) else "failed"
            row = _end(row, now(), outcome, error_code=error.code, message=str(error))
            raise
        finally:
            # A file that is in place is published even if this record cannot be written: the next
            # publication reads the record from the file.
            with suppress(WarehouseError):
                remove_file(draft)
                remove_file(masked)
                Runs(database).put_publication(row)
            outcome = row.outcome or "interrupted"
            fields = {"publication": row.publication, "seconds": row.seconds}
            _log("publication_ended", f"publication ends: {outcome}", outcome=outcome, **fields)
    return PublishResult(target, row, built)


def _end(row: Publication, at: datetime, outcome: str, **more: Any) -> Publication:
    seconds = (at - row.started_at).total_seconds()
    return replace(row, outcome=outcome, ended_at=at, seconds=seconds, **more)


def _log(event: str, text: str, **fields: object) -> None:
    _LOGGER.info(text, extra={"event": event, "fields": fields})


def _check_purges(warehouse: Warehouse, database: Database) -> None:
    """Refuse to publish people who were purged, and mark their purges as to be repeated."""
    purges = database.rows("SELECT at, ids FROM purges ORDER BY at")
    times = {id: each["at"] for each in purges for id in each["ids"]}
    back = warehouse.read(queries.returned_people, times) if times else []
    for at in {times[id] for id in back}:
        database.write("UPDATE purges SET ended_at = NULL WHERE at = ?", at)
    if back:
        people = count_noun(len(back), "purged person", "purged people")
        message = f"{warehouse.work} has {people} again, so nothing was published"
        raise WarehouseError(message, code="purge_undone")

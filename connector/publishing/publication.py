"""Publication of the loaded rows: copy, build, check and replace the published file.

The work file is only locked during the copy. A crash leaves the old file or the new one: the draft
is invisible until the rename, and a leftover draft is overwritten. Two publishers run one after the
other, so that the later one publishes the later state.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from connector.errors import ConnectorError, PublishingRefused, WarehouseBusy, WarehouseError
from connector.log import new_id
from connector.publishing.project import BuildObserver, BuildResult, CheckResult, Project
from connector.settings.layers import SEEDS_FOLDER, raise_invalid_value
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import convert_errors, hold_lock, transaction
from connector.warehouse.runs import Publication, write_publication
from connector.warehouse.warehouse import Warehouse
from connector.warehouse.work_file import (
    begin_publication,
    record_publication,
    remove_draft,
    replace_published,
)

if TYPE_CHECKING:
    from connector.publishing.pseudonymize import Mask

# -- Lock ------------------------------------------------------------------------------------------
# One publisher at a time, by a lock that the system releases when a process dies.
#
# A lease of the ledger is not needed: publishing sends no request, and a killed publisher must not
# block the next one.

LOCK_FILE = "publishing.lock"

WAIT_SECONDS = 900.0
"""Seconds that a publisher waits for another; longer than any normal build."""


@contextmanager
def publication_lock(folder: Path, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the folder's exclusive lock for publications.

    Raises `WarehouseBusy` after `wait_seconds`, and another `WarehouseError` if the folder cannot
    be written to.
    """
    path = folder / LOCK_FILE
    with convert_errors(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(path, time.monotonic() + wait_seconds))
        except TimeoutError:
            raise WarehouseBusy(
                f"another process has been publishing {path} for {wait_seconds:.0f} s",
                action="Wait for the process or stop it. Then run 'connector publish'.",
            ) from None
        yield


# -- Publishing ------------------------------------------------------------------------------------

_DRAFT, _MASKED = ".publishing", ".masking"


@dataclass(frozen=True, slots=True)
class PublishResult:
    """Published file, the record of its publication, and the results of the build."""

    file: Path
    publication: Publication
    built: BuildResult

    def as_json(self) -> dict[str, Any]:
        """Return the publication as `--json` prints it; times as ISO 8601."""
        row = self.publication
        return {
            "outcome": row.outcome,
            "file": str(self.file),
            "true_of": row.true_of.isoformat() if row.true_of is not None else None,
            "models": row.models,
            "checks": row.checks,
            "failed_checks": list(row.failed_checks),
            "unfilled_seeds": list(row.unfilled_seeds),
            "personal": row.personal,
            "bytes": row.bytes,
            "seconds": row.seconds,
        }


def _now() -> datetime:
    return datetime.now(UTC)


def publish(
    settings: Settings,
    *,
    run_id: str | None = None,
    watch: BuildObserver | None = None,
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
        WarehouseError: A file cannot be written. After every error the published file is unchanged,
            and `sync.publications` has the reason.
    """
    _check_records_loaded(settings)
    with publication_lock(settings.folder):
        work = _PublicationRun(settings, run_id, watch, now)
        with work.record_errors():
            return work.publish_draft(work.build_draft())


def load_account_project(settings: Settings) -> Project:
    """Return the shipped models, with the account's own seeds and models.

    Raises a `ModelError`, and `SettingsError` if the folder of own models is not a folder.
    """
    from connector.publishing.project_loader import OwnModels, load_project  # noqa: PLC0415 # a build

    seeds, own = settings.folder / SEEDS_FOLDER, settings.models_folder
    if own.value is not None and not own.value.is_dir():
        raise_invalid_value("models_folder", own.value, "a folder that exists", own.origin)
    return load_project(
        seeds=seeds if seeds.is_dir() else None,
        own=OwnModels(own.value, settings.models_schema.value) if own.value else None,
    )


def _with_check_results(row: Publication, built: BuildResult, project: Project) -> Publication:
    """Return the publication with the results of the checks.

    An audit that fails because the user has not filled in a seed counts as unfilled, not as failed.
    """
    from connector.publishing.seeds import AUDITS, maps_any_value  # noqa: PLC0415 # a build

    unfilled = {
        AUDITS[seed]: seed
        for seed in AUDITS
        if seed in project.seeds and not maps_any_value(project.seeds[seed])
    }
    waiting = [each for each in built.warnings if each.name in unfilled]
    return replace(
        _with_failed_checks(
            row, [each for each in (*built.blocking, *built.warnings) if each not in waiting]
        ),
        models=len(built.models),
        checks=len(built.checks),
        unfilled_seeds=tuple(unfilled[each.name] for each in waiting),
        unfilled_rows=tuple(each.failing for each in waiting),
    )


def _with_failed_checks(row: Publication, failed: Sequence[CheckResult]) -> Publication:
    """Return the publication with these failed checks, their numbers of rows and an id of each."""
    return replace(
        row,
        failed_checks=tuple(each.name for each in failed),
        failed_rows=tuple(each.failing for each in failed),
        failed_samples=tuple(each.examples[0] if each.examples else None for each in failed),
    )


def _check_records_loaded(settings: Settings) -> None:
    """Raise `WarehouseError` if the account has no work file."""
    if not Warehouse(settings.folder).exists:
        raise WarehouseError(
            f"no records are loaded in {settings.folder}",
            action="Run 'connector pull' first, or check CONNECTOR_DATA_DIR.",
        )


def _mask_from_settings(settings: Settings) -> Mask | None:
    """Return the mask; None if all is published. Raises `SettingsError` without a hash key."""
    personal, without = settings.publish_personal.value, settings.publish_without.value
    if personal == "keep" and not without:
        return None
    from connector.publishing.pseudonymize import Mask  # noqa: PLC0415 # a pull without a mask

    return Mask(personal, settings.hash_key(), without)


class _PublicationRun:
    """One publication, from draft to published file. The caller holds `publication_lock`."""

    def __init__(
        self,
        settings: Settings,
        run_id: str | None,
        watch: BuildObserver | None,
        now: Callable[[], datetime],
    ) -> None:
        warehouse = Warehouse(settings.folder)
        self._settings, self._watch, self._now = settings, watch, now
        self._mask = _mask_from_settings(settings)
        self._work, self._target = warehouse.work, warehouse.published
        self._draft = self._target.with_name(self._target.name + _DRAFT)
        self._masked = self._target.with_name(self._target.name + _MASKED)
        started_at = now()
        self._row = Publication(
            new_id(started_at),
            started_at,
            run_id=run_id,
            personal=settings.publish_personal.value,
            left_out=settings.publish_without.value,
            time_zone=settings.time_zone.value,
        )

    @contextmanager
    def record_errors(self) -> Iterator[None]:
        """After an error, remove the draft and record the error in the work file."""
        try:
            yield
        except BaseException as error:
            with suppress(WarehouseError):
                remove_draft(self._draft)
                remove_draft(self._masked)
                if isinstance(error, ConnectorError):
                    outcome = "refused" if isinstance(error, PublishingRefused) else "failed"
                    self._set_outcome(outcome, error_code=error.code, message=str(error))
                    record_publication(self._work, self._row)
            raise

    def build_draft(self) -> BuildResult:
        """Copy the work file to the draft, and build and check the models in it.

        The draft is recorded as published unless a check blocks it.
        """
        remove_draft(self._draft)
        remove_draft(self._masked)
        self._check_left_out_columns()
        is_plain = self._settings.models.value == "off"
        if is_plain and self._mask is None:
            # No check can refuse it and no model is added, so its record is written beforehand.
            self._set_outcome("published")
        self._row = begin_publication(self._work, self._draft, self._row, self._target)
        if self._mask is not None:
            from connector.publishing.pseudonymize import clear_fields  # noqa: PLC0415

            clear_fields(self._draft, self._mask.without)
        if is_plain:
            return BuildResult((), ())
        from connector.publishing.build import build  # noqa: PLC0415

        project = self._project
        assert project is not None

        def finish(connection: duckdb.DuckDBPyConnection, built: BuildResult) -> None:
            self._row = _with_check_results(self._row, built, project)
            if not built.blocking:
                self._set_outcome("published")
                with transaction(connection):
                    write_publication(connection, self._row)

        return build(self._draft, project, finish=finish, watch=self._watch)

    def publish_draft(self, built: BuildResult) -> PublishResult:
        """Mask the draft and publish it. Raises `PublishingRefused` after failed checks."""
        if built.blocking:
            raise PublishingRefused([(each.name, each.failing) for each in built.blocking])
        if self._row.outcome != "published":
            self._set_outcome("published")
            record_publication(self._draft, self._row)
        finished = self._draft
        if self._mask is not None:
            from connector.publishing.pseudonymize import write_masked  # noqa: PLC0415

            write_masked(self._draft, self._masked, self._mask, self._project)
            remove_draft(self._draft)
            finished = self._masked
        size = replace_published(finished, self._target)
        self._set_outcome("published", bytes=size)
        # It is published even if this record fails: the next publication reads it from the file.
        with suppress(WarehouseError):
            record_publication(self._work, self._row)
        return PublishResult(self._target, self._row, built)

    def _check_left_out_columns(self) -> None:
        """Raise an error before the build if a column of `publish_without` cannot be left out."""
        if self._mask is not None:
            from connector.publishing.pseudonymize import check_left_out  # noqa: PLC0415

            check_left_out(self._mask.without, self._project)

    @cached_property
    def _project(self) -> Project | None:
        """Models of the account; None if models are turned off."""
        return (
            None if self._settings.models.value == "off" else load_account_project(self._settings)
        )

    def _set_outcome(self, outcome: str, **more: Any) -> None:
        """Set the outcome, the time of the end and further fields of the publication."""
        ended = self._now()
        self._row = replace(
            self._row,
            outcome=outcome,
            ended_at=ended,
            seconds=(ended - self._row.started_at).total_seconds(),
            **more,
        )

"""Publication: copy, build, check, put in place; or the reason why not.

The work file is held for the copy alone. A crash at any point leaves the old file or the new one:
until the rename nothing of the draft is seen, and a draft that was left is overwritten. Two
publishers take turns, so that the later one publishes what is the later state.
"""

from __future__ import annotations

import hashlib
import hmac
import json
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
from connector.publishing.project import (
    BuildObserver,
    BuildResult,
    CheckResult,
    Project,
    project_files,
    shipped_folder,
)
from connector.settings.layers import SEEDS_FOLDER, refuse
from connector.settings.model import Settings
from connector.version import program_version
from connector.warehouse.duckdb_file import convert_errors, hold_lock, transaction
from connector.warehouse.runs import Publication, read_own_publication, write_publication
from connector.warehouse.warehouse import Warehouse
from connector.warehouse.work_file import (
    copy_work,
    record_publication,
    remove_draft,
    replace_published,
)

if TYPE_CHECKING:
    from connector.publishing.lakehouse_publication import LakePublication
    from connector.publishing.pseudonymize import Mask

# -- Lock ------------------------------------------------------------------------------------------
# One publisher at a time: a lock that the system takes back from a process that dies.
#
# *Instead of* a lease of the ledger: no request is sent while the file is published, so that no one
# needs to know beforehand, and a publisher that was killed is out of the way at once.

LOCK_FILE = "publishing.lock"

WAIT_SECONDS = 900.0
"""For how long one publisher waits for another: longer than any build that is well."""


@contextmanager
def publication_lock(folder: Path, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the folder's exclusive lock for publications.

    Raises `WarehouseBusy` after `wait_seconds`, and another `WarehouseError` where the folder
    cannot be written to.
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
    """File that analysts see now, and its record.

    `built` is None where a draft was published that had been prepared before, and where nothing was
    published since nothing had changed. `shared` is what became of it in the lakehouse, None where
    there is none.
    """

    file: Path
    publication: Publication
    built: BuildResult | None = None
    shared: LakePublication | None = None

    @property
    def is_unchanged(self) -> bool:
        """Whether the file was left as it was, since it shows everything already."""
        return self.publication.outcome == "unchanged"

    @property
    def unshared(self) -> ConnectorError | None:
        """Error that kept the file from the lakehouse; None if there was none."""
        return None if self.shared is None else self.shared.error

    def as_json(self) -> dict[str, Any]:
        """The publication as `--json` prints it; times as ISO 8601."""
        row = self.publication
        shared = {} if self.shared is None else {"lakehouse": self.shared.as_json()}
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
            **shared,
        }


@dataclass(frozen=True, slots=True)
class PreparedDraft:
    """Draft that waits to be put in place by `publish(prepared=publication)`.

    It is refused then, where `built.blocking` is not empty.
    """

    publication: str
    file: Path
    built: BuildResult


def _now() -> datetime:
    return datetime.now(UTC)


def publish(
    settings: Settings,
    *,
    select: Sequence[str] = (),
    prepared: str | None = None,
    keeps_draft: bool = False,
    if_changed: bool = False,
    run_id: str | None = None,
    watch: BuildObserver | None = None,
    shares: bool = True,
    now: Callable[[], datetime] = _now,
) -> PublishResult:
    """Make the loaded rows visible to analysts, with its models, at once.

    With `if_changed` nothing is published if the published file would show the same records and
    figures: after a pull that changed nothing, by the same version, models, seeds and settings, on
    the same day. The outcome is then `unchanged`.

    Models that `select` does not mean are copied from the published file. They are built as well if
    personal columns are dropped or hashed, or if another process holds the published file.
    `prepared` names a draft to put in place as it is; where it is gone, or something later was
    published since, the publication is made from the beginning. A draft that is refused is removed,
    unless it `keeps_draft`. `run_id` is the run that publishes. What was published goes to the
    lakehouse as well, where there is one and it `shares`; what keeps it from that is in the result,
    and the file stays published.

    Raises `PublishingRefused` where checks that block have failed, a `ModelError` where a model
    cannot be built, and a `WarehouseError` where a file cannot be written; the published file is
    then as it was, and the reason is in `sync.publications`.
    """
    _check_landed(settings)
    with publication_lock(settings.folder):
        work = _PublicationRun(settings, run_id, watch, now)
        with work.recorded(keeps_draft=keeps_draft):
            built = None
            if prepared is None or not work.takes_up(prepared):
                built = work.draw_up(select, if_changed=if_changed)
            done = work.leave_in_place() if work.is_unchanged else work.put_in_place(built)
    # Others may publish in the meantime: the file is shared as it is when its turn has come.
    if not shares or settings.lakehouse.value is None:
        return done
    from connector.publishing.lakehouse_publication import publish_and_record  # noqa: PLC0415 # an extra

    return replace(done, shared=publish_and_record(settings, now))


def prepare_draft(
    settings: Settings,
    *,
    select: Sequence[str] = (),
    run_id: str | None = None,
    watch: BuildObserver | None = None,
    now: Callable[[], datetime] = _now,
) -> PreparedDraft:
    """Draw up a draft, build and check its models, and leave it to be published.

    Raises a `ModelError` or a `WarehouseError`; a check that fails is told and raises nothing.
    """
    _check_landed(settings)
    with publication_lock(settings.folder):
        work = _PublicationRun(settings, run_id, watch, now)
        with work.recorded(keeps_draft=True):
            built = work.draw_up(select, ends=False)
            assert built is not None, "a draft is always built"
            return work.leave(built)


def project_of(settings: Settings) -> Project:
    """The models, with the account's own seeds over those that are shipped, and its own models.

    Raises a `ModelError`, and `SettingsError` where the folder of own models is not a folder.
    """
    from connector.publishing.project_loader import OwnModels, load_project  # noqa: PLC0415 # a build

    seeds, own = settings.folder / SEEDS_FOLDER, settings.models_folder
    if own.value is not None and not own.value.is_dir():
        refuse("models_folder", own.value, "a folder that exists", own.origin)
    return load_project(
        seeds=seeds if seeds.is_dir() else None,
        own=OwnModels(own.value, settings.models_schema.value) if own.value else None,
    )


def _with_checks(row: Publication, built: BuildResult, project: Project) -> Publication:
    """Return the row with the results of the checks; seeds not begun are no warning."""
    from connector.publishing.seeds import AUDITS, is_begun  # noqa: PLC0415 # a build

    unfilled = {
        AUDITS[seed]: seed
        for seed in AUDITS
        if seed in project.seeds and not is_begun(project.seeds[seed])
    }
    waiting = [each for each in built.warnings if each.name in unfilled]
    return replace(
        _with_failed(
            row, [each for each in (*built.blocking, *built.warnings) if each not in waiting]
        ),
        models=len(built.models),
        checks=len(built.checks),
        unfilled_seeds=tuple(unfilled[each.name] for each in waiting),
        unfilled_rows=tuple(each.failing for each in waiting),
    )


def _with_failed(row: Publication, failed: Sequence[CheckResult]) -> Publication:
    return replace(
        row,
        failed_checks=tuple(each.name for each in failed),
        failed_rows=tuple(each.failing for each in failed),
        failed_samples=tuple(each.examples[0] if each.examples else None for each in failed),
    )


def fingerprint_of(settings: Settings) -> str:
    """Return the fingerprint of everything besides the records that a published file depends on.

    These are the version, the files of models and seeds, and the settings. The key that personal
    fields are hashed with enters by a hash that does not reveal it.
    """
    key = settings.hash_key()
    names = ("models", "models_schema", "publish_personal", "publish_without", "time_zone")
    shown = [program_version(), duckdb.__version__, *(getattr(settings, n).value for n in names)]
    if key is not None:
        shown.append(
            hmac.new(key.get_secret_value().encode(), b"publication", "sha256").hexdigest()
        )
    digest = hashlib.sha256(json.dumps(shown).encode())
    if settings.models.value == "on":
        folders = (shipped_folder(), settings.folder / SEEDS_FOLDER, settings.models_folder.value)
        for each in (f for f in folders if f is not None):
            for path in project_files(each):
                # The build says what is wrong with a file that cannot be read.
                with suppress(OSError):
                    content = hashlib.sha256(path.read_bytes()).hexdigest()
                    digest.update(f"{path.relative_to(each)} {content}\n".encode())
    return digest.hexdigest()


def _check_landed(settings: Settings) -> None:
    if not Warehouse(settings.folder).exists:
        raise WarehouseError(
            f"no records are loaded in {settings.folder}",
            action="Run 'connector pull' first, or check CONNECTOR_DATA_DIR.",
        )


def _mask_of(settings: Settings) -> Mask | None:
    """The mask that the settings ask for. Raises `SettingsError` without a hash key."""
    personal, without = settings.publish_personal.value, settings.publish_without.value
    if personal == "keep" and not without:
        return None
    from connector.publishing.pseudonymize import Mask  # noqa: PLC0415 # a pull without a mask

    return Mask(personal, settings.hash_key(), without)


class _PublicationRun:
    """One publication under way, alone in its folder."""

    def __init__(
        self,
        settings: Settings,
        run_id: str | None,
        watch: BuildObserver | None,
        now: Callable[[], datetime],
    ) -> None:
        warehouse = Warehouse(settings.folder)
        self._settings, self._watch, self._now = settings, watch, now
        self._mask = _mask_of(settings)
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
    def recorded(self, *, keeps_draft: bool) -> Iterator[None]:
        """Record what goes wrong, where that can be done, and leave no draft behind."""
        try:
            yield
        except BaseException as error:
            # A draft that is not whole is of no use to anybody.
            if not (keeps_draft and isinstance(error, PublishingRefused)):
                with suppress(WarehouseError):
                    remove_draft(self._draft)
            with suppress(WarehouseError):
                remove_draft(self._masked)
                if isinstance(error, ConnectorError):
                    outcome = "refused" if isinstance(error, PublishingRefused) else "failed"
                    self._end(outcome, error_code=error.code, message=str(error))
                    record_publication(self._work, self._row)
            raise

    @property
    def is_unchanged(self) -> bool:
        """Whether the published file shows everything already."""
        return self._row.outcome == "unchanged"

    def draw_up(
        self, select: Sequence[str], *, ends: bool = True, if_changed: bool = False
    ) -> BuildResult | None:
        """Copy the work file, and build and check the models in the copy.

        The draft says of itself that it is published, if that `ends` here and nothing refuses it.
        None `if_changed` and nothing has changed.
        """
        remove_draft(self._draft)
        remove_draft(self._masked)
        self._check_left_out()
        is_plain = self._settings.models.value == "off"
        if is_plain and self._mask is None:
            # Nothing can refuse it and nothing is to be added: its record is written beforehand.
            self._end("published")
        self._row = copy_work(
            self._work,
            self._draft,
            self._row,
            self._target,
            made_with=fingerprint_of(self._settings),
            if_changed=if_changed,
        )
        if self.is_unchanged:
            return None
        if is_plain:
            return BuildResult((), ())
        # A pull that changed nothing builds nothing.
        from connector.publishing.build import build  # noqa: PLC0415
        from connector.publishing.custom_fields import make_extra_views  # noqa: PLC0415

        earlier = self._earlier(select)
        if earlier is not None:
            # Models that are copied may be of other records than those that are built.
            self._row = replace(self._row, fingerprint=None)

        project = self._project
        assert project is not None

        def finish(connection: duckdb.DuckDBPyConnection, built: BuildResult) -> None:
            make_extra_views(connection)
            self._row = _with_checks(self._row, built, project)
            if ends and not built.blocking:
                self._end("published")
                with transaction(connection):
                    write_publication(connection, self._row)

        return build(
            self._draft,
            project,
            select=select if earlier else (),
            earlier=earlier,
            finish=finish,
            watch=self._watch,
        )

    def _earlier(self, select: Sequence[str]) -> Path | None:
        """Return the published file if models that are not selected may be copied from it.

        They may not where this file or that one has personal columns dropped or hashed.
        """
        if not select:
            return None
        shown = read_own_publication(self._target)
        is_plain = shown is not None and shown.personal == self._row.personal == "keep"
        return self._target if is_plain else None

    def takes_up(self, prepared: str) -> bool:
        """Take up a draft that was left, if nothing later was published.

        Raises `PublishingRefused` where its checks had failed.
        """
        row, shown = read_own_publication(self._draft), read_own_publication(self._target)
        if row is None or row.publication != prepared or row.outcome not in ("built", "refused"):
            return False
        if shown is not None and shown.started_at > row.started_at:
            return False
        self._row = replace(
            row,
            personal=self._row.personal,
            left_out=self._row.left_out,
            error_code=None,
            message=None,
        )
        if row.outcome == "refused":
            raise PublishingRefused([(name, None) for name in row.failed_checks])
        return True

    def leave(self, built: BuildResult) -> PreparedDraft:
        """Leave the draft, with what came of its checks written down in it."""
        row = self._row
        if built.blocking:
            refusal = PublishingRefused([(each.name, each.failing) for each in built.blocking])
            row = _with_failed(replace(row, outcome="refused"), built.blocking)
            row = replace(row, error_code=refusal.code, message=str(refusal))
            # Whether or not anybody goes on with the draft, it is known why there is no new file.
            record_publication(self._work, row)
        else:
            row = replace(row, outcome="built")
        record_publication(self._draft, row)
        return PreparedDraft(row.publication, self._draft, built)

    def put_in_place(self, built: BuildResult | None) -> PublishResult:
        """Refuse the draft, or mask it and make it the published file."""
        if built is not None and built.blocking:
            raise PublishingRefused([(each.name, each.failing) for each in built.blocking])
        if self._row.outcome != "published":
            self._end("published")
            record_publication(self._draft, self._row)
        finished = self._draft
        if self._mask is not None:
            from connector.publishing.pseudonymize import write_masked  # noqa: PLC0415

            write_masked(self._draft, self._masked, self._mask, self._project)
            remove_draft(self._draft)
            finished = self._masked
        size = replace_published(finished, self._target)
        self._end("published", bytes=size)
        # It is published, recorded or not: the next publication finds the record in the file.
        with suppress(WarehouseError):
            record_publication(self._work, self._row)
        return PublishResult(self._target, self._row, built)

    def leave_in_place(self) -> PublishResult:
        """Record that there was nothing to publish."""
        self._end("unchanged")
        record_publication(self._work, self._row)
        return PublishResult(self._target, self._row)

    def _check_left_out(self) -> None:
        """Raise an error before the build if columns cannot be left out."""
        if self._mask is not None:
            from connector.publishing.pseudonymize import left_out_columns  # noqa: PLC0415

            left_out_columns(self._mask.without, self._project)

    @cached_property
    def _project(self) -> Project | None:
        return None if self._settings.models.value == "off" else project_of(self._settings)

    def _end(self, outcome: str, **more: Any) -> None:
        ended = self._now()
        self._row = replace(
            self._row,
            outcome=outcome,
            ended_at=ended,
            seconds=(ended - self._row.started_at).total_seconds(),
            **more,
        )

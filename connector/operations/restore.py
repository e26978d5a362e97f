"""Restoring an account's folder from a backup.

The backup is unpacked and verified before any file of the folder changes. Existing files are moved
aside, not deleted. The newer ledger is used, because it contains the pushes, requests and erasures
since. The lists of erased people are merged, and these people are erased again before publishing.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.atomic_files import sync_folder
from connector.errors import (
    BackupError,
    ConnectorError,
    LedgerError,
    Misused,
    NotAWarehouse,
    file_error,
)
from connector.ledger.erasures import Backups, Erasures, Restore
from connector.ledger.ledger import LEDGER_FILE, Ledger
from connector.ledger.ledger_schema import LEDGER_VERSION
from connector.ledger.person import KEY_FILE, read_suppression_key
from connector.ledger.quota import format_moment
from connector.ledger.receipts import ListedHash
from connector.ledger.sqlite_file import (
    check_ledger,
    delete_leases,
    includes_copy,
    includes_pushes_and_erasures,
)
from connector.log import compact_timestamp, new_id
from connector.operations.backup_file import Manifest, read_manifest, unpack
from connector.privacy.erase import erase_all, hold_pull_and_push_leases
from connector.privacy.person_locations import find_returned_people
from connector.privacy.receipt import Receipt
from connector.publishing.publication import publication_lock as alone_publishing
from connector.publishing.publication import publish
from connector.report.page import REPORT_FILE
from connector.settings.layers import (
    ASIDE,
    INBOX_FOLDER,
    MAPS_FOLDER,
    RECEIPTS_FOLDER,
    SEEDS_FOLDER,
    WAITED,
)
from connector.settings.model import Settings
from connector.spreadsheet.table import BOOK_SUFFIXES, TEXT_SUFFIXES
from connector.warehouse.duckdb_file import LOG_ENDINGS, make_folder
from connector.warehouse.runs import read_own_publication
from connector.warehouse.schema import SCHEMA_VERSION
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse
from connector.warehouse.work_file import replace_published

STAGING = ".restoring"
"""Folder in the account's folder to which a backup is unpacked."""

LEDGER_LOGS = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps next to a ledger."""


def leftover_folders(folder: Path) -> tuple[Path, ...]:
    """Return folders with files that restores replaced. Erasures do not search them."""
    return tuple(sorted((*folder.glob(f"{ASIDE}*"), *folder.glob(STAGING))))


def create_aside_folder(folder: Path, stamp: str) -> Path:
    """Create a new folder for replaced files in `folder`, named after the time `stamp`."""
    number = 1
    while (place := folder / f"{ASIDE}{stamp}-{number}").exists():
        number += 1
    make_folder(place)
    return place


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    """Options of a restore.

    Args:
        replaces: Move existing files aside.
        takes_ledger: Use the ledger of the backup even if the existing ledger is newer.
        receipts: Folder with more receipts of erasures, kept elsewhere.
    """

    replaces: bool = False
    takes_ledger: bool = False
    receipts: Path | None = None


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Result of a restore.

    Args:
        manifest: Contents of the backup.
        keeps_ledger: True if the existing ledger was kept; otherwise the backup's replaced it.
        lost: Sentences on data that is lost.
        aside: Folder with the files that were replaced.
        receipts: Receipts of the people who were erased again.
        error: Reason why the restored files are not published yet.
        waiting: Files that were in the inbox when the backup was made.
    """

    manifest: Manifest
    keeps_ledger: bool
    lost: tuple[str, ...]
    aside: Path | None
    receipts: tuple[Receipt, ...]
    error: ConnectorError | None
    waiting: tuple[Path, ...]

    @property
    def exit_status(self) -> int:
        """Return 0 if done, 1 if not published, 3 if a receipt or an inbox file needs a review."""
        if self.error is not None:
            return 1
        return 0 if all(each.is_clean for each in self.receipts) and not self.waiting else 3

    def as_json(self) -> dict[str, Any]:
        """Return the result as `--json` prints it."""
        return {
            "made_at": self.manifest.made_at.isoformat(),
            "version": self.manifest.version,
            "files": len(self.manifest.entries),
            "ledger": "kept" if self.keeps_ledger else "restored",
            "lost": list(self.lost),
            "aside": None if self.aside is None else str(self.aside),
            "erased_again": [each.as_json() for each in self.receipts],
            "waiting": [str(each) for each in self.waiting],
            "error": None if self.error is None else self.error.as_json(),
        }


def restore(
    settings: Settings,
    source: Path,
    options: RestoreOptions = RestoreOptions(),  # it cannot be changed
) -> RestoreResult:
    """Restore the account's folder as it was when the backup was made.

    Raises:
        BackupError: The backup is not complete.
        BackupError: The backup belongs to another account, or both ledgers have erasures or pushes
            that the other one lacks.
        NotAWarehouse: A newer version made the backup.
        Misused: The folder has files, and `replaces` is false.
        LeaseHeld: A pull or a push is running.
        WarehouseError: A file cannot be read or written. Nothing was changed, as with all others.
    """
    manifest = read_manifest(source)
    _check_compatible(settings, manifest, source)
    folder = settings.folder
    is_here = Warehouse(folder).exists or (folder / LEDGER_FILE).exists()
    if is_here and not options.replaces:
        raise Misused(
            f"{folder} already contains the files of an account",
            action="Add --replace to move them aside, or choose an empty folder.",
        )
    make_folder(folder)
    staging = folder / STAGING
    try:
        shutil.rmtree(staging, ignore_errors=True)
        make_folder(staging)
        unpack(source, staging)
        return _restore_files(settings, manifest, options, staging)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check_compatible(settings: Settings, manifest: Manifest, source: Path) -> None:
    """Raise an error for a backup of another account or of a newer version."""
    if manifest.account != settings.account.value:
        here = settings.account.value or "the unnamed account"
        whose = manifest.account or "the unnamed account"
        choice = (
            f"Choose --account {manifest.account}" if manifest.account else "Leave out --account"
        )
        raise BackupError(
            f"{source} is a backup of {whose}, not of {here}",
            action=f"{choice}, or use a backup of {here}.",
        )
    if (manifest.work or 0) > SCHEMA_VERSION or (manifest.ledger or 0) > LEDGER_VERSION:
        raise NotAWarehouse(
            f"{source} was written by a newer version of the connector, {manifest.version}",
            action="Install that version, and restore with it.",
        )


def _restore_files(
    settings: Settings, manifest: Manifest, options: RestoreOptions, staging: Path
) -> RestoreResult:
    """Move the unpacked files to the account's folder, repeat later erasures, and publish."""
    folder, at = settings.folder, datetime.now(UTC)
    run_id, live = new_id(at), folder / LEDGER_FILE
    is_readable = _is_readable(live)
    keeps = is_readable and _should_keep_ledger(
        live, staging / LEDGER_FILE, forces_backup=options.takes_ledger
    )
    placing = FileSwap(folder, staging, at)
    with ExitStack() as resources:

        def open_ledger() -> Ledger:
            """Open the existing ledger, and block pulls and pushes."""
            ledger = resources.enter_context(Ledger(folder))
            leases = hold_pull_and_push_leases(ledger, run_id, "restore", lambda: datetime.now(UTC))
            resources.enter_context(leases)
            return ledger

        erased, key = tuple[tuple[ListedHash, str], ...](), None
        if is_readable:
            ledger = open_ledger()
            erased, key = tuple(Erasures(ledger).listed_hashes()), read_suppression_key(folder)
        if not keeps:
            resources.close()
        with alone_publishing(folder):
            waiting = placing.swap(keeps_ledger=keeps)
        if not keeps:
            ledger = open_ledger()
        lost, receipts = _describe_lost(manifest.made_at, keeps_ledger=keeps), tuple[Receipt, ...]()
        error: ConnectorError | None = None
        try:
            _record_restore(ledger, manifest, Warehouse(folder), at, is_ledger_older=not keeps)
            erasures = Erasures(ledger)
            added = erasures.restore_hashes_from_receipts(
                *([options.receipts] if options.receipts else [])
            )
            if not is_readable:
                lost.append(
                    f"Found erasure receipts newer than the backup: {added} hashes were added to"
                    " the list of erasures. If receipts are missing in receipts/, erase those"
                    " people again."
                )
            elif erased and key != read_suppression_key(folder):
                lost.append(
                    "The list of erasures was made with another suppression.key, so erased people"
                    " are not recognized. Erase these people again."
                )
            else:
                erasures.restore_hashes(erased, at)
            if returned := find_returned_people(settings):
                # The backup's published file contains these people, so it is built again.
                shutil.rmtree(staging, ignore_errors=True)
                erasure = erase_all(settings, returned, were_erased=True, holds_leases=True)
                receipts = erasure.receipts
            _publish_restored(settings, staging / PUBLISHED_FILE, is_changed=bool(returned))
        except ConnectorError as caught:
            error = caught
        return RestoreResult(manifest, keeps, tuple(lost), placing.aside, receipts, error, waiting)


def _record_restore(
    ledger: Ledger, manifest: Manifest, warehouse: Warehouse, at: datetime, *, is_ledger_older: bool
) -> None:
    """Add missing tables to the work file, and record the restore in the ledger."""
    proven: dict[str, datetime | None] = {}
    if warehouse.exists:
        warehouse.prepare()
        proven = {each.resource: each.proven_at for each in warehouse.status()}
    Backups(ledger).record_restore(Restore(at, manifest.made_at, is_ledger_older, proven))


def _publish_restored(settings: Settings, staged: Path, *, is_changed: bool) -> None:
    """Publish the backup's file; build it again if people were erased or masks changed."""
    found = None if is_changed else read_own_publication(staged)
    wanted = settings.publish_personal.value, settings.publish_without.value
    if not is_changed and (found is None or (found.personal, found.left_out) == wanted):
        if staged.exists():
            replace_published(staged, settings.folder / PUBLISHED_FILE)
    elif Warehouse(settings.folder).exists:
        publish(settings)


# -- Ledger ----------------------------------------------------------------------------------------


def _is_readable(ledger: Path) -> bool:
    """Return True if the ledger exists and is not damaged."""
    if not ledger.exists():
        return False
    try:
        check_ledger(ledger)
    except LedgerError:
        return False
    return True


def _should_keep_ledger(existing: Path, in_backup: Path, *, forces_backup: bool) -> bool:
    """Return True to keep the existing ledger: the backup's ledger has nothing that it lacks.

    `forces_backup` uses the backup's ledger anyway, if the backup has one.

    Raises:
        BackupError: Each ledger has pushes or erasures that the other one lacks.
    """
    if not in_backup.exists() or (not forces_backup and includes_copy(existing, in_backup)):
        return True
    if forces_backup or includes_pushes_and_erasures(in_backup, existing):
        return False
    raise BackupError(
        f"{existing} is not the ledger of this backup, and contains pushes or erasures that the"
        " backup does not have",
        action="Check that the backup and the folder are the right ones. To replace the ledger by"
        " the one of the backup, add --with-ledger.",
    )


def _describe_lost(made_at: datetime, *, keeps_ledger: bool) -> list[str]:
    """Return sentences on data that a restore loses."""
    when = format_moment(made_at)
    history = (
        f"Changes between {when} and now may be missing in the history. The next pull reads the"
        " current records."
    )
    if keeps_ledger:
        return [history]
    return [
        history,
        f"The journal does not contain pushes after {when}. Pull before you push again: rows"
        " that were sent after the backup are then reported as duplicates.",
        f"Requests after {when} are not counted. Lower monthly_requests accordingly until the"
        " billing cycle ends.",
    ]


# -- Files -----------------------------------------------------------------------------------------


class FileSwap:
    """Replaces the files of an account's folder by unpacked files; old files are moved aside."""

    def __init__(self, folder: Path, staging: Path, at: datetime) -> None:
        self._folder, self._staging, self._stamp = folder, staging, compact_timestamp(at)
        self.aside: Path | None = None

    def swap(self, *, keeps_ledger: bool) -> tuple[Path, ...]:
        """Replace all files but the published one. Return inbox tables that were moved aside.

        Raises:
            WarehouseError: A file cannot be moved. Files that were moved aside stay there.
        """
        try:
            # An old log would be applied to the new file.
            self._replace_file(WORK_FILE, *LOG_ENDINGS)
            self._replace_file(SEEDS_FOLDER)
            self._replace_file(REPORT_FILE)
            if not keeps_ledger:
                if (self._staging / LEDGER_FILE).exists():
                    delete_leases(self._staging / LEDGER_FILE)
                self._replace_file(LEDGER_FILE, *LEDGER_LOGS)
            # The key belongs to the list of erased people in the ledger.
            has_key = (self._folder / KEY_FILE).exists()
            if (self._staging / KEY_FILE).exists() and not (has_key and keeps_ledger):
                self._replace_file(KEY_FILE)
            for name in (RECEIPTS_FOLDER, MAPS_FOLDER):
                self._add_missing_files(name)
            waiting = self._restore_inbox()
            sync_folder(self._folder)
        except OSError as error:
            raise file_error(self._folder, error) from error
        return waiting

    def _replace_file(self, name: str, *endings: str) -> None:
        """Move the file and its logs aside, then the backup's file to the folder."""
        for each in (name, *(name + ending for ending in endings)):
            if (self._folder / each).exists():
                (self._folder / each).rename(self._make_aside() / each)
        if (self._staging / name).exists():
            (self._staging / name).rename(self._folder / name)

    def _make_aside(self) -> Path:
        """Return the folder for replaced files, which is created when it is first needed."""
        self.aside = self.aside or create_aside_folder(self._folder, self._stamp)
        return self.aside

    def _add_missing_files(self, name: str) -> None:
        """Move the backup's files to this folder, except for files that exist."""
        target = self._folder / name
        for each in sorted((self._staging / name).glob("*")):
            make_folder(target)
            if not (target / each.name).exists():
                each.rename(target / each.name)

    def _restore_inbox(self) -> tuple[Path, ...]:
        """Restore the inbox if there is none. Its tables are moved aside and returned.

        They may have been pushed since, so no run may push them automatically.
        """
        staged, target = self._staging / INBOX_FOLDER, self._folder / INBOX_FOLDER
        if not staged.is_dir() or target.exists():
            return ()
        moved = []
        for path in sorted(staged.glob("*/*")):
            if path.is_file() and path.suffix.lower() in (*TEXT_SUFFIXES, *BOOK_SUFFIXES):
                place = self._folder / f"{WAITED}{self._stamp}" / path.parent.name
                make_folder(place)
                moved.append(path.rename(place / path.name))
        shutil.move(staged, target)
        return tuple(moved)

"""Backups: copy all files, pack them, verify the result, then give it its final name.

Only files of an allow list are included. The file gets its name when it is complete. After a crash,
the next backup removes the remaining temporary folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.atomic_files import FILE_MODE, create_private_file, sync_folder
from connector.errors import BackupError, ConnectorError, Misused, SettingsError, file_error
from connector.ledger.erasures import Backup, Backups
from connector.ledger.ledger import LEDGER_FILE, Ledger
from connector.ledger.person import KEY_FILE, read_or_create_key
from connector.ledger.sqlite_file import copy_ledger
from connector.operations.backup_file import (
    MANIFEST,
    BackupEntry,
    Manifest,
    backup_prefix,
    check_backup,
    is_backup_of,
)
from connector.pulls.workspace import check_files
from connector.report.page import REPORT_FILE
from connector.settings.layers import INBOX_FOLDER, MAPS_FOLDER, RECEIPTS_FOLDER, SEEDS_FOLDER
from connector.settings.model import Settings
from connector.version import program_version
from connector.warehouse.duckdb_file import convert_errors, make_folder
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse
from connector.warehouse.work_file import copy_work_file

FOLDERS = (SEEDS_FOLDER, RECEIPTS_FOLDER, INBOX_FOLDER, MAPS_FOLDER)
"""Folders in a backup, with all plain files below them."""

FILES = (PUBLISHED_FILE, REPORT_FILE, KEY_FILE)
"""Files in a backup in addition to the databases. `KEY_FILE` is no API key: without it, erased
people are not recognized.
"""

_SECRET_BYTES_MAX = 8192
"""Maximum size of a file that is searched for a secret of the settings."""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """New backup, and older backups that were removed because of `keep`."""

    file: Path
    manifest: Manifest
    removed: tuple[Path, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the result as `--json` prints it."""
        return {
            "file": str(self.file),
            "account": self.manifest.account,
            "made_at": self.manifest.made_at.isoformat(),
            "files": len(self.manifest.entries),
            "bytes": self.file.stat().st_size,
            "removed": [str(each) for each in self.removed],
        }


def make_backup(
    settings: Settings,
    to: Path,
    *,
    keep: int | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> BackupResult:
    """Back up the account's folder to a new file in the folder `to`, which is created if missing.

    With `keep`, remove older backups of the account in `to`, so that this number remains. A pull or
    a push may run at the same time.

    Raises:
        Misused: `to` is in the folder that is backed up.
        SettingsError: There is nothing to back up.
        BackupError: A backup of the same second exists.
        WarehouseError: A file cannot be used.
    """
    if keep is not None and keep < 1:
        raise Misused(f"--keep is {keep}", action="Give 1 or more.")
    folder, to = settings.folder, to.absolute()
    if to.resolve().is_relative_to(folder.resolve()):
        raise Misused(
            f"{to} is inside the folder that is backed up",
            action="Choose a folder elsewhere, if possible on another disk.",
        )
    # A backup without the journal of pushes must not replace older, complete backups.
    check_files(settings)
    backup = Backup(now())
    _record(folder, backup)
    with backup_lock(folder):
        try:
            make_folder(to)
            result = _write_backup(settings, to, backup.began_at.replace(microsecond=0))
        except ConnectorError as error:
            _record(folder, replace(backup, ended_at=now(), message=str(error)))
            raise
    size = result.file.stat().st_size
    _record(folder, replace(backup, ended_at=now(), file=result.file, bytes=size))
    removed = _remove_old_backups(to, settings.account.value, keep) if keep is not None else ()
    return BackupResult(result.file, result.manifest, removed)


BACKUP_LOCK = "backup.lock"


@contextmanager
def backup_lock(folder: Path) -> Iterator[None]:
    """Hold a lock that the system releases when the process ends, however it ends."""
    with open(folder / BACKUP_LOCK, "w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def is_backup_running(folder: Path) -> bool:
    """Return True if a process is making a backup of the folder."""
    try:
        with open(folder / BACKUP_LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _record(folder: Path, backup: Backup) -> None:
    """Record a backup in the ledger, if there is one."""
    with Ledger(folder) as ledger:
        if ledger.exists:
            Backups(ledger).record_backup(backup)


def _write_backup(settings: Settings, to: Path, made_at: datetime) -> BackupResult:
    """Write a verified backup with this time in its name.

    Raises `BackupError` if the file exists, and `WarehouseError`.
    """
    staging = to / f".{backup_prefix(settings.account.value)}{os.getpid()}"
    partial = staging.with_suffix(".partial")
    _delete_temporary_files(staging, partial)
    try:
        make_folder(staging)
        manifest = _stage_files(settings, staging, made_at)
        target = to / manifest.file_name()
        if target.exists():
            raise BackupError(f"{target} already exists", action="Run the command again.")
        _pack(staging, partial, manifest)
        check_backup(partial)
        partial.rename(target)
        sync_folder(to)
    except OSError as error:
        raise file_error(to, error) from error
    finally:
        _delete_temporary_files(staging, partial)
    return BackupResult(target, manifest)


def _stage_files(settings: Settings, staging: Path, made_at: datetime) -> Manifest:
    """Copy all files of the account's backup to the folder `staging`.

    The ledger is copied after the work file. A ledger that is newer than the work file can also
    result from a crash, and the next run handles it. An older ledger would lack writes whose
    records are loaded.
    """
    folder = settings.folder
    warehouse, ledger_path = Warehouse(folder), folder / LEDGER_FILE
    if not warehouse.exists and not ledger_path.exists():
        raise SettingsError(
            f"no records are loaded in {folder}, so there is nothing to back up",
            action="Run 'connector pull' first, or check CONNECTOR_DATA_DIR.",
        )
    # Created now if there were no erasures, so that this backup can verify later receipts.
    read_or_create_key(folder)
    work = copy_work_file(warehouse.work, staging / WORK_FILE) if warehouse.exists else None
    ledger = copy_ledger(ledger_path, staging / LEDGER_FILE) if ledger_path.exists() else None
    secrets = tuple(each.encode() for each in settings.secrets())
    for source in _files_to_back_up(folder):
        with convert_errors(source):
            if not _contains_secret(source, secrets):
                _copy_file(source, staging / source.relative_to(folder))
    program = program_version()
    entries = tuple(_list_entries(staging))
    return Manifest(made_at, settings.account.value, program, work, ledger, entries)


def _files_to_back_up(folder: Path) -> Iterator[Path]:
    """Yield the regular files that belong to a backup, without following links."""
    for name in FILES:
        if (folder / name).is_file() and not (folder / name).is_symlink():
            yield folder / name
    for name in FOLDERS:
        top = folder / name
        if top.is_symlink():
            continue
        for place, folders, names in os.walk(top):
            folders.sort()
            yield from (
                path
                for path in (Path(place, each) for each in sorted(names))
                if path.is_file() and not path.is_symlink() and not path.name.startswith(".")
            )


def _contains_secret(path: Path, secrets: tuple[bytes, ...]) -> bool:
    """Return True if a small file contains a secret, for example a key file of the user."""
    if path.stat().st_size > _SECRET_BYTES_MAX:
        return False
    content = path.read_bytes()
    return any(each in content for each in secrets)


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file, and create the target's folder."""
    make_folder(target.parent)
    # A publication replaces the file, so this file can be read to its end.
    with source.open("rb") as read, create_private_file(target) as write:
        shutil.copyfileobj(read, write, 1024 * 1024)


def _list_entries(staging: Path) -> Iterator[BackupEntry]:
    """Yield the path, size and digest of each file in the folder."""
    for path in sorted(each for each in staging.rglob("*") if each.is_file()):
        with convert_errors(path), path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            name = path.relative_to(staging).as_posix()
            yield BackupEntry(name, path.stat().st_size, digest)


def _pack(staging: Path, target: Path, manifest: Manifest) -> None:
    """Write the manifest and the files to one tar file; each packed file is deleted."""
    with create_private_file(target) as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            content = manifest.as_bytes()
            tar.addfile(_tar_member(MANIFEST, len(content), manifest), io.BytesIO(content))
            for each in manifest.entries:
                path = staging / each.name
                with path.open("rb") as read:
                    tar.addfile(_tar_member(each.name, each.bytes, manifest), read)
                path.unlink()
        file.flush()
        os.fsync(file.fileno())


def _tar_member(name: str, size: int, manifest: Manifest) -> tarfile.TarInfo:
    """Return a tar header with the backup's time, readable only by the owner."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, FILE_MODE
    member.mtime = int(manifest.made_at.timestamp())
    return member


def _remove_old_backups(to: Path, account: str | None, keep: int) -> tuple[Path, ...]:
    """Remove all but the `keep` newest backups of the account, and return the removed files."""
    try:
        found = sorted(each for each in to.iterdir() if is_backup_of(each.name, account))
        for each in found[:-keep]:
            each.unlink(missing_ok=True)
    except OSError as error:
        raise file_error(to, error) from error
    return tuple(found[:-keep])


def _delete_temporary_files(staging: Path, partial: Path) -> None:
    """Delete the staging folder and the incomplete backup, if they exist."""
    shutil.rmtree(staging, ignore_errors=True)
    with suppress(OSError):
        partial.unlink(missing_ok=True)

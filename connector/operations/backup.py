"""Backup of an account's folder to one file, and its restore to an empty folder.

A backup is an uncompressed zip file with the account's files and a list of their SHA-256 sums. It
gets its name when it is complete and verified. A restore unpacks and verifies everything first. The
state moves to the folder last: without it every command refuses the folder, and the restore can be
repeated.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.atomic_files import create_private_file, sync_folder
from connector.errors import (
    CHOOSE_PATH,
    ConnectorError,
    Misused,
    SettingsError,
    convert_file_errors,
    file_error,
)
from connector.log import compact_timestamp
from connector.pulls.account import check_files
from connector.report.page import REPORT_FILE
from connector.settings import Settings
from connector.settings.folders import INBOX_FOLDER, MAPS_FOLDER, SEEDS_FOLDER, WAITED
from connector.spreadsheet.table import BOOK_SUFFIXES, TEXT_SUFFIXES
from connector.state import database as state
from connector.state.database import STATE_FILE, Database
from connector.state.lock import hold
from connector.state.runs import Backup, Restore, note_restore, put_backup
from connector.version import program_version
from connector.warehouse.file import make_folder
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse

FOLDERS = (SEEDS_FOLDER, INBOX_FOLDER, MAPS_FOLDER)
"""Folders in a backup, with all plain files below them."""

FILES = (PUBLISHED_FILE, REPORT_FILE)
"""Files in a backup in addition to the work file and the state."""

BACKUP = "backup"
"""What the holder of the account's lock does during a backup."""

STAGING = ".restoring"
"""Folder in the account's folder to which a backup is unpacked."""

FORMAT = 1
"""Version of the backup format."""

_MANIFEST = "manifest.json"
_DAMAGES = (zipfile.BadZipFile, EOFError, LookupError, RuntimeError, ValueError, struct.error)
"""Errors that `zipfile` raises for damaged files."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a backup. `files` has the SHA-256 of each file by its path in the folder."""

    made_at: datetime
    account: str | None
    version: str
    files: Mapping[str, str]
    format: int = FORMAT

    def as_json(self) -> dict[str, Any]:
        """Return the manifest as it is stored."""
        return {**asdict(self), "made_at": self.made_at.isoformat()}


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
            "files": len(self.manifest.files),
            "bytes": self.file.stat().st_size,
            "removed": [str(each) for each in self.removed],
        }


# -- Backup ----------------------------------------------------------------------------------------


def make_backup(
    settings: Settings,
    to: Path,
    *,
    keep: int | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> BackupResult:
    """Back up the account's folder to a new file in the folder `to`, which is created if missing.

    With `keep`, remove older backups of the account in `to`, so that this number remains.

    Raises:
        Misused: `to` is in the folder that is backed up.
        SettingsError: There is nothing to back up.
        ConnectorError: The written file is damaged.
        AccountBusy: Another process uses the account.
        WarehouseError: A file cannot be used.
    """
    folder, to = settings.folder, to.absolute()
    if to.resolve().is_relative_to(folder.resolve()):
        raise Misused(
            f"{to} is inside the folder that is backed up",
            action="Choose a folder elsewhere, if possible on another disk.",
        )
    if not Warehouse(folder).exists and not (folder / STATE_FILE).exists():
        raise SettingsError(
            f"no records are loaded in {folder}, so there is nothing to back up",
            action="Run 'connector pull' first, or check CONNECTOR_DATA_DIR.",
        )
    with hold(folder, BACKUP):
        # A backup without the journal of pushes must not replace older, complete backups.
        check_files(settings)
        backup = Backup(now())
        _record(folder, backup)
        try:
            result = _write_backup(settings, to, backup.began_at)
        except ConnectorError as error:
            _record(folder, replace(backup, ended_at=now(), message=str(error)))
            raise
        size = result.file.stat().st_size
        _record(folder, replace(backup, ended_at=now(), file=str(result.file), bytes=size))
    removed = find_backups(to, settings.account)[:-keep] if keep is not None else []
    for each in removed:
        each.unlink(missing_ok=True)
    return replace(result, removed=tuple(removed))


def _record(folder: Path, backup: Backup) -> None:
    """Record a backup in the state, if there is one."""
    with Database(folder) as database:
        if database.exists:
            put_backup(database, backup)


def _prefix(account: str | None) -> str:
    """Return the beginning of the names of an account's backups."""
    return f"connector-{account or 'unnamed'}-"


def find_backups(to: Path, account: str | None) -> list[Path]:
    """Return the account's backups in a folder, the oldest first. Raises a `WarehouseError`."""
    name = re.compile(rf"{re.escape(_prefix(account))}\d{{8}}T\d{{6}}\.\d{{6}}Z\.zip")
    try:
        return sorted(each for each in to.iterdir() if name.fullmatch(each.name))
    except OSError as error:
        raise file_error(to, error, CHOOSE_PATH) from error


def _write_backup(settings: Settings, to: Path, at: datetime) -> BackupResult:
    """Write a verified backup. The caller holds the account's lock."""
    name = f"{_prefix(settings.account)}{at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}.zip"
    # Remains of a backup that was killed have the same name.
    staging = to / f".{_prefix(settings.account)}partial"
    partial = staging.with_suffix(".zip")
    try:
        make_folder(to, CHOOSE_PATH)
        shutil.rmtree(staging, ignore_errors=True)
        partial.unlink(missing_ok=True)
        make_folder(staging)
        sources = _copy_databases(settings.folder, staging)
        sources |= {e.relative_to(settings.folder): e for e in _files_to_copy(settings.folder)}
        with create_private_file(partial) as file:
            with zipfile.ZipFile(file, "w", strict_timestamps=False) as archive:
                sums = {path.as_posix(): _add(archive, path, sources[path]) for path in sources}
                manifest = Manifest(at, settings.account, program_version(), sums)
                archive.writestr(_MANIFEST, json.dumps(manifest.as_json(), indent=2))
            file.flush()
            os.fsync(file.fileno())
        check_backup(partial)
        partial.rename(to / name)
        sync_folder(to)
    except OSError as error:
        raise file_error(to, error, CHOOSE_PATH) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return BackupResult(to / name, manifest)


def _copy_databases(folder: Path, staging: Path) -> dict[Path, Path]:
    """Copy the work file and the state, and return each copy by its path in a backup.

    The state is copied after the work file. A state that is newer than the work file can also
    result from a crash, and the next run handles it. An older state would lack writes whose
    records are loaded.
    """
    warehouse, copies = Warehouse(folder), dict[Path, Path]()
    if warehouse.exists:
        warehouse.copy_to(staging / WORK_FILE)
        copies[Path(WORK_FILE)] = staging / WORK_FILE
    if (folder / STATE_FILE).exists():
        state.copy(folder / STATE_FILE, staging / STATE_FILE)
        copies[Path(STATE_FILE)] = staging / STATE_FILE
    return copies


def _files_to_copy(folder: Path) -> Iterator[Path]:
    """Yield the regular files that belong to a backup, without following links."""
    for top in (folder / each for each in (*FILES, *FOLDERS)):
        for path in sorted(top.rglob("*")) if top.is_dir() and not top.is_symlink() else [top]:
            if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
                yield path


def _add(archive: zipfile.ZipFile, name: Path, source: Path) -> str:
    """Add a file to the archive, and return its SHA-256."""
    # A publication replaces the published file, so the opened one can be read to its end.
    with source.open("rb") as read:
        digest = hashlib.file_digest(read, "sha256").hexdigest()
        read.seek(0)
        with archive.open(str(name), "w", force_zip64=True) as write:
            shutil.copyfileobj(read, write, 2**20)
    return digest


# -- Reading ---------------------------------------------------------------------------------------


def newest_backup(source: Path, account: str | None) -> Path:
    """Return the account's newest backup in a folder; a file is returned unchanged.

    Raises `ConnectorError` if the folder has none, and `WarehouseError` if it cannot be read.
    """
    if not source.is_dir():
        return source
    found = find_backups(source, account)
    if not found:
        raise ConnectorError(
            f"{source} has no backup of {account or 'the unnamed account'}",
            action="Give the backup file, or the folder that 'connector backup' wrote to.",
            code="backup",
        )
    return found[-1]


def check_backup(path: Path, folder: Path | None = None) -> Manifest:
    """Verify the whole backup and return its manifest; write its files to `folder` if given.

    Raises `ConnectorError` if any part has changed, and a `WarehouseError` if it cannot be read.
    """
    try:
        source = path.open("rb")
    except OSError as error:
        raise ConnectorError(
            f"{path} cannot be read: {error.strerror}",
            action="Give the backup file, or the folder that 'connector backup' wrote to.",
            code="backup",
        ) from error
    with source, convert_file_errors(folder or path):
        try:
            with zipfile.ZipFile(source) as archive:
                manifest = _read_manifest(archive, path)
                if sorted(archive.namelist()) != sorted([_MANIFEST, *manifest.files]):
                    raise _damaged(path, "its files are not those of its list")
                for name, expected in manifest.files.items():
                    if _read_file(archive, name, folder) != expected:
                        raise _damaged(path, f"{name} was changed")
        except _DAMAGES:
            raise _damaged(path, "it is not a zip file, or a part is missing or changed") from None
    return manifest


def _read_file(archive: zipfile.ZipFile, name: str, folder: Path | None) -> str:
    """Return the SHA-256 of a file in the archive, and write it to `folder` if given."""
    digest = hashlib.sha256()
    with ExitStack() as stack:
        read, write = stack.enter_context(archive.open(name)), None
        if folder is not None:
            make_folder((folder / name).parent)
            write = stack.enter_context(create_private_file(folder / name))
        while piece := read.read(2**20):
            digest.update(piece)
            if write is not None:
                write.write(piece)
        if write is not None:
            write.flush()
            os.fsync(write.fileno())
    return digest.hexdigest()


def _read_manifest(archive: zipfile.ZipFile, path: Path) -> Manifest:
    """Read the manifest of a backup. Raises `ConnectorError`."""
    values = json.loads(archive.read(_MANIFEST))
    if values["format"] != FORMAT:
        raise ConnectorError(
            f"{path} was made by version {values['version']} of the connector",
            action="Install that version, and restore with it.",
            code="backup",
        )
    made_at, files = datetime.fromisoformat(values["made_at"]), values["files"]
    if any(each.startswith("/") or ".." in each.split("/") or "\\" in each for each in files):
        raise _damaged(path, "a file has an unsafe path")
    return Manifest(made_at, values["account"], values["version"], files)


def _damaged(path: Path, reason: str) -> ConnectorError:
    """Return the error for a backup that cannot be used."""
    return ConnectorError(f"{path} is damaged, or is not a backup: {reason}", code="backup_damaged")


# -- Restore ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Result of a restore.

    Attributes:
        manifest: Contents of the backup.
        waiting: Files that were in the inbox, and are no longer in it.
        purges: Number of later purges that the next purge repeats.
    """

    manifest: Manifest
    waiting: tuple[Path, ...]
    purges: int

    def as_json(self) -> dict[str, Any]:
        """Return the result as `--json` prints it."""
        return {
            "made_at": self.manifest.made_at.isoformat(),
            "version": self.manifest.version,
            "files": len(self.manifest.files),
            "waiting": [str(each) for each in self.waiting],
            "purges": self.purges,
        }


def restore(settings: Settings, source: Path, former: Path | None = None) -> RestoreResult:
    """Restore the account's folder, which must be empty, as it was when the backup was made.

    Purges that the state of the folder `former` records after the backup are left to the next
    purge, since a pull must find the deletions again.

    Raises:
        ConnectorError: The backup is damaged, or belongs to another account.
        Misused: The folder has files of an account.
        AccountBusy: Another process uses the account.
        WarehouseError: A file cannot be read or written, or is of a newer version. The restore can
            be repeated.
    """
    make_folder(settings.folder)
    with hold(settings.folder, "restore"):
        return _restore(settings, source, former)


def _restore(settings: Settings, source: Path, former: Path | None) -> RestoreResult:
    """Restore the folder, whose lock the caller holds."""
    folder, at = settings.folder, datetime.now(UTC)
    staging = folder / STAGING
    is_interrupted = staging.exists() and not (folder / STATE_FILE).exists()
    if (there := _account_files(folder)) and not is_interrupted:
        raise Misused(
            f"{folder} is not empty: it contains {', '.join(there)}",
            action="Move these files to another folder, or set CONNECTOR_DATA_DIR to a new folder.",
        )
    try:
        shutil.rmtree(staging, ignore_errors=True)
        make_folder(staging)
        manifest = check_backup(source, staging)
        _check_account(settings, manifest, source)
        waiting = _set_inbox_aside(staging, f"{WAITED}{compact_timestamp(at)}")
        purges = _later_purges(former, manifest.made_at) if former is not None else []
        _prepare_state(staging, manifest, source, at)
        with Database(staging) as database, database.transaction() as connection:
            connection.executemany("INSERT INTO purges (at, ids) VALUES (?, ?)", purges)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        if is_interrupted:
            # It marks the files of the earlier restore.
            make_folder(staging)
        raise
    with convert_file_errors(folder):
        for name in there:
            # Remains of the interrupted restore. A log would be applied to the restored file.
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        # The work file without a state refuses every command until the state is here, too.
        order = {WORK_FILE: 0, STATE_FILE: 2}
        for path in sorted(staging.iterdir(), key=lambda each: order.get(each.name, 1)):
            if path.name == STATE_FILE:
                sync_folder(folder)
            path.rename(folder / path.name)
        sync_folder(folder)
        staging.rmdir()
    return RestoreResult(manifest, tuple(folder / each for each in waiting), len(purges))


def _later_purges(former: Path, made_at: datetime) -> list[tuple[str, str]]:
    """Return time and ids of the purges in a former folder's state after the backup."""
    with Database(former) as database:
        if not database.exists:
            raise Misused(f"{former} has no {STATE_FILE}", action="Leave out --former.")
        found = database.rows("SELECT at, ids FROM purges WHERE at > ?", made_at)
        return [(each["at"].isoformat(), json.dumps(each["ids"])) for each in found]


def _account_files(folder: Path) -> list[str]:
    """Return the names in the folder that a restore would replace, and logs of databases."""
    own = (WORK_FILE, STATE_FILE, *FILES, *FOLDERS, WAITED)
    return sorted(each.name for each in folder.iterdir() if each.name.startswith(own))


def _check_account(settings: Settings, manifest: Manifest, source: Path) -> None:
    """Raise `ConnectorError` for a backup of another account, or one without a state."""
    here, whose = (each or "the unnamed account" for each in (settings.account, manifest.account))
    if here != whose:
        raise ConnectorError(
            f"{source} is a backup of {whose}, not of {here}",
            action=f"Choose the account with --account, or use a backup of {here}.",
            code="backup",
        )
    if STATE_FILE not in manifest.files:
        raise ConnectorError(
            f"{source} has no {STATE_FILE}", action="Use another backup.", code="backup"
        )


def _set_inbox_aside(staging: Path, name: str) -> list[Path]:
    """Move the tables in the inbox to another folder. They may have been pushed since, so no run
    may push them automatically.
    """
    moved = []
    for path in sorted((staging / INBOX_FOLDER).glob("*/*")):
        if path.is_file() and path.suffix.lower() in (*TEXT_SUFFIXES, *BOOK_SUFFIXES):
            place = Path(name) / path.parent.name / path.name
            make_folder((staging / place).parent)
            path.rename(staging / place)
            moved.append(place)
    return moved


def _prepare_state(staging: Path, manifest: Manifest, source: Path, at: datetime) -> None:
    """Record the restore, after which pushes wait for a pull. Refuses files of a newer version."""
    warehouse, proven = Warehouse(staging), dict[str, datetime | None]()
    if warehouse.exists:
        warehouse.prepare()
        proven = {each.resource: each.proven_at for each in warehouse.status()}
    with Database(staging) as database:
        # The copied state shows this backup as begun.
        size = source.stat().st_size
        put_backup(database, Backup(manifest.made_at, at, str(source.absolute()), size))
        note_restore(database, Restore(at, manifest.made_at, proven))

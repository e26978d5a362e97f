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
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from connector.atomic_files import FILE_MODE, create_private_file, sync_folder
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
from connector.state.runs import Backup, Restore, put_backup
from connector.version import program_version
from connector.warehouse.file import make_folder
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse

FOLDERS = (SEEDS_FOLDER, INBOX_FOLDER, MAPS_FOLDER)
"""Folders in a backup, with all plain files below them."""

COPIED = (PUBLISHED_FILE, REPORT_FILE, *FOLDERS)
"""Files and folders in a backup in addition to the work file and the state."""

BACKUP = "backup"
"""What the holder of the account's lock does during a backup."""

FORMAT = 1
"""Version of the backup format."""

_STAGING = ".restoring"
_MANIFEST = "manifest.json"
_GIVE_BACKUP = "Give the backup file, or the folder that 'connector backup' wrote to."
_DAMAGES = (zipfile.BadZipFile, struct.error, EOFError, LookupError, RuntimeError, TypeError)
"""Errors that `zipfile` raises for damaged files, in addition to a `ValueError`."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a backup. `files` has the SHA-256 of each file by its path in the folder."""

    made_at: str
    account: str | None
    version: str
    files: dict[str, str]
    format: int = FORMAT


# -- Backup ----------------------------------------------------------------------------------------


def make_backup(
    settings: Settings,
    to: Path,
    *,
    keep: int | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> tuple[Path, list[Path]]:
    """Back up the account's folder to a new file in the folder `to`, which is created if missing.

    With `keep`, remove older backups of the account in `to`, so that this number remains. Return
    the new backup, and the removed ones.

    Raises:
        Misused: `to` is in the folder that is backed up, or there is nothing to back up.
        ConnectorError: A file is damaged or cannot be used, or another process uses the account.
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
            made = _write_backup(settings, to, backup.began_at)
        except ConnectorError as error:
            _record(folder, replace(backup, ended_at=now(), message=str(error)))
            raise
        size = made.stat().st_size
        _record(folder, replace(backup, ended_at=now(), file=str(made), bytes=size))
    removed = find_backups(to, settings.account)[:-keep] if keep is not None else []
    for each in removed:
        each.unlink(missing_ok=True)
    return made, removed


def _record(folder: Path, backup: Backup) -> None:
    with Database(folder) as database:
        if database.exists:
            put_backup(database, backup)


def name_account(account: str | None) -> str:
    """Return the account's name for a sentence."""
    return account or "the unnamed account"


def _prefix(account: str | None) -> str:
    return f"connector-{account or 'unnamed'}-"


def find_backups(to: Path, account: str | None) -> list[Path]:
    """Return the account's backups in a folder, the oldest first. Raises a `WarehouseError`."""
    name = re.compile(rf"{re.escape(_prefix(account))}\d{{8}}T\d{{6}}\.\d{{6}}Z\.zip")
    with convert_file_errors(to):
        return sorted(each for each in to.iterdir() if name.fullmatch(each.name))


def _write_backup(settings: Settings, to: Path, at: datetime) -> Path:
    folder, warehouse, prefix = (
        settings.folder,
        Warehouse(settings.folder),
        _prefix(settings.account),
    )
    made = to / f"{prefix}{at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}.zip"
    # The next backup removes what a killed one leaves.
    draft, archive_file = to / f".{prefix}partial", to / f".{prefix}partial" / made.name
    try:
        make_folder(to, CHOOSE_PATH)
        shutil.rmtree(draft, ignore_errors=True)
        make_folder(draft)
        sources = {path.relative_to(folder).as_posix(): path for path in _files_to_copy(folder)}
        # The state is copied last. One that is newer than the work file can also result from a
        # crash; an older one would lack pushes whose records are loaded.
        if warehouse.exists:
            warehouse.copy_to(draft / WORK_FILE)
        if (folder / STATE_FILE).exists():
            state.copy(folder / STATE_FILE, draft / STATE_FILE)
        sources |= {path.name: path for path in draft.iterdir()}
        with create_private_file(archive_file) as file:
            with zipfile.ZipFile(file, "w", strict_timestamps=False) as archive:
                sums = {name: _add(archive, name, path) for name, path in sources.items()}
                manifest = Manifest(at.isoformat(), settings.account, program_version(), sums)
                archive.writestr(_MANIFEST, json.dumps(asdict(manifest), indent=2))
            file.flush()
            os.fsync(file.fileno())
        check_backup(archive_file)
        archive_file.rename(made)
        sync_folder(to)
    except OSError as error:
        raise file_error(to, error, CHOOSE_PATH) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return made


def _files_to_copy(folder: Path) -> Iterator[Path]:
    """Yield the regular files of `COPIED`, without following links."""
    for top in (folder / each for each in COPIED):
        for path in sorted(top.rglob("*")) if top.is_dir() and not top.is_symlink() else [top]:
            if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
                yield path


def _add(archive: zipfile.ZipFile, name: str, source: Path) -> str:
    """Add a file to the archive, and return its SHA-256."""
    # A publication replaces the published file, so the opened one can be read to its end.
    with source.open("rb") as read, archive.open(name, "w", force_zip64=True) as write:
        digest = hashlib.file_digest(read, "sha256").hexdigest()
        read.seek(0)
        shutil.copyfileobj(read, write, 2**20)
    return digest


# -- Reading ---------------------------------------------------------------------------------------


def newest_backup(source: Path, account: str | None) -> Path:
    """Return the account's newest backup in a folder; a file is returned unchanged."""
    if not source.is_dir():
        return source
    found = find_backups(source, account)
    if not found:
        raise _unusable(f"{source} has no backup of {name_account(account)}", _GIVE_BACKUP)
    return found[-1]


def check_backup(path: Path, folder: Path | None = None) -> Manifest:
    """Verify the whole backup and return its manifest; then write its files to `folder` if given.

    Raises `ConnectorError` if any part has changed or the file cannot be read.
    """
    try:
        source = path.open("rb")
    except OSError as error:
        raise _unusable(f"{path} cannot be read: {error.strerror}", _GIVE_BACKUP) from error
    with source, convert_file_errors(folder or path):
        try:
            with zipfile.ZipFile(source) as archive:
                manifest = _verify(archive, path)
                if folder is not None:
                    archive.extractall(folder, manifest.files)
        except (*_DAMAGES, ValueError):
            raise _damaged(path, "it is not a zip file, or a part is missing or changed") from None
        for each in folder.rglob("*") if folder is not None else ():
            each.chmod(0o700 if each.is_dir() else FILE_MODE)
            sync_folder(each)
    return manifest


def _verify(archive: zipfile.ZipFile, path: Path) -> Manifest:
    """Compare the files of a backup with its manifest, and return it."""
    values = json.loads(archive.read(_MANIFEST))
    if values["format"] != FORMAT:
        raise _unusable(
            f"{path} was made by version {values['version']} of the connector",
            "Install that version, and restore with it.",
        )
    manifest = Manifest(**values)
    datetime.fromisoformat(manifest.made_at)
    if sorted(archive.namelist()) != sorted([_MANIFEST, *manifest.files]):
        raise _damaged(path, "its files are not those of its list")
    for name, expected in manifest.files.items():
        if name.startswith("/") or ".." in name.split("/") or "\\" in name:
            raise _damaged(path, "a file has an unsafe path")
        with cast("zipfile.ZipExtFile", archive.open(name)) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise _damaged(path, f"{name} was changed")
    return manifest


def _unusable(message: str, action: str) -> ConnectorError:
    """Return the error for a backup that cannot be restored here."""
    return ConnectorError(message, action=action, code="backup")


def _damaged(path: Path, reason: str) -> ConnectorError:
    return ConnectorError(f"{path} is damaged, or is not a backup: {reason}", code="backup_damaged")


# -- Restore ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Restored backup, files that were in the inbox, and purges that the next purge repeats."""

    manifest: Manifest
    waiting: list[Path]
    purges: int


def restore(settings: Settings, source: Path, former: Path | None = None) -> RestoreResult:
    """Restore the account's folder, which must be empty, as it was when the backup was made.

    Purges that the state of the folder `former` records after the backup are left to the next
    purge, since a pull must find the deletions again.

    Raises:
        Misused: The folder has files of an account.
        ConnectorError: The backup is damaged or belongs to another account, or a file cannot be
            used. The restore can be repeated.
    """
    folder, staging = settings.folder, settings.folder / _STAGING
    make_folder(folder)
    with hold(folder, "restore"), convert_file_errors(folder):
        own = (WORK_FILE, STATE_FILE, WAITED, *COPIED)
        there = [each for each in sorted(folder.iterdir()) if each.name.startswith(own)]
        # Files next to the staging folder, without a state, are remains of a killed restore.
        if there and not (staging.exists() and not (folder / STATE_FILE).exists()):
            raise Misused(
                f"{folder} is not empty: it contains {', '.join(each.name for each in there)}",
                action="Move these files to another folder, or set CONNECTOR_DATA_DIR to a new"
                " folder.",
            )
        try:
            shutil.rmtree(staging, ignore_errors=True)
            make_folder(staging)
            result = _unpack(settings, source, former, staging)
        except BaseException:
            if not there:
                shutil.rmtree(staging, ignore_errors=True)
            raise
        # A log of a database among the remains would be applied to the restored file.
        for path in there:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        # The work file without a state refuses every command until the state is here, too.
        order = {WORK_FILE: 0, STATE_FILE: 2}
        for path in sorted(staging.iterdir(), key=lambda each: order.get(each.name, 1)):
            if path.name == STATE_FILE:
                sync_folder(folder)
            path.rename(folder / path.name)
        sync_folder(folder)
        staging.rmdir()
    return result


def _unpack(settings: Settings, source: Path, former: Path | None, staging: Path) -> RestoreResult:
    """Unpack and verify the backup in `staging`, and make its files ready for use."""
    manifest = check_backup(source, staging)
    if settings.account != manifest.account:
        here, whose = (name_account(each) for each in (settings.account, manifest.account))
        action = f"Choose the account with --account, or use a backup of {here}."
        raise _unusable(f"{source} is a backup of {whose}, not of {here}", action)
    if STATE_FILE not in manifest.files:
        raise _unusable(f"{source} has no {STATE_FILE}", "Use another backup.")
    at, made_at = datetime.now(UTC), datetime.fromisoformat(manifest.made_at)
    waiting = _set_inbox_aside(staging, Path(f"{WAITED}{compact_timestamp(at)}"))
    proven, warehouse = dict[str, datetime | None](), Warehouse(staging)
    if warehouse.exists:
        warehouse.prepare()
        proven = {each.resource: each.proven_at for each in warehouse.status()}
    purges = _later_purges(former, made_at) if former is not None else []
    with Database(staging) as database, database.transaction() as connection:
        connection.executemany("INSERT INTO purges (at, ids) VALUES (?, ?)", purges)
        # The copied state shows this backup as begun.
        put_backup(database, Backup(made_at, at, str(source.absolute()), source.stat().st_size))
        # Pushes wait until a pull has verified more than this.
        database.note("restore", Restore(at, made_at, proven))
    return RestoreResult(manifest, [settings.folder / each for each in waiting], len(purges))


def _later_purges(former: Path, made_at: datetime) -> list[tuple[str, str]]:
    """Return time and ids of the purges in a former folder's state after the backup."""
    with Database(former) as database:
        if not database.exists:
            raise Misused(f"{former} has no {STATE_FILE}", action="Leave out --former.")
        found = database.rows("SELECT at, ids FROM purges WHERE at > ?", made_at)
        return [(each["at"].isoformat(), json.dumps(each["ids"])) for each in found]


def _set_inbox_aside(staging: Path, waited: Path) -> list[Path]:
    """Move the tables in the inbox to another folder. They may have been pushed since, so no run
    may push them automatically.
    """
    moved = []
    for path in sorted((staging / INBOX_FOLDER).glob("*/*")):
        if path.is_file() and path.suffix.lower() in (*TEXT_SUFFIXES, *BOOK_SUFFIXES):
            moved.append(waited / path.relative_to(staging / INBOX_FOLDER))
            make_folder((staging / moved[-1]).parent)
            path.rename(staging / moved[-1])
    return moved

"""Backup of an account's folder to one file, and its restore to an empty folder.

A backup is a tar file whose first member lists the files with their SHA-256. It gets its name when
it is complete and verified. A restore unpacks and verifies everything first. The ledger moves to
the folder last: without it every command refuses the folder, and the restore can be repeated.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from connector.atomic_files import FILE_MODE, create_private_file, sync_folder
from connector.errors import CHOOSE_PATH, ConnectorError, Misused, SettingsError, file_error
from connector.ledger.backups import Backup, Backups, Restore
from connector.ledger.ledger import LEDGER_FILE, Ledger
from connector.ledger.ledger_schema import LEDGER_VERSION
from connector.ledger.sqlite_file import copy_ledger, delete_leases
from connector.log import compact_timestamp
from connector.pulls.workspace import check_files
from connector.report.page import REPORT_FILE
from connector.settings import Settings
from connector.settings.folders import INBOX_FOLDER, MAPS_FOLDER, SEEDS_FOLDER, WAITED
from connector.spreadsheet.table import BOOK_SUFFIXES, TEXT_SUFFIXES
from connector.version import program_version
from connector.warehouse.duckdb_file import make_folder
from connector.warehouse.runs import read_own_publication
from connector.warehouse.schema import SCHEMA_VERSION
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse
from connector.warehouse.work_file import copy_work_file

FOLDERS = (SEEDS_FOLDER, INBOX_FOLDER, MAPS_FOLDER)
"""Folders in a backup, with all plain files below them."""

FILES = (PUBLISHED_FILE, REPORT_FILE)
"""Files in a backup in addition to the work file and the ledger."""

BACKUP_LOCK = "backup.lock"
STAGING = ".restoring"
"""Folder in the account's folder to which a backup is unpacked."""

FORMAT = 1
"""Version of the backup format."""

_MANIFEST = "manifest.json"
_MANIFEST_BYTES_MAX = 16 * 2**20
_SECRET_BYTES_MAX = 8192
"""Maximum size of a file that is searched for a secret of the settings."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a backup.

    Attributes:
        work: Layout version of the work file; None if the backup lacks it.
        ledger: Layout version of the ledger; None if the backup lacks it.
        files: SHA-256 of each file, by its path in the account's folder.
    """

    made_at: datetime
    account: str | None
    version: str
    work: int | None
    ledger: int | None
    files: Mapping[str, str]
    format: int = FORMAT

    def as_json(self) -> dict[str, Any]:
        """Return the manifest as it is stored, with a digest of itself."""
        values = {**asdict(self), "made_at": self.made_at.isoformat()}
        return {**values, "digest": _json_digest(values)}


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

    With `keep`, remove older backups of the account in `to`, so that this number remains. A pull or
    a push may run at the same time.

    Raises:
        Misused: `to` is in the folder that is backed up.
        SettingsError: There is nothing to back up.
        ConnectorError: The written file is damaged.
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
    if not Warehouse(folder).exists and not (folder / LEDGER_FILE).exists():
        raise SettingsError(
            f"no records are loaded in {folder}, so there is nothing to back up",
            action="Run 'connector pull' first, or check CONNECTOR_DATA_DIR.",
        )
    # A backup without the journal of pushes must not replace older, complete backups.
    check_files(settings)
    with _hold_lock(folder):
        backup = Backup(now())
        _record(folder, backup)
        try:
            result = _write_backup(settings, to, backup.began_at)
        except ConnectorError as error:
            _record(folder, replace(backup, ended_at=now(), message=str(error)))
            raise
        size = result.file.stat().st_size
        _record(folder, replace(backup, ended_at=now(), file=result.file, bytes=size))
    removed = find_backups(to, settings.account)[:-keep] if keep is not None else []
    for each in removed:
        each.unlink(missing_ok=True)
    return replace(result, removed=tuple(removed))


@contextmanager
def _hold_lock(folder: Path) -> Iterator[None]:
    """Hold a lock that the system releases when the process ends, however it ends."""
    with open(folder / BACKUP_LOCK, "w", opener=_open_private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _open_private(path: str, flags: int) -> int:
    """Open a file that only its owner can read."""
    return os.open(path, flags, 0o600)


def is_backup_running(folder: Path) -> bool:
    """Return True if a process is making a backup of the folder."""
    with suppress(FileNotFoundError), open(folder / BACKUP_LOCK) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _record(folder: Path, backup: Backup) -> None:
    """Record a backup in the ledger, if there is one."""
    with Ledger(folder) as ledger:
        if ledger.exists:
            Backups(ledger).record_backup(backup)


def _prefix(account: str | None) -> str:
    """Return the beginning of the names of an account's backups."""
    return f"connector-{account or 'unnamed'}-"


def find_backups(to: Path, account: str | None) -> list[Path]:
    """Return the account's backups in a folder, the oldest first. Raises a `WarehouseError`."""
    name = re.compile(rf"{re.escape(_prefix(account))}\d{{8}}T\d{{6}}\.\d{{6}}Z\.tar")
    try:
        return sorted(each for each in to.iterdir() if name.fullmatch(each.name))
    except OSError as error:
        raise file_error(to, error, CHOOSE_PATH) from error


def _write_backup(settings: Settings, to: Path, at: datetime) -> BackupResult:
    """Write a verified backup. The caller holds the account's lock."""
    name = f"{_prefix(settings.account)}{at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}.tar"
    # Remains of a backup that was killed have the same name.
    staging = to / f".{_prefix(settings.account)}partial"
    partial = staging.with_suffix(".tar")
    try:
        make_folder(to, CHOOSE_PATH)
        shutil.rmtree(staging, ignore_errors=True)
        partial.unlink(missing_ok=True)
        make_folder(staging)
        manifest = _stage_files(settings, staging, at)
        _pack(staging, partial, manifest)
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


def _stage_files(settings: Settings, staging: Path, at: datetime) -> Manifest:
    """Copy all files of the account's backup to the folder `staging`.

    The ledger is copied after the work file. A ledger that is newer than the work file can also
    result from a crash, and the next run handles it. An older ledger would lack writes whose
    records are loaded.
    """
    folder = settings.folder
    warehouse, ledger_path = Warehouse(folder), folder / LEDGER_FILE
    work = copy_work_file(warehouse.work, staging / WORK_FILE) if warehouse.exists else None
    ledger = copy_ledger(ledger_path, staging / LEDGER_FILE) if ledger_path.exists() else None
    secrets = tuple(each.encode() for each in settings.secrets())
    for source in _files_to_copy(folder):
        # A publication replaces the file, so the opened file can be read to its end.
        with source.open("rb") as read:
            head = read.read(_SECRET_BYTES_MAX + 1)
            # A key file of the user is left out.
            if len(head) <= _SECRET_BYTES_MAX and any(each in head for each in secrets):
                continue
            target = staging / source.relative_to(folder)
            make_folder(target.parent)
            read.seek(0)
            with create_private_file(target) as write:
                shutil.copyfileobj(read, write)
    sums = {}
    for path in sorted(each for each in staging.rglob("*") if each.is_file()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        sums[path.relative_to(staging).as_posix()] = digest
    return Manifest(at, settings.account, program_version(), work, ledger, sums)


def _files_to_copy(folder: Path) -> Iterator[Path]:
    """Yield the regular files that belong to a backup, without following links."""
    for top in (folder / each for each in (*FILES, *FOLDERS)):
        for path in sorted(top.rglob("*")) if top.is_dir() and not top.is_symlink() else [top]:
            if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
                yield path


def _pack(staging: Path, target: Path, manifest: Manifest) -> None:
    """Write the manifest and the files to one tar file; each packed file is deleted."""
    with create_private_file(target) as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            content = json.dumps(manifest.as_json(), indent=2).encode()
            for name in (_MANIFEST, *manifest.files):
                path = staging / name
                member = tarfile.TarInfo(name)
                member.mode, member.mtime = FILE_MODE, int(manifest.made_at.timestamp())
                if name == _MANIFEST:
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
                    continue
                member.size = path.stat().st_size
                with path.open("rb") as read:
                    tar.addfile(member, read)
                path.unlink()
        file.flush()
        os.fsync(file.fileno())


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
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            manifest = _read_manifest(tar, path)
            unread = dict(manifest.files)
            while (member := tar.next()) is not None:
                content = tar.extractfile(member) if member.isreg() else None
                if content is None or member.name not in unread:
                    raise _damaged(path, f"{member.name!r} is not in its list of files")
                digest = hashlib.sha256()
                with _target(folder, member.name) as target:
                    while piece := content.read(2**20):
                        digest.update(piece)
                        target.write(piece)
                if digest.hexdigest() != unread.pop(member.name):
                    raise _damaged(path, f"{member.name} was changed")
    except (tarfile.TarError, EOFError, UnicodeDecodeError):
        raise _damaged(path, "it is not a tar file, or its end is missing") from None
    except OSError as error:
        if folder is not None and path.exists():
            raise file_error(folder, error) from error
        raise ConnectorError(
            f"{path} cannot be read: {error.strerror}",
            action="Give the backup file, or the folder that 'connector backup' wrote to.",
            code="backup",
        ) from error
    if unread:
        raise _damaged(path, f"{', '.join(unread)} is missing")
    return manifest


@contextmanager
def _target(folder: Path | None, name: str) -> Iterator[BinaryIO]:
    """Open the file of this name in the folder, and flush it to the disk; without one, nothing."""
    if folder is None:
        with open(os.devnull, "wb") as nothing:
            yield nothing
        return
    make_folder((folder / name).parent)
    with create_private_file(folder / name) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _read_manifest(tar: tarfile.TarFile, path: Path) -> Manifest:
    """Read the manifest, the first file of the tar. Raises `ConnectorError`."""
    first = tar.next()
    content = None if first is None else tar.extractfile(first)
    if first is None or content is None or first.name != _MANIFEST:
        raise _damaged(path, "it has no manifest")
    try:
        values = json.loads(content.read(_MANIFEST_BYTES_MAX))
        if values.pop("digest") != _json_digest(values):
            raise _damaged(path, "its manifest was changed")
        if values["format"] != FORMAT:
            raise ConnectorError(
                f"{path} was made by version {values['version']} of the connector",
                action="Install that version, and restore with it.",
                code="backup",
            )
        found = Manifest(**{**values, "made_at": datetime.fromisoformat(values["made_at"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _damaged(path, "its manifest cannot be read") from None
    if any(each.startswith("/") or ".." in each.split("/") or "\\" in each for each in found.files):
        raise _damaged(path, "a file has an unsafe path")
    return found


def _json_digest(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the values as sorted JSON."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


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
        is_published: False if the published file was left out, since it has columns that the
            settings now mask.
    """

    manifest: Manifest
    waiting: tuple[Path, ...]
    purges: int
    is_published: bool

    def as_json(self) -> dict[str, Any]:
        """Return the result as `--json` prints it."""
        return {
            "made_at": self.manifest.made_at.isoformat(),
            "version": self.manifest.version,
            "files": len(self.manifest.files),
            "waiting": [str(each) for each in self.waiting],
            "purges": self.purges,
            "published": self.is_published,
        }


def restore(settings: Settings, source: Path, former: Path | None = None) -> RestoreResult:
    """Restore the account's folder, which must be empty, as it was when the backup was made.

    Purges that the ledger of the folder `former` records after the backup are left to the next
    purge, since a pull must find the deletions again.

    Raises:
        ConnectorError: The backup is damaged, or belongs to another account or a newer version.
        Misused: The folder has files of an account.
        WarehouseError: A file cannot be read or written. The restore can be repeated.
    """
    folder, at = settings.folder, datetime.now(UTC)
    staging = folder / STAGING
    is_interrupted = staging.exists() and not (folder / LEDGER_FILE).exists()
    if (there := _account_files(folder)) and not is_interrupted:
        raise Misused(
            f"{folder} is not empty: it contains {', '.join(there)}",
            action="Move these files to another folder, or set CONNECTOR_DATA_DIR to a new folder.",
        )
    make_folder(folder)
    try:
        shutil.rmtree(staging, ignore_errors=True)
        make_folder(staging)
        manifest = check_backup(source, staging)
        _check_compatible(settings, manifest, source)
        is_published = _keep_published(settings, staging / PUBLISHED_FILE)
        waiting = _set_inbox_aside(staging, f"{WAITED}{compact_timestamp(at)}")
        purges = _later_purges(former, manifest.made_at) if former is not None else []
        _prepare_ledger(staging, manifest, source, at)
        with Ledger(staging) as ledger, ledger.writing() as connection:
            connection.executemany("INSERT INTO purges (at, ids) VALUES (?, ?)", purges)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        if is_interrupted:
            # It marks the files of the earlier restore.
            make_folder(staging)
        raise
    try:
        for name in there:
            # Remains of the interrupted restore. A log would be applied to the restored file.
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        # The work file without a ledger refuses every command until the ledger is here, too.
        order = {WORK_FILE: 0, LEDGER_FILE: 2}
        for path in sorted(staging.iterdir(), key=lambda each: order.get(each.name, 1)):
            if path.name == LEDGER_FILE:
                sync_folder(folder)
            path.rename(folder / path.name)
        sync_folder(folder)
        staging.rmdir()
    except OSError as error:
        raise file_error(folder, error) from error
    moved = tuple(folder / each for each in waiting)
    return RestoreResult(manifest, moved, len(purges), is_published)


def _later_purges(former: Path, made_at: datetime) -> list[tuple[str, str]]:
    """Return time and ids of the purges in a former folder's ledger after the backup."""
    with Ledger(former) as ledger:
        if not ledger.exists:
            raise Misused(f"{former} has no {LEDGER_FILE}", action="Leave out --former.")
        with ledger.reading() as connection:
            return connection.execute(
                "SELECT at, ids FROM purges WHERE at > ?", (made_at.isoformat(),)
            ).fetchall()


def _account_files(folder: Path) -> list[str]:
    """Return the names in the folder that a restore would replace, and logs of databases."""
    own = (WORK_FILE, LEDGER_FILE, *FILES, *FOLDERS, WAITED)
    names = sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
    return [each for each in names if each.startswith(own)]


def _check_compatible(settings: Settings, manifest: Manifest, source: Path) -> None:
    """Raise `ConnectorError` for a backup of another account or of a newer version."""
    here, whose = (each or "the unnamed account" for each in (settings.account, manifest.account))
    if here != whose:
        raise ConnectorError(
            f"{source} is a backup of {whose}, not of {here}",
            action=f"Choose the account with --account, or use a backup of {here}.",
            code="backup",
        )
    if manifest.ledger is None:
        raise ConnectorError(
            f"{source} has no {LEDGER_FILE}", action="Use another backup.", code="backup"
        )
    if (manifest.work or 0) > SCHEMA_VERSION or manifest.ledger > LEDGER_VERSION:
        raise ConnectorError(
            f"{source} was written by a newer version of the connector, {manifest.version}",
            action="Install that version, and restore with it.",
            code="backup",
        )


def _keep_published(settings: Settings, published: Path) -> bool:
    """Remove an unpacked published file with columns that the settings mask or leave out."""
    if not published.exists():
        return True
    found = read_own_publication(published)
    wanted = settings.publish_personal, settings.publish_without
    if found is None or (found.personal, found.left_out) == wanted:
        return True
    published.unlink()
    return False


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


def _prepare_ledger(staging: Path, manifest: Manifest, source: Path, at: datetime) -> None:
    """Record the restore, after which pushes wait for a pull, and release all leases."""
    delete_leases(staging / LEDGER_FILE)
    warehouse, proven = Warehouse(staging), dict[str, datetime | None]()
    if warehouse.exists:
        proven = {each.resource: each.proven_at for each in warehouse.status()}
    with Ledger(staging) as ledger:
        records = Backups(ledger)
        # The copied ledger shows this backup as begun.
        size = source.stat().st_size
        records.record_backup(Backup(manifest.made_at, at, source.absolute(), size))
        records.record_restore(Restore(at, manifest.made_at, proven))

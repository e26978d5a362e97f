"""Making a backup: everything is copied beside it, put into one file, read back, and named.

Until it has its name it is no backup: a crash leaves a folder that the next one clears away.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from connector.backup.contents import stage
from connector.backup.manifest import MANIFEST, Manifest, is_backup_of, prefix_of
from connector.backup.reading import check_backup
from connector.disk import FILE_MODE, create, sync_folder
from connector.errors import BackupError, Misused
from connector.errors.files import naming
from connector.ledger import Ledger
from connector.ledger.backups import Backup, Backups
from connector.settings import Settings
from connector.warehouse.file import make_folder


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that is whole, and the older ones that were removed to keep so many."""

    file: Path
    manifest: Manifest
    removed: tuple[Path, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The same as `--json` prints it."""
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
) -> Made:
    """Back the account's folder up to a file of its own in the folder `to`, which is made if it is
    not there; with `keep`, remove the account's older backups there but for so many in all.

    It may be done while a pull or a push goes on, and waits for neither. Raises `Misused` where
    `to` is in the folder that is backed up, `SettingsError` where there is nothing to back up,
    `BackupError` where a backup of this very second is there, and a `WarehouseError`.
    """
    if keep is not None and keep < 1:
        raise Misused(f"{keep} backups were asked to be kept", action="Keep at least 1.")
    folder, to = settings.folder, to.absolute()
    if to.resolve().is_relative_to(folder.resolve()):
        raise Misused(
            f"{to} is in the folder that is backed up, and would be lost with it",
            action="Name a folder elsewhere, on another disk if there is one.",
        )
    make_folder(to)
    made = _write(settings, to, now().astimezone(UTC).replace(microsecond=0))
    with Ledger(folder) as ledger:
        notes = Backups(ledger)
        if ledger.exists:
            notes.note(Backup(made.manifest.made_at, made.file, made.file.stat().st_size))
        removed = _remove(to, settings.account.value, keep) if keep is not None else ()
        if removed and ledger.exists:
            notes.forget(removed)
    return Made(made.file, made.manifest, removed)


def _write(settings: Settings, to: Path, made_at: datetime) -> Made:
    account = settings.account.value
    staging = to / f".{prefix_of(account)}{os.getpid()}"
    partial = staging.with_suffix(".partial")
    _clear(staging, partial)
    try:
        make_folder(staging)
        staged = stage(settings, staging)
        program = version("recruitment-connector")
        manifest = Manifest(made_at, account, program, staged.work, staged.ledger, staged.entries)
        target = to / manifest.file_name()
        if target.exists():
            raise BackupError(f"{target} is there already", action="Run the command again.")
        _pack(staging, partial, manifest)
        check_backup(partial)
        partial.rename(target)
        sync_folder(to)
    except OSError as error:
        raise naming(to, error) from error
    finally:
        _clear(staging, partial)
    return Made(target, manifest)


def _pack(staging: Path, target: Path, manifest: Manifest) -> None:
    """Put the files into one; each is removed as soon as it is in it."""
    with create(target) as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            content = manifest.as_bytes()
            tar.addfile(_member(MANIFEST, len(content), manifest), io.BytesIO(content))
            for each in manifest.entries:
                path = staging / each.name
                with path.open("rb") as read:
                    tar.addfile(_member(each.name, each.bytes, manifest), read)
                path.unlink()
        file.flush()
        os.fsync(file.fileno())


def _member(name: str, size: int, manifest: Manifest) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, FILE_MODE
    member.mtime = int(manifest.made_at.timestamp())
    return member


def _remove(to: Path, account: str | None, keep: int) -> tuple[Path, ...]:
    """Remove the account's oldest backups but for so many; their names sort as they were made."""
    try:
        found = sorted(each for each in to.iterdir() if is_backup_of(each.name, account))
        for each in found[:-keep]:
            each.unlink(missing_ok=True)
    except OSError as error:
        raise naming(to, error) from error
    return tuple(found[:-keep])


def _clear(staging: Path, partial: Path) -> None:
    shutil.rmtree(staging, ignore_errors=True)
    with suppress(OSError):
        partial.unlink(missing_ok=True)

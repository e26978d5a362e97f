"""What belongs to a backup, from a list of what is allowed: nothing that lies about gets in.

The ledger is copied after the work file, never before it: a ledger that knows more than the work
file is what a crash leaves as well, and the next run copes with it. The other way round it would
not know of writes whose records have landed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from connector.backup.manifest import Entry, digest_of
from connector.disk import create
from connector.errors import SettingsError
from connector.ledger.copying import copy_ledger
from connector.ledger.ledger import LEDGER_FILE
from connector.report import REPORT_FILE
from connector.settings import Settings
from connector.sources import INBOX_FOLDER, RECEIPTS_FOLDER, SEEDS_FOLDER
from connector.suppression import KEY_FILE
from connector.suppression.key import make_key
from connector.warehouse import Warehouse
from connector.warehouse.file import make_folder, naming_errors
from connector.warehouse.publish import copy_whole
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE

FOLDERS = (SEEDS_FOLDER, RECEIPTS_FOLDER, INBOX_FOLDER)
"""Folders that a backup holds, with everything below them that is a plain file."""

FILES = (PUBLISHED_FILE, REPORT_FILE, KEY_FILE)
"""Files that a backup holds besides the databases. `KEY_FILE` is no key of the API: without it
nobody who was erased is known again.
"""

_SECRET_BYTES_MAX = 8192
"""A file that is no larger than this is looked into for a secret of the settings."""


@dataclass(frozen=True, slots=True)
class Staged:
    """What was copied: the files, and the numbers of the databases' last migrations."""

    entries: tuple[Entry, ...]
    work: int | None
    ledger: int | None


def stage(settings: Settings, stage: Path) -> Staged:
    """Copy everything that belongs to a backup of the account to the folder `stage`.

    Raises `SettingsError` where nothing is there to be copied, and a `WarehouseError`.
    """
    folder = settings.folder
    warehouse, ledger_path = Warehouse(folder), folder / LEDGER_FILE
    if not warehouse.exists and not ledger_path.exists():
        raise SettingsError(
            f"nothing was ever landed in {folder}, so there is nothing to back up",
            action="Run 'connector pull' first, or check CONNECTOR_DATA_DIR.",
        )
    # Made now, if nobody was ever erased: receipts of later erasures are then of use to a backup.
    make_key(folder)
    work = copy_whole(warehouse.work, stage / WORK_FILE) if warehouse.exists else None
    ledger = copy_ledger(ledger_path, stage / LEDGER_FILE) if ledger_path.exists() else None
    secrets = tuple(each.encode() for each in settings.secrets())
    for source in _others(folder):
        with naming_errors(source):
            if not _holds_secret(source, secrets):
                _copy(source, stage / source.relative_to(folder))
    return Staged(tuple(_entries(stage)), work, ledger)


def _others(folder: Path) -> Iterator[Path]:
    """The plain files that belong to a backup; no link is followed."""
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


def _holds_secret(path: Path, secrets: tuple[bytes, ...]) -> bool:
    """Whether a small file holds a secret: somebody has put a key's file here."""
    if path.stat().st_size > _SECRET_BYTES_MAX:
        return False
    content = path.read_bytes()
    return any(each in content for each in secrets)


def _copy(source: Path, target: Path) -> None:
    make_folder(target.parent)
    # What is published meanwhile has another file: this one is read to its end as it was.
    with (
        source.open("rb") as read,
        create(target) as write,
    ):
        shutil.copyfileobj(read, write, 1024 * 1024)


def _entries(stage: Path) -> Iterator[Entry]:
    for path in sorted(each for each in stage.rglob("*") if each.is_file()):
        with naming_errors(path):
            name = path.relative_to(stage).as_posix()
            yield Entry(name, path.stat().st_size, digest_of(path))

"""Putting unpacked files in their place: what is here moves aside first, so that nothing is lost.

The work file and its log move together: a log that were left would be taken for the new file's.
Receipts are added to those that are here; an inbox that is here stays as it is. The published file
is left for last, and put in place at once.
"""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

from connector.disk import sync_folder
from connector.errors.files import naming
from connector.ledger.copying import end_turns
from connector.ledger.ledger import LEDGER_FILE
from connector.report import REPORT_FILE
from connector.sources import ASIDE, INBOX_FOLDER, RECEIPTS_FOLDER, SEEDS_FOLDER, WAITED
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX
from connector.stamp import stamped
from connector.suppression import KEY_FILE
from connector.warehouse.file import LOG_ENDINGS, make_folder
from connector.warehouse.publish import put_in_place
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE

_LEDGER_LOGS = ("-wal", "-shm", "-journal")
_PLAIN = (SEEDS_FOLDER, REPORT_FILE)


STAGING = ".restoring"
"""Where a backup is unpacked, in the account's folder. One that was left is cleared away."""


def leftovers(folder: Path) -> tuple[Path, ...]:
    """The folders that restores have left: copies of the account that nothing looks into, erasures
    neither.
    """
    return tuple(sorted((*folder.glob(f"{ASIDE}*"), *folder.glob(STAGING))))


class Placing:
    """The files of one backup on their way from `staging` to the account's folder."""

    def __init__(self, folder: Path, staging: Path, at: datetime) -> None:
        self._folder, self._staging = folder, staging
        self._stamp = stamped(at)
        self.aside: Path | None = None

    @property
    def staged_publication(self) -> Path:
        """The backup's published file, until it is in its place."""
        return self._staging / PUBLISHED_FILE

    def put_in_place(self, *, keeps_ledger: bool) -> tuple[Path, ...]:
        """Put everything but the published file in its place; returns the files that waited in the
        inbox then. Raises a `WarehouseError`; what is moved aside by then stays there.
        """
        try:
            for name in (WORK_FILE, *_PLAIN):
                self._exchange(name, LOG_ENDINGS if name == WORK_FILE else ())
            if not keeps_ledger:
                staged = self._staging / LEDGER_FILE
                if staged.exists():
                    end_turns(staged)
                self._exchange(LEDGER_FILE, _LEDGER_LOGS)
            self._key(keeps_ledger=keeps_ledger)
            self._receipts()
            waiting = self._inbox()
            sync_folder(self._folder)
        except OSError as error:
            raise naming(self._folder, error) from error
        return waiting

    def publish(self) -> None:
        """Put the backup's published file in place, if it has one. Raises a `WarehouseError`."""
        staged = self.staged_publication
        if staged.exists():
            put_in_place(staged, self._folder / PUBLISHED_FILE)

    def _exchange(self, name: str, beside: tuple[str, ...]) -> None:
        """Move what is here aside, with what belongs to it, and put the backup's in its place."""
        for each in (name, *(name + ending for ending in beside)):
            here = self._folder / each
            if here.exists():
                here.rename(self._make_aside() / each)
        staged = self._staging / name
        if staged.exists():
            staged.rename(self._folder / name)

    def _make_aside(self) -> Path:
        """The folder for what was here; two restores of one second have two."""
        if self.aside is None:
            number = 1
            while (place := self._folder / f"{ASIDE}{self._stamp}-{number}").exists():
                number += 1
            make_folder(place)
            self.aside = place
        return self.aside

    def _key(self, *, keeps_ledger: bool) -> None:
        """The key of the list of erased people stays with the ledger whose list it is of."""
        here, staged = self._folder / KEY_FILE, self._staging / KEY_FILE
        if staged.exists() and not (here.exists() and keeps_ledger):
            if here.exists() and here.read_bytes() != staged.read_bytes():
                here.rename(self._make_aside() / KEY_FILE)
            staged.rename(here)

    def _receipts(self) -> None:
        staged = self._staging / RECEIPTS_FOLDER
        target = self._folder / RECEIPTS_FOLDER
        for each in sorted(staged.iterdir()) if staged.is_dir() else ():
            make_folder(target)
            if not (target / each.name).exists():
                each.rename(target / each.name)

    def _inbox(self) -> tuple[Path, ...]:
        """Bring the inbox back where there is none. What waited in it then may have been pushed
        since: it is put into a folder of its own, so that nothing pushes it by itself.
        """
        staged, target = self._staging / INBOX_FOLDER, self._folder / INBOX_FOLDER
        if not staged.is_dir() or target.exists():
            return ()
        waited = [path for path in sorted(staged.glob("*/*")) if _is_table(path)]
        moved = []
        for path in waited:
            place = self._folder / f"{WAITED}{self._stamp}" / path.parent.name
            make_folder(place)
            moved.append(path.rename(place / path.name))
        shutil.move(staged, target)
        return tuple(moved)


def _is_table(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in (*TEXT_SUFFIXES, WORKBOOK_SUFFIX)

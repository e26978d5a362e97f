"""Restoring an account's folder from a backup.

Everything is unpacked and checked beside the folder's own files before any of them is touched. What
is here is moved aside and never deleted. The ledger that is here is kept where it is whole and goes
on from the backup's: it knows what was pushed, spent and erased since. Whoever was erased since, by
that ledger or by the receipts, is erased from what was restored before analysts see it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.errors import BackupError, ConnectorError, Misused, NotAWarehouse, naming
from connector.ledger.erasures import Backups, Erasures, Restore
from connector.ledger.ledger import LEDGER_FILE, Ledger
from connector.ledger.ledger_schema import LATEST
from connector.ledger.receipts import Listed
from connector.ledger.sqlite_file import end_turns
from connector.operations.backup_file import Choice, Manifest, choose, read_manifest, unpack
from connector.privacy.erase import alone, erase_all
from connector.privacy.receipt import Receipt
from connector.privacy.whereis import returned
from connector.publishing.publication import alone as alone_publishing
from connector.publishing.publication import publish
from connector.report.page import REPORT_FILE
from connector.settings.layers import ASIDE, INBOX_FOLDER, RECEIPTS_FOLDER, SEEDS_FOLDER, WAITED
from connector.settings.model import Settings
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX
from connector.suppression.identifiers import KEY_FILE, read_key
from connector.system.atomic_files import sync_folder
from connector.system.log import new_id, stamped
from connector.warehouse.duckdb_file import LOG_ENDINGS, make_folder
from connector.warehouse.runs import published_in
from connector.warehouse.schema import SCHEMA_VERSION
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse
from connector.warehouse.work_file import put_in_place

# -- Placing ---------------------------------------------------------------------------------------
# Putting unpacked files in their place: what is here moves aside first, so that nothing is lost.
#
# The work file and its log move together: a log that were left would be taken for the new file's.
# Receipts are added to those that are here; an inbox that is here stays as it is. The published
# file is left for last, and put in place at once.


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


# -- Suppressing -----------------------------------------------------------------------------------
# The list of those who were erased, carried over to a ledger that is older than it.
#
# Where the ledger that was here cannot be read any more, the receipts of erasures have the same
# hashes, by the rule that a ledger which is made anew has as well (`connector/ledger/receipts.py`).


@dataclass(frozen=True, slots=True)
class Known:
    """The list as it was in a ledger that is moved aside, and the key that it was made with."""

    hashes: tuple[tuple[Listed, str], ...] = ()
    key: bytes | None = None


def known_in(ledger: Ledger, folder: Path) -> Known:
    """The list of a ledger that is here. Raises a `WarehouseError`."""
    return Known(tuple(Erasures(ledger).all_listed()), read_key(folder))


def list_again(
    ledger: Ledger,
    folder: Path,
    known: Known | None,
    elsewhere: Path | None,
    at: datetime,
) -> Iterator[str]:
    """Put on the list who was erased after the backup; sentences on whom nobody can know again.

    `known` is the list of the ledger that was here, None where it could not be read: then the
    receipts in the account's folder and `elsewhere` say it. Raises a `WarehouseError`.
    """
    erasures = Erasures(ledger)
    if known is not None:
        if known.hashes and known.key != read_key(folder):
            yield (
                "The people whom the former ledger had listed as erased cannot be known again: its"
                " list was made with another suppression.key. Erase them again."
            )
        else:
            erasures.list_again(known.hashes, at)
        return
    added = erasures.list_receipted(*([elsewhere] if elsewhere is not None else []))
    yield (
        f"Of people who were erased after the backup, those are known whose receipts are here:"
        f" {added} hashes were listed again. Erase again whoever has no receipt here."
    )


# -- Restoring -------------------------------------------------------------------------------------
#


Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Manner:
    """How to restore. `replaces`: although there are files here already, which are moved aside.
    `takes_ledger`: the backup's ledger, although the one that is here can be read. `receipts`: a
    folder with receipts of erasures, kept elsewhere, besides those that are here.
    """

    replaces: bool = False
    takes_ledger: bool = False
    receipts: Path | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """What came of it. `ledger` says which ledger is here now, and `lost` has sentences on what is
    not known any more; `aside` is where what was here is now, None where nothing was.
    `receipts` are of those who were erased once more. `error` is why something was not brought to
    its end: the files are in place, and analysts do not see them yet.
    """

    manifest: Manifest
    ledger: Choice
    lost: tuple[str, ...]
    aside: Path | None = None
    receipts: tuple[Receipt, ...] = ()
    error: ConnectorError | None = None
    waiting: tuple[Path, ...] = field(default=())

    @property
    def exit_status(self) -> int:
        """0 done; 3 a person should look at something; 1 it was not brought to its end."""
        if self.error is not None:
            return 1
        is_clean = all(each.is_clean for each in self.receipts)
        return 0 if is_clean and not self.waiting else 3

    def as_json(self) -> dict[str, Any]:
        """The same as `--json` prints it."""
        return {
            "made_at": self.manifest.made_at.isoformat(),
            "version": self.manifest.version,
            "files": len(self.manifest.entries),
            "ledger": self.ledger.name,
            "lost": list(self.lost),
            "aside": None if self.aside is None else str(self.aside),
            "erased_again": [each.as_json() for each in self.receipts],
            "waiting": [str(each) for each in self.waiting],
            "error": None if self.error is None else self.error.as_json(),
        }


def restore(
    settings: Settings,
    source: Path,
    manner: Manner = Manner(),  # it cannot be changed
    *,
    now: Clock = lambda: datetime.now(UTC),
) -> Restored:
    """Put the account's folder back as it was when the backup was made.

    Raises `BackupDamaged`, `BackupError` or `NotAWarehouse` for a backup that is not whole, of
    another account or of a later version; `Misused` where files are here and none is to be
    replaced; `LeaseHeld` while a pull or a push is under way; and a `WarehouseError`. In all these
    cases everything is as it was.
    """
    manifest = read_manifest(source)
    _check(settings, manifest, source)
    folder = settings.folder
    is_here = Warehouse(folder).exists or (folder / LEDGER_FILE).exists()
    if is_here and not manner.replaces:
        raise Misused(
            f"{folder} holds an account's files already",
            action="Add --replace to move them aside, or choose an empty folder.",
        )
    make_folder(folder)
    staging = folder / STAGING
    try:
        shutil.rmtree(staging, ignore_errors=True)
        make_folder(staging)
        unpack(source, staging)
        return _Restoring(settings, manifest, manner, now).carry_out(staging)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check(settings: Settings, manifest: Manifest, source: Path) -> None:
    """Refuse a backup that does not belong here, or that this version cannot read."""
    if manifest.account != settings.account.value:
        here = settings.account.value or "the unnamed account"
        whose = manifest.account or "the unnamed account"
        raise BackupError(
            f"{source} is a backup of {whose}, and this is {here}",
            action=f"Choose --account {manifest.account}, or take a backup of {here}."
            if manifest.account
            else f"Leave --account out, or take a backup of {here}.",
        )
    if (manifest.work or 0) > SCHEMA_VERSION or (manifest.ledger or 0) > LATEST:
        raise NotAWarehouse(
            f"{source} was made by a later version of the connector, {manifest.version}",
            action="Install that version, and restore with it.",
        )


class _Restoring:
    """One restore under way: what was unpacked is whole."""

    def __init__(self, settings: Settings, manifest: Manifest, manner: Manner, now: Clock) -> None:
        self._settings, self._manifest, self._manner = settings, manifest, manner
        self._folder, self._now = settings.folder, now
        self._at = now()
        self._run_id = new_id(self._at)

    def carry_out(self, staging: Path) -> Restored:
        """Put everything in its place, alone in the account."""
        live = self._folder / LEDGER_FILE
        choice = choose(live, staging / LEDGER_FILE, takes=self._manner.takes_ledger)
        placing = Placing(self._folder, staging, self._at)
        known: Known | None = None
        with ExitStack() as turn:
            if choice.can_read_live:
                # Whoever is at work here is known by the ledger that is here.
                ledger = self._begin(turn)
                known = known_in(ledger, self._folder)
            if not choice.keeps_live:
                turn.close()
            with alone_publishing(self._folder):
                waiting = placing.put_in_place(keeps_ledger=choice.keeps_live)
            if not choice.keeps_live:
                ledger = self._begin(turn)
            return self._finish(ledger, choice, placing, known, waiting)

    def _begin(self, turn: ExitStack) -> Ledger:
        """Open the ledger that is here now, and hold its leases. Raises `LeaseHeld`."""
        ledger = turn.enter_context(Ledger(self._folder))
        turn.enter_context(alone(ledger, self._run_id, "restore", self._now))
        return ledger

    def _finish(
        self,
        ledger: Ledger,
        choice: Choice,
        placing: Placing,
        known: Known | None,
        waiting: tuple[Path, ...],
    ) -> Restored:
        """Note what was done, erase who was erased since, and show analysts what there is."""
        warehouse = Warehouse(self._folder)
        lost = [*choice.lost(self._manifest.made_at)]
        receipts: tuple[Receipt, ...] = ()
        error: ConnectorError | None = None
        try:
            if warehouse.exists:
                warehouse.prepare()
            self._note(ledger, choice, warehouse)
            if not choice.keeps_live:
                lost += list_again(ledger, self._folder, known, self._manner.receipts, self._at)
            again = returned(self._settings)
            if again:
                done = erase_all(
                    self._settings, again, is_listed=True, has_turn=True, now=self._now
                )
                receipts = done.receipts
            self._show(placing, is_changed=bool(again))
        except ConnectorError as caught:
            error = caught
        return Restored(
            self._manifest, choice, tuple(lost), placing.aside, receipts, error, waiting
        )

    def _note(self, ledger: Ledger, choice: Choice, warehouse: Warehouse) -> None:
        standing = warehouse.standing() if warehouse.exists else ()
        proven = {each.resource: each.proven_at for each in standing}
        made_at = self._manifest.made_at
        note = Restore(self._at, made_at, not choice.keeps_live, proven)
        Backups(ledger).note_restore(note)

    def _show(self, placing: Placing, *, is_changed: bool) -> None:
        """Publish: the backup's own file where nobody had to be taken out of it and personal fields
        are treated as they are now, else anew.
        """
        warehouse = Warehouse(self._folder)
        found = published_in(placing.staged_publication)
        is_treated = found is None or found.personal == self._settings.publish_personal.value
        if not is_changed and is_treated:
            placing.publish()
        elif warehouse.exists:
            publish(self._settings, now=self._now)

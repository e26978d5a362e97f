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
from typing import Any, Literal

from connector.atomic_files import sync_folder
from connector.errors import (
    BackupError,
    ConnectorError,
    LedgerDamaged,
    Misused,
    NotALedger,
    NotAWarehouse,
    naming,
)
from connector.ledger.erasures import Backups, Erasures, Restore
from connector.ledger.identifiers import KEY_FILE, read_key
from connector.ledger.ledger import LEDGER_FILE, Ledger
from connector.ledger.ledger_schema import LEDGER_VERSION
from connector.ledger.quota import shown
from connector.ledger.receipts import Listed
from connector.ledger.sqlite_file import check_ledger, continues, end_turns, is_blank
from connector.log import new_id, stamped
from connector.operations.backup_file import Manifest, read_manifest, unpack
from connector.privacy.erase import alone, erase_all
from connector.privacy.receipt import Receipt
from connector.privacy.whereis import returned
from connector.publishing.publication import alone as alone_publishing
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
    """Folders that restores have left: copies that no command looks into.

    Erasures do not look into them either.
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
        """Put everything but the published file in place; the files of the inbox then.

        Raises a `WarehouseError`; what is moved aside by then stays there.
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
        """Put the backup's published file in place, if there is one.

        Raises a `WarehouseError`.
        """
        staged = self.staged_publication
        if staged.exists():
            put_in_place(staged, self._folder / PUBLISHED_FILE)

    def _exchange(self, name: str, beside: tuple[str, ...]) -> None:
        """Move what is here aside, with all that belongs to it, and put the backup's here."""
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
        """Bring back receipts that are not there, and maps of files that were pushed."""
        for name in (RECEIPTS_FOLDER, MAPS_FOLDER):
            staged, target = self._staging / name, self._folder / name
            for each in sorted(staged.iterdir()) if staged.is_dir() else ():
                make_folder(target)
                if not (target / each.name).exists():
                    each.rename(target / each.name)

    def _inbox(self) -> tuple[Path, ...]:
        """Bring the inbox back where there is none.

        What waited in it then may have been pushed since: it is put into a folder of its own, so
        that nothing pushes it by itself.
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
    return path.is_file() and path.suffix.lower() in (*TEXT_SUFFIXES, *BOOK_SUFFIXES)


# -- Ledger ----------------------------------------------------------------------------------------
# Which ledger stays: the one that is here, which knows what happened since, or the backup's.


@dataclass(frozen=True, slots=True)
class LedgerChoice:
    """Ledger that is here after a restore.

    `kept`: the ledger that is here stays, and nothing that it knows is lost; `restored`: the
    backup's takes its place. `can_read_live` says whether the one that is here can be read.
    """

    name: Literal["kept", "restored"]
    can_read_live: bool

    @property
    def keeps_live(self) -> bool:
        """Whether the ledger that is here stays."""
        return self.name == "kept"

    def lost(self, made_at: datetime) -> Iterator[str]:
        """Sentences on what is not known any more."""
        when = shown(made_at)
        yield (
            f"Changes between {when} and now may be missing in the history. The next pull "
            "reads the current records."
        )
        if self.keeps_live:
            return
        yield (
            f"The journal does not contain pushes after {when}. Pull before you push again: rows"
            " that were sent after the backup are then reported as duplicates."
        )
        yield (
            f"Requests after {when} are not counted. Lower monthly_requests accordingly "
            "until the billing cycle ends."
        )


def choose(live: Path, staged: Path, *, takes: bool) -> LedgerChoice:
    """Choose the ledger at `live` or the backup's, which is taken if `takes` says so.

    Raises `BackupError` where the ledger that is here is not the one that the backup was made of
    and holds something of its own, and a `WarehouseError`.
    """
    if not live.exists():
        return LedgerChoice("restored", can_read_live=False)
    try:
        check_ledger(live)
    except (LedgerDamaged, NotALedger):
        return LedgerChoice("restored", can_read_live=False)
    if not staged.exists():
        return LedgerChoice("kept", can_read_live=True)
    if not takes and continues(live, staged):
        return LedgerChoice("kept", can_read_live=True)
    if not takes and not is_blank(live):
        raise BackupError(
            f"{live} is not the ledger of this backup, and contains pushes or erasures "
            "that the backup does not have",
            action="Check that the backup and the folder are the right ones. To replace the "
            "ledger by the one of the backup, add --with-ledger.",
        )
    return LedgerChoice("restored", can_read_live=True)


@dataclass(frozen=True, slots=True)
class _ErasedList:
    """Erased people as the ledger that is moved aside lists them, and its key."""

    hashes: tuple[tuple[Listed, str], ...]
    key: bytes | None


def _list_again(
    ledger: Ledger, folder: Path, former: _ErasedList | None, elsewhere: Path | None, at: datetime
) -> Iterator[str]:
    """List who was erased after the backup; sentences on those nobody can know again.

    Where the ledger that was here could not be read (`former` is None), the receipts in the
    account's folder and `elsewhere` have the same hashes. Raises a `WarehouseError`.
    """
    erasures = Erasures(ledger)
    if former is None:
        added = erasures.list_receipted(*([elsewhere] if elsewhere is not None else []))
        yield (
            f"Found erasure receipts newer than the backup: {added} hashes were added to "
            "the list of erasures. If receipts are missing in receipts/, erase those "
            "people again."
        )
    elif former.hashes and former.key != read_key(folder):
        yield (
            "The list of erasures was made with another suppression.key, so erased "
            "people are not recognized. Erase these people again."
        )
    else:
        erasures.list_again(former.hashes, at)


# -- Restoring -------------------------------------------------------------------------------------

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    """Options of a restore.

    `replaces`: although there are files here already, which are moved aside.
    `takes_ledger`: the backup's ledger, although the one that is here can be read. `receipts`: a
    folder with receipts of erasures, kept elsewhere, besides those that are here.
    """

    replaces: bool = False
    takes_ledger: bool = False
    receipts: Path | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of a restore.

    `ledger` says which ledger is here now, and `lost` has sentences on what is
    not known any more; `aside` is where what was here is now, None where nothing was.
    `receipts` are of those who were erased once more. `error` is why something was not brought to
    its end: the files are in place, and analysts do not see them yet.
    """

    manifest: Manifest
    ledger: LedgerChoice
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
    options: RestoreOptions = RestoreOptions(),  # it cannot be changed
    *,
    now: Clock = lambda: datetime.now(UTC),
) -> Restored:
    """Put the account's folder back as it was when the backup was made.

    Raises `BackupDamaged`, `BackupError` or `NotAWarehouse` for a backup that is not whole, of
    another account or of a newer version; `Misused` where files are here and none is to be
    replaced; `LeaseHeld` while a pull or a push is under way; and a `WarehouseError`. In all these
    cases everything is as it was.
    """
    manifest = read_manifest(source)
    _check(settings, manifest, source)
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
        return _carry_out(settings, manifest, options, staging, now)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check(settings: Settings, manifest: Manifest, source: Path) -> None:
    """Refuse a backup that does not belong here, or that this version cannot read."""
    if manifest.account != settings.account.value:
        here = settings.account.value or "the unnamed account"
        whose = manifest.account or "the unnamed account"
        raise BackupError(
            f"{source} is a backup of {whose}, not of {here}",
            action=f"Choose --account {manifest.account}, or use a backup of {here}."
            if manifest.account
            else f"Leave out --account, or use a backup of {here}.",
        )
    if (manifest.work or 0) > SCHEMA_VERSION or (manifest.ledger or 0) > LEDGER_VERSION:
        raise NotAWarehouse(
            f"{source} was made by a newer version of the connector, {manifest.version}",
            action="Install that version, and restore with it.",
        )


def _carry_out(
    settings: Settings, manifest: Manifest, options: RestoreOptions, staging: Path, now: Clock
) -> Restored:
    """Put everything in its place, alone in the account: what was unpacked is whole."""
    folder, at = settings.folder, now()
    run_id = new_id(at)
    choice = choose(folder / LEDGER_FILE, staging / LEDGER_FILE, takes=options.takes_ledger)
    placing = Placing(folder, staging, at)
    former: _ErasedList | None = None
    with ExitStack() as held:

        def opened() -> Ledger:
            """The ledger that is here now, with its leases held. Raises `LeaseHeld`."""
            ledger = held.enter_context(Ledger(folder))
            held.enter_context(alone(ledger, run_id, "restore", now))
            return ledger

        if choice.can_read_live:
            # Whoever is at work here is known by the ledger that is here.
            ledger = opened()
            former = _ErasedList(tuple(Erasures(ledger).all_listed()), read_key(folder))
        if not choice.keeps_live:
            held.close()
        with alone_publishing(folder):
            waiting = placing.put_in_place(keeps_ledger=choice.keeps_live)
        if not choice.keeps_live:
            ledger = opened()
        lost, receipts = [*choice.lost(manifest.made_at)], list[Receipt]()
        error: ConnectorError | None = None
        try:
            _note(ledger, manifest, Warehouse(folder), at, is_ledger_older=not choice.keeps_live)
            if not choice.keeps_live:
                lost += _list_again(ledger, folder, former, options.receipts, at)
            if again := returned(settings):
                done = erase_all(settings, again, is_listed=True, has_turn=True, now=now)
                receipts += done.receipts
            _show(settings, placing, now, is_changed=bool(again))
        except ConnectorError as caught:
            error = caught
        return Restored(
            manifest, choice, tuple(lost), placing.aside, tuple(receipts), error, waiting
        )


def _note(
    ledger: Ledger, manifest: Manifest, warehouse: Warehouse, at: datetime, *, is_ledger_older: bool
) -> None:
    """Bring the work file up to date; note what was restored and its proof's moment."""
    proven: dict[str, datetime | None] = {}
    if warehouse.exists:
        warehouse.prepare()
        proven = {each.resource: each.proven_at for each in warehouse.status()}
    note = Restore(at, manifest.made_at, is_ledger_older, proven)
    Backups(ledger).note_restore(note)


def _show(settings: Settings, placing: Placing, now: Clock, *, is_changed: bool) -> None:
    """Publish: the backup's own file, or anew where it would show too much.

    It would where somebody had to be taken out of it, or personal fields are treated otherwise now.
    """
    found = published_in(placing.staged_publication)
    is_treated = found is None or found.personal == settings.publish_personal.value
    if not is_changed and is_treated:
        placing.publish()
    elif Warehouse(settings.folder).exists:
        publish(settings, now=now)

"""Restoring an account's folder from a backup.

Everything is unpacked and checked beside the folder's own files before any of them is touched. What
is here is moved aside and never deleted. The ledger that is here is kept where it is whole and goes
on from the backup's: it knows what was pushed, spent and erased since. Whoever was erased since, by
that ledger or by the receipts, is erased from what was restored before analysts see it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.backup.ledgers import Choice, choose
from connector.backup.manifest import Manifest
from connector.backup.placing import STAGING, Placing
from connector.backup.reading import read_manifest, unpack
from connector.backup.suppressing import Known, known_in, list_again
from connector.erasure.alone import alone
from connector.erasure.erase import erase_all
from connector.erasure.receipt import Receipt
from connector.erasure.returned import returned
from connector.errors import BackupError, ConnectorError, Misused, NotAWarehouse
from connector.ledger import Ledger
from connector.ledger.backups import Backups, Restore
from connector.ledger.copying import LATEST
from connector.ledger.ledger import LEDGER_FILE
from connector.publication import publish
from connector.publication.lock import alone as alone_publishing
from connector.settings import Settings
from connector.stamp import new_id
from connector.warehouse import Warehouse
from connector.warehouse.file import make_folder
from connector.warehouse.migrations import MIGRATIONS
from connector.warehouse.publications import published_in

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
    if (manifest.work or 0) > MIGRATIONS[-1][0] or (manifest.ledger or 0) > LATEST:
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

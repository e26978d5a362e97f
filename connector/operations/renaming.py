"""Renaming of an account: the folder of its old name becomes that of its new one.

The project file is the person's own, and is never written: whoever renames an account there brings
its folder after it. History, bookmarks, journal and the month's count go on as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.errors import Misused, WarehouseError
from connector.lakehouse.forget import leave
from connector.ledger.alert_states import AlertStates
from connector.ledger.journal_reads import read_push_health
from connector.ledger.ledger import LEDGER_FILE, Ledger
from connector.privacy.erase import alone
from connector.settings.accounts import unclaimed_folders
from connector.settings.layers import ASIDE, CONFIG_NAME
from connector.settings.model import Settings
from connector.system.atomic_files import sync_folder
from connector.system.log import new_id, stamped

COMMAND = "account rename"


@dataclass(frozen=True, slots=True)
class Renamed:
    """Renamed account; `aside` has the files of its new name that were in the way."""

    old: str
    new: str
    folder: Path
    aside: Path | None
    requests_added: int

    def as_json(self) -> dict[str, Any]:
        """The renaming as `--json` prints it."""
        return {
            "old": self.old,
            "new": self.new,
            "folder": str(self.folder),
            "aside": None if self.aside is None else str(self.aside),
            "requests_added": self.requests_added,
        }


def rename_account(
    settings: Settings,
    old: str,
    *,
    replaces: bool = False,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Renamed:
    """Give the account that the settings name the folder of its `old` name.

    Where its own folder has files, because it was pulled under the new name already, they are moved
    aside if that `replaces` them; the requests that were counted there are counted on. A lakehouse
    loses the old name, and has the new one with the next publication.

    Raises `Misused` where that cannot be meant, `LeaseHeld` while either is at work, a
    `LakehouseError`, and a `WarehouseError`; in all these cases everything is as it was.
    """
    new = settings.account.value
    assert new is not None
    source, folder, at = settings.data_dir.value / old, settings.folder, now()
    _check(settings, old, source)
    added = 0
    with ExitStack() as held:
        ledger = held.enter_context(Ledger(source))
        held.enter_context(alone(ledger, new_id(at), COMMAND, now))
        if (folder / LEDGER_FILE).exists():
            young = held.enter_context(Ledger(folder))
            held.enter_context(alone(young, new_id(at), COMMAND, now))
            _refuse_files(folder, young, replaces=replaces)
            leave(settings, old)
            added = _join(ledger, young)
        else:
            _refuse_files(folder, None, replaces=replaces)
            leave(settings, old)
    aside = None
    try:
        if folder.exists():
            # Within what becomes the account's folder, where 'doctor' tells of it until it is gone.
            aside = source / f"{ASIDE}{stamped(at)}"
            folder.rename(aside)
        source.rename(folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise WarehouseError(f"{source} cannot be moved to {folder}: {error.strerror}") from None
    moved = None if aside is None else folder / aside.name
    if moved is not None and not _files_in(moved):
        for each in moved.iterdir():
            each.unlink()
        moved.rmdir()
        moved = None
    return Renamed(old, new, folder, moved, added)


def _check(settings: Settings, old: str, source: Path) -> None:
    if old in settings.accounts:
        raise Misused(
            f"{old!r} is still an account of {CONFIG_NAME}",
            action="Give its table there the new name first, then run this again.",
        )
    if source not in (found := unclaimed_folders(settings)):
        names = ", ".join(each.name for each in found)
        raise Misused(
            f"{source} is no account's folder that lost its name",
            action=f"There is: {names}." if names else "There is none: nothing is to be renamed.",
        )


def _files_in(folder: Path) -> bool:
    """Whether the folder has more than a ledger, which a look at alerts makes."""
    return folder.exists() and any(
        not each.name.startswith(LEDGER_FILE) for each in folder.iterdir()
    )


def _refuse_files(folder: Path, young: Ledger | None, *, replaces: bool) -> None:
    """Refuse what would lose files of the new name, or what was pushed from there."""
    if young is not None and read_push_health(young).runs:
        raise Misused(
            f"rows were pushed from {folder}, and two journals of pushes cannot be made one",
            action=f"Keep {folder} and move the old folder to another place.",
        )
    if _files_in(folder) and not replaces:
        raise Misused(
            f"{folder} has files of its own already",
            action="Add --replace to move them aside: what they hold of the API is pulled again.",
        )


def _join(ledger: Ledger, young: Ledger) -> int:
    """Requests of the young ledger that are counted on; its alerts stand on as well."""
    uses = young.uses()
    ledger.count_uses(uses)
    alerts = {(each.code, each.about): each for each in AlertStates(young).alerts()}
    alerts |= {(each.code, each.about): each for each in AlertStates(ledger).alerts()}
    AlertStates(ledger).record(alerts.values(), (), ())
    return sum(each.requests for each in uses)

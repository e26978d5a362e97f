"""Changes of a data folder's identity: a new ledger, a new workspace address, or its account.

The operator requests each of them with `connector doctor`. Nothing is deleted: a replaced ledger is
moved aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from connector.atomic_files import sync_folder
from connector.client.client import Client
from connector.errors import (
    LedgerError,
    Misused,
    SettingsError,
    WarehouseError,
    convert_file_errors,
    count_noun,
)
from connector.ledger.erasures import Backups, Restore
from connector.ledger.ledger import LEDGER_FILE, Ledger
from connector.ledger.sqlite_file import check_ledger
from connector.log import compact_timestamp
from connector.operations.restore import LEDGER_LOGS, create_aside_folder
from connector.pulls.workspace import find_first_existing, read_folder_identity, write_identity
from connector.settings.layers import CONFIG_NAME
from connector.settings.model import ConfiguredAccount, Settings
from connector.settings.values import parse_address
from connector.warehouse import state
from connector.warehouse.runs import read_quota
from connector.warehouse.warehouse import Warehouse

KNOWN_IDS = 5
"""Number of the folder's records that are searched at a new address."""


@dataclass(frozen=True, slots=True)
class NewLedger:
    """Ledger that replaced a lost or damaged one.

    Attributes:
        reason: Reason why the old ledger could not be used.
        aside: Folder with the old file; None if the file was missing.
        forgotten: Sentences on the data that the new ledger lacks.
    """

    reason: str
    aside: Path | None
    forgotten: tuple[str, ...]


def replace_ledger(settings: Settings, now: datetime) -> NewLedger | None:
    """Create a new ledger if the folder's ledger is lost, damaged or belongs to another folder.

    Request counts are restored from the work file, and the list of erased people from the receipts.
    Returns None and changes nothing if the ledger is OK. Raises a `WarehouseError`.
    """
    folder, warehouse = settings.folder, Warehouse(settings.folder)
    reason = _ledger_fault(folder, warehouse)
    if reason is None:
        return None
    if warehouse.exists or warehouse.published.exists():
        warehouse.prepare()
    moved_to = _move_ledger_aside(folder, now)
    forgotten = ["The list of open alerts and the list of backups are lost."]
    with Ledger(folder) as ledger:
        if warehouse.exists:
            known = warehouse.read(state.read_identity)
            if known is not None:
                ledger.write_identity(known)
            ledger.continue_change_numbers(warehouse.read(state.last_copied_change))
            forgotten = [
                *_describe_lost_pushes(warehouse),
                *_restore_request_counts(ledger, warehouse),
                *forgotten,
            ]
            # Pushes wait for a pull, so that rows that were pushed before find their records.
            proven = {each.resource: each.proven_at for each in warehouse.status()}
            note = Restore(now, now, is_ledger_older=True, proven=proven)
            Backups(ledger).record_restore(note)
    return NewLedger(reason, moved_to, tuple(forgotten))


def _ledger_fault(folder: Path, warehouse: Warehouse) -> str | None:
    """Return the reason why the ledger cannot be used; None if it can."""
    path = folder / LEDGER_FILE
    try:
        if path.exists() and path.stat().st_size:
            check_ledger(path)
        with Ledger(folder) as ledger:
            read_folder_identity(ledger, warehouse)
    except LedgerError as error:
        return str(error)
    return None


def _move_ledger_aside(folder: Path, now: datetime) -> Path | None:
    """Move the ledger and its logs to a new folder, and return it; None if there are none."""
    names = [LEDGER_FILE + ending for ending in ("", *LEDGER_LOGS)]
    here = [folder / name for name in names if (folder / name).exists()]
    if not here:
        return None
    place = create_aside_folder(folder, compact_timestamp(now))
    with convert_file_errors(place):
        for each in here:
            each.rename(place / each.name)
        sync_folder(folder)
    return place


def _describe_lost_pushes(warehouse: Warehouse) -> Iterator[str]:
    """Yield a sentence if the lost ledger contained pushes."""
    batches, created = warehouse.read(state.count_pushed)
    if batches:
        yield (
            f"The journal of {count_noun(batches, 'pushed file')} "
            f"({count_noun(created, 'created record')}) is lost: these pushes cannot be "
            "undone, and their unconfirmed rows cannot be resolved. Pull each resource "
            "once before you push to it again."
        )


def _restore_request_counts(ledger: Ledger, warehouse: Warehouse) -> Iterator[str]:
    """Copy the request counts of the work file to the ledger; yield a sentence on their number."""
    uses = warehouse.read(read_quota)
    ledger.add_uses(uses)
    counted = sum(each.requests for each in uses)
    yield (
        f"{count_noun(counted, 'request')} up to the last pull are still counted. Later "
        "requests are not counted."
    )


async def confirm_move(settings: Settings, address: str) -> str:
    """Accept that the folder's workspace has moved to `address`; return a sentence.

    Reads at most five records of the folder at the new address.

    Raises:
        Misused: The address is not the configured `base_url`.
        SettingsError: No record of the folder exists at the address.
        WarehouseError: The files cannot be used.
    """
    connection, warehouse = settings.connection(), Warehouse(settings.folder)
    try:
        named = parse_address(address)
    except ValueError as error:
        raise Misused(f"--moved-to is {address!r}: it must be {error}") from None
    if named != connection.base_url:
        raise Misused(
            f"--moved-to is {named}, but base_url is {connection.base_url}",
            action="Set CONNECTOR_BASE_URL to the new address, and give the same address here.",
        )
    with Ledger(settings.folder) as ledger:
        identity = read_folder_identity(ledger, warehouse)
        if identity is None or identity.address == named:
            return f"nothing was changed: {settings.folder} already belongs to {named}"
        known = warehouse.read(state.read_oldest_keys, KNOWN_IDS) if warehouse.exists else ()
        client = Client(named, connection.api_key, **connection.client_options())
        async with client:
            found = await find_first_existing(client, known)
        if known and found is None:
            raise SettingsError(
                f"{len(known)} loaded records of {settings.folder} were checked, and none "
                f"exists at {named}. It is not the workspace of {identity.address}. "
                "Nothing was changed",
                action="Set CONNECTOR_DATA_DIR to another folder for this workspace.",
                code="other_workspace",
            )
        write_identity(ledger, warehouse, replace(identity, address=named))
    return f"{settings.folder} now belongs to {named} (before: {identity.address})"


# -- Folders without an account --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnclaimedFolder:
    """Folder with an account's files that belongs to no configured account.

    Attributes:
        address: Workspace of its records; None if it cannot be read.
        owner: Configured account of that workspace; the first without files, if there is one.
    """

    folder: Path
    address: str | None
    owner: Settings | None

    def __str__(self) -> str:
        sentence = f"the folder {self.folder} does not belong to a configured account"
        if self.owner is None:
            return sentence
        records = f"the records of {self.address}, the workspace of {self._owner_name}"
        return f"{sentence}; it contains {records}"

    @property
    def action(self) -> str:
        """Return what the operator can do with the folder."""
        if self.owner is None:
            return f"Add the account of {self.folder} to {CONFIG_NAME}, or remove the folder."
        if not _has_records(self.owner.folder):
            return f"Rename {self.folder} to {self.owner.folder}, or remove it."
        return (
            f"{self._owner_name} uses {self.owner.folder}, so remove {self.folder}. To keep the "
            f"history of {self.folder} instead, move {self.owner.folder} away and rename "
            f"{self.folder} to it."
        )

    @property
    def _owner_name(self) -> str | None:
        """Name of the owning account; None without an owner or for the unnamed account."""
        return None if self.owner is None else self.owner.account.value


def find_owner(folder: Path, accounts: Iterable[ConfiguredAccount]) -> UnclaimedFolder:
    """Find the configured account whose workspace the folder's files belong to."""
    try:
        with Ledger(folder) as ledger:
            identity = read_folder_identity(ledger, Warehouse(folder))
    except WarehouseError:
        identity = None
    if identity is None:
        return UnclaimedFolder(folder, None, None)
    settings = (each.settings for each in accounts if each.settings is not None)
    same = [each for each in settings if each.base_url.value == identity.address]
    same.sort(key=lambda each: _has_records(each.folder))
    return UnclaimedFolder(folder, identity.address, same[0] if same else None)


def _has_records(folder: Path) -> bool:
    """Return True if the folder has a work file."""
    return Warehouse(folder).exists

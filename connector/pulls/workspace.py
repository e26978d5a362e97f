"""Check that a data folder is complete and belongs to the configured workspace.

The first run generates a random name for the folder and writes it, with the address of the
workspace, to the work file and to the ledger. Every later run compares both files with each other
and with the configured address before its first request. This prevents mixing two workspaces and
detects a lost ledger before a file of rows is pushed a second time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from connector.errors import Forbidden, NotFound, SettingsError, WarehouseError
from connector.ledger.ledger import Identity, Ledger
from connector.settings import Settings
from connector.version import program_version
from connector.warehouse import state
from connector.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from connector.client.client import Client

LOST_WITH_LEDGER = (
    "the journal of pushes (undo, and the protection against pushing a file twice), the month's"
    " request count, alert states and the list of backups"
)
"""Data that only the ledger has."""


def claim_folder(ledger: Ledger, warehouse: Warehouse, address: str) -> Identity:
    """Return the folder's identity; a new folder gets one, for the workspace at `address`.

    Raises:
        WarehouseError: The work file is in use and the ledger is new, or the two files belong to
            different folders.
        SettingsError: The folder has the records of another workspace.
    """
    found = read_folder_identity(ledger, warehouse)
    if found is None:
        found = Identity(secrets.token_hex(8), address, program_version())
    check_address(found, address, warehouse)
    return write_identity(ledger, warehouse, found)


def write_identity(ledger: Ledger, warehouse: Warehouse, identity: Identity) -> Identity:
    """Write the identity, with the connector's current version, to both files and return it."""
    current = replace(identity, written_by=program_version())
    # The ledger first: a ledger with an identity and a work file without one is no loss.
    if ledger.identity() != current:
        ledger.write_identity(current)
    if warehouse.exists and warehouse.read(state.read_identity) != current:
        warehouse.write(state.write_identity, current)
    return current


def read_folder_identity(ledger: Ledger, warehouse: Warehouse) -> Identity | None:
    """Return the identity in the folder's files; None if no run has used the folder yet.

    Creates no file. Raises `WarehouseError` if the ledger is lost or the files do not belong
    together.
    """
    known = warehouse.read(state.read_identity) if warehouse.exists else None
    counted = ledger.identity() if ledger.exists else None
    if known is None:
        return counted
    if counted is None:
        raise WarehouseError(
            f"{ledger.path} is missing or empty, so nothing is pulled or pushed. Lost "
            f"with it: {LOST_WITH_LEDGER}",
            code="ledger_lost",
        )
    if counted.folder != known.folder:
        origins = f"the ledger to one of {counted.address}, the records to one of {known.address}"
        if counted.address == known.address:
            origins = f"both are of {known.address}, but one was copied from another folder"
        raise WarehouseError(
            f"{ledger.path} and {warehouse.work} belong to different data folders: {origins}",
            code="folder_mixed",
        )
    return known


def check_address(identity: Identity, address: str, warehouse: Warehouse) -> None:
    """Raise `SettingsError` if the folder has the records of another address."""
    if identity.address == address:
        return
    raise SettingsError(
        f"{warehouse.folder} contains the records of {identity.address}, but base_url is "
        f"{address}. Nothing was read, because records of two workspaces must not be mixed",
        action="If base_url is wrong, correct it. For another workspace, set CONNECTOR_DATA_DIR to"
        " an empty folder. If the same workspace has moved, run 'connector doctor --accept-move'.",
        code="other_workspace",
    )


def check_files(settings: Settings) -> None:
    """Raise `WarehouseError` if the ledger is lost or the files do not belong together.

    Creates no file. Other errors of the files are raised as well.
    """
    with Ledger(settings.folder) as ledger:
        read_folder_identity(ledger, Warehouse(settings.folder))


async def find_first_existing(
    client: Client, known: Iterable[tuple[str, str]]
) -> tuple[str, str] | None:
    """Return the first of these records (resource, id) that the API has; None if it has none.

    Records that the key may not read are skipped. Raises `Forbidden` if it may read none of them.
    """
    is_checked, forbidden = False, None
    for resource, id in known:
        try:
            if (await client.detail(resource, id)).id == id:
                return resource, id
            is_checked = True
        except NotFound as error:
            if not error.is_api_error:
                raise
            is_checked = True
        except Forbidden as error:
            forbidden = error
    if forbidden is not None and not is_checked:
        raise forbidden
    return None

"""Texts of others that an earlier version's erasure may have overwritten.

Up to the version whose receipts name the texts of others that they changed, an erasure took any
field with a slash in it for an address of the person, and put `MARK` in its place wherever another
record had the same. A landed record is suspect where a text of it has the mark, no receipt names
the text, and its detail was last read before such an erasure ended. Reading it again is the cure,
and the proof: what the list of those who were erased takes out of the new answer is rightly gone.
Older versions in the history cannot be read again, nor can records that were deleted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from connector.catalog.value import MARK
from connector.ledger.receipts import read_receipts
from connector.settings.layers import RECEIPTS_FOLDER
from connector.settings.model import Settings
from connector.suppression.person import Mention
from connector.warehouse.duckdb_file import opened
from connector.warehouse.persons import last_erased, marked
from connector.warehouse.warehouse import Warehouse

REREAD = "Run 'connector pull --reread-erased'."
"""What to do about it."""


def harmed(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Ids of records, by resource, whose texts may have been overwritten.

    Raises `ErasuresUnknown` where a receipt cannot be read, or another `WarehouseError`.
    """
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return {}
    receipts = tuple(read_receipts(settings.folder / RECEIPTS_FOLDER))
    naming_all = {str(each["erasure"]) for each in receipts if "texts" in each}
    ended = [datetime.fromisoformat(each["ended_at"]) for each in receipts if "texts" not in each]
    named = {Mention(**text) for each in receipts for text in each.get("texts", ())}
    warehouse.prepare()
    found: dict[str, list[str]] = {}
    with opened(warehouse.work) as connection:
        if (erased_at := last_erased(connection, naming_all)) is not None:
            ended.append(erased_at)
        if ended:
            for resource, record in marked(connection, MARK, max(ended)):
                if _is_suspect(resource, record, named):
                    found.setdefault(resource, []).append(str(record["id"]))
    return {name: tuple(sorted(ids)) for name, ids in found.items()}


def counts_of(ids: Mapping[str, Collection[str]]) -> str:
    """How many records of each resource, in words."""
    return ", ".join(f"{name} {len(each):,}" for name, each in ids.items() if each)


def _is_suspect(resource: str, record: Mapping[str, Any], named: Collection[Mention]) -> bool:
    """Whether a text of the record has the mark, and no receipt says so."""
    id = str(record["id"])
    return any(
        MARK in json.dumps(value, ensure_ascii=False)
        for name, value in record.items()
        if Mention(resource, id, name) not in named
    )

"""The list of those who were erased, carried over to a ledger that is older than it.

Where the ledger that was here cannot be read any more, the receipts of erasures have the same
hashes: those of erasures that were begun after the backup are listed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from connector.errors.files import naming
from connector.ledger import Ledger
from connector.ledger.erasures import Erasures, Listed
from connector.sources import RECEIPTS_FOLDER
from connector.suppression import Kind
from connector.suppression.key import read_key


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
    *,
    made_at: datetime,
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
    places = [folder / RECEIPTS_FOLDER, *([elsewhere] if elsewhere is not None else [])]
    added = 0
    for receipt in (each for place in places for each in _receipts(place)):
        if datetime.fromisoformat(receipt["begun_at"]) > made_at:
            added += erasures.list_again(_hashes(receipt), at)
    yield (
        f"Of people who were erased after the backup, those are known whose receipts are here:"
        f" {added} hashes were listed again. Erase again whoever has no receipt here."
    )


def _receipts(folder: Path) -> Iterator[dict[str, Any]]:
    """The receipts of a folder; what is none is left out."""
    try:
        paths = sorted(folder.glob("erasure-*.json"))
        contents = [path.read_bytes() for path in paths]
    except OSError as error:
        raise naming(folder, error) from error
    for content in contents:
        try:
            told = json.loads(content)
            datetime.fromisoformat(told["begun_at"])
            list(_hashes(told))
        except (ValueError, TypeError, KeyError):
            continue
        yield told


def _hashes(receipt: Mapping[str, Any]) -> Sequence[tuple[Listed, str]]:
    """A receipt's hashes, each with the name of its person: those of one come as ids, addresses
    and numbers, in this order.
    """
    order = get_args(Kind)
    found, number, last = [], 0, 0
    for each in receipt["hashes"]:
        place = order.index(each["of"])
        number += place < last
        last = place
        listed = Listed(order[place], str(each["hmac_sha256"]))
        found.append((listed, f"{receipt['erasure']}/{number}"))
    return found

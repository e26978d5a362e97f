"""The list of those who were erased, carried over to a ledger that is older than it.

Where the ledger that was here cannot be read any more, the receipts of erasures have the same
hashes, by the rule that a ledger which is made anew has as well (`connector/ledger/receipts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from connector.ledger import Ledger
from connector.ledger.erasures import Erasures, Listed
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

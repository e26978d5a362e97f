"""List of erased people, read from the ledger as hashes.

`ledger/erasures.py` writes it. Warehouse and spreadsheets read it here, so that erased people do
not come back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, get_args
from urllib.parse import quote

from connector.catalog.resource import Resource
from connector.errors import LedgerError, WarehouseError
from connector.ledger.identifiers import Kind, identifier_hash, is_in_text, normalize, read_key
from connector.ledger.person import Person, owned_groups, without_person

_BUSY_SECONDS = 10.0
_LEDGER_FILE = "ledger.sqlite"


@dataclass(frozen=True)
class SuppressionList:
    """People who were erased from one account and not released."""

    key: bytes
    tokens: frozenset[str]

    @classmethod
    def of(cls, folder: Path) -> Self | None:
        """Return the list of the account in the folder; None if it is empty.

        If no one was ever erased, this only looks for a file. Raises a `WarehouseError`.
        """
        key = read_key(folder)
        if key is None:
            return None
        tokens = _tokens(folder / _LEDGER_FILE)
        return cls(key, tokens) if tokens else None

    def knows(self, kind: Kind, value: str) -> bool:
        """Return True if the identifier is an erased person's."""
        return identifier_hash(self.key, kind, value) in self.tokens

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Return True if a cell of a table's row has an erased person's address or number."""
        return any(is_in_text(cell, self.knows) or self.knows("profile", cell) for cell in cells)

    def describes_erased(self, resource: str, values: Mapping[str, Any]) -> bool:
        """Return True if a record, or a row for one, describes an erased person."""
        return bool(owned_groups(resource, values, self))

    def strip(self, record: Resource) -> Resource:
        """Return the record without data of erased people: the same object if it has none."""
        left = without_person(record.declaration, record.raw, self)
        if left == record.raw:
            return record
        return type(record)(left, is_item=record.is_item, served_at=record.served_at)


@dataclass(slots=True)
class SuppressionFilter:
    """Filter by the list; `met` collects the identifiers that were found."""

    suppressed: SuppressionList
    met: set[tuple[Kind, str]] = field(default_factory=set)

    def knows(self, kind: Kind, value: str) -> bool:
        """Return True if the identifier is on the list."""
        is_known = self.suppressed.knows(kind, value)
        if is_known:
            self.met.add((kind, normalize(kind, value)))
        return is_known

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Return True if a cell is exactly an identifier on the list. Every cell is read."""
        found = [self.knows(kind, cell) for cell in cells for kind in get_args(Kind)]
        return any(found)

    def as_person(self) -> Person:
        """Return one `Person` with the identifiers of all erased people found so far, to search for
        them.
        """
        return person_of(self.met)


def person_of(identifiers: Iterable[tuple[Kind, str]]) -> Person:
    """Return the person with these identifiers."""
    of: dict[Kind, set[str]] = {kind: set() for kind in get_args(Kind)}
    for kind, value in identifiers:
        of[kind].add(value)
    return Person(*map(frozenset, of.values()))


def _tokens(path: Path) -> frozenset[str]:
    if not path.exists():
        return frozenset()
    uri = f"file:{quote(str(path))}?mode=rw"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as connection:
            return frozenset(t for (t,) in connection.execute("SELECT token FROM suppressed"))
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return frozenset()
        raise WarehouseError(f"{path} cannot be read: {error}") from error
    except (sqlite3.Error, ValueError) as error:
        raise LedgerError(f"{path} is damaged: {type(error).__name__}") from error

"""The list of those who were erased, read from the ledger: hashes alone.

The ledger's own room writes it. It is read here, below warehouse and spreadsheet, since neither may
forget to ask.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from connector.catalog import subjects_of
from connector.catalog.resource import Declaration, Resource
from connector.catalog.value import MARK
from connector.errors import LedgerDamaged, WarehouseError
from connector.suppression.identifiers import Kind, normal, read_key, replaced, token
from connector.suppression.person import Person, owned, reduced

_BUSY_SECONDS = 10.0
_LEDGER_FILE = "ledger.sqlite"


@dataclass(frozen=True)
class Suppressed:
    """Everybody who was erased from one account and not released."""

    key: bytes
    tokens: frozenset[str]

    @classmethod
    def of(cls, folder: Path) -> Self | None:
        """The list of the account in the folder; None where nobody is on it.

        Where nobody ever was, it costs one look for a file. Raises a `WarehouseError`.
        """
        key = read_key(folder)
        if key is None:
            return None
        tokens = _tokens(folder / _LEDGER_FILE)
        return cls(key, tokens) if tokens else None

    def knows(self, kind: Kind, value: str) -> bool:
        """Whether the identifier is that of somebody who was erased."""
        return token(self.key, kind, value) in self.tokens

    def without(self, text: str) -> str:
        """The text with `MARK` in place of their addresses and numbers.

        A name cannot be known again by a hash.
        """
        return replaced(text, self.knows, MARK)

    def met_in(self, resource: str, values: Mapping[str, Any]) -> bool:
        """Whether a record, or a row for one, tells of somebody who was erased."""
        return bool(owned(resource, values, self))

    def named_in(self, text: str) -> bool:
        """Whether an address or a number of theirs is in the text."""
        return self.without(text) != text

    def strip(self, record: Resource) -> Resource:
        """The record as it may land: the same object where it tells of nobody."""
        declaration: Declaration = record.declaration
        left = reduced(declaration, record.raw, self._beside(declaration.name, record.raw))
        if left == record.raw:
            return record
        return type(record)(left, is_item=record.is_item, served_at=record.served_at)

    def _beside(self, resource: str, values: Mapping[str, Any]) -> Self:
        """The list without the numbers that the record shows as somebody else's.

        Who has a desk, and its number, after a person who was erased keeps it.
        """
        theirs = owned(resource, values, self)
        others = [group for group in subjects_of(resource) if group not in theirs]
        shown = [values.get(name) for group in others for name in group.phones]
        tokens = {token(self.key, "phone", each) for each in shown if isinstance(each, str)}
        return replace(self, tokens=self.tokens - tokens) if tokens & self.tokens else self


@dataclass(slots=True)
class Noticing:
    """Everybody on the list; `met` are the identifiers by which they were met."""

    suppressed: Suppressed
    met: set[tuple[Kind, str]] = field(default_factory=set)
    needles: tuple[str, ...] = ()

    def knows(self, kind: Kind, value: str) -> bool:
        """Whether the identifier is on the list."""
        is_known = self.suppressed.knows(kind, value)
        if is_known:
            self.met.add((kind, normal(kind, value)))
        return is_known

    def without(self, text: str) -> str:
        """The text without their addresses and numbers."""
        return replaced(text, self.knows, MARK)

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Whether a table's row is about one of them; every cell is looked at."""
        found = [self.without(cell) != cell or self.knows("id", cell) for cell in cells]
        return any(found)

    def as_person(self) -> Person:
        """All who were met, as one person."""
        of = {kind: frozenset(v for k, v in self.met if k == kind) for kind, _ in self.met}
        none = frozenset[str]()
        return Person(of.get("id", none), of.get("email", none), of.get("phone", none))


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
        raise LedgerDamaged(f"{path} is damaged: {type(error).__name__}") from error

"""One person as they are known while they are looked for and erased, and never afterwards."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from connector.suppression.identifiers import Kind, normal, replaced
from connector.suppression.reduction import MARK

TEXT_CHARACTERS_MIN = 5
"""A name or an address that is shorter than this is looked for in no text: it would be found
everywhere.
"""


@dataclass(frozen=True)
class Person:
    """Everything by which a person is known, in normal forms; `texts` are names, profile addresses
    and numbers as they are written, which are looked for in texts as they stand.

    `resources` has the resource of each id.
    """

    ids: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    phones: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    resources: Mapping[str, str] = field(default_factory=dict)

    def knows(self, kind: Kind, value: str) -> bool:
        """Whether the identifier is theirs."""
        known = {"id": self.ids, "email": self.emails, "phone": self.phones}[kind]
        return bool(known) and normal(kind, value) in known

    def without(self, text: str) -> str:
        """The text with `MARK` wherever they are named in it. An id names nobody."""
        text = replaced(text, self.knows, MARK)
        return text if self._pattern is None else self._pattern.sub(MARK, text)

    def is_named_in(self, text: str) -> bool:
        """Whether the text names them, by an id too."""
        return self.without(text) != text or any(id in text.casefold() for id in self.ids)

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Whether a table's row is about them, by one of its cells."""
        return any(self.is_named_in(cell) for cell in cells if len(cell) >= TEXT_CHARACTERS_MIN)

    @cached_property
    def needles(self) -> tuple[str, ...]:
        """Lower-case texts of which one is in any text that names them: to look with, and not to
        conclude from. JSON and HTML may have any of them escaped.
        """
        plain = {each.lower() for each in (*self.emails, *self.texts)}
        escaped = {json.dumps(each, ensure_ascii=True)[1:-1].lower() for each in plain}
        quoted = {json.dumps(each, ensure_ascii=False)[1:-1].lower() for each in plain}
        marked = {html.escape(each) for each in plain}
        # What holds another one is found with it.
        found: list[str] = []
        for each in sorted(plain | escaped | quoted | marked, key=lambda each: (len(each), each)):
            if not any(shorter in each for shorter in found):
                found.append(each)
        return tuple(found)

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        texts = sorted(self.texts, key=lambda each: (-len(each), each))
        if not texts:
            return None
        return re.compile("|".join(map(re.escape, texts)), re.IGNORECASE)

    def as_json(self) -> dict[str, Any]:
        """The person for the ledger's note of what was begun, which is wiped at the end."""
        return {
            "ids": sorted(self.ids),
            "emails": sorted(self.emails),
            "phones": sorted(self.phones),
            "texts": sorted(self.texts),
            "resources": dict(self.resources),
        }

    @classmethod
    def from_json(cls, noted: Mapping[str, Any]) -> Self:
        """The person that was noted."""
        sets = {name: frozenset(noted[name]) for name in ("ids", "emails", "phones", "texts")}
        return cls(**sets, resources=dict(noted["resources"]))

    def identifiers(self) -> Iterable[tuple[Kind, str]]:
        """What goes on the list, as hashes."""
        for each in sorted(self.ids):
            yield "id", each
        for each in sorted(self.emails):
            yield "email", each
        for each in sorted(self.phones):
            yield "phone", each

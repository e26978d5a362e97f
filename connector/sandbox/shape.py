"""How a stored record is shown: as a detail, as a list item, in which timestamps and nulls.

The declared shapes decide (API 2); this module reads no store and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from connector.resource import Declaration
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.moment import show
from connector.sandbox.shelf import Stored
from connector.value import Kind

EXTRA_FIELD = "workspace_id"
_EXTRA_VALUE = "5f0c7f5e-9d0f-4c6b-8a53-0d5e8a7c1b11"


class Shape:
    """One resource's two shapes, under given behaviours."""

    def __init__(self, declaration: Declaration, behaviours: Behaviours) -> None:
        self._behaviours = behaviours
        declared = declaration.fields
        self._declared = frozenset(declared)
        self._detail = tuple(each.name for each in declaration.detail_fields)
        self._item = tuple(each.name for each in declaration.item_fields)
        if declaration.name == "content_types" and behaviours.content_type_items != "declared":
            self._item += ("updated_at",)
        self._datetimes = frozenset(
            name for name, each in declared.items() if each.kind is Kind.DATETIME
        )
        self._write_only = tuple(name for name, each in declared.items() if each.write_only)

    def detail(self, record: Stored, computed: Mapping[str, Any]) -> dict[str, Any]:
        """The record as a detail answer shows it: every declared field, and undeclared ones."""
        extras = [n for n in record if n not in self._declared and not n.startswith("_")]
        return self._shown(record, computed, (*self._detail, *extras))

    def item(self, record: Stored, computed: Mapping[str, Any]) -> dict[str, Any]:
        """The record as a list shows it: exactly the declared list shape."""
        return self._shown(record, computed, self._item)

    def hidden(self, record: Stored) -> dict[str, Any]:
        """The write-only fields of the record, which no answer shows."""
        return {name: record.get(name) for name in self._write_only}

    def pick(self, detail: Mapping[str, Any], names: Collection[str] | None) -> dict[str, Any]:
        """The detail, or those of its fields that an answer echoes (API 4.7)."""
        if names is None:
            return dict(detail)
        return {name: value for name, value in detail.items() if name in names}

    def _shown(
        self, record: Stored, computed: Mapping[str, Any], names: Iterable[str]
    ) -> dict[str, Any]:
        read = record.get
        shown = {name: read(name) for name in names}
        for name in self._datetimes:
            if isinstance(kept := shown.get(name), str):
                shown[name] = show(kept, self._behaviours)
        shown |= {name: value for name, value in computed.items() if name in shown}
        if self._behaviours.nulls == "absent":
            shown = {name: value for name, value in shown.items() if value is not None}
        if self._behaviours.extra_fields == "shown":
            shown[EXTRA_FIELD] = _EXTRA_VALUE
        return shown

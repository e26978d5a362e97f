"""Records of one resource in memory: their orders, the conditions of lists, and their shapes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from connector.catalog.field import Filter, Kind
from connector.catalog.resource import Declaration
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.checks import Body, Messages, parse_date

Key = tuple[int, Any]
Condition = Callable[["Row"], bool]

EXTRA_FIELD = {"workspace_id": "5f0c7f5e-9d0f-4c6b-8a53-0d5e8a7c1b11"}


def fold(text: str) -> bytes:
    """Return the text without regard to ASCII case, as databases behind such services compare."""
    return text.encode().lower()


class Row:
    """Version of a record, with the number of its insertion and the id of its content type."""

    __slots__ = ("parent", "record", "searched", "serial")

    def __init__(self, serial: int, parent: str | None, record: Body, searched: bytes) -> None:
        self.serial, self.parent, self.record, self.searched = serial, parent, record, searched


class Table:
    """Records of one resource by id, and in each order in which a list was read."""

    def __init__(self, declaration: Declaration) -> None:
        fields = declaration.fields.values()
        texts = [f for f in fields if f.kind is Kind.STRING and not f.values and not f.write_only]
        self.rows: dict[str, Row] = {}
        self.serial = 0
        self._texts = {each.name for each in texts}
        self._searched = [each.name for each in texts if each.listed]
        self._orders: dict[str, list[Row]] = {}

    def put(self, record: Body, parent: str | None) -> None:
        """Store a record, instead of its earlier version if there is one."""
        before = self.rows.get(record["id"])
        if before is None:
            self.serial += 1
        else:
            self._remove_from_orders(before)
        serial = self.serial if before is None else before.serial
        searched = b"\0".join(fold(str(record.get(name) or "")) for name in self._searched)
        row = self.rows[record["id"]] = Row(serial, parent, record, searched)
        for name, rows in self._orders.items():
            insort(rows, row, key=self._place(name))

    def remove(self, id: str) -> None:
        """Delete a record."""
        self._remove_from_orders(self.rows.pop(id))

    def _remove_from_orders(self, row: Row) -> None:
        for name, rows in self._orders.items():
            place = self._place(name)
            del rows[bisect_left(rows, place(row), key=place)]

    def select(
        self, name: str, is_descending: bool, conditions: Sequence[Condition]
    ) -> Sequence[Row]:
        """Return the rows with all conditions, in the order of a field, then of insertion."""
        if name not in self._orders:
            self._orders[name] = sorted(self.rows.values(), key=self._place(name))
        rows = self._orders[name]
        for holds in conditions:
            rows = [each for each in rows if holds(each)]
        return rows[::-1] if is_descending else rows

    def sort_key(self, name: str) -> Callable[[Row], Key]:
        """Return the sort key of a field: no value, then numbers, then texts."""

        def key(row: Row) -> Key:
            value = row.record.get(name)
            if isinstance(value, str):
                return 2, fold(value) if name in self._texts else value
            return (0, 0) if value is None else (1, value)

        return key

    def _place(self, name: str) -> Callable[[Row], tuple[Key, int]]:
        """Return the sort key of a field, in which each row has its own place."""
        key = self.sort_key(name)
        return lambda row: (key(row), row.serial)


class Shape:
    """Fields of one resource in detail responses and in lists, under given behaviours."""

    def __init__(self, declaration: Declaration, behaviours: Behaviours) -> None:
        self._behaviours = behaviours
        self._declared = declaration.fields
        self._detail = [each.name for each in declaration.detail_fields]
        self._item = [each.name for each in declaration.item_fields]
        if declaration.name == "content_types" and behaviours["content_type_items"] != "declared":
            self._item.remove("updated_at")

    def detail(self, record: Body) -> Body:
        """Return the record's fields in a detail response, including undeclared fields."""
        extras = [n for n in record if n not in self._declared and not n.startswith("_")]
        return self._select(record, [*self._detail, *extras])

    def item(self, record: Body) -> Body:
        """Return the record's fields in a list, which are only declared fields."""
        return self._select(record, self._item)

    def _select(self, record: Body, names: Sequence[str]) -> Body:
        shown = {name: record.get(name) for name in names}
        for name, value in shown.items():
            if isinstance(value, dict | list):
                shown[name] = deepcopy(value)
        if self._behaviours["nulls"] == "absent":
            shown = {name: value for name, value in shown.items() if value is not None}
        return shown | EXTRA_FIELD if self._behaviours["extra_fields"] == "shown" else shown


def list_conditions(
    declaration: Declaration, query: Mapping[str, str], errors: Messages
) -> list[Condition]:
    """Return the conditions of a list by its filters and search (API 4.1).

    Invalid values add to `errors`; unknown parameters are ignored.
    """
    found = [_filter(by, query[by.name], errors) for by in declaration.filters if by.name in query]
    if declaration.searchable:
        found += [_contains(fold(word)) for word in query.get("search", "").split()]
    return found


def parse_positive(name: str, query: Mapping[str, str], default: int, errors: Messages) -> int:
    """Return the number in a parameter, or the default. An invalid value adds to `errors`."""
    text = query.get(name, str(default))
    if text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) < 2**63:
        return int(text)
    errors[name] = ["must be a positive integer"]
    return default


def _filter(by: Filter, value: str, errors: Messages) -> Condition:
    """Return the condition of a filter. An invalid value adds to `errors`."""
    if by.kind is Kind.DATE:
        try:
            return _starts_by(by.name, parse_date(value).isoformat())
        except ValueError:
            errors[by.name] = ["must be a date, as 2024-01-31"]
    elif by.values and value not in by.values:
        errors[by.name] = [f"must be one of {', '.join(by.values)}"]
    return lambda row: bool(row.record.get(by.name) == value)


def _starts_by(name: str, day: str) -> Condition:

    def holds(row: Row) -> bool:
        start: str = (row.record.get("start_datetime") or "")[:10]
        return start >= day if name == "start_date" else "" < start <= day

    return holds


def _contains(word: bytes) -> Condition:
    return lambda row: word in row.searched

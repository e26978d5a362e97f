"""Answers as rows: one Arrow table per batch, typed by the declaration.

Nothing that the API sent is lost here: what a column cannot hold stays in `_record`, and is told
once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from connector.catalog.field import Field
from connector.catalog.resource import Declaration, Record
from connector.catalog.value import Kind

ARROW_TYPES = {
    "VARCHAR": pa.string(),
    "JSON": pa.string(),
    "DOUBLE": pa.float64(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
}
HALF_PAIR_MARK = "\ufffd"
"""Character in place of half a surrogate pair."""

_VALUE_CHARACTERS_MAX = 60
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a landing table: `field` is None for the connector's own."""

    name: str
    type: str
    comment: str
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something undeclared in an answer; it holds no personal data."""

    kind: str
    detail: str


@dataclass(slots=True)
class RowBatch:
    """A batch of rows to stage: column names to values, all of one length."""

    columns: tuple[Column, ...]
    values: dict[str, list[Any]] = field(init=False)
    oddities: dict[Oddity, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = {column.name: [] for column in self.columns}

    def add(self, record: Record, own: Mapping[str, Any]) -> None:
        """Add a record; `own` are the connector's columns, `_record` where it is known."""
        for column in self.columns:
            value: Any
            if column.name == "_record":
                value = own.get("_record") or as_json(record.raw)
            elif column.field is None:
                value = own.get(column.name)
            else:
                value, problem = column_value(column.field, record.raw.get(column.name))
                if problem is not None:
                    self._note(column, value, problem)
            self.values[column.name].append(value)
        for name in record.unknown:
            self.oddities[
                Oddity("unknown_field", without_surrogates(name)[:_VALUE_CHARACTERS_MAX])
            ] = None

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def table(self) -> pa.Table:
        """The batch as an Arrow table, ready to be staged."""
        types = {column.name: ARROW_TYPES[column.type] for column in self.columns}
        return pa.table({n: pa.array(v, types[n]) for n, v in self.values.items()})

    def _note(self, column: Column, value: Any, problem: str) -> None:
        assert column.field is not None
        # A choice is the platform's word and may be shown; any other value may be a person's.
        shown = f" {value[:_VALUE_CHARACTERS_MAX]!r}" if column.field.values and value else ""
        kind = "unknown_value" if value is not None else "unreadable_value"
        self.oddities[Oddity(kind, f"{column.name}{shown} {problem}")] = None


def column_value(field: Field, value: Any) -> tuple[Any, str | None]:
    """Return what a field's column holds for a value of an answer, and a problem or None."""
    read, problem = field.read(value)
    if field.kind is Kind.VALUES and read is not None:
        return as_json(read), problem
    return without_surrogates(read) if isinstance(read, str) else read, problem


def as_json(value: Any) -> str:
    """JSON as received: same keys, order and characters, but for half pairs."""
    return without_surrogates(_ENCODER.encode(value))


def without_surrogates(text: str) -> str:
    """The text with half surrogate pairs replaced: no column can hold one."""
    return _HALF_PAIR.sub(HALF_PAIR_MARK, text)


def ids_table(ids: Iterable[str], **columns: pa.Array) -> pa.Table:
    """A table of ids, and of what goes with each."""
    return pa.table({"id": pa.array(list(ids), pa.string()), **columns})


def places_table(places: Iterable[int], **columns: pa.Array) -> pa.Table:
    """A table of the `rowid` of rows, and of what goes with each."""
    return pa.table({"place": pa.array(list(places), pa.int64()), **columns})


def moments(values: Iterable[datetime | None]) -> pa.Array:
    """A column of timestamps in UTC."""
    return pa.array(list(values), pa.timestamp("us", tz="UTC"))


# -- Difference ------------------------------------------------------------------------------------
# How two showings of one record differ: the one rule for what counts as a change.
#
# Two details differ in a field where its JSON differs, whatever the order of keys. A list item and
# a detail are compared in the fields that both show, by their meaning, since lists may write a
# value in another form. Lists document fewer values than details for some fields
# (`Field.item_values`): where the detail has a value that a list cannot show, there is no
# difference.


_SCALARS = (str, int, float, bool, type(None))


def differing_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of fields whose JSON differs, in the order of `after`."""
    names = (*after, *(name for name in before if name not in after))
    return tuple(name for name in names if not _is_same(before, after, name))


def differing_listed_names(
    declaration: Declaration, item: Mapping[str, Any], record: Mapping[str, Any]
) -> tuple[str, ...]:
    """Names of listed fields that a list item shows otherwise than the record."""
    return tuple(
        field.name
        for field in declaration.item_fields
        if field.name in item
        and field.name in record
        and not _is_same(item, record, field.name)
        and can_list(field, record[field.name])
        and parsed_value(field, item[field.name]) != parsed_value(field, record[field.name])
    )


def can_list(field: Field, value: Any) -> bool:
    """Whether a list can show the field with this value."""
    return field.listed and (not field.item_values or value in field.item_values)


def parsed_value(field: Field, value: Any) -> Any:
    """Parse the value, whatever its form; None if it cannot be read."""
    read = field.read(value)[0]
    # The landed side of a comparison went through a column, which holds no half pairs.
    return without_surrogates(read) if isinstance(read, str) else read


def _is_same(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    if name not in before or name not in after:
        return False
    one, other = before[name], after[name]
    if type(one) is not type(other):
        return False
    if isinstance(one, _SCALARS):
        return bool(one == other)
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)

"""Conversion of responses to rows: one Arrow table per batch, typed by the declaration.

No received data is lost: a value that does not fit its column stays in `_record` and is reported
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
"""Replacement of half a surrogate pair."""

_VALUE_CHARACTERS_MAX = 60
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a landing table. `field` is None for the connector's own columns."""

    name: str
    type: str
    comment: str
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Undeclared part of a response, without personal data."""

    kind: str
    detail: str


@dataclass(slots=True)
class RowBatch:
    """Batch of rows to stage: column names with values of equal length."""

    columns: tuple[Column, ...]
    values: dict[str, list[Any]] = field(init=False)
    anomalies: dict[Anomaly, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = {column.name: [] for column in self.columns}

    def add(self, record: Record, own: Mapping[str, Any]) -> None:
        """Add a record; `own` are the connector's columns, and `_record` if it is known."""
        for column in self.columns:
            value: Any
            if column.name == "_record":
                value = own.get("_record") or as_json(record.raw)
            elif column.field is None:
                value = own.get(column.name)
            elif (value := record.raw.get(column.name)) is not None:
                value, problem = column_value(column.field, value)
                if problem is not None:
                    self._note(column, value, problem)
            self.values[column.name].append(value)
        for name in record.undeclared_fields:
            self.anomalies[
                Anomaly("unknown_field", without_surrogates(name)[:_VALUE_CHARACTERS_MAX])
            ] = None

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def table(self) -> pa.Table:
        """Return the batch as an Arrow table."""
        types = {column.name: ARROW_TYPES[column.type] for column in self.columns}
        return pa.table({n: pa.array(v, types[n]) for n, v in self.values.items()})

    def _note(self, column: Column, value: Any, problem: str) -> None:
        assert column.field is not None
        # A choice is a value of the platform and may be shown; other values may be personal.
        shown = f" {value[:_VALUE_CHARACTERS_MAX]!r}" if column.field.values and value else ""
        kind = "unknown_value" if value is not None else "unreadable_value"
        self.anomalies[Anomaly(kind, f"{column.name}{shown} {problem}")] = None


def column_value(field: Field, value: Any) -> tuple[Any, str | None]:
    """Return the column value for a value of a response, and a problem or None."""
    read, problem = field.read(value)
    if field.kind is Kind.VALUES and read is not None:
        return as_json(read), problem
    return without_surrogates(read) if isinstance(read, str) else read, problem


def as_json(value: Any) -> str:
    """Return the JSON as received: same keys, order and characters, without half surrogates."""
    return without_surrogates(_ENCODER.encode(value))


def without_surrogates(text: str) -> str:
    """Return the text with half surrogate pairs replaced, because no column can store them."""
    return _HALF_PAIR.sub(HALF_PAIR_MARK, text)


def ids_table(ids: Iterable[str], **columns: pa.Array) -> pa.Table:
    """Return a table of ids and further columns."""
    return pa.table({"id": pa.array(list(ids), pa.string()), **columns})


def rowids_table(places: Iterable[int], **columns: pa.Array) -> pa.Table:
    """Return a table of row ids and further columns."""
    return pa.table({"place": pa.array(list(places), pa.int64()), **columns})


def timestamp_array(values: Iterable[datetime | None]) -> pa.Array:
    """Return a column of timestamps in UTC."""
    return pa.array(list(values), pa.timestamp("us", tz="UTC"))


# -- Differences -----------------------------------------------------------------------------------
# The rules for what counts as a change between two responses for one record.
#
# Two details differ in a field if its JSON differs, ignoring the order of keys. A list item and a
# detail are compared in the fields that both contain, by their parsed values, because lists may
# format a value differently. Lists document fewer values than details for some fields
# (`Field.item_values`). If the detail has a value that a list cannot show, there is no difference.


_SCALARS = (str, int, float, bool, type(None))


def differing_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return names of fields whose JSON differs, in the order of `after`."""
    names = (*after, *(name for name in before if name not in after))
    return tuple(name for name in names if not _is_same(before, after, name))


def differing_listed_names(
    declaration: Declaration, item: Mapping[str, Any], record: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return names of listed fields whose value in a list item differs from the record."""
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
    """Return True if a list can show the field with this value."""
    return field.listed and (not field.item_values or value in field.item_values)


def parsed_value(field: Field, value: Any) -> Any:
    """Return the parsed value; None if it cannot be read."""
    read = field.read(value)[0]
    # The loaded value comes from a column, which contains no half surrogates.
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

"""How two showings of one record differ: the one rule for what counts as a change.

Two details differ in a field where its JSON differs, whatever the order of keys. A list item and
a detail are compared in the fields that both show, by their meaning, since lists may write a
value in another form. Lists document fewer values than details for some fields
(`Field.item_values`): where the detail has a value that a list cannot show, there is no
difference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from connector.field import Field
from connector.resource import Declaration
from connector.warehouse.rows import storable

_SCALARS = (str, int, float, bool, type(None))


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the fields, documented or not, whose JSON differs, in the order of `after`."""
    names = (*after, *(name for name in before if name not in after))
    return tuple(name for name in names if not _is_same(before, after, name))


def listed_differing(
    declaration: Declaration, item: Mapping[str, Any], record: Mapping[str, Any]
) -> tuple[str, ...]:
    """Names of the listed fields in which a list item shows another value than the record."""
    return tuple(
        field.name
        for field in declaration.item_fields
        if field.name in item
        and field.name in record
        and not _is_same(item, record, field.name)
        and can_list(field, record[field.name])
        and meaning(field, item[field.name]) != meaning(field, record[field.name])
    )


def can_list(field: Field, value: Any) -> bool:
    """Whether a list can show the field with this value."""
    return field.listed and (not field.item_values or value in field.item_values)


def meaning(field: Field, value: Any) -> Any:
    """What the value says, whatever its form; None where it cannot be read as its type."""
    read = field.read(value)[0]
    # The landed side of a comparison went through a column, which holds no half pairs.
    return storable(read) if isinstance(read, str) else read


def _is_same(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    if name not in before or name not in after:
        return False
    one, other = before[name], after[name]
    if type(one) is not type(other):
        return False
    if isinstance(one, _SCALARS):
        return bool(one == other)
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)

"""Whether the API shows what was sent: one value, one body, or a record that others may change too.

The API writes values in forms of its own (API, conventions): `1.0` for `1`, an offset for `Z`, a
moment cut to the second, no blanks around a text, null for an empty one. None of these is a
difference. What an answer does not show is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from connector.engine.push_plan import RowProblem
from connector.field import Field
from connector.resource import Declaration
from connector.value import Kind

SHOWN_CHARACTERS_MAX = 200
"""As much of a value is shown in a problem."""

_UNITS = (1_000, 1_000_000)
"""Microseconds to which a server may cut its moments."""


def is_same(field: Field, sent: Any, shown: Any) -> bool:
    """Whether the value shown is the value sent, whatever its form."""
    if field.kind is Kind.VALUES:
        return not _differing_keys(sent, shown)
    if _is_blank(sent) or _is_blank(shown):
        return _is_blank(sent) and _is_blank(shown)
    one, other = field.read(sent)[0], field.read(shown)[0]
    if one is None or other is None:
        return bool(sent == shown)
    if isinstance(one, str):
        one, other = one.strip(), str(other).strip()
        return one.casefold() == other.casefold() if field.format == "email" else one == other
    if isinstance(one, datetime):
        return other in (one, *(_cut(one, unit) for unit in _UNITS))
    return bool(one == other)


def differing(
    resource: Declaration, sent: Mapping[str, Any], shown: Mapping[str, Any]
) -> tuple[str, ...]:
    """The names of the fields sent that an answer shows with another value.

    Fields that the answer leaves out are not among them: an echo may show fewer (API 4.7).
    """
    return tuple(
        name
        for name, value in sent.items()
        if name in shown and not is_same(resource.field(name), value, shown[name])
    )


def lacking(
    resource: Declaration, wanted: Mapping[str, Any], detail: Mapping[str, Any]
) -> tuple[str, ...]:
    """The names of the fields that a detail does not hold as wanted; a detail that leaves a field
    out says that it is empty. Fields that are never shown are not among them.
    """
    return tuple(
        name
        for name, value in wanted.items()
        if not resource.field(name).write_only
        and not is_same(resource.field(name), value, detail.get(name))
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """What is left to be done of an update: the body to send, and the fields in which somebody
    else came between. `is_shown` says whether the answers can show any of the body.
    """

    body: Mapping[str, Any]
    conflicts: tuple[str, ...]
    is_shown: bool


def compare(
    resource: Declaration,
    wanted: Mapping[str, Any],
    base: Mapping[str, Any],
    detail: Mapping[str, Any],
    *,
    overwrite: bool,
) -> Compared:
    """Hold what is wanted against the record as it is now, and as it was known before.

    A field that has the wanted value is left alone. One that has neither that nor its former one
    is a conflict, unless `overwrite`. Values of content are compared key by key and sent whole,
    since whether the API merges them is not shown (API 4.7).
    """
    body: dict[str, Any] = {}
    conflicts: list[str] = []
    for name in wanted:
        field = resource.field(name)
        if field.write_only:
            body[name] = wanted[name]
            continue
        now, former = detail.get(name), base.get(name)
        is_known = name in base
        if field.kind is Kind.VALUES:
            keys = _differing_keys(wanted[name], now)
            taken = [key for key in keys if is_known and _differing_keys(_only(former, key), now)]
            if keys:
                body[name] = {**_values(now), **wanted[name]}
            is_taken = bool(taken)
        elif is_same(field, wanted[name], now):
            continue
        else:
            body[name] = wanted[name]
            is_taken = is_known and not is_same(field, former, now)
        if is_taken and not overwrite:
            conflicts.append(name)
    is_shown = any(not resource.field(name).write_only for name in body)
    return Compared(body, tuple(conflicts), is_shown)


def altered(
    resource: Declaration, sent: Mapping[str, Any], shown: Mapping[str, Any]
) -> tuple[RowProblem, ...]:
    """A problem for every field that the API accepted and shows with another value."""
    return tuple(
        RowProblem(
            "values_differ",
            f"{name} was accepted, and the API shows another value",
            field=name,
            received=as_text(sent[name]),
            found=as_text(shown[name]),
            fix="Look at the record in the application; the API may not take this value as it is.",
        )
        for name in differing(resource, sent, shown)
    )


def as_text(value: Any) -> str:
    """A value as a problem shows it."""
    return "" if value is None else str(value)[:SHOWN_CHARACTERS_MAX]


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _cut(moment: datetime, unit: int) -> datetime:
    return moment.replace(microsecond=moment.microsecond // unit * unit)


def _values(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _only(value: Any, key: str) -> Mapping[str, Any]:
    return {key: _values(value).get(key)}


def _differing_keys(sent: Any, shown: Any) -> list[str]:
    """The keys of content values sent that are shown otherwise."""
    return [key for key, value in _values(sent).items() if not _is_value(value, shown, key)]


def _is_value(value: Any, shown: Any, key: str) -> bool:
    other = _values(shown).get(key)
    blanks = (_is_blank(value) or value == [], _is_blank(other) or other == [])
    if any(blanks):
        return all(blanks)
    if isinstance(value, list) or isinstance(other, list):
        return bool(value == other)
    # A content value has no declared type (API 2.7): its text is what both sides agree on.
    return value == other or str(value).strip() == str(other).strip()

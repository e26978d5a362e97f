"""What remains of a record when a person is taken out of it. Pure.

The same reduction is made of what is held, when somebody is erased, and of whatever is read of them
afterwards, so that an unchanged answer is an unchanged row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from connector.field import Field
from connector.resource import Declaration
from connector.suppression.identifiers import Kind
from connector.suppression.owners import Group, groups_of
from connector.value import MARK
from connector.value import Kind as Kinds


class Who(Protocol):
    """Somebody who may be met in a record: one person, or all who were ever erased."""

    def knows(self, kind: Kind, value: str) -> bool:
        """Whether the identifier is theirs."""

    def without(self, text: str) -> str:
        """The text with `MARK` wherever they are named in it."""


def is_of(group: Group, values: Mapping[str, Any], who: Who) -> bool:
    """Whether the group's fields in these values tell of them: by an id or an address. A number
    alone says nothing: many people have one switchboard, and numbers are given to somebody else.
    """
    kinds: tuple[tuple[Kind, tuple[str, ...]], ...] = (("id", group.ids), ("email", group.emails))
    return any(
        isinstance(value := values.get(name), str) and who.knows(kind, value)
        for kind, names in kinds
        for name in names
    )


def owned(resource: str, values: Mapping[str, Any], who: Who) -> tuple[Group, ...]:
    """The groups of a record that tell of them; none where no field does."""
    return tuple(group for group in groups_of(resource) if is_of(group, values, who))


def reduced(declaration: Declaration, values: Mapping[str, Any], who: Who) -> dict[str, Any]:
    """What remains of a record, or of a body sent for one, in the same order of keys: fields that
    tell of them are gone, and texts that name them have `MARK` there.
    """
    groups = owned(declaration.name, values, who)
    return without_groups(declaration, values, groups, who)


def without_groups(
    declaration: Declaration, values: Mapping[str, Any], groups: tuple[Group, ...], who: Who
) -> dict[str, Any]:
    """What remains of a record without the fields of these groups. Of a record that is somebody
    else's only prose is scrubbed: no other field of it is about them, whatever it reads like.
    """
    gone = {name for group in groups for name in group.fields}
    is_whole = any(group.is_whole for group in groups)
    is_theirs = is_own(groups)
    known = declaration.fields
    return {
        name: scrubbed(value, who) if _may_name(known.get(name), is_theirs) else value
        for name, value in values.items()
        if name not in gone and not (is_whole and name not in known)
    }


def marked_groups(
    declaration: Declaration, values: Mapping[str, Any], groups: tuple[Group, ...], who: Who
) -> dict[str, Any]:
    """A record without the values of these groups' fields: `MARK` replaces each that had one, so
    that a removed value differs from an empty one.
    """
    left = without_groups(declaration, values, groups, who)
    return {
        name: left.get(name, None if value is None else MARK)
        for name, value in values.items()
        if name in left or name in declaration.fields
    }


def changed_elsewhere(
    before: Mapping[str, Any], left: Mapping[str, Any], groups: tuple[Group, ...]
) -> tuple[str, ...]:
    """The fields that a reduction changed in a record that is not the person's own."""
    if is_own(groups):
        return ()
    return tuple(name for name in before if name not in left or left[name] != before[name])


def is_own(groups: tuple[Group, ...]) -> bool:
    """Whether a record with these groups of fields is the person, rather than refers to them."""
    return any(group.ids == ("id",) for group in groups)


def _may_name(field: Field | None, is_theirs: bool) -> bool:
    """Whether a text in the field may name them: prose, whatever nobody has declared, and in a
    record of their own every text but ids, moments and choices.
    """
    if field is None or field.is_prose:
        return True
    return is_theirs and field.kind is Kinds.STRING and not field.values


def scrubbed(value: Any, who: Who) -> Any:
    """The value with every text in it scrubbed, however deep."""
    if isinstance(value, str):
        return who.without(value)
    if isinstance(value, Mapping):
        return {who.without(name): scrubbed(each, who) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(each, who) for each in value]
    return value

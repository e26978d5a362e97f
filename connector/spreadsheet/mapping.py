"""Which column of a file fills which field: by name, by a known other name, or as a person said.

Nothing is guessed. A heading that only looks like a field is suggested with its reason, and what
no field takes is told and left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from connector.catalog.field import AtLeastOneOf
from connector.catalog.resource import Declaration
from connector.errors import Misused, UnknownName
from connector.spreadsheet.cells import AS_WRITTEN, Manner, reader
from connector.spreadsheet.columns import ALIASES, ALIKE_MIN, HINTS, likeness, plain, words
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.row import Unreadable
from connector.spreadsheet.target_columns import Aim, Slot

How = Literal["name", "alias", "given"]
"""How a column found its field: by the field's name, by a known other name, or as was said."""

_SUGGESTIONS_MAX = 3


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column that fills a field; `index` counts from 0."""

    heading: str
    index: int
    slot: Slot
    how: How
    manner: Manner = AS_WRITTEN


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A column that fills nothing: why, and the columns that it may stand for, with the reason."""

    heading: str
    reason: str
    suggestions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """What each column of a file is for.

    `constants` are fields that every row has, as (slot, text, JSON value). `missing` names what a
    create needs and neither a column nor a constant gives: fields, or `one of` several.
    """

    resource: str
    columns: tuple[MappedColumn, ...]
    constants: tuple[tuple[Slot, str, Any], ...] = ()
    unmapped: tuple[Unmapped, ...] = ()
    ignored: tuple[str, ...] = ()
    missing: tuple[str, ...] = field(default=())

    def column_of(self, key: str) -> str | None:
        """The heading of the column that fills the field; None where a constant or nothing does."""
        return next((each.heading for each in self.columns if each.slot.key == key), None)


def map_headings(
    headings: Sequence[str],
    aim: Aim,
    *,
    saved: SavedMap | None = None,
    ignored: Sequence[str] = (),
) -> ColumnMap:
    """What each column is for.

    `saved` says what a person has decided, and goes first. Raises `Misused` for two columns that
    fill one field, for a decision on a column that is not there, and for one that makes no sense;
    `UnknownName` for a field that the mode does not take.
    """
    saved = saved or SavedMap(aim.resource.name)
    if saved.resource != aim.resource.name:
        raise Misused(
            f"the mapping is for {saved.resource}, and {aim.resource.name} are pushed",
            action=f"Give a mapping for {aim.resource.name}.",
        )
    by_plain = {plain(each): each for each in headings}
    decided = _decided(saved, headings, by_plain)
    skipped = {by_plain.get(plain(each), each) for each in (*saved.ignored, *ignored)}
    names, aliases = _names(aim), _aliases(aim)
    columns: list[MappedColumn] = []
    unmapped: list[Unmapped] = []
    for index, heading in enumerate(headings):
        if heading in skipped:
            continue
        given, manner = decided.get(heading, (None, saved.manner))
        slot: Slot | None
        how: How
        if given is not None:
            slot, how = _slot_named(aim, given, heading), "given"
        else:
            slot, how = names.get(plain(heading)), "name"
            if slot is None:
                slot, how = aliases.get(plain(heading)), "alias"
        if slot is None:
            unmapped.append(_unmapped(heading, aim))
        else:
            columns.append(MappedColumn(heading, index, slot, how, _checked(manner, slot, aim)))
    _refuse_twins(columns)
    constants = _constants(saved, columns, aim)
    return ColumnMap(
        aim.resource.name,
        tuple(columns),
        constants,
        tuple(unmapped),
        tuple(each for each in headings if each in skipped),
        _missing(aim, columns, constants),
    )


def saved_from(columns: ColumnMap) -> SavedMap:
    """The map as a person may keep it: what fills nothing is ignored by it from now on."""
    return SavedMap(
        columns.resource,
        {each.heading: (each.slot.column, each.manner) for each in columns.columns},
        {slot.column: text for slot, text, _ in columns.constants},
        (*columns.ignored, *(each.heading for each in columns.unmapped)),
    )


def _decided(
    saved: SavedMap, headings: Sequence[str], by_plain: Mapping[str, str]
) -> dict[str, tuple[str, Manner]]:
    decided: dict[str, tuple[str, Manner]] = {}
    for name, (column, manner) in saved.columns.items():
        heading = name if name in headings else by_plain.get(plain(name))
        if heading is None:
            raise UnknownName("column of the file, as the mapping says", name, headings)
        if heading in decided:
            raise Misused(
                f"the mapping says twice what the column {heading!r} is for",
                action="Take one of them out.",
            )
        decided[heading] = column, manner
    return decided


def _names(aim: Aim) -> dict[str, Slot]:
    """The slots by the plain form of their own names, then of the names that people gave them."""
    own = {plain(each.column): each for each in aim.slots}
    labels: dict[str, Slot | None] = {}
    for slot in aim.slots:
        for label in slot.labels:
            # A name that two fields of a content type share names neither.
            labels[plain(label)] = None if plain(label) in labels else slot
    return {**{name: slot for name, slot in labels.items() if slot is not None}, **own}


def _aliases(aim: Aim) -> dict[str, Slot]:
    found: dict[str, Slot] = {}
    for slot in aim.slots:
        for alias in aliases_of(aim.resource, slot):
            found.setdefault(plain(alias), slot)
    return found


def aliases_of(resource: Declaration, slot: Slot) -> tuple[str, ...]:
    """The other headings under which the slot is known."""
    if slot.is_content:
        return ()
    return ALIASES.get(slot.column, ()) + ALIASES.get(f"{resource.name}.{slot.column}", ())


def _slot_named(aim: Aim, name: str, heading: str) -> Slot:
    for slot in aim.slots:
        if name in (slot.column, slot.key) and (slot.column == name or slot.is_content):
            return slot
    allowed = [each.column for each in aim.slots]
    raise UnknownName(f"field of {aim.resource.name} for the column {heading!r}", name, allowed)


def _checked(manner: Manner, slot: Slot, aim: Aim) -> Manner:
    if manner.policy == "fill" and slot.field.write_only:
        raise Misused(
            f"the policy of {slot.column} is 'fill', and answers never show whether that field is"
            " empty",
            action="Say 'overwrite' or 'never'.",
        )
    for cell, value in manner.values.items():
        _try(value, slot, aim, f"the value {cell!r} of {slot.column} is mapped to {value!r}")
    return manner


def _try(value: str, slot: Slot, aim: Aim, what: str) -> Any:
    """The JSON value of a text in a mapping. Raises `Misused`."""
    if not value.strip():
        return None
    try:
        return reader(slot, aim.mode).read(value)
    except Unreadable as error:
        allowed = f" Allowed: {error.allowed}." if error.allowed else ""
        raise Misused(
            f"{what}, and that is refused: {error.message}", action=f"Correct it.{allowed}"
        ) from error


def _refuse_twins(columns: Sequence[MappedColumn]) -> None:
    first: dict[str, MappedColumn] = {}
    for each in columns:
        twin = first.setdefault(each.slot.key, each)
        if twin is not each:
            raise Misused(
                f"the columns {twin.heading!r} and {each.heading!r} both fill {each.slot.key}",
                action="Ignore one of them, or say in a mapping file which field it fills.",
            )


def _constants(
    saved: SavedMap, columns: Sequence[MappedColumn], aim: Aim
) -> tuple[tuple[Slot, str, Any], ...]:
    filled = {each.slot.key: each.heading for each in columns}
    constants = []
    for name, text in saved.constants.items():
        slot = _slot_named(aim, name, "a constant")
        if slot.key in filled:
            raise Misused(
                f"the mapping has a constant for {slot.key}, and the column {filled[slot.key]!r}"
                " fills it as well",
                action="Ignore the column, or take the constant out.",
            )
        filled[slot.key] = f"the constant {name}"
        value = _try(text, slot, aim, f"the constant {name} is {text!r}")
        constants.append((slot, text, value))
    return tuple(constants)


def _missing(
    aim: Aim, columns: Sequence[MappedColumn], constants: Sequence[tuple[Slot, str, Any]]
) -> tuple[str, ...]:
    if aim.mode not in ("create", "upsert"):
        return ()
    there = {each.slot.key for each in columns} | {slot.key for slot, _, _ in constants}
    needed = (each.key for each in aim.slots if each.create.required)
    missing = dict.fromkeys(key for key in needed if key not in there)
    for rule in aim.resource.rules:
        if isinstance(rule, AtLeastOneOf) and there.isdisjoint(rule.fields):
            missing[f"one of {' or '.join(rule.fields)}"] = None
    return tuple(missing)


def _unmapped(heading: str, aim: Aim) -> Unmapped:
    fields = {plain(name): name for name in aim.resource.fields}
    name = fields.get(plain(heading))
    if name is not None:
        return Unmapped(heading, f"--mode {aim.mode} does not take the field {name}")
    return Unmapped(
        heading, "no field is called so", tuple(_suggestions(heading, aim))[:_SUGGESTIONS_MAX]
    )


def _suggestions(heading: str, aim: Aim) -> Iterator[tuple[str, str]]:
    """Columns that the heading may stand for, the likeliest first, each with its reason."""
    wanted, told = plain(heading), set()
    there = {each.column for each in aim.slots}
    hinted, reason = HINTS.get(wanted, ((), ""))
    for column in hinted:
        if column in there:
            told.add(column)
            yield column, reason
    scored = []
    for slot in aim.slots:
        for name in (slot.column, *slot.labels, *aliases_of(aim.resource, slot)):
            score = likeness(wanted, plain(name))
            if score >= ALIKE_MIN:
                scored.append((-score, slot.column, f"it is spelt almost like {name!r}"))
            elif set(words(name)) < set(words(heading)) and len(plain(name)) > 2:
                scored.append((-0.5, slot.column, f"it has the words of {name!r} and more"))
    for _, column, reason in sorted(scored):
        if column not in told:
            told.add(column)
            yield column, reason

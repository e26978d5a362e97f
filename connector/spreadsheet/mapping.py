"""Mapping of columns to fields, by name or by a decision of the user.

No column is guessed. A heading that is a misspelling of a field, or that fits several, is
suggested. A column without a field is reported and ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

from connector.catalog import CATALOG
from connector.catalog.aliases import EXPORTS
from connector.catalog.field import AtLeastOneOf
from connector.errors import Misused, UnknownName
from connector.spreadsheet.cells import cell_reader
from connector.spreadsheet.headings import heading_words, known_headings, normalized_heading
from connector.spreadsheet.mapping_file import SavedMap, toml_key
from connector.spreadsheet.problems import CellError, ValueWithNotes
from connector.spreadsheet.targets import AS_WRITTEN, CellOptions, PushTarget, TargetColumn
from connector.spreadsheet.words import SUGGESTED, WHOLE_NAMES, is_typing_error

MatchKind = Literal["name", "alias", "given"]
"""How a column found its field: by name, by an alias, or by a decision of the user."""

WHOLE_NAME = "full_name"
"""Target of a column with first and last name, which are split with a remark."""

EVERY_COLUMN = "*"
"""Value of `--ignore` for all columns without a field."""

_NAME_PARTS = ("first_name", "last_name")
_REMARK = re.compile(
    r"\((?:required|mandatory|optional|pflichtfeld|pflicht|obligatoire|facultatif|obligatorio"
    r"|opcional|verplicht|optioneel|obbligatorio|[£€$]|[A-Z]{3})\)",
    re.IGNORECASE,
)
_SUGGESTIONS_MAX = 3
_Match = tuple[TargetColumn, MatchKind]


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """Column of the file that fills a field; `index` counts from 0."""

    heading: str
    index: int
    target: TargetColumn
    match_kind: MatchKind
    options: CellOptions = AS_WRITTEN


@dataclass(frozen=True, slots=True)
class UnmappedColumn:
    """Column of the file without a field; `suggestions` are names of fields."""

    heading: str
    reason: str
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """Columns of a file with their fields.

    Attributes:
        constants: Values for every row, as (target column, text, JSON value).
        missing: Fields that a create needs and that no column or constant fills. `one of` names
            alternatives.
        name_parts: Target columns for first and last name, if a whole name can be split.
    """

    resource: str
    columns: tuple[MappedColumn, ...]
    constants: tuple[tuple[TargetColumn, str, Any], ...] = ()
    unmapped: tuple[UnmappedColumn, ...] = ()
    ignored: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    name_parts: tuple[TargetColumn, ...] = ()

    @property
    def targets(self) -> Mapping[str, TargetColumn]:
        """Target columns that a column or a constant fills, by key."""
        filled = {each.target.key: each.target for each in self.columns}
        if WHOLE_NAME in filled:
            filled |= {each.key: each for each in self.name_parts}
        return {**filled, **{column.key: column for column, _, _ in self.constants}}

    def heading_of(self, key: str) -> str | None:
        """Return the heading of the column that fills the field; None without a column."""
        keys = (key, WHOLE_NAME) if key in _NAME_PARTS else (key,)
        found = (each.heading for name in keys for each in self.columns if each.target.key == name)
        return next(found, None)

    def display_name(self, key: str) -> str:
        """Return the heading of the column that fills the field, or the field's label."""
        return self.heading_of(key) or CATALOG[self.resource].fields[key].label


def map_headings(
    headings: Sequence[str],
    target: PushTarget,
    *,
    saved: SavedMap | None = None,
    ignored: Sequence[str] = (),
) -> ColumnMap:
    """Map the columns with these headings to fields; `saved` decisions take precedence.

    If two columns match one field, the second is not mapped.

    Raises:
        Misused: Two decisions name one field, or a decision is invalid or names a missing column.
        UnknownName: The mode does not accept a field.
    """
    resource = target.resource.name
    saved = saved or SavedMap(resource)
    if saved.resource != resource:
        message = f"the mapping is for {saved.resource}, not for {resource}"
        raise Misused(message, action=f"Give a mapping for {resource}.")
    by_normalized = {normalized_heading(each): each for each in headings}
    decided = _saved_decisions(saved, headings, by_normalized)
    skipped = {
        by_normalized.get(normalized_heading(each), each) for each in (*saved.ignored, *ignored)
    }
    matcher = _HeadingMatcher(target, headings)
    columns: list[MappedColumn] = []
    unmapped: dict[str, UnmappedColumn] = {}
    for index, heading in enumerate(headings):
        if heading in skipped:
            continue
        name, options = decided.get(heading, (None, saved.options))
        column, match_kind = matcher.given(heading, name) if name else matcher.find(heading)
        if column is None:
            unmapped[heading] = _unmapped_column(heading, target)
        else:
            _check_options(options, column, target)
            columns.append(MappedColumn(heading, index, column, match_kind, options))
    chosen: dict[str, MappedColumn] = {}
    ranks: Mapping[MatchKind, int] = {"given": 0, "name": 1, "alias": 2}
    for each in sorted(columns, key=lambda column: ranks[column.match_kind]):
        twin = chosen.setdefault(each.target.key, each)
        if twin is not each and each.match_kind == "given":
            message = f"the columns {twin.heading!r} and {each.heading!r} both fill"
            action = "Ignore one of them, or set its field in a column mapping."
            raise Misused(f"{message} {each.target.key}", action=action)
        if twin is not each:
            reason = f"column {twin.heading!r} already fills {each.target.key}"
            unmapped[each.heading] = UnmappedColumn(each.heading, reason)
    if EVERY_COLUMN in skipped:
        skipped |= unmapped.keys()
        unmapped = {}
    mapped = tuple(each for each in columns if chosen[each.target.key] is each)
    found = ColumnMap(
        resource,
        mapped,
        _constant_values(saved, mapped, target),
        tuple(unmapped[each] for each in headings if each in unmapped),
        tuple(each for each in headings if each in skipped),
        name_parts=matcher.name_parts,
    )
    return replace(found, missing=_unfilled_required_fields(target, found.targets.keys()))


def to_saved_map(columns: ColumnMap) -> SavedMap:
    """Return the map for a mapping file; columns without a field become comments."""
    comments = []
    for each in columns.unmapped:
        likely = f"perhaps {' or '.join(each.suggestions)}" if each.suggestions else each.reason
        comments.append(f'{toml_key(each.heading)} = ""  # no field yet ({likely})')
    comments += [f"missing: {each}, add a column or a constant for it" for each in columns.missing]
    return SavedMap(
        columns.resource,
        {each.heading: (each.target.name, each.options) for each in columns.columns},
        {column.name: text for column, text, _ in columns.constants},
        columns.ignored,
        comments=tuple(comments),
    )


def _unfilled_required_fields(target: PushTarget, filled_keys: Set[str]) -> tuple[str, ...]:
    if target.mode not in ("create", "upsert"):
        return ()
    needed = (each.key for each in target.columns if each.field.create.required)
    missing = dict.fromkeys(key for key in needed if key not in filled_keys)
    for rule in target.resource.rules:
        if isinstance(rule, AtLeastOneOf) and filled_keys.isdisjoint(rule.fields):
            missing[f"one of {' or '.join(rule.fields)}"] = None
    return tuple(missing)


# -- Names -----------------------------------------------------------------------------------------

_normalized_name = lru_cache(maxsize=2_048)(normalized_heading)
"""The normalized heading, cached because names are compared with every heading."""


class _HeadingMatcher:
    def __init__(self, target: PushTarget, headings: Sequence[str]) -> None:
        self._target = target
        aliases = {_normalized_name(each): c for c in target.columns for each in c.aliases}
        names = {_normalized_name(each): c for c in target.columns for each in c.names}
        self._known: dict[str, _Match] = {
            **{alias: (column, "alias") for alias, column in aliases.items()},
            **{name: (column, "name") for name, column in names.items()},
        }
        parts = tuple(each for each in target.columns if each.key in _NAME_PARTS)
        is_split = len(parts) == len(_NAME_PARTS) and target.mode != "update"
        self.name_parts = parts if is_split else ()
        plains = {normalized_heading(each) for each in headings}
        self._exported = {
            heading: name
            for signs, meanings in EXPORTS
            if target.resource.name == "candidates" and signs <= plains
            for heading, name in meanings.items()
        }
        filled = {self._known[each][0].key for each in plains & self._known.keys()}
        self._lacks_both = filled.isdisjoint(_NAME_PARTS)

    def given(self, heading: str, name: str) -> _Match:
        """Return the target column that the user chose. Raises `UnknownName`."""
        if name == WHOLE_NAME and self.name_parts:
            return self._whole_name(), "given"
        return _column_named(self._target, name, f"the column {heading!r}"), "given"

    def find(self, heading: str) -> tuple[TargetColumn | None, MatchKind]:
        plain = normalized_heading(_REMARK.sub("", heading))
        if plain in self._exported:
            name = normalized_heading(self._exported[plain] or "")
            return self._known[name][0] if name in self._known else None, "alias"
        found = self._known.get(plain) or self._known.get(normalized_heading(heading))
        is_named = found is not None and found[1] == "name"
        if not is_named and self.name_parts and self._lacks_both and plain in WHOLE_NAMES:
            return self._whole_name(), "alias"
        return found or (None, "alias")

    def _whole_name(self) -> TargetColumn:
        return replace(self.name_parts[0], name=WHOLE_NAME, key=WHOLE_NAME, aliases=())


def _column_named(target: PushTarget, name: str, place: str) -> TargetColumn:
    for column in target.columns:
        if column.name == name:
            return column
    allowed = [each.name for each in target.columns]
    raise UnknownName(f"field of {target.resource.name} for {place}", name, allowed)


# -- Decisions -------------------------------------------------------------------------------------


def _saved_decisions(
    saved: SavedMap, headings: Sequence[str], by_normalized: Mapping[str, str]
) -> dict[str, tuple[str, CellOptions]]:
    """Return the saved field and options by heading. Raises `UnknownName` or `Misused`."""
    decided: dict[str, tuple[str, CellOptions]] = {}
    for name, decision in saved.columns.items():
        heading = name if name in headings else by_normalized.get(normalized_heading(name))
        if heading is None:
            raise UnknownName("column of the file, as the mapping says", name, headings)
        if heading in decided:
            message = f"the mapping has two entries for the column {heading!r}"
            raise Misused(message, action="Remove one of them.")
        decided[heading] = decision
    return decided


def _check_options(options: CellOptions, column: TargetColumn, target: PushTarget) -> None:
    if options.policy == "fill" and column.field.write_only:
        message = f"the policy of {column.name} is 'fill', but the API never returns that field"
        raise Misused(message, action="Use 'overwrite', or ignore the column.")
    for cell, text in options.values.items():
        place = f"the value {cell!r} of {column.name} is mapped to {text!r}"
        _parse_mapped_text(text, column, target, place)


def _parse_mapped_text(
    text: str, column: TargetColumn, target: PushTarget, description: str
) -> Any:
    """Return the JSON value of a text in a mapping; None if it is blank. Raises `Misused`."""
    if not text.strip():
        return None
    try:
        value = cell_reader(column, target.mode).read(text)
        return value.value if isinstance(value, ValueWithNotes) else value
    except CellError as error:
        problem = error.problem()
        allowed = f" Allowed: {problem.allowed}." if problem.allowed else ""
        message = f"{description}, which is not allowed: {problem.message}"
        raise Misused(message, action=f"Correct the text.{allowed}") from error


def _constant_values(
    saved: SavedMap, columns: Sequence[MappedColumn], target: PushTarget
) -> tuple[tuple[TargetColumn, str, Any], ...]:
    """Return the constants as (target column, text, JSON value). Raises `Misused`."""
    filled = {each.target.key: f"the column {each.heading!r}" for each in columns}
    constants = []
    for name, text in saved.constants.items():
        column = _column_named(target, name, "a value for all rows")
        if column.key in filled:
            message = f"{column.key} has a value for all rows, but {filled[column.key]}"
            action = "Ignore the column, or remove the value."
            raise Misused(f"{message} also fills it", action=action)
        filled[column.key] = f"the value {name}"
        value = _parse_mapped_text(text, column, target, f"the value of {name} is {text!r}")
        constants.append((column, text, value))
    return tuple(constants)


# -- Columns that fill nothing ---------------------------------------------------------------------


def _unmapped_column(heading: str, target: PushTarget) -> UnmappedColumn:
    """Return the column with the reason why it has no field, or with suggested fields."""
    fields = {_normalized_name(name): name for name in target.resource.fields}
    name = fields.get(normalized_heading(heading))
    if name is None:
        suggestions = islice(dict.fromkeys(_suggestions(heading, target)), _SUGGESTIONS_MAX)
        return UnmappedColumn(heading, "no field has this name", tuple(suggestions))
    if any(each.name == name for each in target.columns):
        return UnmappedColumn(heading, f"no value of this export fits the field {name}")
    return UnmappedColumn(heading, f"mode {target.mode} does not write the field {name}")


def _suggestions(heading: str, target: PushTarget) -> Iterator[str]:
    """Yield names of fields that the heading may mean, the likeliest first."""
    there = {each.name for each in target.columns}
    yield from (each for each in SUGGESTED.get(normalized_heading(heading), ()) if each in there)
    if normalized_heading(heading) in known_headings():
        # A heading of another resource is no typing error.
        return
    words = " ".join(heading_words(heading))
    for column in target.columns:
        names = (*column.names, *column.aliases)
        if any(is_typing_error(words, " ".join(heading_words(name))) for name in names):
            yield column.name

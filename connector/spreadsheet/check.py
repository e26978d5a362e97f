"""Checking a file before any request: each row becomes a task, or is told everything that is
wrong with it.

Rows come and go in batches, so that a file of any length takes the memory of one batch and of a
digest for each row. Blank rows are no rows: nothing is said of them.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal

from connector.catalog.field import AcceptedWhen, AtLeastOneOf, RequiredWhen, Rule
from connector.engine.push_states import RowOutcome, Task
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.matching import Finder, References, comparable, listed
from connector.spreadsheet.persons import refuse_erased
from connector.spreadsheet.planning import Planner
from connector.spreadsheet.problems import COLUMN_MISSING, DUPLICATES
from connector.spreadsheet.row import Cell, Problem, SheetRow, joined, shown
from connector.spreadsheet.row_reader import RowDraft, RowReader, Sheet
from connector.spreadsheet.target_columns import Lookups, PushTarget, TargetColumn, natural_key
from connector.spreadsheet.template_sheet import accepted_columns
from connector.suppression.listed import Suppressed

# -- Rules -----------------------------------------------------------------------------------------
# What an operation takes and needs, row by row: accepted values, required fields, conditions.
#
# All of it is in the declarations (API 2, 3, 4); nothing here names a resource.


Written = Literal["create", "update"]
"""The operations that have a body."""


class OperationRules:
    """What one operation takes, for the columns of one file."""

    def __init__(self, target: PushTarget, columns: ColumnMap, operation: Written) -> None:
        self._operation = operation
        self._may_clear = target.clear is not None
        self._columns = columns
        filled = {each.target.key: each.target for each in columns.columns}
        filled.update({column.key: column for column, _, _ in columns.constants})
        # Only these columns need a look at each row; the others take whatever could be read.
        self._special = [column for column in filled.values() if self._is_special(column)]
        every = {each.key: each for each in target.columns}
        self._filled = frozenset(filled)
        # What no row can give is wrong with the file, and is told once of each of its creates.
        self._absent = columns.missing if operation == "create" else ()
        self._required = tuple(
            k for k, s in every.items() if s.create.required and k in self._filled
        )
        self._required_set = frozenset(self._required)
        self._rules: tuple[Rule, ...] = target.resource.rules

    def apply(
        self, draft: RowDraft, landed: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The row's values: those that the operation takes, and those for an update after it.

        Adds to the draft's problems whatever the operation refuses or lacks. `landed` is the
        record as it is, for conditions that an update does not mention.
        """
        values = draft.values
        afterwards: dict[str, Any] = {}
        if self._special:
            values = values.copy()
            for column in self._special:
                key = column.key
                if values.get(key) is not None:
                    self._settle(draft, column, values, afterwards)
        if self._operation == "create":
            if self._may_clear and None in values.values():
                values = {key: value for key, value in values.items() if value is not None}
            if self._absent:
                draft.add(self._lacking(self._absent))
            if not self._required_set <= values.keys():
                self._refuse_missing(draft, values)
        for rule in self._rules:
            self._check(rule, draft, values, afterwards, landed)
        return values, afterwards

    def _is_special(self, column: TargetColumn) -> bool:
        if self._operation == "create":
            return not column.create.accepted or column.create.values not in (
                None,
                column.field.values,
            )
        return not column.update.accepted or column.update.values not in (None, column.field.values)

    def _settle(
        self,
        draft: RowDraft,
        column: TargetColumn,
        values: dict[str, Any],
        afterwards: dict[str, Any],
    ) -> None:
        """Leave the value where it is, put it off to an update afterwards, or refuse it."""
        value = values[column.key]
        taken = column.create if self._operation == "create" else column.update
        if taken.accepted and _takes(taken.values, value):
            return
        can_follow = self._operation == "create" and not column.create.required
        if can_follow and column.update.accepted and _takes(column.update.values, value):
            afterwards[column.key] = values.pop(column.key)
            return
        del values[column.key]
        draft.fail(
            column.key,
            Problem(
                "value_not_accepted",
                f"To {self._operation} a record the API does not take this value.",
                self._columns.column_of(column.key),
                shown(str(value)),
                joined(column.accepts(self._operation)),
                "Write one of the allowed values, or clear the cell.",
            ),
        )

    @staticmethod
    def _lacking(absent: tuple[str, ...]) -> Problem:
        what = ", ".join(absent)
        message = f"Creating needs {what}, for which the file has no column."
        fix = f"Add a column for {what}, or a constant to a mapping."
        return Problem(COLUMN_MISSING, message, fix=fix)

    def _refuse_missing(self, draft: RowDraft, values: Mapping[str, Any]) -> None:
        for key in self._required:
            if key not in values and key not in draft.failed:
                self._miss(draft, "required", key, f"Creating needs {key}.")

    def _miss(self, draft: RowDraft, code: str, key: str, message: str) -> None:
        column = self._columns.column_of(key)
        fix = "Fill the cell in." if column else f"Add a column {key}, or a constant to a mapping."
        draft.fail(key, Problem(code, message, column, fix=fix))

    def _check(
        self,
        rule: Rule,
        draft: RowDraft,
        values: Mapping[str, Any],
        afterwards: Mapping[str, Any],
        landed: Mapping[str, Any],
    ) -> None:
        match rule:
            case RequiredWhen(fields, on, states) if self._operation == "create":
                if values.get(on) in states:
                    for key in fields:
                        if key not in values and key not in draft.failed:
                            why = f"Creating needs {key} when {on} is {values[on]}."
                            self._miss(draft, "required_when", key, why)
            case AtLeastOneOf(fields) if self._operation == "create":
                if self._filled.isdisjoint(fields):
                    return
                if not any(key in values or key in draft.failed for key in fields):
                    draft.add(
                        Problem(
                            "one_of_required",
                            f"Creating needs at least one of {joined(fields)}.",
                            allowed=joined(fields),
                            fix="Fill one of them in.",
                        )
                    )
            case AcceptedWhen(key, on, states):
                given = {**values, **afterwards}
                if given.get(key) is None or on in draft.failed:
                    return
                if given.get(on, landed.get(on)) not in states:
                    draft.fail(
                        key,
                        Problem(
                            "only_with",
                            f"The field {key} is taken only when {on} is {joined(states)}.",
                            self._columns.column_of(key),
                            shown(str(given[key])),
                            f"{on}: {joined(states)}",
                            f"Set {on} as well, or clear the cell.",
                        ),
                    )


def _takes(values: tuple[str, ...] | None, value: Any) -> bool:
    """Whether an input that takes these values (None: any) takes this one, or all of a list."""
    if values is None:
        return True
    return all(each in values for each in value) if isinstance(value, list) else value in values


# -- Duplicates ------------------------------------------------------------------------------------
# Which keys were seen before in a file, for files of any length: digests in flat arrays.
#
# A million keys take 25 MB. The digest is Python's own, of 64 bits and keyed anew in each process:
# two keys with one digest would be taken for one, among a million once in some thirty million
# files.


_PARTS = 64
_PART_BITS = 6
_SLOTS_FIRST = 1 << 7


class ClaimedKeys:
    """Keys with the number of the row that had each first.

    They are dealt to parts by their digests, since a table has to be there twice while it grows.
    """

    def __init__(self) -> None:
        self._parts = [_Part() for _ in range(_PARTS)]

    def __len__(self) -> int:
        return sum(part.count for part in self._parts)

    def claim(self, key: str, row: int) -> int | None:
        """The row that had the key first; None where this one has it, now or already."""
        digest = _digest(key)
        held = self._parts[digest & (_PARTS - 1)].claim(digest, row)
        return held if held != row else None

    def first(self, key: str) -> int | None:
        """The row that has the key; None where none has claimed it."""
        digest = _digest(key)
        part = self._parts[digest & (_PARTS - 1)]
        place = part.place_of(digest)
        return part.rows[place] if part.digests[place] else None


class _Part:
    """The keys of one part: a table of which half the places are free, at least."""

    __slots__ = ("_mask", "count", "digests", "rows")

    def __init__(self) -> None:
        self._mask = _SLOTS_FIRST - 1
        self.digests = array("q", bytes(8 * _SLOTS_FIRST))
        self.rows = array("I", bytes(4 * _SLOTS_FIRST))
        self.count = 0

    def place_of(self, digest: int) -> int:
        """Where the digest is, or would be."""
        digests, mask = self.digests, self._mask
        place = (digest >> _PART_BITS) & mask
        while (held := digests[place]) and held != digest:
            place = (place + 1) & mask
        return place

    def claim(self, digest: int, row: int) -> int:
        """The row that has the digest: the first that claimed it."""
        place = self.place_of(digest)
        if self.digests[place]:
            return self.rows[place]
        self.digests[place], self.rows[place] = digest, row
        self.count += 1
        if self.count * 2 > self._mask:
            self._grow()
        return row

    def _grow(self) -> None:
        digests, rows = self.digests, self.rows
        size = (self._mask + 1) * 2
        self._mask = size - 1
        self.digests, self.rows = array("q", bytes(8 * size)), array("I", bytes(4 * size))
        for digest, row in zip(digests, rows, strict=True):
            if digest:
                place = self.place_of(digest)
                self.digests[place], self.rows[place] = digest, row


def _digest(key: str) -> int:
    """The key's digest; never 0, which marks a free place."""
    return hash(key) or 1


# -- Check -----------------------------------------------------------------------------------------
#


BATCH_ROWS = 1_000
"""Rows that are looked up together."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A row after every check that costs no request.

    `outcome` is None for a row that is to be sent, and then `task` says what. A row whose record
    exists already has a task too, the one that it would have been: by that an earlier push of
    this very row is known. `record_id` is the record that the row is about, where there is one.
    `changes` are old and new values by field, of an update.
    """

    row: SheetRow
    outcome: RowOutcome | None
    problems: tuple[Problem, ...] = ()
    task: Task | None = None
    record_id: str | None = None
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def check(
    table: Sheet,
    columns: ColumnMap,
    target: PushTarget,
    lookups: Lookups,
    suppressed: Suppressed | None = None,
) -> Iterator[CheckedRow]:
    """Check every row that is not blank, in the file's order; rows about people who are
    `suppressed` are refused.

    Raises `WarehouseError` where the landing cannot be read, and whatever reading the file raises.
    """
    checking = _Checking(target, columns, lookups, suppressed)
    rows = table.rows()
    while batch := list(islice(rows, BATCH_ROWS)):
        yield from checking.through(batch)


class _Checking:
    """One file's check under way."""

    def __init__(
        self,
        target: PushTarget,
        columns: ColumnMap,
        lookups: Lookups,
        suppressed: Suppressed | None,
    ) -> None:
        self._target, self._columns, self._lookups = target, columns, lookups
        self._suppressed = suppressed
        self._reader = RowReader(target, columns)
        self._references = References(target, columns, lookups)
        self._finder = Finder(target, columns, lookups)
        self._planner = Planner(target, columns, self._finder.by)
        self._create = OperationRules(target, columns, "create")
        self._update = OperationRules(target, columns, "update")
        self._claims = ClaimedKeys()
        self._example = _example(target, columns)
        self._resource = target.resource.name

    def through(self, batch: Sequence[SheetRow]) -> list[CheckedRow]:
        """Check one batch."""
        read = self._reader.read
        # A constant of the mapping makes no row of a blank one, nor of one that was emptied.
        drafts = [d for d in map(read, batch) if d.problems or not d.row.is_blank]
        for draft in drafts:
            if self._example and self._is_example(draft.row.cells):
                draft.add(_EXAMPLE_LEFT)
        self._references.resolve(drafts)
        self._finder.find(drafts)
        refuse_erased(self._resource, drafts, self._suppressed)
        self._refuse_existing(drafts)
        return [self._settled(draft) for draft in drafts]

    def _is_example(self, cells: Sequence[Cell]) -> bool:
        """Whether it is the template's example row, left in."""
        for index, text in self._example:
            if index >= len(cells) or cells[index] != text:
                return False
        return True

    def _settled(self, draft: RowDraft) -> CheckedRow:
        if draft.is_misshapen or draft.operation is None:
            return self._ended(draft, "invalid")
        if draft.operation == "create":
            return self._created(draft)
        if draft.operation == "convert":
            return self._converted(draft)
        return self._updated(draft)

    def _created(self, draft: RowDraft) -> CheckedRow:
        values, afterwards = self._create.apply(draft, _NOTHING)
        # A row that is wrong claims nothing: corrected, it may be another record.
        if draft.problems and _is_invalid(draft):
            return self._ended(draft, "invalid")
        self._claim(draft, self._keys(draft, values))
        task = self._planner.create(draft, values, afterwards)
        if not draft.problems:
            return CheckedRow(draft.row, None, (), task)
        is_first = all(each.code == "duplicate_in_warehouse" for each in draft.problems)
        kept = task if is_first else None
        return CheckedRow(draft.row, "duplicate", draft.problems, kept, draft.record_id)

    def _updated(self, draft: RowDraft) -> CheckedRow:
        landed = draft.landed
        record = _NOTHING if landed is None else landed.record
        values, _ = self._update.apply(draft, record)
        if landed is None or draft.problems:
            return self._ended(draft, "invalid")
        difference = self._planner.difference(draft, values)
        draft.problems += difference.problems
        if draft.problems:
            return self._ended(draft, "invalid")
        self._claim(draft, [f"id\x1f{draft.record_id}"])
        if draft.problems:
            return self._ended(draft, "duplicate")
        if not difference.wanted:
            return self._ended(draft, "unchanged")
        task = self._planner.update(draft, difference)
        return CheckedRow(draft.row, None, (), task, draft.record_id, difference.changes())

    def _converted(self, draft: RowDraft) -> CheckedRow:
        if draft.landed is None or draft.problems:
            return self._ended(draft, "invalid")
        self._claim(draft, [f"id\x1f{draft.record_id}"])
        if draft.problems:
            return self._ended(draft, "duplicate")
        record = draft.landed.record
        # What the stored lead looks like afterwards is not shown (API 3.5); these are its signs.
        if record.get("converted_at") is not None or record.get("status") == "active":
            draft.add(
                Problem("converted_already", "The lead is converted already.", fix="Do nothing.")
            )
            return self._ended(draft, "unchanged")
        return CheckedRow(draft.row, None, (), self._planner.convert(draft), draft.record_id)

    def _ended(self, draft: RowDraft, outcome: RowOutcome) -> CheckedRow:
        return CheckedRow(draft.row, outcome, draft.problems, record_id=draft.record_id)

    # -- duplicates -------------------------------------------------------------------------------

    def _keys(self, draft: RowDraft, values: Mapping[str, Any]) -> list[str]:
        """What this row's new record claims for itself among the file's."""
        identity, match = draft.identity, self._target.match
        keys = []
        if identity:
            keys.append(f"{','.join(identity)}\x1f{comparable(identity.values())}")
        if match and match != tuple(identity):
            keys.append(f"{','.join(match)}\x1f{comparable(values[name] for name in match)}")
        return keys or [f"row\x1f{json.dumps(values, sort_keys=True, ensure_ascii=False)}"]

    def _claim(self, draft: RowDraft, keys: Sequence[str]) -> None:
        """Claim the keys for this row; one that an earlier row has is a problem."""
        first = None
        for key in keys:
            first = self._claims.claim(key, draft.row.number) or first
        if first is not None:
            draft.add(
                Problem(
                    "duplicate_in_file",
                    f"Row {first} is the same {self._target.resource.singular}.",
                    self._key_column(draft),
                    fix=f"Take this row or row {first} out.",
                )
            )

    def _refuse_existing(self, drafts: Sequence[RowDraft]) -> None:
        """Find records that are landed already under the natural keys of rows that make one."""
        by_fields: dict[tuple[str, ...], list[RowDraft]] = {}
        for draft in drafts:
            if draft.operation == "create" and not draft.is_misshapen:
                draft.identity = natural_key(self._resource, draft.values)
                by_fields.setdefault(tuple(draft.identity), []).append(draft)
        # What has no key cannot be found, and what was looked for has not been found.
        for fields in by_fields.keys() - {(), self._target.match}:
            keyed = by_fields[fields]
            keys = [tuple(draft.identity.values()) for draft in keyed]
            found = self._lookups.ids(self._resource, fields, keys, self._target.parent)
            for draft, values, ids in zip(keyed, keys, found, strict=True):
                if ids:
                    draft.record_id = ids[0] if len(ids) == 1 else None
                    draft.add(self._existing(fields, values, ids))

    def _existing(
        self, fields: Sequence[str], values: Sequence[Any], ids: Sequence[str]
    ) -> Problem:
        singular = self._target.resource.singular
        named = ", ".join(fields)
        return Problem(
            "duplicate_in_warehouse",
            f"A {singular} with this {named} exists: {listed(ids)}.",
            self._columns.column_of(fields[0]),
            shown(" · ".join(map(str, values))),
            fix=f"Update it with --mode upsert --match {','.join(fields)}, or take the row out.",
        )

    def _key_column(self, draft: RowDraft) -> str | None:
        """The column to show for a row that is there twice."""
        fields = tuple(draft.identity) if draft.operation == "create" else self._finder.by
        return self._columns.column_of(fields[0]) if fields else None


_EXAMPLE_LEFT = Problem(
    "example_row", "It is the template's example.", fix="Take the row out, or fill it in."
)


def _example(target: PushTarget, columns: ColumnMap) -> tuple[tuple[int, str], ...]:
    """The cells of a template's example row, at the columns that the file has of it."""
    examples = {each.heading: each.example for each in accepted_columns(target)}
    return tuple(
        (each.index, examples[each.target.name])
        for each in columns.columns
        if each.heading in examples
    )


def _is_invalid(draft: RowDraft) -> bool:
    """Whether anything is wrong besides the row's being there twice."""
    return any(problem.code not in DUPLICATES for problem in draft.problems)

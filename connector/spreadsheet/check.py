"""Checking a file before any request: each row becomes a task, or is told everything that is
wrong with it.

Rows come and go in batches, so that a file of any length takes the memory of one batch and of a
digest for each row. Blank rows are no rows: nothing is said of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any

from connector.engine.task import RowOutcome, Task
from connector.spreadsheet.accepted import accepted_columns
from connector.spreadsheet.aim import Aim
from connector.spreadsheet.duplicates import Claims
from connector.spreadsheet.erased import refuse_erased
from connector.spreadsheet.finding import Finder, comparable
from connector.spreadsheet.identity import natural_key
from connector.spreadsheet.lookups import Lookups
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.planning import Planner
from connector.spreadsheet.problems import DUPLICATES
from connector.spreadsheet.reading import Draft, RowReader, Sheet
from connector.spreadsheet.references import References, listed
from connector.spreadsheet.row import Cell, Problem, Row
from connector.spreadsheet.rules import Terms
from connector.spreadsheet.unreadable import shown
from connector.suppression import Suppressed

BATCH_ROWS = 1_000
"""Rows that are looked up together."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Checked:
    """A row after every check that costs no request.

    `outcome` is None for a row that is to be sent, and then `task` says what. A row whose record
    exists already has a task too, the one that it would have been: by that an earlier push of
    this very row is known. `record_id` is the record that the row is about, where there is one.
    `changes` are old and new values by field, of an update.
    """

    row: Row
    outcome: RowOutcome | None
    problems: tuple[Problem, ...] = ()
    task: Task | None = None
    record_id: str | None = None
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def check(
    table: Sheet,
    columns: ColumnMap,
    aim: Aim,
    lookups: Lookups,
    suppressed: Suppressed | None = None,
) -> Iterator[Checked]:
    """Check every row that is not blank, in the file's order; rows about people who are
    `suppressed` are refused.

    Raises `WarehouseError` where the landing cannot be read, and whatever reading the file raises.
    """
    checking = _Checking(aim, columns, lookups, suppressed)
    rows = table.rows()
    while batch := list(islice(rows, BATCH_ROWS)):
        yield from checking.through(batch)


class _Checking:
    """One file's check under way."""

    def __init__(
        self, aim: Aim, columns: ColumnMap, lookups: Lookups, suppressed: Suppressed | None
    ) -> None:
        self._aim, self._columns, self._lookups = aim, columns, lookups
        self._suppressed = suppressed
        self._reader = RowReader(aim, columns)
        self._references = References(aim, columns, lookups)
        self._finder = Finder(aim, columns, lookups)
        self._planner = Planner(aim, columns, self._finder.by)
        self._create = Terms(aim, columns, "create")
        self._update = Terms(aim, columns, "update")
        self._claims = Claims()
        self._example = _example(aim, columns)
        self._resource = aim.resource.name

    def through(self, batch: Sequence[Row]) -> list[Checked]:
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

    def _settled(self, draft: Draft) -> Checked:
        if draft.is_misshapen or draft.operation is None:
            return self._ended(draft, "invalid")
        if draft.operation == "create":
            return self._created(draft)
        if draft.operation == "convert":
            return self._converted(draft)
        return self._updated(draft)

    def _created(self, draft: Draft) -> Checked:
        values, afterwards = self._create.apply(draft, _NOTHING)
        # A row that is wrong claims nothing: corrected, it may be another record.
        if draft.problems and _is_invalid(draft):
            return self._ended(draft, "invalid")
        self._claim(draft, self._keys(draft, values))
        task = self._planner.create(draft, values, afterwards)
        if not draft.problems:
            return Checked(draft.row, None, (), task)
        is_first = all(each.code == "duplicate_in_warehouse" for each in draft.problems)
        kept = task if is_first else None
        return Checked(draft.row, "duplicate", draft.problems, kept, draft.record_id)

    def _updated(self, draft: Draft) -> Checked:
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
        return Checked(draft.row, None, (), task, draft.record_id, difference.changes())

    def _converted(self, draft: Draft) -> Checked:
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
        return Checked(draft.row, None, (), self._planner.convert(draft), draft.record_id)

    def _ended(self, draft: Draft, outcome: RowOutcome) -> Checked:
        return Checked(draft.row, outcome, draft.problems, record_id=draft.record_id)

    # -- duplicates -------------------------------------------------------------------------------

    def _keys(self, draft: Draft, values: Mapping[str, Any]) -> list[str]:
        """What this row's new record claims for itself among the file's."""
        identity, match = draft.identity, self._aim.match
        keys = []
        if identity:
            keys.append(f"{','.join(identity)}\x1f{comparable(identity.values())}")
        if match and match != tuple(identity):
            keys.append(f"{','.join(match)}\x1f{comparable(values[name] for name in match)}")
        return keys or [f"row\x1f{json.dumps(values, sort_keys=True, ensure_ascii=False)}"]

    def _claim(self, draft: Draft, keys: Sequence[str]) -> None:
        """Claim the keys for this row; one that an earlier row has is a problem."""
        first = None
        for key in keys:
            first = self._claims.claim(key, draft.row.number) or first
        if first is not None:
            draft.add(
                Problem(
                    "duplicate_in_file",
                    f"Row {first} is the same {self._aim.resource.singular}.",
                    self._key_column(draft),
                    fix=f"Take this row or row {first} out.",
                )
            )

    def _refuse_existing(self, drafts: Sequence[Draft]) -> None:
        """Find records that are landed already under the natural keys of rows that make one."""
        by_fields: dict[tuple[str, ...], list[Draft]] = {}
        for draft in drafts:
            if draft.operation == "create" and not draft.is_misshapen:
                draft.identity = natural_key(self._resource, draft.values)
                by_fields.setdefault(tuple(draft.identity), []).append(draft)
        # What has no key cannot be found, and what was looked for has not been found.
        for fields in by_fields.keys() - {(), self._aim.match}:
            keyed = by_fields[fields]
            keys = [tuple(draft.identity.values()) for draft in keyed]
            found = self._lookups.ids(self._resource, fields, keys, self._aim.parent)
            for draft, values, ids in zip(keyed, keys, found, strict=True):
                if ids:
                    draft.record_id = ids[0] if len(ids) == 1 else None
                    draft.add(self._existing(fields, values, ids))

    def _existing(
        self, fields: Sequence[str], values: Sequence[Any], ids: Sequence[str]
    ) -> Problem:
        singular = self._aim.resource.singular
        named = ", ".join(fields)
        return Problem(
            "duplicate_in_warehouse",
            f"A {singular} with this {named} exists: {listed(ids)}.",
            self._columns.column_of(fields[0]),
            shown(" · ".join(map(str, values))),
            fix=f"Update it with --mode upsert --match {','.join(fields)}, or take the row out.",
        )

    def _key_column(self, draft: Draft) -> str | None:
        """The column to show for a row that is there twice."""
        fields = tuple(draft.identity) if draft.operation == "create" else self._finder.by
        return self._columns.column_of(fields[0]) if fields else None


_EXAMPLE_LEFT = Problem(
    "example_row", "It is the template's example.", fix="Take the row out, or fill it in."
)


def _example(aim: Aim, columns: ColumnMap) -> tuple[tuple[int, str], ...]:
    """The cells of a template's example row, at the columns that the file has of it."""
    examples = {each.heading: each.example for each in accepted_columns(aim)}
    return tuple(
        (each.index, examples[each.slot.column])
        for each in columns.columns
        if each.heading in examples
    )


def _is_invalid(draft: Draft) -> bool:
    """Whether anything is wrong besides the row's being there twice."""
    return any(problem.code not in DUPLICATES for problem in draft.problems)

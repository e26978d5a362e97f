"""From a checked row to the write it undertakes: what differs, and what has to be known for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.engine.lookup import is_same
from connector.engine.push_states import Task
from connector.spreadsheet.cells import ColumnPolicy
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.row import Problem
from connector.spreadsheet.row_reader import RowDraft
from connector.spreadsheet.target_columns import CONTENT, PushTarget, TargetColumn, natural_key

_CONTENT_PREFIX = f"{CONTENT}."


@dataclass(frozen=True, slots=True)
class Difference:
    """What an update would change: `wanted` and `base` by column keys, and why it cannot be told.

    A field that answers never show is wanted without a base.
    """

    wanted: dict[str, Any] = field(default_factory=dict)
    base: dict[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def changes(self) -> dict[str, tuple[Any, Any]]:
        """Old and new values by field."""
        return {key: (self.base.get(key), value) for key, value in self.wanted.items()}


class Planner:
    """Makes the tasks of one file's rows."""

    def __init__(self, target: PushTarget, columns: ColumnMap, found_by: tuple[str, ...]) -> None:
        self._target, self._columns = target, columns
        self._found_by = frozenset(found_by)
        self._slots: dict[str, tuple[TargetColumn, ColumnPolicy]] = {
            each.target.key: (each.target, each.options.policy) for each in columns.columns
        }
        for column, _, _ in columns.constants:
            self._slots[column.key] = column, "overwrite"

    def create(self, draft: RowDraft, values: dict[str, Any], afterwards: dict[str, Any]) -> Task:
        """The task of a row that makes a record."""
        parent, number = self._target.parent, draft.row.number
        fields = nested(values) if parent else values
        name = self._target.resource.name
        return Task(number, "create", name, fields, parent, afterwards, identity=draft.identity)

    def update(self, draft: RowDraft, difference: Difference) -> Task:
        """The task of a row that changes its record."""
        assert draft.landed is not None
        landed = draft.landed.record
        fields, base = difference.wanted, difference.base
        if self._target.parent:
            # Of an item's `fields` only what changes: the push puts it over what is there then.
            fields, base = nested(fields), nested(base)
        identity = natural_key(self._target.resource.name, landed)
        return self._of_record(draft, "update", fields, base, identity)

    def convert(self, draft: RowDraft) -> Task:
        """The task of a row that converts a lead."""
        assert draft.landed is not None
        identity = natural_key(self._target.resource.name, draft.landed.record)
        return self._of_record(draft, "convert", {}, {}, identity)

    def difference(self, draft: RowDraft, values: Mapping[str, Any]) -> Difference:
        """Which of the row's values the record does not have already, by what is landed."""
        assert draft.landed is not None
        found = Difference()
        unread: list[str] = []
        for key, value in values.items():
            # What found the record is in it already, but for letter case.
            if key in self._found_by:
                continue
            column, policy = self._slots[key]
            if policy == "never":
                continue
            if column.field.write_only:
                found.wanted[key] = value
                continue
            landed, is_known = _landed_value(column, draft)
            if not is_known:
                unread.append(key)
            elif not same(column, landed, value) and (policy == "overwrite" or is_empty(landed)):
                found.wanted[key], found.base[key] = value, landed
        problems = tuple(map(self._unread, unread[:1]))
        return Difference(found.wanted, found.base, problems)

    def _unread(self, key: str) -> Problem:
        resource = self._target.resource
        return Problem(
            "record_not_read",
            f"Only a list has shown the {resource.singular} so far, so its {key} is not known.",
            self._columns.column_of(key),
            fix=f"Run 'connector pull {resource.name}' to its end and try again.",
        )

    def _of_record(
        self,
        draft: RowDraft,
        operation: Any,
        fields: Mapping[str, Any],
        base: Mapping[str, Any],
        identity: Mapping[str, Any],
    ) -> Task:
        return Task(
            draft.row.number,
            operation,
            self._target.resource.name,
            fields,
            self._target.parent,
            record_id=draft.record_id,
            base=base,
            identity=identity,
        )


def _landed_value(column: TargetColumn, draft: RowDraft) -> tuple[Any, bool]:
    """What is landed under the column's key, and whether that is known."""
    assert draft.landed is not None
    record = draft.landed.record
    key = column.key
    if column.is_content:
        content = record.get(CONTENT)
        # An empty map is an empty array to some serialisers.
        held = content if isinstance(content, Mapping) else {}
        return held.get(key.removeprefix(_CONTENT_PREFIX)), draft.landed.is_whole
    # A detail leaves out what has no value, if it leaves out anything.
    return record.get(key), draft.landed.is_whole or key in record


def same(column: TargetColumn, landed: Any, wanted: Any) -> bool:
    """Whether a landed value and a wanted one mean the same, as the push will judge it; a list of
    nothing is empty as well.
    """
    if landed == wanted or (is_empty(landed) and is_empty(wanted)):
        return True
    return is_same(column.field, wanted, landed)


def is_empty(value: Any) -> bool:
    """Whether a landed value is none."""
    return value is None or value in ("", [])


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by column keys as a body has them: a content type's own below `fields`."""
    body: dict[str, Any] = {}
    for key, value in values.items():
        if key.startswith(_CONTENT_PREFIX):
            body.setdefault(CONTENT, {})[key.removeprefix(_CONTENT_PREFIX)] = value
        else:
            body[key] = value
    return body

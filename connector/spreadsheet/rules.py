"""What an operation takes and needs, row by row: accepted values, required fields, conditions.

All of it is in the declarations (API 2, 3, 4); nothing here names a resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from connector.field import AcceptedWhen, AtLeastOneOf, RequiredWhen, Rule
from connector.spreadsheet.aim import Aim
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.problems import COLUMN_MISSING
from connector.spreadsheet.reading import Draft
from connector.spreadsheet.row import Problem
from connector.spreadsheet.slots import Slot
from connector.spreadsheet.unreadable import joined, shown

Written = Literal["create", "update"]
"""The operations that have a body."""


class Terms:
    """What one operation takes, for the columns of one file."""

    def __init__(self, aim: Aim, columns: ColumnMap, operation: Written) -> None:
        self._operation = operation
        self._may_clear = aim.clear is not None
        self._columns = columns
        filled = {each.slot.key: each.slot for each in columns.columns}
        filled.update({slot.key: slot for slot, _, _ in columns.constants})
        # Only these columns need a look at each row; the others take whatever could be read.
        self._special = [slot for slot in filled.values() if self._is_special(slot)]
        every = {each.key: each for each in aim.slots}
        self._filled = frozenset(filled)
        # What no row can give is wrong with the file, and is told once of each of its creates.
        self._absent = columns.missing if operation == "create" else ()
        self._required = tuple(
            k for k, s in every.items() if s.create.required and k in self._filled
        )
        self._required_set = frozenset(self._required)
        self._rules: tuple[Rule, ...] = aim.resource.rules

    def apply(
        self, draft: Draft, landed: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The row's values: those that the operation takes, and those for an update after it.

        Adds to the draft's problems whatever the operation refuses or lacks. `landed` is the
        record as it is, for conditions that an update does not mention.
        """
        values = draft.values
        afterwards: dict[str, Any] = {}
        if self._special:
            values = values.copy()
            for slot in self._special:
                key = slot.key
                if values.get(key) is not None:
                    self._settle(draft, slot, values, afterwards)
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

    def _is_special(self, slot: Slot) -> bool:
        if self._operation == "create":
            return not slot.create.accepted or slot.create.values not in (None, slot.field.values)
        return not slot.update.accepted or slot.update.values not in (None, slot.field.values)

    def _settle(
        self, draft: Draft, slot: Slot, values: dict[str, Any], afterwards: dict[str, Any]
    ) -> None:
        """Leave the value where it is, put it off to an update afterwards, or refuse it."""
        value = values[slot.key]
        taken = slot.create if self._operation == "create" else slot.update
        if taken.accepted and _takes(taken.values, value):
            return
        can_follow = self._operation == "create" and not slot.create.required
        if can_follow and slot.update.accepted and _takes(slot.update.values, value):
            afterwards[slot.key] = values.pop(slot.key)
            return
        del values[slot.key]
        draft.fail(
            slot.key,
            Problem(
                "value_not_accepted",
                f"To {self._operation} a record the API does not take this value.",
                self._columns.column_of(slot.key),
                shown(str(value)),
                joined(slot.accepts(self._operation)),
                "Write one of the allowed values, or clear the cell.",
            ),
        )

    @staticmethod
    def _lacking(absent: tuple[str, ...]) -> Problem:
        what = ", ".join(absent)
        message = f"Creating needs {what}, for which the file has no column."
        fix = f"Add a column for {what}, or a constant to a mapping."
        return Problem(COLUMN_MISSING, message, fix=fix)

    def _refuse_missing(self, draft: Draft, values: Mapping[str, Any]) -> None:
        for key in self._required:
            if key not in values and key not in draft.failed:
                self._miss(draft, "required", key, f"Creating needs {key}.")

    def _miss(self, draft: Draft, code: str, key: str, message: str) -> None:
        column = self._columns.column_of(key)
        fix = "Fill the cell in." if column else f"Add a column {key}, or a constant to a mapping."
        draft.fail(key, Problem(code, message, column, fix=fix))

    def _check(
        self,
        rule: Rule,
        draft: Draft,
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

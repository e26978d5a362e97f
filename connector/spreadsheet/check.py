"""Check of a file before any request: each row becomes a task or has problems.

Rows are processed in batches, whose lookups are made together. Blank rows are skipped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice
from typing import Any, Literal

from connector.catalog.field import AcceptedWhen, AtLeastOneOf, FieldInput, Kind, RequiredWhen
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.problems import COLUMN_MISSING, DUPLICATES, UNSENT, SheetRow, problem_of
from connector.spreadsheet.records import (
    Difference,
    LandedComparison,
    RecordFinder,
    ReferenceResolver,
    comparison_key,
    join_ids,
    with_article,
)
from connector.spreadsheet.row_reader import ColumnMeanings, RowDraft, RowReader
from connector.spreadsheet.targets import (
    CONTENT_PREFIX,
    Lookups,
    PushTarget,
    TargetColumn,
    comparison_text,
    natural_key,
)
from connector.spreadsheet.template import template_columns
from connector.state.row import LandedRecord, Outcome, Problem, Row

BATCH_ROWS = 1_000
"""Number of rows that are looked up together."""

_EXAMPLE_COLUMNS_MIN = 3
_PHONE_DIGITS = 9


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """Row after every check that sends no request.

    Attributes:
        outcome: Outcome of a row that is not sent; None if the row is to be sent.
        task: Row of the row. An existing record has the task that it would have had, to detect an
            earlier push of the same row.
        record_id: Id of the record, if it exists.
        changes: Old and new values by field, for an update.
        warnings: Warnings for a row that is to be sent.
        remarks: Harmless changes of the row's cells.
    """

    row: SheetRow
    outcome: Outcome | None
    problems: tuple[Problem, ...] = ()
    task: Row | None = None
    record_id: str | None = None
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
    remarks: tuple[Problem, ...] = ()


def check_rows(
    rows: Iterable[SheetRow],
    columns: ColumnMap,
    target: PushTarget,
    lookups: Lookups,
    *,
    meanings: ColumnMeanings | None = None,
) -> Iterator[CheckedRow]:
    """Check every row that is not blank, in the order of the file.

    `meanings` decide ambiguous cells; without
    them an ambiguous cell is a problem.

    Raises `WarehouseError` if the local copy cannot be read, and the errors of reading the file.
    """
    checking = _RowChecker(target, columns, lookups, meanings)
    rows = iter(rows)
    while batch := list(islice(rows, BATCH_ROWS)):
        yield from checking.check_batch(batch)


class _RowChecker:
    """Checker of one file's rows, which remembers the keys of earlier rows to find duplicates."""

    def __init__(
        self,
        target: PushTarget,
        columns: ColumnMap,
        lookups: Lookups,
        meanings: ColumnMeanings | None,
    ) -> None:
        self._target, self._columns, self._lookups = target, columns, lookups
        self._resource, self._parent = target.resource.name, target.parent
        self._reader = RowReader(target, columns, meanings)
        self._oddities = _Oddities(columns)
        self._twins = _Twins(target, columns, lookups)
        self._references = ReferenceResolver(columns, lookups)
        self._finder = RecordFinder(target, columns, lookups)
        self._comparison = LandedComparison(target, columns, self._finder.by)
        self._create = OperationRules(target, columns, "create")
        self._update = OperationRules(target, columns, "update")
        self._claims: dict[str, int] = {}
        self._example = _example_cells(target, columns)

    def check_batch(self, batch: Sequence[SheetRow]) -> list[CheckedRow]:
        """Return the rows of a batch with their tasks or problems; blank rows are left out."""
        # A constant of the mapping does not turn a blank row into a row.
        drafts = [d for d in map(self._reader.read, batch) if d.problems or not d.row.is_left_out]
        for draft in drafts if self._example else ():
            cells = draft.row.cells
            if all(i < len(cells) and cells[i] == text for i, text in self._example):
                draft.add(problem_of("example_row"))
        self._references.resolve(drafts)
        self._finder.find_records(drafts)
        self._refuse_existing(drafts)
        return [
            _unsent_row(draft, "invalid")
            if draft.is_misshapen or draft.operation is None
            else self._check_create(draft)
            if draft.operation == "create"
            else self._check_change(draft)
            for draft in drafts
        ]

    def _check_create(self, draft: RowDraft) -> CheckedRow:
        """Check the values of a new record, and that no other row or record has its key."""
        values, afterwards = self._create.apply(draft, {})
        self._oddities.warn(draft, values)
        # A row with problems claims no key: corrected, it may be another record.
        if any(problem.code not in DUPLICATES for problem in draft.problems):
            return _unsent_row(draft, "invalid")
        self._claim_keys(draft, self._duplicate_keys(draft, values))
        task = Row(
            draft.row.number,
            self._resource,
            "create",
            self._parent,
            self._as_body(values),
            afterwards,
            identity=draft.natural_key,
        )
        if draft.problems:
            is_first = all(each.code == "duplicate_in_warehouse" for each in draft.problems)
            return replace(_unsent_row(draft, "duplicate"), task=task if is_first else None)
        self._twins.warn(draft, values)
        warnings, remarks = draft.warnings, draft.remarks
        return CheckedRow(draft.row, None, task=task, warnings=warnings, remarks=remarks)

    def _check_change(self, draft: RowDraft) -> CheckedRow:
        """Check an update or a conversion; unchanged if the record has all values already."""
        landed, is_update, values = draft.landed, draft.operation == "update", draft.values
        if is_update:
            values, _ = self._update.apply(draft, {} if landed is None else landed.record)
            self._oddities.warn(draft, values)
        if landed is None or draft.problems:
            return _unsent_row(draft, "invalid")
        difference = self._comparison.difference(draft, values) if is_update else Difference()
        if difference.unknown_key is not None:
            singular = self._target.resource.singular
            message = f"The local copy does not have the whole {singular}, so the"
            column = self._columns.heading_of(difference.unknown_key)
            draft.add(
                problem_of("record_not_read", f"{message} current value is not known.", column)
            )
            return _unsent_row(draft, "invalid")
        self._claim_keys(draft, [f"id\x1f{draft.record_id}"])
        if is_update:
            self._refuse_key_of_another(draft, landed, difference)
        if draft.problems:
            return _unsent_row(draft, "duplicate")
        record = landed.record
        # The API does not show the lead after its conversion (API 3.5); these fields indicate it.
        if not is_update and (record.get("converted_at") or record.get("status") == "active"):
            draft.add(problem_of("converted_already"))
        if draft.problems or (is_update and not difference.new_values):
            return _unsent_row(draft, "unchanged")
        assert draft.operation is not None
        task = Row(
            draft.row.number,
            self._resource,
            draft.operation,
            self._parent,
            # Only changed `fields` of a content item: the push merges them into the current ones.
            self._as_body(difference.new_values),
            record_id=draft.record_id,
            base=self._as_body(difference.loaded_values),
            identity=natural_key(self._resource, record),
        )
        return CheckedRow(
            draft.row,
            None,
            task=task,
            record_id=draft.record_id,
            changes=difference.changes(),
            warnings=draft.warnings if is_update else (),
            remarks=draft.remarks if is_update else (),
        )

    def _as_body(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values in the shape of a body: fields of a content type below `fields`."""
        if not self._parent:
            return values
        body: dict[str, Any] = {}
        for key, value in values.items():
            below, is_content, name = key.partition(CONTENT_PREFIX)
            if is_content and not below:
                body.setdefault(CONTENT_PREFIX.removesuffix("."), {})[name] = value
            else:
                body[key] = value
        return body

    # -- duplicates -------------------------------------------------------------------------------

    def _duplicate_keys(self, draft: RowDraft, values: Mapping[str, Any]) -> list[str]:
        """Return the keys that make a later row a duplicate of this row, which creates a record."""
        identity, match = draft.natural_key, self._target.match
        keys = []
        if identity:
            keys.append(f"{','.join(identity)}\x1f{comparison_key(identity.values())}")
        if match and match != tuple(identity):
            keys.append(f"{','.join(match)}\x1f{comparison_key(values[name] for name in match)}")
        return keys or [f"row\x1f{json.dumps(values, sort_keys=True, ensure_ascii=False)}"]

    def _claim_keys(self, draft: RowDraft, keys: Sequence[str]) -> None:
        """Claim the keys for this row, and add a problem for a key that an earlier row has."""
        number = draft.row.number
        owners = [self._claims.setdefault(key, number) for key in keys]
        first = next((owner for owner in reversed(owners) if owner != number), None)
        if first is not None:
            fields = tuple(draft.natural_key) if draft.operation == "create" else self._finder.by
            column = self._columns.heading_of(fields[0]) if fields else None
            message = f"The row is a duplicate of row {first}."
            twin = problem_of("duplicate_in_file", message, column)
            draft.add(replace(twin, found=str(first)))

    def _refuse_existing(self, drafts: Sequence[RowDraft]) -> None:
        """Add a problem to rows that would create a record with a loaded record's natural key."""
        by_fields: dict[tuple[str, ...], list[RowDraft]] = {}
        for draft in drafts:
            if draft.operation == "create" and not draft.is_misshapen:
                draft.natural_key = natural_key(self._resource, draft.values)
                by_fields.setdefault(tuple(draft.natural_key), []).append(draft)
        # A row without a key cannot be found, and a row with an id was not found.
        for fields in by_fields.keys() - {(), self._target.match}:
            keyed = by_fields[fields]
            keys = [tuple(draft.natural_key.values()) for draft in keyed]
            found = self._lookups.find_ids(self._resource, fields, keys, self._parent)
            for draft, values, ids in zip(keyed, keys, found, strict=True):
                if ids:
                    draft.record_id = ids[0] if len(ids) == 1 else None
                    draft.add(self._existing_record_problem(fields, values, ids))

    def _refuse_key_of_another(
        self, draft: RowDraft, landed: LandedRecord, difference: Difference
    ) -> None:
        """Add a problem to an update that takes the natural key of another record or row."""
        key = natural_key(self._resource, {**landed.record, **difference.new_values})
        if not key or key.keys().isdisjoint(difference.new_values):
            return
        values = tuple(key.values())
        (ids,) = self._lookups.find_ids(self._resource, tuple(key), [values], self._parent)
        others = [id for id in ids if id != draft.record_id]
        if others:
            draft.add(self._existing_record_problem(tuple(key), values, others))
        else:
            self._claim_keys(draft, [f"{','.join(key)}\x1f{comparison_key(values)}"])

    def _existing_record_problem(
        self, fields: Sequence[str], values: Sequence[Any], ids: Sequence[str]
    ) -> Problem:
        """Return the problem that loaded records with these `ids` have these values."""
        singular = self._target.resource.singular
        names = " and ".join(map(self._columns.display_name, fields))
        named = f"{with_article(singular).capitalize()} with this {names}"
        return problem_of(
            "duplicate_in_warehouse",
            f"{named} already exists (ID {join_ids(ids)}).",
            self._columns.heading_of(fields[0]),
            received=" · ".join(map(str, values)),
            fix=f"Update the {singular} instead, or delete the row.",
        )


def _unsent_row(draft: RowDraft, outcome: Outcome) -> CheckedRow:
    """Return the checked row with this outcome and without a task."""
    return CheckedRow(
        draft.row,
        outcome,
        draft.problems,
        record_id=draft.record_id,
        # A row that is corrected, or chosen among several, is sent with its warnings.
        warnings=draft.warnings if outcome in UNSENT else (),
        remarks=draft.remarks,
    )


def _example_cells(target: PushTarget, columns: ColumnMap) -> tuple[tuple[int, str], ...]:
    """Return (column index, text) of the template's example row; empty if too few columns match."""
    examples = {each.heading: each.example for each in template_columns(target)}
    found = tuple(
        (each.index, examples[each.target.name])
        for each in columns.columns
        if each.heading in examples
    )
    # A single cell may equal the example by chance.
    return found if len(found) >= min(_EXAMPLE_COLUMNS_MIN, len(examples)) else ()


class _Oddities:
    """Warnings for unusual pay, reversed ranges, and impossible dates of birth."""

    def __init__(self, columns: ColumnMap) -> None:
        self._columns = columns
        keys = columns.targets
        pairs = (("range_reversed", "min", "max"), ("ends_before_start", "start", "end"))
        self._ranges = [
            (code, key, partner)
            for code, low, high in pairs
            for key in keys
            if low in key.split("_") and (partner := key.replace(low, high, 1)) in keys
        ]
        pay = (("salary", 1_000, math.inf), ("day_rate", 0, 10_000))
        numbers = [key for key, each in keys.items() if each.field.kind is Kind.NUMBER]
        self._pay = [(key, *limits) for key in numbers for word, *limits in pay if word in key]
        today = date.today().isoformat()  # the user's own day
        self._births = f"{int(today[:4]) - 100}{today[4:]}", today

    def warn(self, draft: RowDraft, values: Mapping[str, Any]) -> None:
        """Add the warnings of a row."""
        for key, minimum, maximum in self._pay:
            amount = values.get(key)
            # The row may declare that a salary is per hour.
            is_known = minimum and values.get("salary_type") not in (None, "annual")
            if amount and not minimum <= amount <= maximum and not is_known:
                message = f"The value is unusually {'low' if amount < minimum else 'high'}."
                self._add(draft, "odd_amount", message, key)
        for code, low, high in self._ranges:
            first, last = values.get(low), values.get(high)
            if first is not None and last is not None and first > last:
                one, other = map(self._columns.display_name, (low, high))
                self._add(draft, code, f"{one} is {first}, but {other} is {last}.", low)
        born = values.get("date_of_birth")
        if born is not None and not self._births[0] < born <= self._births[1]:
            reason = "in the future" if born > self._births[1] else "more than 100 years ago"
            self._add(draft, "born_later", f"The value is {reason}.", "date_of_birth")

    def _add(self, draft: RowDraft, code: str, message: str, key: str) -> None:
        """Add a warning about a value, with the cell as it is in the file."""
        heading = self._columns.heading_of(key)
        index = next((e.index for e in self._columns.columns if e.heading == heading), None)
        cell = str(draft.values.get(key)) if index is None else draft.row.cells[index]
        draft.warn(code, message, heading, cell)


class _Twins:
    """Warnings for new people with the name and a number or profile of another record or row."""

    def __init__(self, target: PushTarget, columns: ColumnMap, lookups: Lookups) -> None:
        self._resource, self._columns, self._lookups = target.resource, columns, lookups
        person = next((each for each in target.resource.subjects if each.is_record), None)
        self._name = person.names[0] if person else ()
        self._contacts = (*person.phones, *person.profiles) if person else ()
        self._known: dict[tuple[str, ...], str] | None = None

    def warn(self, draft: RowDraft, values: Mapping[str, Any]) -> None:
        """Add a warning if a record, or an earlier row, may be the same person."""
        if not self._name or not all(values.get(each) for each in self._name):
            return
        name = [values[each] for each in self._name]
        for contact in self._contacts:
            if values.get(contact):
                if self._known is None:
                    self._known = dict(self._records())
                key = _person_key(name, values[contact])
                other = self._known.setdefault(key, f"row {draft.row.number}")
                if other != f"row {draft.row.number}":
                    field = self._columns.display_name(contact)
                    message = f"The name and {field} are those of {other}, with another email."
                    heading = self._columns.heading_of(contact)
                    draft.warn("possible_twin", message, heading, values[contact])
                    return

    def _records(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the keys of all records, with what to call them."""
        singular, resource = self._resource.singular, self._resource.name
        for contact in self._contacts:
            for id, *name, text in self._lookups.list_texts(resource, (*self._name, contact)):
                yield _person_key(name, text), f"the {singular} with the ID {id}"


def _person_key(name: Sequence[str], contact: str) -> tuple[str, ...]:
    """Return what two records of one person share: the name, and the last digits or the address."""
    digits = re.sub(r"\D", "", contact)
    is_number = len(digits) >= _PHONE_DIGITS and not re.search(r"[a-z]{2}", contact, re.IGNORECASE)
    own = re.sub(r"^https?://(www\.)?|/+$", "", comparison_text(contact))
    return (*map(comparison_text, name), digits[-_PHONE_DIGITS:] if is_number else own)


# -- Rules -----------------------------------------------------------------------------------------
# The declarations contain all rules (API 2, 3, 4): accepted values, required fields and conditions.
# This module names no resource.


class OperationRules:
    """Rules of the API for creating or for updating records, for the columns of one file."""

    def __init__(
        self, target: PushTarget, columns: ColumnMap, operation: Literal["create", "update"]
    ) -> None:
        self._operation, self._columns = operation, columns
        self._record = with_article(target.resource.singular)
        self._targets = {each.key: each for each in target.columns}
        self._is_create = operation == "create"
        filled = columns.targets
        # Only these columns are checked in each row; the others accept every value that was read.
        inputs = [
            (each, each.field.create if self._is_create else each.field.update)
            for each in filled.values()
        ]
        self._special = [
            (column, accepts)
            for column, accepts in inputs
            if not accepts.accepted or accepts.values not in (None, column.field.values)
        ]
        # A field that no row can fill is an error of the file, reported once for each create.
        self._absent = ", ".join(columns.missing) if self._is_create else ""
        self._required = [
            e.key for e in target.columns if e.field.create.required and e.key in filled
        ]
        rules = target.resource.rules
        self._conditions = [each for each in rules if isinstance(each, AcceptedWhen)]
        self._needs = [each for each in rules if isinstance(each, RequiredWhen)]
        self._groups = [
            each.fields
            for each in rules
            if isinstance(each, AtLeastOneOf) and not filled.keys().isdisjoint(each.fields)
        ]

    def apply(
        self, draft: RowDraft, landed: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the values for the operation, and the values for an update after a create.

        Adds a problem to the draft for each value that the operation refuses or requires. `landed`
        is the current record, for conditions on fields that an update does not contain.
        """
        values = dict(draft.values)
        afterwards: dict[str, Any] = {}
        for column, accepts in self._special:
            value = values.get(column.key)
            if value is None or _accepts_value(accepts, value):
                continue
            del values[column.key]
            can_follow = self._is_create and not column.field.create.required
            if can_follow and _accepts_value(column.field.update, value):
                afterwards[column.key] = value
            else:
                self._refuse_value(draft, column, value)
        if self._is_create:
            values = {key: value for key, value in values.items() if value is not None}
            if self._absent:
                message = f"The file has no column for {self._absent}, but {self._record} needs it."
                fix = f"Add a column for {self._absent}, or give all rows a value"
                fix += f" (--set {self._absent.split(', ')[0]}=VALUE)."
                draft.add(problem_of(COLUMN_MISSING, message, fix=fix))
            for key in self._required:
                self._require_value(draft, "required", key, values, f"{self._record} needs a value")
            self._check_conditionally_required(draft, values)
        for rule in self._conditions:
            self._check_conditionally_accepted(rule, draft, {**values, **afterwards}, landed)
        return values, afterwards

    def _refuse_value(self, draft: RowDraft, column: TargetColumn, value: Any) -> None:
        """Add the problem that the operation does not accept the value."""
        doing = "creating" if self._is_create else "changing"
        refused = problem_of(
            "value_not_accepted",
            f"The value is not allowed when {doing} {self._record}.",
            self._columns.heading_of(column.key),
            received=str(value),
            allowed=", ".join(column.accepted_values(self._operation)),
        )
        draft.fail(column.key, refused)

    def _require_value(
        self, draft: RowDraft, code: str, key: str, values: Mapping[str, Any], why: str
    ) -> None:
        """Add a problem if the field `key` has no value; `why` completes its message."""
        if key in values or key in draft.failed_keys:
            return
        column = self._columns.heading_of(key)
        if column and any((each.code, each.column) == (code, column) for each in draft.problems):
            # One cell with a whole name has two fields.
            return
        for each in draft.remarks:
            if each.code == "says_nothing" and each.column == column:
                word = problem_of("word_for_nothing", None, column, received=each.received)
                draft.fail(key, word)
                return
        message, fix = f"The cell is empty, but {why}.", None
        if column is None:
            message = f"The file has no column {key}, but {why}."
            fix = f"Add a column {key}, or give all rows a value (--set {key}=VALUE)."
        allowed = ", ".join(self._targets[key].accepted_values(self._operation)) or None
        draft.fail(key, problem_of(code, message, column, allowed=allowed, fix=fix))

    def _check_conditionally_required(self, draft: RowDraft, values: Mapping[str, Any]) -> None:
        """Add problems for fields that a create requires because of the values of other fields."""
        for rule in self._needs:
            for key in rule.fields if values.get(rule.on) in rule.values else ():
                other = self._columns.display_name(rule.on)
                why = f"a value is required when {other} is {values[rule.on]}"
                self._require_value(draft, "required_when", key, values, why)
        for fields in self._groups:
            if not any(key in values or key in draft.failed_keys for key in fields):
                names = " and ".join(map(self._columns.display_name, fields))
                message = f"{names} are empty, but one of them is required."
                draft.add(problem_of("one_of_required", message))

    def _check_conditionally_accepted(
        self,
        rule: AcceptedWhen,
        draft: RowDraft,
        values: Mapping[str, Any],
        landed: Mapping[str, Any],
    ) -> None:
        """Add a problem if the rule's field has a value without its condition."""
        key, on, states = rule.field, rule.on, ", ".join(rule.values)
        if values.get(key) is None or on in draft.failed_keys:
            return
        if values.get(on, landed.get(on)) not in rule.values:
            other = self._columns.display_name(on)
            refused = problem_of(
                "only_with",
                f"The value is allowed only when {other} is {states}.",
                self._columns.heading_of(key),
                received=str(values[key]),
                fix=f"Change {other}, or clear the cell.",
            )
            draft.fail(key, refused)


def _accepts_value(field_input: FieldInput, value: Any) -> bool:
    """Return True if the input accepts this value, or all values of a list."""
    if not field_input.accepted or field_input.values is None:
        return field_input.accepted
    if isinstance(value, list):
        return {*value} <= {*field_input.values}
    return value in field_input.values

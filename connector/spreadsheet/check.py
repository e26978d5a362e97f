"""Check of a file before any request: each row becomes a task or has problems.

Rows are processed in batches, whose lookups are made together. Blank rows are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from connector.catalog.field import AcceptedWhen, AtLeastOneOf, FieldInput, RequiredWhen
from connector.catalog.field_comparison import is_same_value
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.problems import COLUMN_MISSING, DUPLICATES, UNSENT, SheetRow, text_of
from connector.spreadsheet.records import RecordFinder, ReferenceResolver, join_ids, with_article
from connector.spreadsheet.row_reader import CheckedRow, ColumnMeanings, RowReader
from connector.spreadsheet.targets import Lookups, PushTarget, comparison_text, natural_key
from connector.state.row import LandedRecord, Row

BATCH_ROWS = 1_000
"""Number of rows that are looked up together."""

_PHONE_DIGITS = 9
"""Number of last digits by which telephone numbers are compared."""


def check_rows(
    rows: Iterable[SheetRow],
    columns: ColumnMap,
    target: PushTarget,
    lookups: Lookups,
    *,
    meanings: ColumnMeanings | None = None,
) -> Iterator[CheckedRow]:
    """Check every row that is not blank, in the order of the file.

    Without `meanings` an ambiguous cell is a problem. Raises `WarehouseError`.
    """
    checker, rows = _RowChecker(target, columns, lookups, meanings), iter(rows)
    while batch := list(islice(rows, BATCH_ROWS)):
        yield from checker.check_batch(batch)


class _RowChecker:
    def __init__(
        self,
        target: PushTarget,
        columns: ColumnMap,
        lookups: Lookups,
        meanings: ColumnMeanings | None,
    ) -> None:
        self._target, self._columns, self._lookups = target, columns, lookups
        self._resource = target.resource.name
        self._reader = RowReader(target, columns, meanings)
        self._references = ReferenceResolver(columns, lookups)
        self._finder = RecordFinder(target, columns, lookups)
        self._targets = {each.key: each for each in target.columns}
        self._mapped = {each.target.key: each for each in columns.columns}
        self._create, self._update = (_Rules(target, columns, e) for e in ("create", "update"))
        self._twins = _Twins(target, columns, lookups)
        self._claims: dict[str, int] = {}

    def check_batch(self, batch: Sequence[SheetRow]) -> list[CheckedRow]:
        """Return the rows of a batch with their tasks or problems; blank rows are left out."""
        # A constant of the mapping does not turn a blank row into a row.
        rows = [
            row for row in map(self._reader.read, batch) if row.problems or not row.row.is_left_out
        ]
        for row in rows:
            self._references.resolve(row)
        self._finder.find_records(rows)
        self._refuse_existing(rows)
        for row in rows:
            if row.row.is_misshapen or row.operation is None:
                row.outcome = "invalid"
            elif row.operation == "create":
                self._check_create(row)
            else:
                self._check_change(row)
            if row.outcome not in (None, *UNSENT):
                # A row that is corrected, or chosen among several, is sent with its warnings.
                row.warnings = ()
            row.landed = None
        return rows

    def _check_create(self, row: CheckedRow) -> None:
        values, afterwards = self._create.apply(row, {})
        # A row with problems claims no key: corrected, it may be another record.
        if any(problem.code not in DUPLICATES for problem in row.problems):
            row.outcome = "invalid"
            return
        identity, match = row.natural_key, self._target.match
        keys = [_claim(identity)] if identity else []
        if match and match != tuple(identity):
            keys.append(_claim({name: values[name] for name in match}))
        self._claim_keys(row, keys or [json.dumps(values, sort_keys=True, ensure_ascii=False)])
        if all(each.code == "duplicate_in_warehouse" for each in row.problems):
            row.task = self._task(row, values, identity, then=afterwards)
        if row.problems:
            row.outcome = "duplicate"
        else:
            self._twins.warn(row, values)

    def _check_change(self, row: CheckedRow) -> None:
        """Check an update or a conversion; unchanged if the record has all values already."""
        landed, is_update = row.landed, row.operation == "update"
        new: dict[str, Any] = {}
        base: dict[str, Any] = {}
        if is_update:
            values, _ = self._update.apply(row, {} if landed is None else landed.record)
            if landed is not None and not row.problems:
                new, base = self._changes(row, landed, values)
        if landed is None or row.problems:
            row.outcome = "invalid"
            return
        record = landed.record
        self._claim_keys(row, [f"id\x1f{row.record_id}"])
        if is_update:
            self._refuse_key_of_another(row, landed, new)
        if row.problems:
            row.outcome = "duplicate"
            return
        # The API does not show the lead after its conversion (API 3.5); these fields indicate it.
        if not is_update and (record.get("converted_at") or record.get("status") == "active"):
            row.add("converted_already")
        if row.problems or (is_update and not new):
            row.outcome = "unchanged"
            return
        if not is_update:
            row.warnings = row.remarks = ()
        row.task = self._task(row, new, natural_key(self._resource, record), base=base)

    def _changes(
        self, row: CheckedRow, landed: LandedRecord, values: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return new and loaded values of the fields that the row changes, by column's policy.

        Loaded values are those that the user last saw. Adds a problem if one is not known.
        """
        wanted: dict[str, Any] = {}
        base: dict[str, Any] = {}
        record, seen = landed.record, landed.record if landed.seen is None else landed.seen
        for key, value in values.items():
            field, column = self._targets[key].field, self._mapped.get(key)
            # The record already has the value that found it, except for letter case.
            if key in self._finder.by:
                continue
            if field.write_only:
                wanted[key] = value
                continue
            # A detail may omit fields without a value.
            if not landed.is_whole and key not in record:
                singular = self._target.resource.singular
                message = f"The local copy does not have the whole {singular}, so the current value"
                row.add("record_not_read", f"{message} is not known.", key)
                break
            now, cell = record.get(key), row.row.cells[column.index] if column is not None else ""
            is_kept = column and column.options.policy == "fill" and now not in (None, "")
            is_same = is_same_value(field, value, now) or _is_as_written(text_of(cell), now)
            if not (is_kept or is_same):
                wanted[key], base[key] = value, seen.get(key)
        return wanted, base

    def _task(
        self,
        row: CheckedRow,
        values: Mapping[str, Any],
        identity: Mapping[str, Any],
        *,
        then: Mapping[str, Any] | None = None,
        base: Mapping[str, Any] | None = None,
    ) -> Row:
        return Row(
            row.row.number,
            self._resource,
            row.operation,
            self._target.parent,
            fields=values,
            then=then or {},
            base=base or {},
            identity=identity,
            record_id=None if row.operation == "create" else row.record_id,
        )

    # -- duplicates -------------------------------------------------------------------------------

    def _claim_keys(self, row: CheckedRow, keys: Sequence[str]) -> None:
        number = row.row.number
        owners = [self._claims.setdefault(key, number) for key in keys]
        first = next((owner for owner in reversed(owners) if owner != number), None)
        if first is not None:
            fields = tuple(row.natural_key) if row.operation == "create" else self._finder.by
            message = f"The row is a duplicate of row {first}."
            key = fields[0] if fields else None
            row.add("duplicate_in_file", message, key, found=str(first))

    def _refuse_existing(self, rows: Sequence[CheckedRow]) -> None:
        """Add a problem to rows that would create a record with a loaded record's natural key."""
        by_fields: dict[tuple[str, ...], list[CheckedRow]] = {}
        for row in rows:
            if row.operation == "create" and not row.row.is_misshapen:
                row.natural_key = natural_key(self._resource, row.values)
                by_fields.setdefault(tuple(row.natural_key), []).append(row)
        # A row without a key cannot be found, and a row with an id was not found.
        for fields in by_fields.keys() - {(), self._target.match}:
            keys = [tuple(row.natural_key.values()) for row in by_fields[fields]]
            found = self._lookups.find_ids(self._resource, fields, keys, self._target.parent)
            for row, ids in zip(by_fields[fields], found, strict=True):
                if ids:
                    row.record_id = ids[0] if len(ids) == 1 else None
                    self._add_existing(row, row.natural_key, ids)

    def _refuse_key_of_another(
        self, row: CheckedRow, landed: LandedRecord, new: Mapping[str, Any]
    ) -> None:
        """Add a problem to an update that takes the natural key of another record or row."""
        key = natural_key(self._resource, {**landed.record, **new})
        if not key or key.keys().isdisjoint(new):
            return
        values, parent = tuple(key.values()), self._target.parent
        (ids,) = self._lookups.find_ids(self._resource, tuple(key), [values], parent)
        if others := [id for id in ids if id != row.record_id]:
            self._add_existing(row, key, others)
        else:
            self._claim_keys(row, [_claim(key)])

    def _add_existing(self, row: CheckedRow, key: Mapping[str, Any], ids: Sequence[str]) -> None:
        singular = self._target.resource.singular
        names = " and ".join(map(self._columns.display_name, key))
        named = f"{with_article(singular).capitalize()} with this {names}"
        row.add(
            "duplicate_in_warehouse",
            f"{named} already exists (ID {join_ids(ids)}).",
            next(iter(key)),
            received=" · ".join(map(str, key.values())),
            fix=f"Update the {singular} instead, or delete the row.",
        )


def _is_as_written(cell: str, now: Any) -> bool:
    """Return True if the record has the cell itself, in a form that is not normalized."""
    text = cell.replace("\r\n", "\n").strip()
    return isinstance(now, str) and text == now.replace("\r\n", "\n").strip() != ""


def _claim(key: Mapping[str, object]) -> str:
    """Return a text that is equal for keys of the same fields with the same meaning."""
    return "\x1f".join([",".join(key), *map(comparison_text, key.values())])


# -- Rules of the API ------------------------------------------------------------------------------
# The declarations contain all rules (API 2, 3, 4): accepted values, required fields and conditions.
# This module names no resource.


class _Twins:
    """Warnings for new people with the name and a number or profile of another record or row."""

    def __init__(self, target: PushTarget, columns: ColumnMap, lookups: Lookups) -> None:
        self._resource, self._columns, self._lookups = target.resource, columns, lookups
        person = next((each for each in target.resource.subjects if each.is_record), None)
        self._name = person.names[0] if person else ()
        self._contacts = (*person.phones, *person.profiles) if person else ()
        self._known: dict[tuple[str, ...], str] | None = None

    def warn(self, row: CheckedRow, values: Mapping[str, Any]) -> None:
        """Add a warning if a record, or an earlier row, may be the same person."""
        if not self._name or not all(values.get(each) for each in self._name):
            return
        for contact in (each for each in self._contacts if values.get(each)):
            self._known = dict(self._records()) if self._known is None else self._known
            key = _person_key([values[each] for each in self._name], values[contact])
            other = self._known.setdefault(key, f"row {row.row.number}")
            if other != f"row {row.row.number}":
                field = self._columns.display_name(contact)
                message = f"The name and {field} are those of {other}, with another email."
                row.warn("possible_twin", message, contact, values[contact])
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


class _Rules:
    """Rules of the API for creating or for updating records, for the columns of one file."""

    def __init__(
        self, target: PushTarget, columns: ColumnMap, operation: Literal["create", "update"]
    ) -> None:
        self._operation, self._columns, filled = operation, columns, columns.targets
        self._record, self._rules = with_article(target.resource.singular), target.resource.rules
        self._targets = {each.key: each for each in target.columns}
        # Only these columns are checked in each row; the others accept every value that was read.
        inputs = [
            (each, each.field.create if operation == "create" else each.field.update)
            for each in filled.values()
        ]
        self._special = [
            (column, accepts)
            for column, accepts in inputs
            if not accepts.accepted or accepts.values not in (None, column.field.values)
        ]
        self._required = [key for key, each in self._targets.items() if each.field.create.required]

    def apply(
        self, row: CheckedRow, landed: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return values for the operation, and for an update after a create; may add problems.

        `landed` is the current record, for conditions on fields that an update does not contain.
        """
        values, afterwards = dict(row.values), dict[str, Any]()
        for column, accepts in self._special:
            value, can_follow = values.get(column.key), self._operation == "create"
            if value is None or _accepts_value(accepts, value):
                continue
            del values[column.key]
            can_follow = can_follow and not column.field.create.required
            if can_follow and _accepts_value(column.field.update, value):
                afterwards[column.key] = value
            else:
                doing = "creating" if self._operation == "create" else "changing"
                message = f"The value is not allowed when {doing} {self._record}."
                allowed = ", ".join(column.accepted_values(self._operation))
                row.fail(
                    *(column.key, "value_not_accepted", message),
                    received=str(value),
                    allowed=allowed,
                )
        if self._operation == "create":
            values = {key: value for key, value in values.items() if value is not None}
            self._check_required(row, values)
        for rule in self._rules:
            if isinstance(rule, AcceptedWhen):
                self._check_accepted(rule, row, {**values, **afterwards}, landed)
        return values, afterwards

    def _check_required(self, row: CheckedRow, values: Mapping[str, Any]) -> None:
        """Add a problem for each field that a create requires and that has no value."""
        filled = self._columns.targets.keys()
        if self._columns.missing:
            # An error of the file, which is reported once.
            absent = ", ".join(self._columns.missing)
            message = f"The file has no column for {absent}, but {self._record} needs it."
            fix = f"Add a column for {absent}, or give all rows a value"
            fix += f" (--set {self._columns.missing[0]}=VALUE)."
            row.add(COLUMN_MISSING, message, fix=fix)
        for key in self._required:
            if key in filled:
                self._require(row, "required", key, values, f"{self._record} needs a value")
        for rule in self._rules:
            if isinstance(rule, RequiredWhen) and values.get(rule.on) in rule.values:
                other = self._columns.display_name(rule.on)
                why = f"a value is required when {other} is {values[rule.on]}"
                for key in rule.fields:
                    self._require(row, "required_when", key, values, why)
        for rule in self._rules:
            if not isinstance(rule, AtLeastOneOf) or filled.isdisjoint(rule.fields):
                continue
            if (values.keys() | row.failed_keys).isdisjoint(rule.fields):
                names = " and ".join(map(self._columns.display_name, rule.fields))
                row.add("one_of_required", f"{names} are empty, but one of them is required.")

    def _require(
        self, row: CheckedRow, code: str, key: str, values: Mapping[str, Any], why: str
    ) -> None:
        """Add a problem if the field `key` has no value; `why` completes its message."""
        column = self._columns.heading_of(key)
        # One cell with a whole name has two fields.
        is_told = column and any((e.code, e.column) == (code, column) for e in row.problems)
        if key in values or key in row.failed_keys or is_told:
            return
        for each in row.remarks:
            if each.code == "says_nothing" and each.column == column:
                row.fail(key, "word_for_nothing", received=each.received)
                return
        message, fix = f"The cell is empty, but {why}.", None
        if column is None:
            message = f"The file has no column {key}, but {why}."
            fix = f"Add a column {key}, or give all rows a value (--set {key}=VALUE)."
        allowed = ", ".join(self._targets[key].accepted_values(self._operation)) or None
        row.fail(key, code, message, allowed=allowed, fix=fix)

    def _check_accepted(
        self,
        rule: AcceptedWhen,
        row: CheckedRow,
        values: Mapping[str, Any],
        landed: Mapping[str, Any],
    ) -> None:
        key, on = rule.field, rule.on
        if values.get(key) is None or on in row.failed_keys:
            return
        if values.get(on, landed.get(on)) not in rule.values:
            other = self._columns.display_name(on)
            message = f"The value is allowed only when {other} is {', '.join(rule.values)}."
            fix = f"Change {other}, or clear the cell."
            row.fail(key, "only_with", message, received=str(values[key]), fix=fix)


def _accepts_value(field_input: FieldInput, value: Any) -> bool:
    if not field_input.accepted or field_input.values is None:
        return field_input.accepted
    return value in field_input.values

"""Retention: rules that erase people after a period."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.field import Kind
from connector.catalog.resource import Declaration
from connector.errors import Misused, SettingsError, UnknownName
from connector.privacy.erase import ErasureResult, erase_all
from connector.privacy.locate import parse_address_or_id
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.persons import find_overdue
from connector.warehouse.warehouse import Warehouse

# -- Rules -----------------------------------------------------------------------------------------
# Retention rules: one sentence per resource in a strict format.
#
#     candidates = "24 months after updated_at where status in rejected, withdrawn"
#
# A number of `days`, `months` or `years`; `after` a date or timestamp field of the resource, or
# `_deleted_at`, when the platform was found to have deleted the record; then optional conditions:
# `where` a choice field is `in` some of its values, joined with `and`. This part reads no data.


UNITS = ("days", "months", "years")

DELETED = "_deleted_at"
"""The landing's own column that a rule may count from."""

_NUMBER_MAX = 1200
_MONTHS_A_YEAR = 12
_SENTENCE = re.compile(
    r"(?P<number>[0-9]{1,4}) +(?P<unit>[a-z]+) +after +(?P<field>\w+)"
    r"(?: +where +(?P<conditions>.+))?"
)
_CONDITION = re.compile(r"(?P<field>\w+) +in +(?P<values>[\w-]+(?: *, *[\w-]+)*)")
_FORM = "such as '24 months after updated_at where status in rejected, withdrawn'"


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Period after the date in `field`, for records with these values of choice fields."""

    resource: str
    number: int
    unit: str
    field: str
    conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def cutoff(self, now: datetime) -> datetime:
        """Return the latest date that has expired: `now` minus the period.

        Months and years are calendar months; if the month has no such day, its last day is used.
        """
        if self.unit == "days":
            return now - timedelta(days=self.number)
        months = self.number * (_MONTHS_A_YEAR if self.unit == "years" else 1)
        year, month = divmod(now.year * _MONTHS_A_YEAR + now.month - 1 - months, _MONTHS_A_YEAR)
        if year < 1:
            return datetime.min.replace(tzinfo=UTC)
        day = min(now.day, calendar.monthrange(year, month + 1)[1])
        return now.replace(year=year, month=month + 1, day=day)

    def __str__(self) -> str:
        where = " and ".join(f"{name} in {', '.join(values)}" for name, values in self.conditions)
        sentence = f"{self.number} {self.unit} after {self.field}"
        return f"{sentence} where {where}" if where else sentence


def parse_rules(written: Mapping[str, str], origin: str) -> tuple[RetentionRule, ...]:
    """Parse the rules, in the API's order. Raises `SettingsError` or `UnknownName`."""
    peopled = [e.name for e in CATALOG.values() if any(group.ids for group in e.subjects)]
    for name in written:
        _require_allowed(f"resource with people in it, of retention in {origin}", name, peopled)
    return tuple(_parse_rule(name, written[name], origin) for name in CATALOG if name in written)


def _parse_rule(resource: str, text: str, origin: str) -> RetentionRule:
    """Parse a rule like `24 months after updated_at`. Raises `SettingsError`, `UnknownName`."""
    found = _SENTENCE.fullmatch(text.strip())
    if found is None:
        raise _invalid_rule(resource, text, origin, f"a rule {_FORM}")
    number, of = int(found["number"]), f"of retention.{resource} ({origin})"
    unit = _require_allowed(f"unit {of}", found["unit"], UNITS)
    if not 0 < number <= _NUMBER_MAX:
        raise _invalid_rule(resource, text, origin, f"a number of {unit} from 1 to {_NUMBER_MAX}")
    field = _require_allowed(f"date field {of}", found["field"], _date_fields(CATALOG[resource]))
    choices = {e.name: e.values for e in CATALOG[resource].fields.values() if e.values}
    conditions = []
    written = found["conditions"]
    for part in re.split(r" +and +", written.strip()) if written is not None else ():
        condition = _CONDITION.fullmatch(part)
        if condition is None:
            raise _invalid_rule(resource, text, origin, "conditions such as 'status in on_hold'")
        name = _require_allowed(f"field in a condition {of}", condition["field"], choices)
        values = tuple(each.strip() for each in condition["values"].split(","))
        for value in values:
            _require_allowed(
                f"value of {name} in retention.{resource} ({origin})", value, choices[name]
            )
        conditions.append((name, values))
    return RetentionRule(resource, number, unit, field, tuple(conditions))


def _require_allowed(description: str, received: str, allowed: Collection[str]) -> str:
    """Return the received word. Raises `UnknownName` if it is not allowed."""
    if received not in allowed:
        raise UnknownName(description, received, allowed)
    return received


def _date_fields(declaration: Declaration) -> tuple[str, ...]:
    """Return the names of fields from which a period can be counted."""
    fields = declaration.detail_fields
    dates = [e.name for e in fields if e.kind in (Kind.DATE, Kind.DATETIME) and not e.personal]
    return (*dates, DELETED)


def _invalid_rule(resource: str, text: str, origin: str, allowed: str) -> SettingsError:
    """Return the error for a rule that must be `allowed`."""
    return SettingsError(
        f"retention.{resource} is {text!r} (from {origin}): it must be {allowed}",
        action="Correct the rule. docs/PERSONAL_DATA.md shows examples.",
    )


# -- Retention -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DueRecords:
    """Records that a rule would erase, and numbers of those placed or without a date."""

    rule: RetentionRule
    cutoff: datetime
    ids: tuple[str, ...]
    placed: int
    undated: int


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """Result of all rules, and of the erasure; `erased` is None for a preview."""

    due: tuple[DueRecords, ...]
    erased: ErasureResult | None = None

    @property
    def exit_status(self) -> int:
        """Return 0, or the exit status of the erasure."""
        return 0 if self.erased is None else self.erased.exit_status

    def as_json(self) -> dict[str, Any]:
        """Return counts without ids, as `--json` prints them."""
        return {
            "rules": [
                {
                    "resource": each.rule.resource,
                    "rule": str(each.rule),
                    "cutoff": each.cutoff.isoformat(),
                    "due": len(each.ids),
                    "placed": each.placed,
                    "undated": each.undated,
                }
                for each in self.due
            ],
            "erased": None if self.erased is None else self.erased.as_json(),
        }


def apply_retention(
    settings: Settings,
    *,
    applies: bool = False,
    limit: int | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RetentionResult:
    """Find the records whose period has expired; with `applies`, erase at most `limit` people.

    Raises `SettingsError` and `UnknownName` for invalid rules, `Misused` without rules, and the
    errors of `erase`.
    """
    rules = parse_rules(settings.retention.value, settings.retention.origin)
    if not rules:
        raise Misused(
            "no retention rules are configured",
            action=(
                "Add a table [retention] to connector.toml. docs/PERSONAL_DATA.md shows an example."
            ),
        )
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return RetentionResult(
            tuple(DueRecords(each, each.cutoff(now()), (), 0, 0) for each in rules)
        )
    warehouse.prepare()
    dues = []
    with open_file(warehouse.work) as connection:
        for rule in rules:
            cutoff = rule.cutoff(now())
            found = find_overdue(connection, rule.resource, rule.field, cutoff, rule.conditions)
            dues.append(DueRecords(rule, cutoff, found.ids, found.placed, found.undated))
    if not applies:
        return RetentionResult(tuple(dues))
    ids = [id for due in dues for id in due.ids]
    erased = erase_all(settings, [parse_address_or_id(id) for id in ids[:limit]], now=now)
    return RetentionResult(tuple(dues), erased)

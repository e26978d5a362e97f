"""List requests: query parameters as a condition and an order (API 4.1).

This module reads parameters and writes SQL conditions; it runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connector.catalog.field import Filter, Kind
from connector.catalog.resource import Declaration
from connector.sandbox.api_answer import validation_rejection
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.record_table import RowCondition, parse_date

PER_PAGE_DEFAULT = 20
PER_PAGE_MAX = 100
SORT_DEFAULT = "created_at"
# Kept timestamps compare as texts, so a bound is the first or the last one of its day.
_BOUNDS = {"start_date": (">=", "00:00:00.000000"), "end_date": ("<=", "23:59:59.999999")}


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Parsed parameters of a list request."""

    where: RowCondition
    sort: str
    is_descending: bool
    page: int
    per_page: int


def parse_list_query(
    declaration: Declaration,
    query: Mapping[str, str],
    behaviours: Behaviours,
    *,
    parent: str | None = None,
) -> ListQuery:
    """Parse the query of a list request. Raises `Rejection` 422.

    Parameters that the API does not know, unknown sorts included, are ignored. `parent` is the id
    of the content type whose items are listed.
    """
    errors: dict[str, list[str]] = {}
    # An empty parameter is one that a form left out.
    query = {name: value for name, value in query.items() if value}
    page = _parse_positive_integer("page", query, 1, errors)
    per_page = _parse_positive_integer("per_page", query, PER_PAGE_DEFAULT, errors)
    sort, is_descending = _parse_sort_order(declaration, query, behaviours)
    where = RowCondition() if parent is None else RowCondition("t.parent = ?", (parent,))
    for each in declaration.filters:
        if each.name in query:
            where = _add_filter(where, each, query[each.name], errors)
    if declaration.searchable and "search" in query:
        where = _add_search(where, declaration, query["search"])
    if errors:
        raise validation_rejection(errors)
    return ListQuery(where, sort, is_descending, page, min(per_page, int(behaviours.per_page_max)))


def _parse_positive_integer(
    name: str, query: Mapping[str, str], default: int, errors: dict[str, list[str]]
) -> int:
    """Return the value of a parameter, or the default; an invalid value adds to `errors`."""
    text = query.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) < 2**63:
        return int(text)
    errors[name] = ["must be a positive integer"]
    return default


def _parse_sort_order(
    declaration: Declaration, query: Mapping[str, str], behaviours: Behaviours
) -> tuple[str, bool]:
    """Return the column to sort by, and True for descending order."""
    if not declaration.sortable:
        # In the order in which they were made.
        return SORT_DEFAULT, False
    if behaviours.sorting == "ignored":
        return SORT_DEFAULT, True
    sort = query.get("sort")
    return sort if sort in declaration.sortable else SORT_DEFAULT, query.get("order") != "asc"


def _add_filter(
    where: RowCondition, by: Filter, value: str, errors: dict[str, list[str]]
) -> RowCondition:
    """Return the condition with a filter added. An invalid value adds to `errors`."""
    if by.kind is Kind.DATE:
        return _add_date_filter(where, by, value, errors)
    if by.values and value not in by.values:
        errors[by.name] = [f"must be one of {', '.join(by.values)}"]
        return where
    return where.narrowed(f"t.{by.name} = ? COLLATE BINARY", value)


def _add_date_filter(
    where: RowCondition, by: Filter, value: str, errors: dict[str, list[str]]
) -> RowCondition:
    """Return the condition limited by the day on which bookings start (API 4.5)."""
    try:
        day = parse_date(value).isoformat()
    except ValueError:
        errors[by.name] = ["must be a date, as 2024-01-31"]
        return where
    comparison, time = _BOUNDS[by.name]
    return where.narrowed(f"t.start_datetime {comparison} ?", f"{day}T{time}Z")


def _add_search(where: RowCondition, declaration: Declaration, text: str) -> RowCondition:
    """Return the condition limited to records with every word in the texts that lists show."""
    columns = [
        each.name
        for each in declaration.fields.values()
        if each.kind is Kind.STRING and each.listed and not each.values and not each.write_only
    ]
    alternatives = " OR ".join(f"t.{name} LIKE ? ESCAPE '\\'" for name in columns)
    for word in text.split():
        escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        where = where.narrowed(f"({alternatives})", *([f"%{escaped}%"] * len(columns)))
    return where

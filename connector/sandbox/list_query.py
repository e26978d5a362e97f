"""List requests: query parameters as a condition and an order (API 4.1).

This module reads parameters and writes SQL conditions; it runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from connector.catalog.field import Filter, Kind
from connector.catalog.resource import Declaration
from connector.sandbox.api_answer import Rejection, validation_rejection
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.record_table import RowCondition, parse_date

PER_PAGE_DEFAULT = 20
PER_PAGE_MAX = 100
SORT_DEFAULT = "created_at"
# The fields that are a person's or something's name, for `search=names`.
_NAMES = ("title", "name", "first_name", "last_name", "company_name")
_FIRST, _LAST = "00:00:00.000000", "23:59:59.999999"
_BOUNDS = {
    ("start_date", "inclusive"): (">=", _FIRST),
    ("start_date", "exclusive"): (">", _LAST),
    ("end_date", "inclusive"): ("<=", _LAST),
    ("end_date", "exclusive"): ("<", _FIRST),
}


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
    """Parse the query of a list request. Raises `Rejection` 400 or 422.

    `parent` is the id of the content type whose items are listed.
    """
    errors: dict[str, list[str]] = {}
    # An empty parameter is one that a form left out.
    query = {name: value for name, value in query.items() if value}
    page = _parse_positive_integer("page", query, 1, behaviours, errors)
    per_page = _parse_per_page(query, behaviours, errors)
    sort, is_descending = _parse_sort_order(declaration, query, behaviours, errors)
    where = RowCondition() if parent is None else RowCondition("t.parent = ?", (parent,))
    for each in declaration.filters:
        if each.name in query:
            where = _add_filter(where, each, query[each.name], behaviours, errors)
    if declaration.searchable and "search" in query:
        where = _add_search(where, declaration, query["search"], behaviours)
    if behaviours.unknown_parameter == "refused":
        known = {"page", "per_page", *(each.name for each in declaration.filters)}
        known |= {"search"} if declaration.searchable else set()
        # Sorting of a list that has no sorting is a separate switch.
        known |= {"sort", "order"}
        errors |= {name: ["is not a parameter"] for name in query if name not in known}
    if errors:
        raise validation_rejection(errors)
    return ListQuery(where, sort, is_descending, page, per_page)


def _parse_positive_integer(
    name: str,
    query: Mapping[str, str],
    default: int,
    behaviours: Behaviours,
    errors: dict[str, list[str]],
) -> int:
    """Return the value of a parameter, or the default; an invalid value may add to `errors`."""
    text = query.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) < 2**63:
        return int(text)
    if behaviours.page_invalid == "refused":
        errors[name] = ["must be a positive integer"]
    return default


def _parse_per_page(
    query: Mapping[str, str], behaviours: Behaviours, errors: dict[str, list[str]]
) -> int:
    """Return the number of records on a page. May raise `Rejection` 400 (`per_page_over`)."""
    per_page = _parse_positive_integer("per_page", query, PER_PAGE_DEFAULT, behaviours, errors)
    cap = int(behaviours.per_page_max)
    if per_page <= cap:
        return per_page
    # A cap below the documented maximum is a quiet one: it is never a refusal.
    if per_page <= PER_PAGE_MAX or behaviours.per_page_over == "clamped":
        return cap
    message = f"may not be greater than {PER_PAGE_MAX}"
    match behaviours.per_page_over:
        case "422":
            errors["per_page"] = [message]
        case "400":
            raise Rejection(400, f"per_page {message}.")
        case "default":
            pass
        case other:
            assert_never(other)
    return min(PER_PAGE_DEFAULT, cap)


def _parse_sort_order(
    declaration: Declaration,
    query: Mapping[str, str],
    behaviours: Behaviours,
    errors: dict[str, list[str]],
) -> tuple[str, bool]:
    """Return the column to sort by, and True for descending order."""
    sort, order = query.get("sort", SORT_DEFAULT), query.get("order", "desc")
    if not declaration.sortable:
        if behaviours.content_type_sort == "refused":
            errors |= {name: ["is not supported"] for name in ("sort", "order") if name in query}
        # Without a sort, in the order in which they were made.
        return SORT_DEFAULT, False
    if behaviours.sorting == "ignored":
        return SORT_DEFAULT, True
    if sort not in declaration.sortable:
        if behaviours.unknown_sort == "refused":
            errors["sort"] = [f"must be one of {', '.join(declaration.sortable)}"]
        sort = SORT_DEFAULT
    if order not in ("asc", "desc"):
        if behaviours.unknown_sort == "refused":
            errors["order"] = ["must be asc or desc"]
        order = "desc"
    return sort, order == "desc"


def _add_filter(
    where: RowCondition,
    by: Filter,
    value: str,
    behaviours: Behaviours,
    errors: dict[str, list[str]],
) -> RowCondition:
    """Return the condition with a filter added. An invalid value may add to `errors`."""
    if by.kind is Kind.DATE:
        return _add_date_filter(where, by, value, behaviours, errors)
    if by.values and value not in by.values:
        match behaviours.unknown_filter_value:
            case "refused":
                errors[by.name] = [f"must be one of {', '.join(by.values)}"]
                return where
            case "ignored":
                return where
            case "empty":
                pass
            case other:
                assert_never(other)
    return where.narrowed(f"t.{by.name} = ? COLLATE BINARY", value)


def _add_date_filter(
    where: RowCondition,
    by: Filter,
    value: str,
    behaviours: Behaviours,
    errors: dict[str, list[str]],
) -> RowCondition:
    """Return the condition limited by a date; `booking_dates` selects the field (API 4.5)."""
    compared: str = behaviours.booking_dates
    if compared == "each":
        compared = by.name.replace("_date", "_datetime")
    try:
        day = parse_date(value).isoformat()
    except ValueError:
        errors[by.name] = ["must be a date, as 2024-01-31"]
        return where
    # Kept timestamps compare as texts, so a bound is the first or the last one of its day.
    comparison, time = _BOUNDS[by.name, behaviours.booking_bounds]
    return where.narrowed(f"t.{compared} {comparison} ?", f"{day}T{time}Z")


def _add_search(
    where: RowCondition, declaration: Declaration, text: str, behaviours: Behaviours
) -> RowCondition:
    """Return the condition limited to records with every word in fields that `search` selects."""
    texts = [
        each
        for each in declaration.fields.values()
        if each.kind is Kind.STRING and not each.values and not each.write_only
    ]
    match behaviours.search:
        case "listed":
            columns = [each.name for each in texts if each.listed]
        case "names":
            columns = [each.name for each in texts if each.listed and each.name in _NAMES]
        case "all":
            columns = [each.name for each in texts]
        case other:
            assert_never(other)
    for word in text.split():
        escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        where = where.narrowed(*_word_condition(declaration, columns, f"%{escaped}%", behaviours))
    return where


def _word_condition(
    declaration: Declaration, columns: list[str], pattern: str, behaviours: Behaviours
) -> tuple[str, ...]:
    """Return SQL for "one of the columns matches the pattern", followed by its parameters."""
    if behaviours.search == "all":
        # Texts that lists do not show lie in the record alone.
        marks = ", ".join("?" * len(columns))
        return (
            f"EXISTS (SELECT 1 FROM {declaration.name}_record r, json_each(r.record) e "
            f"WHERE r.serial = t.serial AND e.key IN ({marks}) AND e.value LIKE ? ESCAPE '\\')",
            *columns,
            pattern,
        )
    alternatives = " OR ".join(f"t.{name} LIKE ? ESCAPE '\\'" for name in columns)
    return f"({alternatives})", *([pattern] * len(columns))

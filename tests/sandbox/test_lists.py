"""Lists: pages, orders, filters and search (API 4.1), over a socket."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.catalog.field import Filter, Kind
from tests.sandbox.world import ServedSandbox

SORTS = [(name, sort) for name, each in CATALOG.items() for sort in each.sortable]
FILTERS = [
    (name, by) for name, each in CATALOG.items() for by in each.filters if by.kind is not Kind.DATE
]


@pytest.mark.parametrize("per_page", [1, 7, 20, 99, 100])
def test_pagination_has_the_total_pages_rounded_up(world: ServedSandbox, per_page: int) -> None:
    """The last page has the remaining records."""
    answer = world.get("/candidates", per_page=per_page).json()
    total = len(world.store.records("candidates"))
    pages = -(-total // per_page)

    expected = {"page": 1, "per_page": per_page, "total": total, "total_pages": pages}
    assert expected == answer["pagination"]
    assert per_page == len(answer["data"])
    last = world.get("/candidates", per_page=per_page, page=pages).json()
    assert total - (pages - 1) * per_page == len(last["data"])
    assert pages == last["pagination"]["page"]


@pytest.mark.parametrize(("resource", "sort"), SORTS)
def test_every_sortable_field_sorts_in_both_orders(
    world: ServedSandbox, resource: str, sort: str
) -> None:
    path = world.list_path(resource)
    records = world.store.records(resource)
    ascending = world.list_ids(path, sort=sort, order="asc")

    keys = [make_sort_key(records[id][sort]) for id in ascending]
    assert sorted(keys) == keys
    assert ascending[::-1] == world.list_ids(path, sort=sort, order="desc")
    assert ascending[::-1] == world.list_ids(path, sort=sort)


def make_sort_key(value: Any) -> tuple[int, Any]:
    """Return the expected sort key: nulls, numbers, texts without regard to ASCII case."""
    if value is None:
        return (0, 0)
    if isinstance(value, str):
        return (2, "".join(c.lower() if c.isascii() else c for c in value).encode())
    return (1, value)


@pytest.mark.parametrize(("resource", "by"), FILTERS)
def test_every_filter_returns_only_records_with_its_value(
    world: ServedSandbox, resource: str, by: Filter
) -> None:
    path = world.list_path(resource)
    type = path.rsplit("/", 1)[-1] if resource == "content_items" else None
    records = world.store.records(resource, type=type)
    value = Counter(each[by.name] for each in records.values() if each[by.name]).most_common(1)[0][
        0
    ]

    expected = {id for id, each in records.items() if each[by.name] == value}
    assert expected == set(world.list_ids(path, **{by.name: value}))
    found = world.get(path, **{by.name: value}).json()["pagination"]["total"]
    assert len(expected) == found
    assert 0 < found < len(records)


def test_a_search_finds_all_words_in_listed_text_fields(world: ServedSandbox) -> None:
    records = world.store.records("candidates")
    one = next(each for each in records.values() if each["first_name"].isascii())
    text = f"{one['first_name'].upper()} {one['last_name'][:3]}"

    found = world.list_ids("/candidates", search=text)

    assert one["id"] in found
    listed = [f.name for f in CATALOG["candidates"].item_fields if f.kind is Kind.STRING]
    for id in found:
        words = " ".join(str(records[id][name]) for name in listed).lower()
        assert all(each.lower() in words for each in text.split())
    assert [] == world.list_ids("/candidates", search="no such person anywhere")

"""Every operation of every resource, over a socket, against the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.catalog.content import ContentItem, ContentTypeField
from connector.client.client import Client
from connector.errors import Misused, NotFound
from connector.sandbox.server import Sandbox
from tests.faults.network_faults import EditedResponse
from tests.sandbox.world import COUNTS, ServedSandbox, open_sandbox

NAMES = tuple(CATALOG)
WRITABLE = tuple(name for name, each in CATALOG.items() if "create" in each.operations)


@pytest.fixture(scope="module")
def world() -> Iterator[ServedSandbox]:
    """Small agency that these tests may change; each test creates the records that it changes."""
    with open_sandbox(counts=COUNTS) as world:
        yield world


def run_with_client(sandbox: Sandbox, act: Callable[[Client], Awaitable[Any]]) -> Any:
    """Run a function with a client of the sandbox."""

    async def call_act() -> Any:
        async with Client(sandbox.base_url, sandbox.key) as client:
            return await act(client)

    return asyncio.run(call_act())


def find_content_type(world: ServedSandbox) -> str:
    """Return the slug of a content type that has items."""
    types = world.store.records("content_types")
    return str(next(each["slug"] for id, each in types.items() if read_content_items(world, id)))


def read_content_items(world: ServedSandbox, type: str) -> dict[str, Any]:
    """Return the items of a content type by id."""
    return dict(world.store.records("content_items", type=type))


def find_parent(world: ServedSandbox, name: str) -> str | None:
    """Return a content type for content items; None for other resources."""
    return find_content_type(world) if name == "content_items" else None


def read_stored_records(world: ServedSandbox, name: str) -> dict[str, Any]:
    """Return the stored records by id."""
    if name == "content_items":
        slug = find_content_type(world)
        types = world.store.records("content_types").items()
        return read_content_items(world, next(id for id, each in types if each["slug"] == slug))
    return dict(world.store.records(name))


@pytest.mark.parametrize("name", NAMES)
def test_get_returns_the_stored_record(world: ServedSandbox, name: str) -> None:
    id, expected = next(iter(read_stored_records(world, name).items()))
    record = run_with_client(
        world.sandbox, lambda client: client.detail(name, id, find_parent(world, name))
    )

    assert CATALOG[name].record is type(record)
    assert expected == record.raw
    assert {} == record.undeclared_fields
    assert not record.is_item
    assert record.served_at is not None
    assert UTC == record.created_at.tzinfo


@pytest.mark.parametrize("name", NAMES)
def test_a_list_returns_list_fields_and_the_total_count(world: ServedSandbox, name: str) -> None:
    page = run_with_client(
        world.sandbox, lambda client: client.page(name, find_parent(world, name), per_page=2)
    )
    shown = {each.name for each in CATALOG[name].item_fields}

    assert len(read_stored_records(world, name)) == page.total
    assert 2 == len(page.items)
    assert (1, 2, False) == (page.page, page.per_page, page.is_last)
    assert all(item.is_item and shown == set(item.raw) for item in page.items)
    assert all(item.served_at == page.served_at is not None for item in page.items)
    assert page.round_trip_seconds > 0


@pytest.mark.parametrize("name", NAMES)
def test_reading_a_detail_field_of_a_list_item_raises_attribute_error(
    world: ServedSandbox, name: str
) -> None:
    page = run_with_client(
        world.sandbox, lambda client: client.page(name, find_parent(world, name), per_page=1)
    )
    hidden = next(each.name for each in CATALOG[name].detail_fields if not each.listed)

    with pytest.raises(AttributeError, match="get the record by id"):
        getattr(page.items[0], hidden)


@pytest.mark.parametrize("name", WRITABLE)
def test_a_record_can_be_created_updated_and_deleted(world: ServedSandbox, name: str) -> None:
    first, then = world.full_body(name), world.full_body(name, "update")
    hidden = {each.name for each in CATALOG[name].fields.values() if each.write_only}

    async def act(client: Any) -> None:
        parent = find_parent(world, name)
        made = await client.create(name, first, parent)
        whole = await client.detail(name, made.id, parent)
        assert drop_hidden_fields(first, hidden) == {
            key: whole.raw[key] for key in drop_hidden_fields(first, hidden)
        }

        changed = await client.update(name, made.id, then, parent)
        whole = await client.detail(name, made.id, parent)
        assert drop_hidden_fields(then, hidden) == {
            key: whole.raw[key] for key in drop_hidden_fields(then, hidden)
        }
        assert made.id == changed.id

        await client.delete(name, made.id, parent)
        with pytest.raises(NotFound) as caught:
            await client.detail(name, made.id, parent)
        assert caught.value.is_api_error

    run_with_client(world.sandbox, act)


def drop_hidden_fields(body: dict[str, Any], hidden: set[str]) -> dict[str, Any]:
    """Return the fields of a body except the hidden ones."""
    return {key: value for key, value in body.items() if key not in hidden}


def test_a_lead_can_be_converted() -> None:
    with Sandbox(counts={"leads": 1}) as sandbox:
        id = next(iter(sandbox.store.records("leads")))
        written = run_with_client(sandbox, lambda client: client.convert("leads", id))

        assert id == written.id
        assert "active" == written.status
        assert {"converted_at"} == set(written.undeclared_fields)


def test_content_items_can_be_read_by_slug_and_by_id_of_their_type(world: ServedSandbox) -> None:
    slug = find_content_type(world)

    async def act(client: Any) -> None:
        types = (await client.page("content_types")).items
        one = next(each for each in types if each.slug == slug)
        by_slug = await client.page("content_items", slug, sort="updated_at")
        by_id = await client.page("content_items", one.id, sort="updated_at")
        assert by_slug.items == by_id.items

        item = await client.detail("content_items", by_slug.items[0].id, one.id)
        whole = await client.detail("content_types", one.id)
        assert isinstance(item, ContentItem)
        assert set(item.fields) <= {each.field_key for each in whole.fields}
        assert all(isinstance(each, ContentTypeField) for each in whole.fields)

    run_with_client(world.sandbox, act)


def test_a_list_can_be_sorted_filtered_and_searched(world: ServedSandbox) -> None:
    async def act(client: Any) -> None:
        page = await client.page(
            "bookings", sort="start_datetime", order="asc", filters={"status": "confirmed"}
        )
        starts = [each.start_datetime for each in page.items]
        assert sorted(starts) == starts
        assert {"confirmed"} == {each.status for each in page.items}
        assert page.total < len(world.store.records("bookings"))

        one = (await client.page("companies")).items[0]
        found = await client.page("companies", search=one.name)
        assert one.id in {each.id for each in found.items}

    run_with_client(world.sandbox, act)


@pytest.mark.parametrize(("jobs", "requests"), [(0, 1), (1, 1), (200, 2), (201, 3), (250, 3)])
def test_the_iterator_reads_every_item_once_in_full_pages(jobs: int, requests: int) -> None:
    async def act(client: Any) -> list[str]:
        return [each["id"] async for each in client.jobs.list(sort="created_at")]

    with Sandbox(counts={"jobs": jobs, "companies": 3}) as sandbox:
        ids = run_with_client(sandbox, act)

        assert sorted(sandbox.store.records("jobs")) == sorted(ids)
        assert requests == len(sandbox.log)


def test_the_iterator_continues_after_a_short_page() -> None:
    def drop_last_item(document: Any) -> None:
        document["data"].pop()

    async def act(client: Any) -> list[str]:
        return [each["id"] async for each in client.jobs.list(sort="created_at")]

    with Sandbox(counts={"jobs": 201, "companies": 3}) as sandbox:
        sandbox.faults.add(EditedResponse(drop_last_item))
        ids = run_with_client(sandbox, act)

        assert (200, 3) == (len(ids), len(sandbox.log))


def test_undocumented_fields_of_the_api_are_kept() -> None:
    with Sandbox(counts={"jobs": 1}, behaviours={"extra_fields": "shown"}) as sandbox:

        async def act(client: Any) -> None:
            item = (await client.page("jobs")).items[0]
            record = await client.detail("jobs", item.id)
            assert item.undeclared_fields
            assert record.undeclared_fields
            assert record.undeclared_fields.items() <= record.raw.items()

        run_with_client(sandbox, act)


def test_a_missing_record_raises_not_found(world: ServedSandbox) -> None:
    for act in (
        lambda client: client.detail("jobs", "5d1c"),
        lambda client: client.update("jobs", "5d1c", {"title": "A"}),
        lambda client: client.delete("jobs", "5d1c"),
        lambda client: client.convert("leads", "5d1c"),
        lambda client: client.page("content_items", "none"),
    ):
        with pytest.raises(NotFound) as caught:
            run_with_client(world.sandbox, act)
        assert caught.value.is_api_error


def test_a_closed_client_raises_an_error() -> None:
    with Sandbox(counts={"jobs": 1}) as sandbox:

        async def act() -> None:
            async with Client(sandbox.base_url, sandbox.key) as client:
                await client.page("jobs")
            for _ in range(3):
                with pytest.raises(Misused, match="closed"):
                    await client.page("jobs")

        asyncio.run(act())

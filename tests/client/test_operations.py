"""Every operation of every resource, over a socket, against the sandbox."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.client.client import Client
from connector.errors import Misused, NotFound
from connector.sandbox.server import Sandbox
from tests.repository import ROOT
from tests.sandbox.world import COUNTS, ServedSandbox, open_sandbox

pytestmark = pytest.mark.anyio

WRITABLE = tuple(name for name, each in CATALOG.items() if "create" in each.operations)
PAGE = (ROOT / "docs" / "API_NOTES.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


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


def read_stored_records(world: ServedSandbox, name: str) -> tuple[str | None, dict[str, Any]]:
    """Return the stored records by id, and for content items the slug of a type that has some."""
    if name != "content_items":
        return None, dict(world.store.records(name))
    return next(
        (str(each["slug"]), dict(items))
        for id, each in world.store.records("content_types").items()
        if (items := world.store.records("content_items", type=id))
    )


@pytest.mark.parametrize("name", CATALOG)
def test_lists_and_details_have_the_stored_records(world: ServedSandbox, name: str) -> None:
    parent, stored = read_stored_records(world, name)
    id, expected = next(iter(stored.items()))

    async def act(client: Client) -> None:
        record = await client.detail(name, id, parent)
        assert CATALOG[name].record is type(record)
        assert expected == record.raw
        assert ({}, False) == (record.undeclared_fields, record.is_item)
        assert record.served_at is not None
        assert UTC == record.created_at.tzinfo

        page = await client.page(name, parent, per_page=2)
        shown = {each.name for each in CATALOG[name].item_fields}
        assert (len(stored), 2) == (page.total, len(page.items))
        assert (1, 2, False) == (page.page, page.per_page, page.is_last)
        assert all(item.is_item and shown == set(item.raw) for item in page.items)
        assert all(item.served_at == page.served_at is not None for item in page.items)
        assert page.round_trip_seconds > 0
        hidden = next(each.name for each in CATALOG[name].detail_fields if not each.listed)
        with pytest.raises(AttributeError, match="get the record by id"):
            getattr(page.items[0], hidden)

    run_with_client(world.sandbox, act)


@pytest.mark.parametrize("name", WRITABLE)
def test_a_record_can_be_created_updated_and_deleted(world: ServedSandbox, name: str) -> None:
    first, then = world.full_body(name), world.full_body(name, "update")
    parent, _ = read_stored_records(world, name)

    def shown(body: dict[str, Any]) -> dict[str, Any]:
        fields = CATALOG[name].fields
        return {key: value for key, value in body.items() if not fields[key].write_only}

    async def act(client: Client) -> None:
        made = await client.create(name, first, parent)
        whole = await client.detail(name, made.id, parent)
        assert shown(first).items() <= whole.raw.items()

        changed = await client.update(name, made.id, then, parent)
        whole = await client.detail(name, made.id, parent)
        assert shown(then).items() <= whole.raw.items()
        assert made.id == changed.id

        await client.delete(name, made.id, parent)
        with pytest.raises(NotFound) as caught:
            await client.detail(name, made.id, parent)
        assert caught.value.is_api_error

    run_with_client(world.sandbox, act)


def test_a_lead_can_be_converted() -> None:
    with Sandbox(counts={"leads": 1}) as sandbox:
        id = next(iter(sandbox.store.records("leads")))
        written = run_with_client(sandbox, lambda client: client.convert("leads", id))

    assert (id, "active") == (written.id, written.status)
    assert {"converted_at"} == set(written.undeclared_fields)


def test_a_list_can_be_sorted_and_searched(world: ServedSandbox) -> None:
    async def act(client: Any) -> None:
        page = await client.page("bookings", sort="start_datetime", order="asc")
        starts = [each.start_datetime for each in page.items]
        assert sorted(starts) == starts

        one = (await client.page("companies")).items[0]
        found = await client.page("companies", search=one.name)
        assert one.id in {each.id for each in found.items}

        # The items of a content type, by its slug and by its id.
        slug, _ = read_stored_records(world, "content_items")
        types = (await client.page("content_types")).items
        id = next(each.id for each in types if each.slug == slug)
        by_slug = await client.page("content_items", slug, sort="updated_at")
        assert by_slug.items == (await client.page("content_items", id, sort="updated_at")).items

    run_with_client(world.sandbox, act)


def test_undocumented_fields_of_the_api_are_kept() -> None:
    async def act(client: Client) -> None:
        item = (await client.page("jobs")).items[0]
        record = await client.detail("jobs", item.id)
        assert item.undeclared_fields
        assert record.undeclared_fields
        assert record.undeclared_fields.items() <= record.raw.items()

    with Sandbox(counts={"jobs": 1}, behaviours={"extra_fields": "shown"}) as sandbox:
        run_with_client(sandbox, act)


@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.detail("jobs", "5d1c"),
        lambda client: client.update("jobs", "5d1c", {"title": "A"}),
        lambda client: client.delete("jobs", "5d1c"),
        lambda client: client.convert("leads", "5d1c"),
        lambda client: client.page("content_items", "none"),
    ],
)
def test_a_missing_record_raises_not_found(world: ServedSandbox, act: Any) -> None:
    with pytest.raises(NotFound) as caught:
        run_with_client(world.sandbox, act)
    assert caught.value.is_api_error


async def test_a_closed_client_raises_an_error(world: ServedSandbox) -> None:
    async with Client(world.sandbox.base_url, world.sandbox.key) as client:
        await client.page("jobs")
    for _ in range(3):
        with pytest.raises(Misused, match="closed"):
            await client.page("jobs")


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_documented_examples_run(
    example: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Sandbox(counts={"jobs": 120, "candidates": 3}) as sandbox:
        monkeypatch.setenv("CONNECTOR_BASE_URL", sandbox.base_url)
        monkeypatch.setenv("CONNECTOR_API_KEY", sandbox.key)
        exec(compile(example, "example", "exec"), {"__name__": "__main__"})  # noqa: S102  # our own

    assert capsys.readouterr().out.strip()

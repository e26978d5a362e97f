"""Every operation of every resource, over a socket, against the API's twin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from connector.catalog import CATALOG
from connector.catalog.booking import Booking
from connector.catalog.content import ContentItem, ContentTypeField
from connector.catalog.job import Job
from connector.client.client import Client
from connector.client.endpoint import RecordEndpoint
from connector.errors import Misused, UnknownName
from connector.errors_api import Forbidden, NotFound, Unauthorized, ValidationFailed
from connector.sandbox.server import Sandbox
from tests.client.calls import records
from tests.faults.network_faults import EditedResponse
from tests.sandbox.world import COUNTS, ServedSandbox, opened

NAMES = tuple(CATALOG)
WRITABLE = tuple(name for name, each in CATALOG.items() if "create" in each.operations)


@pytest.fixture(scope="module")
def world() -> Iterator[ServedSandbox]:
    """A small agency that these tests may write to; each makes what it changes."""
    with opened(counts=COUNTS) as world:
        yield world


def run(sandbox: Sandbox, act: Callable[[Client], Awaitable[Any]]) -> Any:
    """Run a function with a client of the sandbox."""

    async def acted() -> Any:
        async with Client(sandbox.base_url, sandbox.key) as client:
            return await act(client)

    return asyncio.run(acted())


def type_of(world: ServedSandbox) -> str:
    """The slug of a content type that has items."""
    types = world.store.records("content_types")
    return str(next(each["slug"] for id, each in types.items() if held(world, id)))


def held(world: ServedSandbox, type: str) -> dict[str, Any]:
    """The items of a content type."""
    return dict(world.store.records("content_items", type=type))


def endpoint(client: Client, world: ServedSandbox, name: str) -> RecordEndpoint[Any]:
    """The operations of the resource; of content items, those of one type."""
    return records(client, name, type_of(world) if name == "content_items" else None)


def stored(world: ServedSandbox, name: str) -> dict[str, Any]:
    """Return the stored records by id."""
    if name == "content_items":
        slug = type_of(world)
        types = world.store.records("content_types").items()
        return held(world, next(id for id, each in types if each["slug"] == slug))
    return dict(world.store.records(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_detail_is_the_record_as_stored(world: ServedSandbox, name: str) -> None:
    id, expected = next(iter(stored(world, name).items()))
    record = run(world.sandbox, lambda client: endpoint(client, world, name).get(id))

    assert CATALOG[name].record is type(record)
    assert expected == record.raw
    assert {} == record.undeclared_fields
    assert not record.is_item
    assert record.served_at is not None
    assert UTC == record.created_at.tzinfo


@pytest.mark.parametrize("name", NAMES)
def test_a_list_shows_the_list_shape_and_the_whole_count(world: ServedSandbox, name: str) -> None:
    page = run(world.sandbox, lambda client: endpoint(client, world, name).list(per_page=2))
    shown = {each.name for each in CATALOG[name].item_fields}

    assert len(stored(world, name)) == page.total
    assert 2 == len(page.items)
    assert (1, 2, False) == (page.page, page.per_page, page.is_last)
    assert all(item.is_item and shown == set(item.raw) for item in page.items)
    assert all(item.served_at == page.served_at is not None for item in page.items)
    assert page.round_trip_seconds > 0


@pytest.mark.parametrize("name", NAMES)
def test_what_lists_do_not_show_is_said_to_be_missing(world: ServedSandbox, name: str) -> None:
    page = run(world.sandbox, lambda client: endpoint(client, world, name).list(per_page=1))
    hidden = next(each.name for each in CATALOG[name].detail_fields if not each.listed)

    with pytest.raises(AttributeError, match="get the record by id"):
        getattr(page.items[0], hidden)


@pytest.mark.parametrize("name", WRITABLE)
def test_a_record_is_created_updated_and_deleted(world: ServedSandbox, name: str) -> None:
    first, then = world.full_body(name), world.full_body(name, "update")
    hidden = {each.name for each in CATALOG[name].fields.values() if each.write_only}

    async def act(client: Client) -> None:
        offered = endpoint(client, world, name)
        made = await offered.create(first)
        whole = await offered.get(made.record.id)
        assert sent(first, hidden) == {key: whole.raw[key] for key in sent(first, hidden)}
        assert f"The {CATALOG[name].singular} was created." == made.message

        changed = await offered.update(made.record.id, then)
        whole = await offered.get(made.record.id)
        assert sent(then, hidden) == {key: whole.raw[key] for key in sent(then, hidden)}
        assert made.record.id == changed.record.id
        assert changed.message

        await offered.delete(made.record.id)
        with pytest.raises(NotFound) as caught:
            await offered.get(made.record.id)
        assert caught.value.is_api_error

    run(world.sandbox, act)


def sent(body: dict[str, Any], hidden: set[str]) -> dict[str, Any]:
    """The fields of a body that an answer shows."""
    return {key: value for key, value in body.items() if key not in hidden}


@pytest.mark.parametrize(("behaviour", "said"), [("204", None), ("message", str)])
def test_both_deletes_are_understood(behaviour: str, said: type | None) -> None:
    with Sandbox(counts={"jobs": 1}, behaviours={"delete": behaviour}) as sandbox:
        id = next(iter(sandbox.store.records("jobs")))
        message = run(sandbox, lambda client: records(client, "jobs").delete(id))

        assert {} == sandbox.store.records("jobs")
        assert said is (None if message is None else type(message))


@pytest.mark.parametrize("status", ["200", "201"])
@pytest.mark.parametrize("shown", ["record", "minimal"])
def test_a_lead_is_converted(status: str, shown: str) -> None:
    behaviours = {"convert_status": status, "convert_fields": shown}
    with Sandbox(counts={"leads": 1}, behaviours=behaviours) as sandbox:
        id = next(iter(sandbox.store.records("leads")))
        written = run(sandbox, lambda client: records(client, "leads").convert(id))

        assert id == written.record.id
        assert "active" == written.record.status
        assert {"converted_at"} == set(written.record.undeclared_fields)
        assert written.message


def test_content_is_found_by_the_slug_and_by_the_id_of_its_type(world: ServedSandbox) -> None:
    slug = type_of(world)

    async def act(client: Client) -> None:
        types = [
            each async for page in records(client, "content_types").pages() for each in page.items
        ]
        one = next(each for each in types if each.slug == slug)
        by_slug = await records(client, "content_items", slug).list(sort="updated_at")
        by_id = await records(client, "content_items", one.id).list(sort="updated_at")
        assert by_slug.items == by_id.items

        item = await records(client, "content_items", one.id).get(by_slug.items[0].id)
        whole = await records(client, "content_types").get(one.id)
        assert isinstance(item, ContentItem)
        assert set(item.fields) <= {each.field_key for each in whole.fields}
        assert all(isinstance(each, ContentTypeField) for each in whole.fields)

    run(world.sandbox, act)


def test_a_list_is_sorted_filtered_and_searched(world: ServedSandbox) -> None:
    async def act(client: Client) -> None:
        page = await records(client, "bookings").list(
            sort="start_datetime", order="asc", filters={"status": "confirmed"}
        )
        starts = [each.start_datetime for each in page.items]
        assert sorted(starts) == starts
        assert {"confirmed"} == {each.status for each in page.items}
        assert page.total < len(world.store.records("bookings"))

        one = (await records(client, "companies").list()).items[0]
        found = await records(client, "companies").list(search=one.name)
        assert one.id in {each.id for each in found.items}

    run(world.sandbox, act)


@pytest.mark.parametrize(("jobs", "requests"), [(0, 1), (1, 1), (200, 2), (201, 3), (250, 3)])
def test_the_iterator_reads_every_item_once_in_full_pages(jobs: int, requests: int) -> None:
    async def act(client: Client) -> list[str]:
        return [each["id"] async for each in client.jobs.list(sort="created_at")]

    with Sandbox(counts={"jobs": jobs, "companies": 3}) as sandbox:
        ids = run(sandbox, act)

        assert sorted(sandbox.store.records("jobs")) == sorted(ids)
        assert requests == len(sandbox.log)


def test_the_iterator_goes_on_after_a_short_page() -> None:
    def shorten(document: Any) -> None:
        document["data"].pop()

    async def act(client: Client) -> list[str]:
        return [each["id"] async for each in client.jobs.list(sort="created_at")]

    with Sandbox(counts={"jobs": 201, "companies": 3}) as sandbox:
        sandbox.faults.add(EditedResponse(shorten))
        ids = run(sandbox, act)

        assert (200, 3) == (len(ids), len(sandbox.log))


def test_what_the_api_adds_is_kept() -> None:
    with Sandbox(counts={"jobs": 1}, behaviours={"extra_fields": "shown"}) as sandbox:

        async def act(client: Client) -> None:
            item = (await records(client, "jobs").list()).items[0]
            record = await records(client, "jobs").get(item.id)
            assert item.undeclared_fields
            assert record.undeclared_fields
            assert record.undeclared_fields.items() <= record.raw.items()

        run(sandbox, act)


def test_a_key_that_is_not_accepted_is_said_to_be() -> None:
    with Sandbox() as sandbox:

        async def act() -> None:
            async with Client(sandbox.base_url, "another-key") as client:
                await records(client, "jobs").list()

        with pytest.raises(Unauthorized, match="API key") as caught:
            asyncio.run(act())
        assert "unauthorized" == caught.value.api_code
        assert 1 == len(sandbox.log)


def test_a_missing_scope_is_named() -> None:
    with Sandbox(keys={"half": ("jobs.read",)}) as sandbox:
        with pytest.raises(Forbidden, match="scope") as caught:
            run(sandbox, lambda client: records(client, "jobs").delete("5d1c"))
        assert "jobs.write" == caught.value.scope
        with pytest.raises(Forbidden) as caught:
            run(sandbox, lambda client: records(client, "content_types").list())
        assert "content.read" == caught.value.scope


def test_refused_fields_are_named_with_the_apis_messages() -> None:
    with Sandbox() as sandbox:
        with pytest.raises(ValidationFailed) as caught:
            run(sandbox, lambda client: records(client, "companies").create({"email": "none"}))

        assert {"name", "email"} == set(caught.value.errors)
        assert all(messages for messages in caught.value.errors.values())
        assert "validation_error" == caught.value.api_code
        assert {} == sandbox.store.records("companies")


def test_a_record_that_is_not_there_is_not_found(world: ServedSandbox) -> None:
    for act in (
        lambda client: records(client, "jobs").get("5d1c"),
        lambda client: records(client, "jobs").update("5d1c", {"title": "A"}),
        lambda client: records(client, "jobs").delete("5d1c"),
        lambda client: records(client, "leads").convert("5d1c"),
        lambda client: records(client, "content_items", "none").list(),
    ):
        with pytest.raises(NotFound) as caught:
            run(world.sandbox, act)
        assert caught.value.is_api_error


def test_operations_that_a_resource_lacks_are_refused_unsent() -> None:
    with Sandbox() as sandbox:
        for act in (
            lambda client: records(client, "content_types").create({}),
            lambda client: records(client, "content_types").update("5", {}),
            lambda client: records(client, "content_types").delete("5"),
            lambda client: records(client, "jobs").convert("5"),
        ):
            with pytest.raises(UnknownName):
                run(sandbox, cast("Callable[[Any], Awaitable[Any]]", act))
        assert [] == sandbox.log


def test_a_closed_client_says_so() -> None:
    with Sandbox(counts={"jobs": 1}) as sandbox:

        async def act() -> None:
            async with Client(sandbox.base_url, sandbox.key) as client:
                await records(client, "jobs").list()
            for _ in range(3):
                with pytest.raises(Misused, match="closed"):
                    await records(client, "jobs").list()

        asyncio.run(act())


def test_dates_and_moments_are_sent_as_the_api_writes_them(world: ServedSandbox) -> None:
    starts = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)

    async def act(client: Client) -> None:
        made = await records(client, "bookings").create(
            {"booking_type": "internal", "start_datetime": starts, "title": "A"}
        )
        booking: Booking = await records(client, "bookings").get(made.record.id)
        assert starts == booking.start_datetime

    run(world.sandbox, act)


def test_the_limit_is_shown_as_the_answers_tell_it() -> None:
    with Sandbox(counts={"jobs": 1}, rate_limit=60) as sandbox:

        async def act(client: Client) -> None:
            assert None is client.rate
            job: Job = await records(client, "jobs").get(next(iter(sandbox.store.records("jobs"))))
            assert job.id
            assert client.rate is not None
            assert (60, 59) == (client.rate.limit, client.rate.remaining)

        run(sandbox, act)

"""What type checkers accept of the client, and what they refuse; checked by mypy and never run.

Each refusal is proven by the comment that ignores it: mypy reports an ignored error that is none.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import assert_type

from connector.catalog.candidate import Candidate
from connector.catalog.content import ContentItem, ContentType
from connector.catalog.job import EmploymentType, Job, JobStatus
from connector.catalog.lead import Lead
from connector.catalog.page import Page
from connector.catalog.resource import Resource
from connector.catalog.value import Uuid
from connector.client.client import Client
from connector.client.endpoint import Endpoint, Written
from connector.client.shapes.bookings import BookingCreate
from connector.client.shapes.jobs import JobCreate, JobItem

ID = "5d1c"


async def lists_are_known(client: Client) -> None:
    """Sorts, orders, filters and items belong to their resource."""
    page = await client.jobs.list(sort="title", order="asc", filters={"status": "draft"})
    assert_type(page, Page[JobItem])
    assert_type(page.items[0].title, str)
    assert_type(page.items[0].id, Uuid)
    assert_type(page.items[0].status, JobStatus | None)
    assert_type(page.items[0].created_at, datetime)
    print(page.items[0].raw, page.items[0].unknown, page.items[0].served_at)  # noqa: T201  # a use
    async for item in client.leads.iterate(sort="last_contacted_at", filters={"source": "web"}):
        assert_type(item.company_name, str | None)
    await client.bookings.list(filters={"start_date": date(2026, 1, 1), "end_date": "2026-02-01"})

    await client.jobs.list(sort="titel")  # type: ignore[arg-type]  # no such field
    await client.jobs.list(sort="department")  # type: ignore[arg-type]  # not sortable
    await client.jobs.list(order="up")  # type: ignore[arg-type]  # neither asc nor desc
    await client.jobs.list(filters={"source": "web"})  # type: ignore[arg-type]  # no filter
    await client.jobs.list(filters={"status": "paused"})  # type: ignore[arg-type]  # no status
    await client.content_types.list(sort="name")  # type: ignore[arg-type]  # never sorted
    print(page.items[0].department)  # type: ignore[attr-defined]  # noqa: T201  # detail only
    print(page.items[0].titel)  # type: ignore[attr-defined]  # noqa: T201  # no such field
    page.items[0].title = "B"  # type: ignore[misc]  # what was read stays as it was


async def records_are_known(client: Client) -> None:
    """A detail has its declaration's fields, with their types."""
    job = await client.jobs.get(ID)
    assert_type(job, Job)
    assert_type(job.department, str | None)
    assert_type(job.employment_type, EmploymentType)
    assert_type(await client.content_types.get(ID), ContentType)
    assert_type(await client.content_items("news").get(ID), ContentItem)

    print(job.titel)  # type: ignore[attr-defined]  # noqa: T201  # no such field


async def creates_are_known(client: Client) -> None:
    """A create needs what the API requires, and takes the values that create accepts."""
    job: JobCreate = {
        "title": "A",
        "location": "Leeds",
        "employment_type": "permanent",
        "description": "Pipes.",
        "status": "draft",
        "salary_min": 30_000,
        "start_date": date(2026, 1, 1),
    }
    assert_type(await client.jobs.create(job), Written[Job])
    booking: BookingCreate = {
        "booking_type": "internal",
        "start_datetime": datetime(2026, 1, 1, tzinfo=UTC),
        "candidate_id": ID,
    }
    await client.bookings.create(booking)
    await client.content_items("news").create({"title": "A", "fields": {"tags": ["a", "b"]}})

    await client.jobs.create({"titel": "A"})  # type: ignore[typeddict-item,typeddict-unknown-key]
    await client.companies.create({"name": "A"})  # type: ignore[typeddict-item]  # no email
    job["status"] = "filled"  # type: ignore[typeddict-item]  # not on create
    job["employment_type"] = "freelance"  # type: ignore[typeddict-item]  # in answers alone
    job["slug"] = "a"  # type: ignore[typeddict-unknown-key]  # in answers alone
    job["salary_min"] = "much"  # type: ignore[typeddict-item]  # no number
    booking["status"] = None  # type: ignore[typeddict-item]  # leave it out instead


async def updates_are_known(client: Client) -> None:
    """An update needs nothing, clears with null, and takes the values that update accepts."""
    assert_type(await client.candidates.update(ID, {"status": "placed"}), Written[Candidate])
    await client.candidates.update(ID, {"phone": None, "willing_to_relocate": True})
    await client.jobs.update(ID, {"status": "filled", "featured": True})
    await client.bookings.update(ID, {"status": "cancelled", "cancellation_reason": "Ill."})

    await client.candidates.update(ID, {"status": "offer_accepted"})  # type: ignore[typeddict-item]
    await client.candidates.update(ID, {"title": "A"})  # type: ignore[typeddict-unknown-key]
    await client.candidates.update(ID, {"email": None})  # type: ignore[typeddict-item]  # required
    await client.companies.update(ID, {"jobs_count": 1})  # type: ignore[typeddict-unknown-key]


async def operations_are_known(client: Client) -> None:
    """A resource has the operations that the API gives it, and no others."""
    assert_type(await client.leads.convert(ID), Written[Lead])
    assert_type(await client.jobs.delete(ID), str | None)

    await client.jobs.convert(ID)  # type: ignore[attr-defined]  # only leads
    await client.content_items("news").convert(ID)  # type: ignore[attr-defined]  # only leads
    await client.content_types.create({})  # type: ignore[attr-defined]  # read-only
    await client.content_types.update(ID, {})  # type: ignore[attr-defined]  # read-only
    await client.content_types.delete(ID)  # type: ignore[attr-defined]  # read-only


async def any_resource_is_known_by_its_declaration(client: Client) -> None:
    """Who works by declaration gets records of whichever resource, and every operation."""
    endpoint: Endpoint[Resource] = Endpoint(client, Job)
    assert_type((await endpoint.list(sort="title")).items, tuple[Resource, ...])
    assert_type(await endpoint.get(ID), Resource)
    await endpoint.convert(ID)

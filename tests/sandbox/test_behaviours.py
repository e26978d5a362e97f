"""Every value of every behaviour over a socket, with one check per behaviour."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.errors import SettingsError, UnknownName
from connector.sandbox.behaviour import SWITCHES, Behaviours
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.sandbox.world import MORNING, Open, ServedSandbox
from tests.support.clock import Clock

MANY = {"candidates": 130}


@pytest.mark.parametrize(
    ("name", "value"), [(each.name, v) for each in SWITCHES.values() for v in each.values]
)
def test_every_behaviour_value_has_its_effect(open_world: Open, name: str, value: str) -> None:
    def open_with(**options: Any) -> ServedSandbox:
        return open_world(**{"behaviours": {name: value}, **options})

    check: Callable[[Open, str], None] = globals()[f"check_{name}"]
    check(open_with, value)


def test_unknown_behaviours_and_values_are_rejected_with_the_allowed_ones() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'delete'") as error:
        Sandbox(behaviours={"delet": "204"})
    assert set(SWITCHES) == set(error.value.allowed)
    with pytest.raises(UnknownName, match="value of delete") as error:
        Sandbox(behaviours={"delete": "205"})
    assert ("204", "message") == error.value.allowed


def test_behaviours_are_parsed_from_name_and_value() -> None:
    read = Behaviours.parse_options(("delete=message", "nulls=absent", "delete=204"))

    assert Behaviours({"nulls": "absent"}) == read
    with pytest.raises(SettingsError, match="NAME=VALUE"):
        Behaviours.parse_options(("delete",))


def create_record(world: ServedSandbox, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Create a record and return its detail."""
    answer = world.call("POST", path, json=body)
    assert 201 == answer.status_code, answer.text
    record: dict[str, Any] = world.get(f"{path}/{answer.json()['data']['id']}").json()["data"]
    return record


def request_error_fields(
    world: ServedSandbox, method: str, path: str, body: dict[str, Any]
) -> list[str]:
    """Return the fields named by a 422, or an empty list if the request succeeds."""
    answer = world.call(method, path, json=body)
    if answer.status_code in (200, 201):
        return []
    assert 422 == answer.status_code
    return list(answer.json()["errors"])


# -- Lists, values and headers --------------------------------------------------------------------


def check_per_page_max(open_world: Open, setting: str) -> None:
    """Check the largest number of records on a page."""
    world = open_world(counts=MANY)
    answer = world.get("/candidates", per_page=100).json()
    assert int(setting) == len(answer["data"]) == answer["pagination"]["per_page"]
    assert -(-130 // int(setting)) == answer["pagination"]["total_pages"]
    assert min(20, int(setting)) == world.get("/candidates").json()["pagination"]["per_page"]


def check_page_past_end(open_world: Open, setting: str) -> None:
    """Check the response to page 8 of 7."""
    world = open_world(counts=MANY)
    answer = world.get("/candidates", page=8)
    if setting == "404":
        assert 404 == answer.status_code
    elif setting == "empty":
        assert ([], 8) == (answer.json()["data"], answer.json()["pagination"]["page"])
    else:
        assert world.get("/candidates", page=7).json() == answer.json()


def check_total(open_world: Open, setting: str) -> None:
    """Check the total if a record is created during the list request."""

    def between(store: Store) -> None:
        # A list request of the hook does not call the hook again.
        assert 100 == len(store.list("candidates", {"per_page": "100"}).items)
        store.insert("candidates", {"first_name": "Late"})

    world = open_world(counts=MANY, between=between)
    for number in range(4):
        answer = world.get("/candidates", per_page=1).json()
        expected = 130 + number
        assert ("Late" == answer["data"][0]["first_name"]) == (number > 0)
        if setting == "earlier" and number:
            expected -= 1
        assert expected == answer["pagination"]["total"]


def check_sorting(open_world: Open, setting: str) -> None:
    """Check if a list in another order than the default differs from it."""
    world = open_world(counts=MANY)
    plain = world.list_ids("/candidates")
    sorted_ = world.list_ids("/candidates", sort="last_name", order="asc")
    assert (setting == "ignored") == (plain == sorted_)


def check_ties(open_world: Open, setting: str) -> None:
    """Check the order of records with equal timestamps in two reads."""
    world = open_world()
    stamp = datetime(2025, 1, 2, tzinfo=UTC)
    for _ in range(30):
        world.store.insert("candidates", {"created_at": stamp, "updated_at": stamp})
    first, second = (
        world.list_ids("/candidates", per_page=100, sort="updated_at") for _ in range(2)
    )
    assert set(first) == set(second)
    assert (setting == "stable") == (first == second)


def check_content_type_items(open_world: Open, setting: str) -> None:
    """Check if the list of content types shows `updated_at`."""
    world = open_world(counts={"content_types": 2})
    item = world.get("/content-types").json()["data"][0]
    assert (setting == "declared") == ("updated_at" in item)
    for name, each in item.items():
        assert each == world.store.records("content_types")[item["id"]][name]


def check_timestamp_precision(open_world: Open, setting: str) -> None:
    """Check the fraction digits of every timestamp, and the order within one second."""
    world = open_world(counts=MANY, clock=Clock(MORNING))
    digits = {"microseconds": ".654321", "milliseconds": ".654", "seconds": ""}[setting]
    body = {**world.minimal_body("bookings"), "start_datetime": "2026-05-04T09:30:00.654321Z"}
    shown = world.call("POST", "/bookings", json=body).json()["data"]
    assert f"2026-03-04T05:06:07{digits}Z" == shown["created_at"] == shown["updated_at"]
    assert f"2026-05-04T09:30:00{digits}Z" == shown["start_datetime"]
    created = [each["created_at"] for each in world.get("/candidates").json()["data"]]
    assert {len(shown["created_at"])} == {len(each) for each in created}
    # Without fractions of a second, later insertions come first.
    for second in (0.9, 0.1):
        moment = datetime.fromtimestamp(4_000_000_000 + second, UTC)
        world.store.insert("candidates", {"id": str(second), "created_at": moment})
    expected = ["0.1", "0.9"] if setting == "seconds" else ["0.9", "0.1"]
    assert expected == world.list_ids("/candidates")[:2]


def check_nulls(open_world: Open, setting: str) -> None:
    """Check if details and list items omit a field without a value."""
    world = open_world()
    id = world.call("POST", "/jobs", json=world.minimal_body("jobs")).json()["data"]["id"]
    shown = world.get(f"/jobs/{id}").json()["data"]
    item = world.get("/jobs").json()["data"][0]
    assert (setting == "absent") == ("department" not in shown) == ("salary_min" not in item)
    assert setting == "absent" or shown["department"] is None is item["salary_min"]


def check_extra_fields(open_world: Open, setting: str) -> None:
    """Check if details and list items show an undocumented field."""
    world = open_world(counts={"jobs": 1})
    item = world.get("/jobs").json()["data"][0]
    shown = world.get(f"/jobs/{item['id']}").json()["data"]
    expected = {"workspace_id"} if setting == "shown" else set()
    assert expected == set(shown) - set(CATALOG["jobs"].fields)
    assert expected == set(item) - set(CATALOG["jobs"].fields)


def check_rate_window(open_world: Open, setting: str) -> None:
    """Check status, remaining requests and reset of three requests in two minutes."""
    clock = Clock(datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))
    world = open_world(clock=clock, rate_limit=3)

    def figures() -> tuple[int, int, int]:
        answer = world.get("/jobs")
        reset = int(answer.headers["x-ratelimit-reset"]) - int(clock.now.timestamp())
        return answer.status_code, int(answer.headers["x-ratelimit-remaining"]), reset

    aligned = setting == "aligned"
    assert (200, 2, 53 if aligned else 60) == figures()
    clock.pass_time(seconds=30)
    assert (200, 1, 23 if aligned else 30) == figures()
    assert (200, 0, 23 if aligned else 30) == figures()
    assert (429, 0, 23 if aligned else 30) == figures()
    clock.pass_time(seconds=29)
    assert (200, 2, 54) == figures() if aligned else (429, 0, 1) == figures()
    clock.pass_time(seconds=1)
    after = {"aligned": (200, 1, 53), "first_request": (200, 2, 60), "sliding": (200, 0, 30)}
    assert after[setting] == figures()


def check_month_reset(open_world: Open, setting: str) -> None:
    """Check the reset time shown when the monthly quota is used up."""
    clock = Clock(datetime(2026, 12, 30, 23, 59, 30, tzinfo=UTC))
    world = open_world(clock=clock, monthly_limit=2)
    assert [200, 200, 429] == [world.get("/jobs").status_code for _ in range(3)]
    headers = world.get("/jobs").headers
    day = {"month": (2027, 1, 1), "minute": (2026, 12, 31)}[setting]
    assert int(datetime(*day, tzinfo=UTC).timestamp()) == int(headers["x-ratelimit-reset"])
    assert "0" == headers["x-ratelimit-remaining"]


def check_date_header(open_world: Open, setting: str) -> None:
    """Check if responses have a `Date` header."""
    headers = open_world(clock=Clock(MORNING)).get("/jobs").headers
    expected = {"shown": "Wed, 04 Mar 2026 05:06:07 GMT", "missing": None}[setting]
    assert expected == headers.get("date")


# -- Writes and conversions -----------------------------------------------------------------------


def check_empty_strings(open_world: Open, setting: str) -> None:
    """Check if an empty string is kept in an optional field; a required field rejects it."""
    world = open_world()
    record = create_record(world, "/jobs", {**world.minimal_body("jobs"), "department": ""})
    assert {"kept": "", "null": None}[setting] == record["department"]
    assert ["title"] == request_error_fields(
        world, "POST", "/jobs", {**world.minimal_body("jobs"), "title": ""}
    )


def check_whitespace(open_world: Open, setting: str) -> None:
    """Check if white space around a title is kept, and if a blank title is rejected."""
    world = open_world()
    record = create_record(world, "/jobs", {**world.minimal_body("jobs"), "title": " A\n"})
    assert {"kept": " A\n", "trimmed": "A"}[setting] == record["title"]
    blank = request_error_fields(
        world, "POST", "/jobs", {**world.minimal_body("jobs"), "title": "  "}
    )
    assert {"kept": [], "trimmed": ["title"]}[setting] == blank


def check_counters(open_world: Open, setting: str) -> None:
    """Check if creating, moving and deleting a job changes the `updated_at` of its company."""
    world = open_world()
    first, second = (
        create_record(world, "/companies", world.minimal_body("companies")) for _ in range(2)
    )

    def dates() -> tuple[str, ...]:
        records = world.store.records("companies")
        return tuple(records[each["id"]]["updated_at"] for each in (first, second))

    before = dates()
    job = create_record(world, "/jobs", {**world.minimal_body("jobs"), "company_id": first["id"]})
    made = dates()
    assert (setting == "moving", False) == tuple(a != b for a, b in zip(before, made, strict=True))
    world.call("PUT", f"/jobs/{job['id']}", json={"company_id": second["id"]})
    moved = dates()
    assert (setting == "moving",) * 2 == tuple(a != b for a, b in zip(made, moved, strict=True))
    world.call("DELETE", f"/jobs/{job['id']}")
    assert (setting == "moving") == (moved[1] != dates()[1])


def check_duplicate_emails(open_world: Open, setting: str) -> None:
    """Check if a second record with the same email is rejected, on create and on update.

    A record can be updated without changing its own email.
    """
    world = open_world()
    body = world.minimal_body("candidates")
    first = create_record(world, "/candidates", body)
    expected = ["email"] if setting == "refused" else []
    again = {**body, "email": body["email"].upper()}
    assert expected == request_error_fields(world, "POST", "/candidates", again)
    other = create_record(world, "/candidates", {**body, "email": "other@example.com"})
    path = f"/candidates/{other['id']}"
    assert expected == request_error_fields(world, "PUT", path, {"email": body["email"]})
    assert [] == request_error_fields(
        world, "PUT", f"/candidates/{first['id']}", {"first_name": "Z"}
    )
    assert [] == request_error_fields(
        world, "POST", "/leads", {**world.minimal_body("leads"), "email": body["email"]}
    )


def check_content_update(open_world: Open, setting: str) -> None:
    """Check if an update of one content value keeps or removes the others."""
    world = open_world(counts={"content_types": 1})
    path = world.list_path("content_items")
    fields = {"text_value": "a", "number_value": 1}
    id = create_record(world, path, {"title": "T", "fields": fields})["id"]
    sent = {"text_value": "b"}
    world.call("PUT", f"{path}/{id}", json={"fields": sent})
    shown = world.get(f"{path}/{id}").json()["data"]["fields"]
    assert {"merged": {**fields, **sent}, "replaced": sent}[setting] == shown
    without = request_error_fields(world, "PUT", f"{path}/{id}", {"fields": {"number_value": 2}})
    assert {"merged": [], "replaced": ["fields.text_value"]}[setting] == without


def check_delete(open_world: Open, setting: str) -> None:
    """Check status and body of the response to a delete."""
    world = open_world()
    id = create_record(world, "/jobs", world.minimal_body("jobs"))["id"]
    answer = world.call("DELETE", f"/jobs/{id}")
    if setting == "204":
        assert (204, b"") == (answer.status_code, answer.content)
        assert "content-length" not in answer.headers
    else:
        assert (200, ["message"]) == (answer.status_code, list(answer.json()))
    assert {} == world.store.records("jobs")
    assert 404 == world.call("DELETE", f"/jobs/{id}").status_code


def check_converted_lead(open_world: Open, setting: str) -> None:
    """Check the lead after its conversion: deleted, active or unchanged."""
    world = open_world()
    lead = create_record(world, "/leads", world.minimal_body("leads"))
    answer = world.call("POST", f"/leads/{lead['id']}/convert").json()["data"]
    assert "active" == answer["status"]
    after = world.get(f"/leads/{lead['id']}")
    if setting == "deleted":
        assert 404 == after.status_code
        assert {} == world.store.records("leads")
        return
    shown = after.json()["data"]
    assert {"kept": "lead", "active": "active"}[setting] == shown["status"]
    converted_at = answer["converted_at"] if setting == "active" else None
    assert converted_at == shown.get("converted_at")
    assert answer["converted_at"] == shown["updated_at"]

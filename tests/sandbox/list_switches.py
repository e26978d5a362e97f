"""Checks of the sandbox's behaviours of lists, values, errors and headers.

Each check opens sandboxes in which the behaviour of its name has this setting, and asserts the
effect of that setting.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from connector.catalog import CATALOG
from connector.sandbox.store import Store
from tests.sandbox.world import MORNING, Open
from tests.support.clock import Clock

Check = Callable[[Open, str], None]
MANY = {"candidates": 130}


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


def check_retry_after(open_world: Open, setting: str) -> None:
    """Check the undocumented `Retry-After` header of a 429."""
    clock = Clock(datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))
    world = open_world(clock=clock, rate_limit=1)
    assert "retry-after" not in world.get("/jobs").headers
    timestamp = str(int(clock.now.timestamp()) + 53)
    expected = {"absent": None, "seconds": "53", "timestamp": timestamp}[setting]
    assert expected == world.get("/jobs").headers.get("retry-after")


def check_date_header(open_world: Open, setting: str) -> None:
    """Check if responses have a `Date` header."""
    headers = open_world(clock=Clock(MORNING)).get("/jobs").headers
    expected = {"shown": "Wed, 04 Mar 2026 05:06:07 GMT", "missing": None}[setting]
    assert expected == headers.get("date")


CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): each
    for name, each in globals().items()
    if name.startswith("check_")
}

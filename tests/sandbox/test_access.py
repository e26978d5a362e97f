"""Keys, scopes, limits, headers and the log (API 5, 8), over a socket."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest

from connector.catalog import CATALOG
from tests.sandbox.world import ABSENT_ID, MORNING, Open, ServedSandbox
from tests.support.clock import Clock

SCOPES = sorted({f"{each.scope}.{verb}" for each in CATALOG.values() for verb in ("read", "write")})
HEADERS = ("date", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
REQUESTS = [
    (name, method, path + suffix)
    for name, each in CATALOG.items()
    for path in (each.path.replace("{type}", "blog-posts"),)
    for operation, method, suffix in (
        ("list", "GET", ""),
        ("create", "POST", ""),
        ("get", "GET", f"/{ABSENT_ID}"),
        ("update", "PUT", f"/{ABSENT_ID}"),
        ("delete", "DELETE", f"/{ABSENT_ID}"),
        ("convert", "POST", f"/{ABSENT_ID}/convert"),
    )
    if operation in each.operations
]


def make_key_header(key: str) -> dict[str, str]:
    """Return the header with the API key."""
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", "{key}", "Basic {key}"])
def test_a_missing_or_invalid_key_gives_401(world: ServedSandbox, header: str | None) -> None:
    with httpx.Client(base_url=world.sandbox.base_url) as http:
        given = (header or "").format(key=world.sandbox.key)
        headers = {} if header is None else {"Authorization": given}
        for path in ("/jobs", f"/jobs/{ABSENT_ID}", "/content/nothing"):
            answer = http.get(f"/api/v1{path}", headers=headers)
            assert (401, "unauthorized") == (answer.status_code, answer.json()["error"])


def test_each_operation_requires_its_own_scope(open_world: Open) -> None:
    keys: dict[str, tuple[str, ...]] = {own: (own,) for own in SCOPES}
    keys |= {f"not {own}": tuple({*SCOPES} - {own}) for own in SCOPES}
    world = open_world(counts={"content_types": 1}, keys=keys)
    for resource, method, path in REQUESTS:
        own = f"{CATALOG[resource].scope}.{'read' if method == 'GET' else 'write'}"
        refused = world.call(method, path, headers=make_key_header(f"not {own}"), json={})
        assert (403, "forbidden") == (refused.status_code, refused.json()["error"])
        assert own in refused.json()["message"]
        answer = world.call(method, path, headers=make_key_header(own), json={})
        assert answer.status_code in (200, 404, 422)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", "/api/v1/jobs"), ("POST", "/api/v1/jobs"), ("HEAD", "/api/v1/jobs")),
        *(("GET", f"/api/v1/jobs/{ABSENT_ID}"), ("PATCH", "/api/v1/jobs"), ("OPTIONS", "/x")),
        *(("GET", "/"), ("GET", "/api/v2/jobs"), ("DELETE", "/api/v1"), ("GET", "/api/v1/jobs/")),
    ],
)
def test_every_response_has_the_date_and_rate_limit_headers(
    world: ServedSandbox, method: str, path: str
) -> None:
    for headers in ({}, {"Authorization": ""}):
        answer = world.http.request(method, path, headers=headers, content=b"{")
        assert [True] * 4 == [name in answer.headers for name in HEADERS]
        assert answer.status_code >= 400 or method in ("GET", "HEAD")


def test_the_rate_limit_window_is_the_minute_of_the_clock(open_world: Open) -> None:
    clock = Clock(MORNING)
    world = open_world(clock=clock, rate_limit=3)
    minute = int(datetime(2026, 3, 4, 5, 7, tzinfo=UTC).timestamp())

    def figures(answer: httpx.Response) -> tuple[int, ...]:
        return (answer.status_code, *(int(answer.headers[name]) for name in HEADERS[1:]))

    assert (200, 3, 2, minute) == figures(world.get("/jobs"))
    assert (404, 3, 1, minute) == figures(world.get(f"/jobs/{ABSENT_ID}"))
    assert (422, 3, 0, minute) == figures(world.call("POST", "/jobs", json={}))
    refused = world.call("POST", "/jobs", json=world.minimal_body("jobs"))
    assert (429, 3, 0, minute) == figures(refused)
    assert "rate_limit_exceeded" == refused.json()["error"]
    assert {} == world.store.records("jobs")
    clock.now = datetime(2026, 3, 4, 5, 6, 59, 999999, UTC)
    assert (429, 3, 0, minute) == figures(world.get("/jobs"))
    clock.now = datetime(2026, 3, 4, 5, 7, tzinfo=UTC)
    assert (200, 3, 2, minute + 60) == figures(world.get("/jobs"))


def test_a_spent_monthly_quota_is_renewed_next_month(open_world: Open) -> None:
    clock = Clock(datetime(2026, 1, 31, 23, 58, 30, tzinfo=UTC))
    world = open_world(clock=clock, monthly_limit=2, rate_limit=60)

    assert [200, 200, 429] == [world.get("/jobs").status_code for _ in range(3)]
    clock.pass_time(seconds=60)
    refused = world.get("/jobs")
    february = int(datetime(2026, 2, 1, tzinfo=UTC).timestamp())
    assert (429, "0") == (refused.status_code, refused.headers["x-ratelimit-remaining"])
    assert february == int(refused.headers["x-ratelimit-reset"])
    clock.pass_time(seconds=60)
    assert [200, 200, 429] == [world.get("/jobs").status_code for _ in range(3)]


def test_the_log_has_every_request_but_no_key(open_world: Open) -> None:
    world = open_world(keys={"very-secret": ("*",)})
    world.get("/jobs", page=2)
    world.call("POST", "/jobs", json={})
    world.http.get("/nowhere")

    log = world.sandbox.log
    assert [
        ("GET", "/api/v1/jobs", "page=2", 200),
        ("POST", "/api/v1/jobs", "", 422),
        ("GET", "/nowhere", "", 404),
    ] == [(each.method, each.path, each.query, each.status) for each in log]
    assert sorted(each.at for each in log) == [each.at for each in log]
    assert all(each.at.tzinfo is not None for each in log)
    assert "very-secret" not in repr(log)

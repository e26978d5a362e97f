"""Every fault as a client observes it on a socket, and the requests that it affects."""

from __future__ import annotations

import socket
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from connector.sandbox import faults
from connector.sandbox.app import Fault
from connector.sandbox.server import Sandbox
from tests.sandbox.world import MORNING, Open, ServedSandbox
from tests.support.clock import Clock

RATE_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")


@pytest.fixture
def world(open_world: Open) -> ServedSandbox:
    """A world with two jobs and a stopped clock."""
    return open_world(counts={"jobs": 2}, clock=Clock(MORNING))


def create_job(world: ServedSandbox, **options: Any) -> httpx.Response:
    """Create a job, to test whether the write has an effect."""
    return world.call("POST", "/jobs", json=world.minimal_body("jobs"), **options)


def count_jobs(world: ServedSandbox) -> int:
    """Return the number of jobs in the store."""
    return len(world.store.records("jobs"))


def test_a_write_is_applied_although_the_client_disconnected(world: ServedSandbox) -> None:
    world.sandbox.faults.add(faults.Latency(60))

    with pytest.raises(httpx.ReadTimeout):
        create_job(world, timeout=0.1)
    # During each request, the server can notice that a client has gone.
    turns = (world.http.get("/nowhere") for _ in range(1000))
    assert any(count_jobs(world) == 3 for _ in turns)


@pytest.mark.parametrize("status", [500, 404, 599])
@pytest.mark.parametrize(("when", "effect"), [("before", 0), ("after", 1)])
def test_an_error_status_is_sent_before_or_after_the_effect(
    world: ServedSandbox, status: int, when: faults.When, effect: int
) -> None:
    world.sandbox.faults.add(faults.Status(status, when))

    answer = create_job(world)

    assert status == answer.status_code
    assert ["error", "message"] == list(answer.json())
    assert 2 + effect == count_jobs(world)
    assert all(name in answer.headers for name in RATE_HEADERS)


@pytest.mark.parametrize(("when", "effect"), [("before", 0), ("after", 1)])
def test_an_html_page_looks_like_one_of_a_proxy(
    world: ServedSandbox, when: faults.When, effect: int
) -> None:
    world.sandbox.faults.add(faults.HtmlPage(502, when))

    answer = create_job(world)

    assert (502, "text/html; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    assert answer.text.startswith("<!doctype html>")
    assert not any(name in answer.headers for name in RATE_HEADERS)
    assert 2 + effect == count_jobs(world)


def test_a_body_that_is_not_json_keeps_the_status(world: ServedSandbox) -> None:
    world.sandbox.faults.add(faults.NotJson(b"OK"))

    answer = world.get("/jobs")

    assert (200, b"OK", "application/json") == (
        answer.status_code,
        answer.content,
        answer.headers["content-type"],
    )


@pytest.mark.parametrize(("effect", "expected"), [("none", 2), ("applied", 3), ("later", 2)])
def test_a_dropped_connection_applies_the_effect_now_later_or_never(
    world: ServedSandbox, effect: Any, expected: int
) -> None:
    world.sandbox.faults.add(faults.Drop(effect))

    with pytest.raises(httpx.RemoteProtocolError):
        create_job(world)

    assert expected == count_jobs(world)
    assert (int(effect == "later"), 3 if effect != "none" else 2) == (
        world.sandbox.apply_delayed_effects(),
        count_jobs(world),
    )
    assert 0 == world.sandbox.apply_delayed_effects()
    assert None is world.sandbox.log[-1].status


def test_a_delayed_effect_is_dated_when_it_is_applied(world: ServedSandbox) -> None:
    clock = world.store.clock
    assert isinstance(clock, Clock)
    world.sandbox.faults.add(faults.Drop("later"))
    with pytest.raises(httpx.RemoteProtocolError):
        create_job(world)
    clock.pass_time(seconds=90)

    world.sandbox.apply_delayed_effects()

    assert "2026-03-04T05:07:37.654321Z" == world.get("/jobs").json()["data"][0]["created_at"]


@pytest.mark.parametrize("fault", [faults.Drip(60), faults.Latency(60)])
def test_the_sandbox_ends_despite_open_requests(fault: Fault) -> None:
    with Sandbox(counts={"jobs": 2}) as sandbox:
        sandbox.faults.add(fault)
        url = httpx.URL(sandbox.base_url)
        request = f"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {sandbox.key}"
        with socket.create_connection((url.host, url.port), timeout=10) as connection:
            connection.sendall(f"{request}\r\n\r\n".encode())
            while sandbox.log == [] and fault != faults.Latency(60):
                assert connection.recv(1)

            sandbox.stop()

    assert "sandbox" not in [each.name for each in threading.enumerate()]


def test_a_dripping_response_arrives_in_parts_and_complete(world: ServedSandbox) -> None:
    expected = world.get("/jobs").content
    world.sandbox.faults.add(faults.Drip(0.005))

    with world.http.stream("GET", "/api/v1/jobs") as answer:
        parts = list(answer.iter_raw())
    assert expected == b"".join(parts)
    assert len(parts) > 1


@pytest.mark.parametrize(
    ("reset", "seconds"), [("right", 53), ("far", 20 * 24 * 3600), ("past", -60)]
)
def test_a_429_has_the_configured_reset_time(
    world: ServedSandbox, reset: Any, seconds: int
) -> None:
    world.sandbox.faults.add(faults.Limited(reset))

    answer = create_job(world)

    assert (429, 2) == (answer.status_code, count_jobs(world))
    assert "0" == answer.headers["x-ratelimit-remaining"]
    now = int(world.store.clock().timestamp())
    assert seconds == int(answer.headers["x-ratelimit-reset"]) - now


def test_a_429_can_have_seconds_or_no_headers(world: ServedSandbox) -> None:
    world.sandbox.faults.add(faults.Limited("seconds"))
    world.sandbox.faults.add(faults.Limited("missing"))

    assert "53" == world.get("/jobs").headers["x-ratelimit-reset"]
    silent = world.get("/jobs")
    assert 429 == silent.status_code
    assert not any(name in silent.headers for name in RATE_HEADERS)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_has_its_target_and_no_effect(world: ServedSandbox, status: int) -> None:
    target = "https://elsewhere.example/api/v1/jobs"
    world.sandbox.faults.add(faults.Redirect(target, status))

    answer = create_job(world)

    assert (status, target, 2) == (
        answer.status_code,
        answer.headers["location"],
        count_jobs(world),
    )


def test_a_sandbox_uses_the_given_clock(open_world: Open) -> None:
    clock = Clock(datetime(2031, 1, 1, tzinfo=UTC))
    world = open_world(clock=clock)
    answer = create_job(world)

    assert "2031-01-01T00:00:00.000000Z" == answer.json()["data"]["updated_at"]
    assert "Wed, 01 Jan 2031 00:00:00 GMT" == answer.headers["date"]
    reset = datetime.fromtimestamp(int(answer.headers["x-ratelimit-reset"]), UTC)
    assert clock.now + timedelta(seconds=60) == reset


def request_statuses(world: ServedSandbox, *requests: tuple[str, str]) -> list[int]:
    """Send requests below `/api/v1` and return their statuses."""
    return [world.call(*each).status_code for each in requests]


def test_faults_match_method_and_path(world: ServedSandbox) -> None:
    id = next(iter(world.store.records("jobs")))
    world.sandbox.faults.add(faults.Status(503), method="GET", path="/api/v1/jobs/*", times=None)

    requests = (("GET", "/jobs"), ("GET", f"/jobs/{id}"), ("DELETE", f"/jobs/{id}"))
    assert [200, 503, 204] == request_statuses(world, *requests)


def test_faults_occur_the_given_number_of_times(world: ServedSandbox) -> None:
    twice = world.sandbox.faults.add(faults.Status(500), times=2)
    third = world.sandbox.faults.add(faults.Status(502), nth=3)

    assert [500, 500, 200, 200, 502, 200] == request_statuses(world, *[("GET", "/jobs")] * 6)
    assert (2, 1) == (twice.hits, third.hits)
    world.sandbox.faults.add(faults.Status(503), times=None)
    assert [503] == request_statuses(world, ("GET", "/jobs"))
    world.sandbox.faults.clear()
    assert [200] == request_statuses(world, ("GET", "/jobs"))


def test_random_faults_are_reproducible_with_the_seed(open_world: Open) -> None:
    def run_with_seed(seed: int) -> list[int]:
        world = open_world(seed=seed)
        world.sandbox.faults.add(faults.Status(500), probability=0.5, times=None)
        return request_statuses(world, *[("GET", "/jobs")] * 30)

    first = run_with_seed(1)
    assert {200, 500} == set(first)
    assert first == run_with_seed(1)
    assert first != run_with_seed(2)


def test_a_crossed_response_shows_another_record_after_the_effect(world: ServedSandbox) -> None:
    one, other = world.store.records("jobs")
    world.sandbox.faults.add(faults.Crossed(), times=None)

    read = world.call("GET", f"/jobs/{one}")
    changed = world.call("PUT", f"/jobs/{one}", json={"title": "Changed"})
    made, listed = create_job(world), world.call("GET", "/jobs")
    gone = world.call("DELETE", f"/jobs/{one}")

    answers = [read, changed, made, gone]
    assert [200, 200, 201, 200] == [each.status_code for each in answers]
    assert [other, other, one, other] == [each.json()["data"]["id"] for each in answers]
    assert 3 == len(listed.json()["data"])
    assert one not in world.store.records("jobs")

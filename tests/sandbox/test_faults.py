"""Every fault as a client observes it on a socket, and the requests that it affects."""

from __future__ import annotations

import socket
import threading
from typing import Any

import httpx
import pytest

from connector.sandbox.app import Fault
from connector.sandbox.faults import Crossed, Drip, Drop, HtmlPage, Latency, Redirect, Status
from connector.sandbox.server import Sandbox
from tests.sandbox.world import MORNING, Open, ServedSandbox
from tests.support.clock import Clock

RATE_HEADERS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}
ELSEWHERE = "https://elsewhere.example/api/v1/jobs"


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


@pytest.mark.parametrize(
    ("fault", "status", "text", "effect"),
    [
        (Latency(0.01), 201, '"message":"The job was created."', 1),
        (Drip(0.001), 201, '"message":"The job was created."', 1),
        (Status(500), 500, '{"error":"server_error","message":"Something', 0),
        (Status(404, "after"), 404, '{"error":"not_found","message":"Something', 1),
        (HtmlPage(502), 502, "<!doctype html>", 0),
        (HtmlPage(504, "after"), 504, "<!doctype html>", 1),
        (Redirect(ELSEWHERE, 308), 308, "", 0),
    ],
)
def test_a_fault_has_its_response_and_effect(
    world: ServedSandbox, fault: Fault, status: int, text: str, effect: int
) -> None:
    world.sandbox.faults.add(fault)

    answer = create_job(world)

    assert status == answer.status_code == world.sandbox.log[-1].status
    assert text in answer.text
    assert 2 + effect == count_jobs(world)
    is_bare = isinstance(fault, HtmlPage)
    assert (set() if is_bare else RATE_HEADERS) == RATE_HEADERS & set(answer.headers)
    assert (ELSEWHERE if status == 308 else None) == answer.headers.get("location")
    is_html = "text/html" in answer.headers["content-type"]
    assert is_html == isinstance(fault, HtmlPage | Redirect)


@pytest.mark.parametrize(("effect", "expected"), [("none", 2), ("applied", 3), ("later", 2)])
def test_a_dropped_connection_applies_the_effect_now_later_or_never(
    world: ServedSandbox, effect: Any, expected: int
) -> None:
    clock = world.store.clock
    assert isinstance(clock, Clock)
    world.sandbox.faults.add(Drop(effect))
    with pytest.raises(httpx.RemoteProtocolError):
        create_job(world)

    assert expected == count_jobs(world)
    clock.pass_time(seconds=90)
    applied = [world.sandbox.apply_delayed_effects() for _ in range(2)]
    assert [int(effect == "later"), 0] == applied
    assert (2 if effect == "none" else 3) == count_jobs(world)
    assert None is world.sandbox.log[-1].status
    if effect == "later":
        created = max(each["created_at"] for each in world.store.records("jobs").values())
        assert "2026-03-04T05:07:37.654321Z" == created


def test_a_dripping_response_arrives_in_parts_and_complete(world: ServedSandbox) -> None:
    expected = world.get("/jobs").content
    world.sandbox.faults.add(Drip(0.005))

    with world.http.stream("GET", "/api/v1/jobs") as answer:
        parts = list(answer.iter_raw())
    assert expected == b"".join(parts)
    assert len(parts) > 1


@pytest.mark.parametrize("fault", [Drip(60), Latency(60)])
def test_the_sandbox_ends_despite_open_requests(fault: Fault) -> None:
    with Sandbox(counts={"jobs": 2}) as sandbox:
        sandbox.faults.add(fault)
        url = httpx.URL(sandbox.base_url)
        request = f"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {sandbox.key}"
        with socket.create_connection((url.host, url.port), timeout=10) as connection:
            connection.sendall(f"{request}\r\n\r\n".encode())
            while sandbox.log == [] and fault != Latency(60):
                assert connection.recv(1)

            sandbox.stop()

    assert "sandbox" not in [each.name for each in threading.enumerate()]


def request_statuses(world: ServedSandbox, *requests: tuple[str, str]) -> list[int]:
    """Send requests below `/api/v1` and return their statuses."""
    return [world.call(*each).status_code for each in requests]


def test_faults_match_method_and_path(world: ServedSandbox) -> None:
    id = next(iter(world.store.records("jobs")))
    world.sandbox.faults.add(Status(503), method="GET", path="/api/v1/jobs/*", times=None)

    requests = (("GET", "/jobs"), ("GET", f"/jobs/{id}"), ("DELETE", f"/jobs/{id}"))
    assert [200, 503, 204] == request_statuses(world, *requests)


def test_faults_occur_the_given_number_of_times(world: ServedSandbox) -> None:
    twice = world.sandbox.faults.add(Status(500), times=2)
    third = world.sandbox.faults.add(Status(502), nth=3)

    assert [500, 500, 200, 200, 502, 200] == request_statuses(world, *[("GET", "/jobs")] * 6)
    assert (2, 1) == (twice.hits, third.hits)
    world.sandbox.faults.add(Status(503), times=None)
    assert [503] == request_statuses(world, ("GET", "/jobs"))
    world.sandbox.faults.clear()
    assert [200] == request_statuses(world, ("GET", "/jobs"))


def test_a_crossed_response_shows_another_record_after_the_effect(world: ServedSandbox) -> None:
    one, other = world.store.records("jobs")
    world.sandbox.faults.add(Crossed(), times=None)

    read = world.call("GET", f"/jobs/{one}")
    changed = world.call("PUT", f"/jobs/{one}", json={"title": "Changed"})
    made, listed = create_job(world), world.call("GET", "/jobs")
    gone = world.call("DELETE", f"/jobs/{one}")

    answers = [read, changed, made, gone]
    assert [200, 200, 201, 200] == [each.status_code for each in answers]
    assert [other, other, one, other] == [each.json()["data"]["id"] for each in answers]
    assert 3 == len(listed.json()["data"])
    assert one not in world.store.records("jobs")

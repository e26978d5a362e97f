"""Client for tests: a simulated clock, no randomness, and one call per operation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from connector.catalog import CATALOG
from connector.client.client import Client, RecordEndpoint
from connector.client.messages import Observer, Request
from tests.support.clock import ClientClock

KEY = "planted/key+of=the~tests"
"""A key with characters that JSON and addresses write in another way."""

ID = "5d1c"

Call = Callable[[Client], Awaitable[Any]]


def get_endpoint(client: Client, name: str, parent: str | None = None) -> RecordEndpoint[Any]:
    """Return the client's operations on a resource; content items need their type as `parent`."""
    return RecordEndpoint(client, CATALOG[name].record, parent)


READS: Mapping[str, Call] = {
    "list": lambda client: get_endpoint(client, "jobs").list(search="anna@example.com"),
    "get": lambda client: get_endpoint(client, "candidates").get(ID),
}
WRITES: Mapping[str, Call] = {
    "create": lambda client: get_endpoint(client, "companies").create(
        {"name": "A", "email": "anna@example.com"}
    ),
    "update": lambda client: get_endpoint(client, "jobs").update(ID, {"title": "B"}),
    "delete": lambda client: get_endpoint(client, "content_items", "news").delete(ID),
    "convert": lambda client: get_endpoint(client, "leads").convert(ID),
}


class RecordingObserver(Observer):
    """Observer that records sent requests, statuses (None without a response), and wait reasons."""

    def __init__(self) -> None:
        self.sent: list[Request] = []
        self.statuses: list[int | None] = []
        self.waits: list[str] = []

    def before_send(self, request: Request) -> None:
        self.sent.append(request)

    def on_response(self, request: Request, status: int | None, seconds: float) -> None:
        self.statuses.append(status)

    def on_wait_end(self, seconds: float, why: str) -> None:
        self.waits.append(why)


def make_client(base_url: str, clock: ClientClock | None = None, **options: Any) -> Client:
    """Return a client whose waits take no time; `options` are those of `Client`."""
    clock = clock or ClientClock()
    terms: dict[str, Any] = {"clock": clock, "sleep": clock.wait, "chance": lambda: 0.0, **options}
    return Client(base_url, KEY, **terms)

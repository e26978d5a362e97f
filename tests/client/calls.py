"""Client for tests: a simulated clock, no randomness, and one call per operation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from connector.client.client import Client, Observer
from connector.client.messages import Request
from tests.support.clock import ClientClock

KEY = "planted/key+of=the~tests"
"""A key with characters that JSON and addresses write in another way."""

ID = "5d1c"

Call = Callable[[Client], Awaitable[Any]]


READS: Mapping[str, Call] = {
    "list": lambda client: client.page("jobs", search="anna@example.com"),
    "get": lambda client: client.detail("candidates", ID),
}
WRITES: Mapping[str, Call] = {
    "create": lambda client: client.create("companies", {"name": "A", "email": "anna@example.com"}),
    "update": lambda client: client.update("jobs", ID, {"title": "B"}),
    "delete": lambda client: client.delete("content_items", ID, "news"),
    "convert": lambda client: client.convert("leads", ID),
}


class StatusObserver(Observer):
    """Observer that records the status of each attempt, None without an answer."""

    def __init__(self) -> None:
        self.statuses: list[int | None] = []

    def on_response(self, request: Request, status: int | None) -> None:
        self.statuses.append(status)


def make_client(base_url: str, clock: ClientClock | None = None, **options: Any) -> Client:
    """Return a client whose waits take no time; `options` are those of `Client`."""
    clock = clock or ClientClock()
    terms: dict[str, Any] = {"clock": clock, "sleep": clock.wait, "chance": lambda: 0.0, **options}
    return Client(base_url, KEY, **terms)

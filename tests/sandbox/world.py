"""A sandbox with a client on a socket, and request bodies that the API accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import httpx

from connector.catalog import CATALOG, references
from connector.catalog.field import Kind
from connector.catalog.resource import Declaration
from connector.sandbox.seed import LEAD_STATUSES, USERS
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store

CREATABLE = [name for name, each in CATALOG.items() if "create" in each.operations]
CHANGEABLE = [name for name in CREATABLE if {"update", "delete"} <= CATALOG[name].operations]

COUNTS = dict.fromkeys(CATALOG, 40) | {
    "jobs": 60,
    "candidates": 130,
    "companies": 25,
    "bookings": 110,
    "leads": 90,
    "content_types": 3,
    "content_items": 50,
}
"""A small agency in which every resource has more than one page of twenty."""

FEW = dict.fromkeys(CATALOG, 5) | {"content_types": 1}
"""The smallest agency in which every resource has records, for tests that write."""

MORNING = datetime(2026, 3, 4, 5, 6, 7, 654321, UTC)
ABSENT_ID = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class ServedSandbox:
    """A sandbox that is listening, and an HTTP client with its API key."""

    sandbox: Sandbox
    http: httpx.Client

    @property
    def store(self) -> Store:
        """The records of the sandbox."""
        return self.sandbox.store

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send one request below `/api/v1`, with options of `httpx`."""
        return self.http.request(method, f"/api/v1{path}", **options)

    def get(self, path: str, **query: str | int) -> httpx.Response:
        """Send one GET request below `/api/v1`."""
        return self.call("GET", path, params=query)

    def list_path(self, resource: str) -> str:
        """Return the path of a resource's list; for content items, of the first content type."""
        path = CATALOG[resource].path
        return path.replace("{type}", next(iter(self.store.records("content_types")), "none"))

    def list_ids(self, path: str, **query: str | int) -> list[str]:
        """Return the ids of a whole list, read page by page."""
        ids: list[str] = []
        page = 1
        while True:
            answer = self.get(path, **{"per_page": 37, **query, "page": page}).json()
            ids += [each["id"] for each in answer["data"]]
            if page >= answer["pagination"]["total_pages"]:
                return ids
            page += 1

    def minimal_body(self, resource: str) -> dict[str, Any]:
        """Return a valid body to create a record, with only the required fields."""
        if resource in _LEAST:
            return dict(_LEAST[resource])
        declared = CATALOG[resource]
        needed = [field.name for field, terms in declared.body_fields("create") if terms.required]
        return {name: make_value(declared, name, "create") for name in needed}

    def full_body(
        self, resource: str, operation: Literal["create", "update"] = "create"
    ) -> dict[str, Any]:
        """Return a valid body with every field that the operation accepts."""
        declaration = CATALOG[resource]
        related = references(declaration)
        return {
            declared.name: self._any_id(related[declared.name])
            if declared.name in related
            else make_value(declaration, declared.name, operation)
            for declared, _ in declaration.body_fields(operation)
        }

    def _any_id(self, resource: str) -> str:
        """Return the id of the first record of the resource."""
        return next(iter(self.store.records(resource)))


Open = Callable[..., ServedSandbox]
"""Opens a sandbox with options of `Sandbox`; the test's fixture closes it."""


@contextmanager
def open_sandbox(**options: Any) -> Iterator[ServedSandbox]:
    """Open a sandbox with these options of `Sandbox`, and a client."""
    with Sandbox(**options) as sandbox:
        headers = {"Authorization": f"Bearer {sandbox.key}"}
        with httpx.Client(base_url=sandbox.base_url, headers=headers, timeout=20) as http:
            yield ServedSandbox(sandbox, http)


_LEAST: dict[str, dict[str, Any]] = {
    "jobs": {
        "title": "Data Engineer",
        "location": "Leeds",
        "employment_type": "permanent",
        "description": "Pipes.",
    },
    "candidates": {
        "first_name": "Zoë",
        "last_name": "O'Brien",
        "email": "zoe@example.com",
        "employment_type": "contractor",
    },
    "companies": {"name": "Müller & Söhne", "email": "office@example.com"},
    "bookings": {"booking_type": "internal", "start_datetime": "2026-05-04T09:30:00Z"},
    "leads": {
        "email": "lead@example.com",
        "lead_status_id": LEAD_STATUSES[0],
        "company_name": "Wren & Co",
    },
    "content_items": {"title": "Hello", "fields": {"text_value": "Hello"}},
}

_BY_KIND: dict[Kind, Any] = {
    Kind.STRING: 'Text with a "quote", a\nbreak and a 🙂',
    Kind.UUID: USERS[0],
    Kind.NUMBER: 1234.5,
    Kind.INTEGER: 7,
    Kind.BOOL: True,
    Kind.DATE: "2026-02-28",
    Kind.DATETIME: "2026-05-04T09:30:00.000000Z",
    Kind.OBJECT: {"text_value": "Hello"},
}

_BY_FORMAT: dict[str, str] = {
    "email": "someone@example.com",
    "url": "https://example.com/a?b=c",
    "currency": "GBP",
    "timezone": "Europe/London",
}


def make_value(declaration: Declaration, name: str, operation: Literal["create", "update"]) -> Any:
    """Return a valid value for the field in a create or an update."""
    declared = declaration.fields[name]
    terms = declared.create if operation == "create" else declared.update
    choices = terms.values or declared.values
    # The last choice of an update differs from the first of a create. A cancellation reason
    # requires the status "cancelled".
    if name == "status" and "cancelled" in choices:
        return "cancelled"
    if choices:
        return choices[0 if operation == "create" else -1]
    return _BY_FORMAT.get(declared.format or "", _BY_KIND[declared.kind])

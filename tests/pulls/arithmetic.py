"""A client without a server: every candidate and response is computed from the candidate's number.

Nothing is stored and no socket is opened, so pulls can be larger than with a sandbox, and memory
that grows with the records is the connector's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from math import ceil
from typing import Any

from connector.catalog import CATALOG
from connector.client.client import Client
from connector.client.messages import Request, Response
from connector.errors import NoAnswer

BEGAN = datetime(2020, 1, 1, tzinfo=UTC)
"""When the first candidate was created; each one after it a second later."""

LIMIT = 10_000_000
"""Rate limit per minute that a pull never reaches."""

_SCATTER = 2_654_435_761
"""Odd factor that makes the order of ids differ from the order of creation."""
_FIELDS = CATALOG["candidates"]
_TEXT = "Ten years of steady work in the trade, with references. " * 4


def format_id(number: int) -> str:
    """Return the id of the candidate with this number."""
    return f"{number * _SCATTER % 2**32:08x}-0000-4000-8000-{number:012x}"


def parse_number(id: str) -> int:
    """Return the number of the candidate with this id."""
    return int(id[-12:], 16)


def make_record(number: int, changed_at: datetime | None = None) -> dict[str, Any]:
    """Return a candidate's detail of realistic size, changed at the timestamp if given."""
    began = BEGAN + timedelta(seconds=number)
    created, updated = (
        each.isoformat().replace("+00:00", "Z") for each in (began, changed_at or began)
    )
    return {
        **dict.fromkeys(each.name for each in _FIELDS.detail_fields),
        "id": format_id(number),
        "created_at": created,
        "updated_at": updated,
        "first_name": f"First{number}" if changed_at is None else f"Again{number}",
        "last_name": f"Last{number}",
        "email": f"person{number}@people.example",
        "phone": f"+44 20 7946 {number:06d}",
        "city": "Leeds",
        "employment_type": "permanent",
        "current_salary": float(30_000 + number % 40_000),
        "current_job_title": "Analyst",
        "skills": f"{_TEXT}{number}",
        "qualifications": f"{number} {_TEXT}",
        "status": "screening",
    }


class ComputedClient(Client):
    """Client whose responses are computed: `candidates_count` records, numbered by creation.

    Records were last changed in the same order, except those in `candidates_changed`. Everything
    above the network is the real client.
    """

    candidates_count = 0
    candidates_changed: Mapping[int, datetime] = {}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._session = ComputedConnection(  # type: ignore[assignment]
            self.candidates_count, self.candidates_changed
        )


def make_client_factory(count: int, changed: Sequence[int] = ()) -> type[ComputedClient]:
    """Return a replacement for `connect` that serves `count` candidates.

    Candidates with the numbers in `changed` have just been changed, in that order.
    """
    now = datetime.now(UTC)
    moments = {each: now + timedelta(microseconds=place) for place, each in enumerate(changed)}
    computed = {"candidates_count": count, "candidates_changed": moments}
    return type("Arithmetic", (ComputedClient,), computed)


class ComputedConnection:
    """Computes responses instead of sending requests."""

    def __init__(self, count: int, changed: Mapping[int, datetime]) -> None:
        self._count, self._changed = count, changed
        self._item_fields = [each.name for each in _FIELDS.item_fields]

    async def aclose(self) -> None:
        """Do nothing."""

    async def exchange(self, request: Request) -> Response:
        """Respond to a list of candidates or to one detail."""
        if request.resource != "candidates":
            raise NoAnswer(request.method_and_path, "it is not computed")
        body = (
            self._make_list(request) if request.operation == "list" else self._make_detail(request)
        )
        now = time.time()
        headers = {
            "date": formatdate(now, usegmt=True),
            "x-ratelimit-limit": str(LIMIT),
            "x-ratelimit-remaining": str(LIMIT),
            "x-ratelimit-reset": str(int(now) + 60),
        }
        return Response(200, headers, json.dumps(body).encode())

    def _make_list(self, request: Request) -> dict[str, Any]:
        """Return the document of a list response."""
        page, size = int(request.query["page"]), int(request.query["per_page"])
        places = range((page - 1) * size, min(page * size, self._count))
        if request.query["order"] == "desc":
            places = range(self._count - 1 - places.start, self._count - 1 - places.stop, -1)
        if request.query["sort"] == "updated_at":
            records = [self._make_record(self._number_by_change(place)) for place in places]
        else:
            records = [self._make_record(place) for place in places]
        return {
            "data": [{name: each[name] for name in self._item_fields} for each in records],
            "pagination": {
                "page": page,
                "per_page": size,
                "total": self._count,
                "total_pages": ceil(self._count / size),
            },
        }

    def _make_detail(self, request: Request) -> dict[str, Any]:
        """Return the document of a detail response."""
        return {"data": self._make_record(parse_number(request.path.rsplit("/", 1)[1]))}

    def _make_record(self, number: int) -> dict[str, Any]:
        """Return the candidate with this number, changed if it is one of the changed."""
        return make_record(number, self._changed.get(number))

    def _number_by_change(self, index: int) -> int:
        """Return the number of the candidate at this index in ascending order of `updated_at`."""
        number, unchanged = index, self._count - len(self._changed)
        if index >= unchanged:
            return list(self._changed)[index - unchanged]
        for changed in sorted(self._changed):
            number += changed <= number
        return number

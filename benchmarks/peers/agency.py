"""A sandbox in a process of its own, and what happens in the agency that it serves.

What happens while a copy is made is tied to the number of requests served, not to the clock, so
that every copier meets the same: slow ones are not punished for being slow.
"""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any

from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store

RESOURCE = "candidates"
EDITED, MADE, DELETED = 55, 5, 5
"""An ordinary day: 65 changes."""

CHURN_EVERY = 20
"""Requests between two things that happen while a copy is made."""

BULK = 250
"""Records that one edit of many changes, all with one `updated_at`."""


@dataclass(frozen=True)
class RequestCounts:
    """Requests that were answered, and how many of them with 429."""

    requests: int
    refused: int


class Agency:
    """One agency's day, within the process that serves it."""

    def __init__(self, records: int, behaviours: Mapping[str, str], limit: int | None) -> None:
        self._ahead = timedelta()
        self._chance = random.Random(1)  # noqa: S311  # no secret is drawn
        self._number = self._seen = 0
        counts = {RESOURCE: records}
        self.sandbox = Sandbox(
            counts=counts, behaviours=behaviours, rate_limit=limit, clock=self._now
        )

    def address(self) -> str:
        """Where it is served."""
        return self.sandbox.base_url

    def served(self) -> RequestCounts:
        """What was served since this was last asked."""
        new = self.sandbox.log[self._seen :]
        self._seen += len(new)
        return RequestCounts(len(new), sum(each.status == 429 for each in new))

    def truth(self) -> dict[str, str | None]:
        """The notes of every record by its id: each edit writes another note."""
        found = self.sandbox.store.records(RESOURCE)
        return {id: record.get("notes") for id, record in found.items()}

    def pass_an_hour(self) -> None:
        """Put an hour on the server's clock, after which nothing is recent."""
        self._ahead += timedelta(hours=1)

    def a_day(self) -> None:
        """65 changes: edits, new records and deletions."""
        for _ in range(EDITED):
            self._edit(self.sandbox.store)
        for _ in range(MADE):
            self._make(self.sandbox.store)
        for _ in range(DELETED):
            self._delete(self.sandbox.store)

    def a_bulk_edit(self) -> None:
        """One edit of many records, which leaves them with one `updated_at`."""
        ids = self._chance.sample(sorted(self.sandbox.store.records(RESOURCE)), BULK)
        self.sandbox.store.touch_many(RESOURCE, ids, {"notes": "bulk edit"})

    def churn(self, on: bool) -> None:
        """Let something happen after every few requests, or no more."""
        self.sandbox.between = self._happen if on else None

    def _now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def _happen(self, store: Store) -> None:
        self._number += 1
        if self._number % CHURN_EVERY == 0:
            self._chance.choices((self._edit, self._make, self._delete), (6, 2, 2))[0](store)

    def _some(self, store: Store) -> str:
        return self._chance.choice(sorted(store.records(RESOURCE)))

    def _edit(self, store: Store) -> None:
        store.update(RESOURCE, self._some(store), {"notes": f"note {self._chance.random()}"})

    def _make(self, store: Store) -> None:
        number = self._chance.random()
        record = {"first_name": "New", "last_name": str(number), "employment_type": "permanent"}
        store.create(RESOURCE, {**record, "email": f"new{number}@people.example"})

    def _delete(self, store: Store) -> None:
        store.delete(RESOURCE, self._some(store))


class RemoteAgency:
    """The agency as the benchmark sees it from outside: `agency.call("a_day")`."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def call(self, name: str, *arguments: Any) -> Any:
        """Let a method of `Agency` run over there, and return what it returns."""
        self._pipe.send((name, arguments))
        return self._pipe.recv()


def _serve(
    pipe: Connection, records: int, behaviours: Mapping[str, str], limit: int | None
) -> None:
    agency = Agency(records, behaviours, limit)
    with agency.sandbox:
        while (order := pipe.recv()) is not None:
            name, arguments = order
            pipe.send(getattr(agency, name)(*arguments))


@contextmanager
def served_agency(
    records: int, behaviours: Mapping[str, str] | None = None, limit: int | None = None
) -> Iterator[RemoteAgency]:
    """An agency that is served while the block lasts."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, records, behaviours or {}, limit))
    process.start()
    try:
        yield RemoteAgency(ours)
    finally:
        ours.send(None)
        process.join()

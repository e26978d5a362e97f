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
    """Numbers of answered requests and of requests refused with 429."""

    requests: int
    refused: int


class Agency:
    """Sandbox with candidates, and changes to them, inside the process that serves it."""

    def __init__(self, records: int, behaviours: Mapping[str, str], limit: int | None) -> None:
        self._ahead = timedelta()
        self._chance = random.Random(1)  # noqa: S311  # no secret is drawn
        self._number = self._seen = 0
        counts = {RESOURCE: records}
        self.sandbox = Sandbox(
            counts=counts, behaviours=behaviours, rate_limit=limit, clock=self._now
        )

    def address(self) -> str:
        """Return the base URL of the sandbox."""
        return self.sandbox.base_url

    def count_new_requests(self) -> RequestCounts:
        """Count the requests since the previous call."""
        new = self.sandbox.log[self._seen :]
        self._seen += len(new)
        return RequestCounts(len(new), sum(each.status == 429 for each in new))

    def notes_by_id(self) -> dict[str, str | None]:
        """Return the notes of every record by id. Each edit changes the notes."""
        found = self.sandbox.store.records(RESOURCE)
        return {id: record.get("notes") for id, record in found.items()}

    def advance_one_hour(self) -> None:
        """Advance the server's clock by an hour, so that no change is recent."""
        self._ahead += timedelta(hours=1)

    def apply_daily_changes(self) -> None:
        """Apply 65 changes: edits, new records and deletions."""
        for _ in range(EDITED):
            self._edit_random(self.sandbox.store)
        for _ in range(MADE):
            self._create_record(self.sandbox.store)
        for _ in range(DELETED):
            self._delete_random(self.sandbox.store)

    def apply_bulk_edit(self) -> None:
        """Change many records together, which get the same `updated_at`."""
        ids = self._chance.sample(sorted(self.sandbox.store.records(RESOURCE)), BULK)
        self.sandbox.store.touch_many(RESOURCE, ids, {"notes": "bulk edit"})

    def change_while_reading(self, on: bool) -> None:
        """Start or stop to change a random record after every 20 requests."""
        self.sandbox.between = self._change_sometimes if on else None

    def _now(self) -> datetime:
        """Return the server's time."""
        return datetime.now(UTC) + self._ahead

    def _change_sometimes(self, store: Store) -> None:
        """Edit, create or delete a random record at every `CHURN_EVERY`th call."""
        self._number += 1
        if self._number % CHURN_EVERY == 0:
            self._chance.choices(
                (self._edit_random, self._create_record, self._delete_random), (6, 2, 2)
            )[0](store)

    def _random_id(self, store: Store) -> str:
        return self._chance.choice(sorted(store.records(RESOURCE)))

    def _edit_random(self, store: Store) -> None:
        """Change the notes of a random record."""
        store.update(RESOURCE, self._random_id(store), {"notes": f"note {self._chance.random()}"})

    def _create_record(self, store: Store) -> None:
        number = self._chance.random()
        record = {"first_name": "New", "last_name": str(number), "employment_type": "permanent"}
        store.create(RESOURCE, {**record, "email": f"new{number}@people.example"})

    def _delete_random(self, store: Store) -> None:
        """Delete a random record."""
        store.delete(RESOURCE, self._random_id(store))


class RemoteAgency:
    """Access to an `Agency` in another process."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the `Agency` by name, and return its result."""
        self._pipe.send((name, arguments))
        return self._pipe.recv()


def _answer_calls(
    pipe: Connection, records: int, behaviours: Mapping[str, str], limit: int | None
) -> None:
    """Serve a new `Agency`, and call the methods that the pipe names until it receives None."""
    agency = Agency(records, behaviours, limit)
    with agency.sandbox:
        while (order := pipe.recv()) is not None:
            name, arguments = order
            pipe.send(getattr(agency, name)(*arguments))


@contextmanager
def serve_agency(
    records: int, behaviours: Mapping[str, str] | None = None, limit: int | None = None
) -> Iterator[RemoteAgency]:
    """Serve an agency in a new process while the block lasts."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer_calls, args=(theirs, records, behaviours or {}, limit))
    process.start()
    try:
        yield RemoteAgency(ours)
    finally:
        ours.send(None)
        process.join()

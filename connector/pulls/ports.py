"""The two sides of a pull: what the algorithm expects of the API and of the local copy.

`pulls.streams` has HTTP and the work file, and the simulator passes its world.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from connector.catalog.resource import Order, Page, Resource
from connector.warehouse.stream import Commit, LandedRow, Outcome

Purpose = Literal["pull", "sweep", "scrub"]


class Api(Protocol):
    """Reads of one stream from the API. `purpose` is what the requests are counted as."""

    purpose: Purpose

    async def page(self, number: int, sort: str | None, order: Order) -> Page[Resource]:
        """Return one page of the list."""

    async def details(self, ids: Sequence[str]) -> dict[str, Outcome]:
        """Return the details of at least one of these records; the others are asked for again."""


class Copy(Protocol):
    """Rows and queue of one stream in the local copy. Live rows are not deleted."""

    async def commit(self, commit: Commit) -> None:
        """Write everything in one transaction."""

    async def rows_of(self, ids: Collection[str]) -> dict[str, LandedRow]:
        """Return the rows with these ids, by id."""

    async def differing(self, items: Collection[Resource]) -> set[str]:
        """Return the ids of list items that differ from the loaded details."""

    async def live(self, after: datetime | None, before: datetime | None) -> frozenset[str]:
        """Return live ids created strictly between two times (None: no bound)."""

    async def updated(self, after: datetime, before: datetime) -> frozenset[str]:
        """Return live ids, not queued, whose `updated_at` is strictly between two times."""

    async def undated(self, after: datetime) -> tuple[str, ...]:
        """Return live ids whose detail has no `updated_at`, or one after this time."""

    async def oldest(self, count: int) -> tuple[str, ...]:
        """Return the live ids whose details were read longest ago."""

    async def count(self, before: datetime | None = None) -> int:
        """Return the number of live rows, optionally of those created before a time."""

    async def queued(self, count: int, skip: Collection[str]) -> tuple[str, ...]:
        """Return at most `count` queued ids, newest first, except `skip`."""


@dataclass(frozen=True, slots=True)
class PullOptions:
    """Options of a pull beyond the minimum number of requests.

    Attributes:
        is_full: Read every record again.
        sweeps: Compare every page of the list, and read records that differ or are absent.
        accepts_deletes: Accept all deletions, because the user has confirmed them.
        verification_requests: Number of records to read again, those read longest ago first.
    """

    is_full: bool = False
    sweeps: bool = False
    accepts_deletes: bool = False
    verification_requests: int = 0


FEWEST_REQUESTS = PullOptions()


@dataclass(frozen=True, slots=True)
class PullResult:
    """Result of a stream's pull.

    Attributes:
        is_proven: True if the local copy is verified up to the bookmark's time.
        reason: Reason why it is not verified.
        total: Number of records according to the last list.
        code: Error code that describes the next step, if deletions are held.
    """

    is_proven: bool
    reason: str | None
    total: int
    code: str | None = None

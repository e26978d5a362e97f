"""Values that a pull, a push and the work file exchange about one stream.

A stream is a resource, or the items of one content type. Its bookmark says up to when the local
copy is verified, and a commit is everything that changes together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from connector.catalog.resource import LATENESS_SECONDS, Declaration, Resource
from connector.state.runs import Event


@dataclass(frozen=True, slots=True)
class Stream:
    """Part of a pull with one bookmark: a resource, or the items of one content type (`parent`)."""

    resource: Declaration
    parent: str | None = None

    @property
    def name(self) -> str:
        """Name of the resource, with the id of the parent if there is one."""
        return f"{self.resource.name}/{self.parent}" if self.parent else self.resource.name


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Progress of the pulls of one stream. `pulls.pull` explains R, L, W and T0.

    `closed_floor` is W of the last verified scan, or of an earlier one that ended less than L
    before. Without `closed_by` the scan is not trusted, and the next one reaches down to it.
    """

    proven_at: Annotated[datetime | None, "Time until which all is loaded or queued (R)."] = None
    lateness_seconds: Annotated[float, "Longest time until a change is visible (L)."] = (
        LATENESS_SECONDS
    )
    opened_at: Annotated[datetime | None, "Start of an unfinished pull of the stream (T0)."] = None
    load_page: Annotated[int | None, "Pages that an unfinished first load has loaded."] = None
    is_listed: Annotated[bool, "True if a first load has read all pages once."] = False
    closed_by: Annotated[str | None, "Unchanged record that ended the last verified scan."] = None
    closed_floor: Annotated[datetime | None, "`updated_at` down to which that scan went."] = None
    clock_ahead_seconds: Annotated[float | None, "Most that the server's clock was ahead."] = None
    alarms: Annotated[int, "Number of pulls in a row that found the list unsorted."] = 0
    unsorted_at: Annotated[datetime | None, "Server time of the last unsorted list."] = None
    deletions: Annotated[int, "Deletions since the stream was last verified."] = 0
    is_total_exact: Annotated[bool, "True if the total agreed with the last complete list."] = False


@dataclass(frozen=True, slots=True)
class FoundDetail:
    """Detail of a record as it was at the server time `served_at`."""

    record: Resource
    served_at: datetime


@dataclass(frozen=True, slots=True)
class DeletionProof:
    """Proof that a record is deleted: a 404 with the API's own error body, at a server time."""

    served_at: datetime


@dataclass(frozen=True, slots=True)
class UnreadableDetail:
    """Detail that could not be read, so the record may exist or not.

    `reason` is an error code, and `message` a part of a sentence without personal data.
    """

    reason: str
    message: str = ""


Outcome = FoundDetail | DeletionProof | UnreadableDetail


@dataclass(frozen=True, slots=True)
class LandedRow:
    """State of a loaded row. `read_at` is the server time of its detail, if it was read."""

    updated_at: datetime | None
    read_at: datetime | None = None
    is_queued: bool = False
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """Changes of one stream, to be written in one transaction.

    Attributes:
        items: List items. Items without a row are inserted and queued.
        records: Details that replace their rows and leave the queue.
        gone: Records to mark as deleted and to remove from the queue.
        enqueue: Ids to queue, each with the reason.
        unread: Errors of queued ids.
        forget: Ids that were only listed, to be removed with their place in the queue.
        bookmark: New bookmark of the stream; None to keep the old one.
        ends_stream: True to remove the bookmark because the stream no longer exists.
    """

    items: tuple[Resource, ...] = ()
    records: tuple[FoundDetail, ...] = ()
    gone: Mapping[str, DeletionProof] = field(default_factory=dict)
    enqueue: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, UnreadableDetail] = field(default_factory=dict)
    forget: tuple[str, ...] = ()
    bookmark: Bookmark | None = None
    events: tuple[Event, ...] = ()
    ends_stream: bool = False

"""Which state may follow which, and what the server fills in by itself (API 3).

Transitions are not shown; `transitions=restricted` makes the final states below final. Nothing
here reads a store or a clock.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from connector.resource import Declaration
from connector.sandbox.answer import invalid
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.shelf import Stored

FINAL: Mapping[str, frozenset[str]] = {
    "jobs": frozenset({"filled", "cancelled"}),
    "candidates": frozenset({"placed", "rejected"}),
    "companies": frozenset({"archived"}),
    "bookings": frozenset({"completed", "cancelled"}),
}
"""The states that `transitions=restricted` never leaves, by resource."""

_NOT_IN_SLUGS = re.compile(r"[^a-z0-9]+")


def check_transition(
    declaration: Declaration, before: Stored, values: Stored, behaviours: Behaviours
) -> None:
    """Refuse to leave a final state, where `transitions` is `restricted`."""
    state = before.get("status")
    wanted = values.get("status", state)
    is_final = state in FINAL.get(declaration.name, ())
    if behaviours.transitions == "restricted" and is_final and wanted != state:
        raise invalid({"status": [f"cannot leave {state}"]})


def fill_in(declaration: Declaration, record: Stored, before: Stored | None, stamp: str) -> None:
    """Give a new or changed record what the server decides: state, slug, publication, meeting.

    `before` is the record as it was, None for a new one; `stamp` is the time of the change.
    """
    fields = declaration.fields
    if before is None and "status" in fields and record.get("status") is None:
        record["status"] = initial_status(declaration)
    if "slug" in fields and not record.get("slug"):
        title = str(record.get("title") or declaration.singular)
        # A job's public address is made once and is its own; an item's is its title.
        suffix = "" if fields["slug"].create.accepted else f"-{record['id'][:8]}"
        record["slug"] = slug(title) + suffix
    is_published = "published_at" in fields and record.get("status") == "published"
    if is_published and not record.get("published_at"):
        record["published_at"] = stamp
    if "meeting_join_url" in fields:
        _fill_in_meeting(record)


def initial_status(declaration: Declaration) -> str:
    """The state of a record that is created without one: the first that create accepts."""
    status = declaration.fields["status"]
    return (status.create.values or status.values)[0]


def slug(title: str) -> str:
    """The title as it stands in an address."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return _NOT_IN_SLUGS.sub("-", plain).strip("-") or "untitled"


def _fill_in_meeting(record: Stored) -> None:
    """An online meeting on a platform has a number, a password and an address."""
    if record.get("meeting_platform") and not record.get("meeting_id"):
        number = int(record["id"].replace("-", ""), 16) % 10**10
        record["meeting_id"] = f"{number:010d}"
        record["meeting_password"] = record["id"][-6:]
        record["meeting_join_url"] = f"https://meet.example.com/j/{record['meeting_id']}"

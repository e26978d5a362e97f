"""Versions of a record and the moments between them: the rules of history, as plain values.

No one tells us when a record changed: it is looked at, and looks as it did or otherwise. So each
version has the interval in which it began, the one in which it ended, and within them the best
single moment. All moments are the server's, whose clock shows whole seconds.

-   A version *began* after `_began_after`, when the version before was last seen, and at the
    latest at `_observed_from`, when it was first seen itself. A first version began no earlier
    than the record's creation, and one that follows a deletion no earlier than that was known.
    Sightings in a list count as sightings of the version before only where a field changed that
    the list would have shown.
-   `_valid_from` is the API's own `updated_at` where that lies within the interval, and else the
    end of the interval that is nearer to it: a write that was dated earlier than the last look
    became visible after it. Where no `updated_at` was shown (list items), it is `_observed_from`.
    If several edits came between two looks, the field that changed may have changed earlier than
    `_valid_from`, though not before `_began_after`.
-   `_valid_to` is the next version's `_valid_from`; a deletion, which nothing dates, is taken to
    have happened when it was first known.
-   Versions follow one another in the order in which answers were committed, which is the order
    in which the landing showed them. An answer whose own moment lies before what is already
    there (it was committed late, or the server's clock was set back) counts as of the last moment
    there, so that versions never overlap and none is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

DELETED_FIELD = "_deleted_at"
"""What `_changed` names, first of all, where a record had been deleted and is there again."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version as it stands: the last of its record, open unless `ended_at` says otherwise.

    `record` is the JSON that it shows, only for one that was seen in lists alone: the last whole
    one is in the landing table. `changed` is None for a first version.
    """

    number: int
    valid_from: datetime
    began_after: datetime | None
    observed_from: datetime
    observed_to: datetime
    changed: tuple[str, ...] | None = None
    hydrated_at: datetime | None = None
    ended_at: datetime | None = None
    record: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether a detail showed it, rather than lists alone."""
        return self.hydrated_at is not None


@dataclass(frozen=True, slots=True)
class Sighting:
    """An answer that showed a record at the moment `at`; `updated_at` where it said so."""

    at: datetime
    updated_at: datetime | None
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Ending:
    """How a version ended: the best moment, the interval, and by a `change` or a `deletion`."""

    valid_to: datetime
    after: datetime | None
    before: datetime
    by: str


def first(sighting: Sighting, created_at: datetime | None) -> Version:
    """The first version of a record that was created at `created_at`, as it says itself."""
    began_after = None if created_at is None else min(created_at, sighting.at)
    return _begun(1, sighting, sighting.at, began_after, None)


def following(
    before: Version,
    sighting: Sighting,
    changed: Iterable[str],
    listed_at: datetime | None,
) -> Version:
    """The version after an open one. `listed_at` is when a list last showed the version before, if
    a field changed that a list would have shown.
    """
    at = max(sighting.at, before.observed_to)
    seen = before.observed_to if listed_at is None else max(before.observed_to, listed_at)
    return _begun(before.number + 1, sighting, at, min(seen, at), tuple(changed))


def again(before: Version, sighting: Sighting, changed: Iterable[str]) -> Version:
    """The version with which a deleted record is there again."""
    assert before.ended_at is not None, "only what ended can be there again"
    at = max(sighting.at, before.ended_at)
    version = _begun(before.number + 1, sighting, at, before.ended_at, (DELETED_FIELD, *changed))
    if version.valid_from == before.ended_at:
        # It was seen to be missing then, so a date before that says nothing about its return.
        version = replace(version, valid_from=at)
    return version


def completed(listed: Version, sighting: Sighting, changed: Iterable[str]) -> Version:
    """A version that was seen in lists alone, as the first detail that agrees with it shows it."""
    at = max(sighting.at, listed.observed_to)
    names = None
    if listed.changed is not None:
        names = tuple(dict.fromkeys((*listed.changed, *changed)))
    valid_from = _best(sighting.updated_at, listed.began_after, listed.observed_from)
    return replace(
        listed,
        valid_from=min(valid_from, listed.valid_from),
        observed_to=at,
        changed=names,
        hydrated_at=at,
        record=None,
    )


def ended_by(following: Version) -> Ending:
    """How a version ended that another one follows."""
    return Ending(following.valid_from, following.began_after, following.observed_from, "change")


def deleted(last: Version, at: datetime, seen_at: datetime | None) -> Ending:
    """How a version ended whose record was gone at `at`, and shown last at `seen_at`."""
    at = max(at, last.observed_to)
    seen = last.observed_to if seen_at is None else max(last.observed_to, seen_at)
    return Ending(at, min(seen, at), at, "deletion")


def _begun(
    number: int,
    sighting: Sighting,
    at: datetime,
    began_after: datetime | None,
    changed: tuple[str, ...] | None,
) -> Version:
    return Version(
        number=number,
        valid_from=_best(sighting.updated_at, began_after, at),
        began_after=began_after,
        observed_from=at,
        observed_to=at,
        changed=changed,
        hydrated_at=at if sighting.is_whole else None,
    )


def _best(
    updated_at: datetime | None, began_after: datetime | None, observed_from: datetime
) -> datetime:
    """The best single moment of the interval: `updated_at`, or what is nearest to it."""
    moment = observed_from if updated_at is None else min(updated_at, observed_from)
    return moment if began_after is None else max(moment, began_after)

"""Versions of a record and the moments between them: the rules of history, as plain values.

No one tells us when a record changed: it is looked at, and looks as it did or otherwise. So each
version has the interval in which it began, the one in which it ended, and within them the best
single moment. All moments are the server's, whose clock shows whole seconds: an answer of the
second s was made between s and s + 1.

-   `observed_from` and `observed_to` are the seconds of the first and the last answer that showed
    the version: all of it, or what lists show for one that lists alone have shown.
-   A version *began* after `began_after`, the second in which the record was last seen otherwise,
    and before `began_before`, the end of the second `observed_from`. A first version began no
    earlier than the record's creation, and one that follows a deletion no earlier than that was
    known. A list that shows what the version before shows counts as a sighting of it only where a
    field changed that the list would have shown.
-   It *ended* after `observed_to`, and before the end of the second in which the next version was
    first seen, or the record known to be gone. What a list has shown since is no evidence that
    fields that it does not show were the same still.
-   `valid_from` is the API's own `updated_at` where that lies within the interval, `began_after`
    where it is earlier (the write became visible late), and else `observed_from`. If several edits
    came between two looks, the field that changed may have changed earlier than `valid_from`,
    though not before `began_after`.
-   `valid_to` is the next version's `valid_from`; a deletion, which nothing dates, is taken to
    have happened when it was first known.
-   Versions follow one another in the order in which answers were committed, which is the order
    in which the landing showed them. An answer whose own moment lies before what is already
    there (it was committed late, or the server's clock was set back) counts as of the last moment
    there, so that versions never overlap and none is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

DELETED_FIELD = "_deleted_at"
"""What `_changed` names, first of all, where a record had been deleted and is there again."""

SECOND = timedelta(seconds=1)
"""How coarse the moments of answers are (`Date`)."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version as it stands: the last of its record, open unless `ended_at` says otherwise.

    `shown` is the list item that it shows, only for one that was seen in lists alone: the last
    whole one is in the landing table. `changed` is None for a first version.
    """

    number: int
    valid_from: datetime
    began_after: datetime | None
    observed_from: datetime
    observed_to: datetime
    changed: tuple[str, ...] | None = None
    hydrated_at: datetime | None = None
    ended_at: datetime | None = None
    shown: Mapping[str, Any] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether a detail showed it, rather than lists alone."""
        return self.hydrated_at is not None

    @property
    def began_before(self) -> datetime:
        """The end of the second in which it was first seen."""
        return self.observed_from + SECOND

    def is_before(self, sighting: Sighting) -> bool:
        """Whether a sighting's date lies after the last answer that showed the version. A date in
        the sighting's own future is wrong, and tells nothing.
        """
        at = sighting.updated_at
        return at is not None and self.observed_to + SECOND <= at < sighting.at + SECOND


@dataclass(frozen=True, slots=True)
class Sighting:
    """An answer that showed a record at the moment `at`; `updated_at` where it said so."""

    at: datetime
    updated_at: datetime | None
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Ending:
    """How a version ended: the best moment, the end of the interval that begins with
    `observed_to`, and by a `change` or a `deletion`.
    """

    valid_to: datetime
    before: datetime
    by: str


def first(sighting: Sighting, created_at: datetime | None) -> Version:
    """The first version of a record that was created at `created_at`, as it says itself."""
    if created_at is not None and created_at >= sighting.at + SECOND:
        created_at = sighting.at
    return _begun(1, sighting, sighting.at, created_at, None)


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
    version = _begun(before.number + 1, sighting, at, min(seen, at), tuple(changed))
    return replace(version, valid_from=max(version.valid_from, before.valid_from))


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
    """A version that was seen in lists alone, as the first detail that agrees with it shows it:
    observed since that detail, because lists do not show all of it.
    """
    at = max(sighting.at, listed.observed_to)
    names = None
    if listed.changed is not None:
        names = tuple(dict.fromkeys((*listed.changed, *changed)))
    return replace(
        listed,
        valid_from=_best(sighting.updated_at, listed.began_after, listed.observed_from),
        observed_from=at,
        observed_to=at,
        changed=names,
        hydrated_at=at,
        shown=None,
    )


def ended_by(following: Version) -> Ending:
    """How a version ended that another one follows."""
    return Ending(following.valid_from, following.began_before, "change")


def deleted(last: Version, at: datetime) -> Ending:
    """How a version ended whose record was gone at `at`."""
    at = max(at, last.observed_to)
    return Ending(max(at, last.valid_from), at + SECOND, "deletion")


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
    """The best single moment of the interval: `updated_at` where it is one of them."""
    is_within = updated_at is not None and updated_at < observed_from + SECOND
    moment = updated_at if updated_at is not None and is_within else observed_from
    return moment if began_after is None else max(moment, began_after)

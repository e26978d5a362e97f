"""What a listing shows besides its boundary: that it is out of order, and which rows are suspect.

None of it costs a request, but for a few witnesses where something is wrong.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

from connector.engine import ask
from connector.engine.ask import Steps
from connector.engine.listing import Listing
from connector.engine.readings import Readings
from connector.resource import Resource

WITNESSES_MAX = 5
"""Records read to find out why they are not listed where the landed rows say that they belong."""


class Evidence:
    """One listing of a pass, with the boundary found in it and what was read.

    `above` are the ids seen above a boundary in this pass. `limit` is T0 - L: what is dated at or
    before it was not written since the pass opened, and what is dated after `future` is not dated
    at all.
    """

    def __init__(
        self,
        listing: Listing,
        boundary: int,
        readings: Readings,
        above: frozenset[str],
        *,
        limit: datetime,
        future: datetime,
        lists_cursor: bool,
    ) -> None:
        self._listing, self._boundary = listing, boundary
        self._readings, self._above = readings, above
        self._limit, self._future, self._lists_cursor = limit, future, lists_cursor

    def out_of_order(self) -> Steps[frozenset[str]]:
        """Who testifies that the list is not in order, if it is not.

        Out of order are two records that one answer shows the wrong way round, and one that is
        newer than the boundary and not listed above it.
        """
        for page in self._listing.pages:
            shown = {item.id: self._testimony(item) for item in page.items}
            dated = [each for each in shown.values() if each is not None]
            if any(later > earlier for earlier, later in pairwise(dated)):
                return frozenset(id for id, each in shown.items() if each is not None)
        if self._boundary == len(self._listing.order):
            return frozenset()
        last = self._testimony(self._listing.order[self._boundary])
        if last is None:
            return frozenset()
        unseen = yield from self._unseen(last)
        witnesses = sorted(unseen - self._readings.dead)[:WITNESSES_MAX]
        yield from self._readings.read(tuple(witnesses))
        return frozenset(id for id in witnesses if self._is_between(id, last))

    def suspects(self) -> Steps[dict[str, str]]:
        """Landed ids to look at, each with the reason, by what the clean part of the list shows.

        Below the boundary the landed rows are what the API has. A list item that differs from its
        row, or that has none, says otherwise; and so does a row that is newer than the last of
        them and not listed.
        """
        suspects: dict[str, str] = {}
        dated: list[datetime] = []
        known = self._readings.known
        clean = {item.id for item in self._listing.order[self._boundary :]} - self._above
        for page in self._listing.pages:
            below = tuple(item for item in page.items if item.id in clean)
            differing = yield from ask.differing(below)
            suspects |= dict.fromkeys(differing, "differs")
            for item in below:
                held = known.get(item.id)
                if held is None or held.is_deleted:
                    suspects[item.id] = "listed"
                elif held.updated_at is not None and held.updated_at <= self._future:
                    dated.append(held.updated_at)
        if dated and dated == sorted(dated, reverse=True):
            unseen = yield from self._unseen(dated[-1])
            suspects |= dict.fromkeys(unseen, "absent")
        # What has no date, or one in the future, is shown to have changed by nothing but reading.
        undated = yield from ask.undated(self._future)
        suspects |= dict.fromkeys(undated, "undated")
        return {id: why for id, why in suspects.items() if not self._readings.settled(id)}

    def _testimony(self, item: Resource) -> datetime | None:
        """The `updated_at` that the record certainly had when it was listed; None if unknown.

        A list item says so itself where lists show it. A detail does if it was read after the list
        and says that nothing was written since the pass opened.
        """
        if self._lists_cursor:
            return item.updated_at
        reading = self._readings.by_id.get(item.id)
        if reading is None or reading.updated_at is None or reading.updated_at > self._limit:
            return None
        return reading.updated_at if reading.step > self._listing.step[item.id] else None

    def _unseen(self, moment: datetime) -> Steps[frozenset[str]]:
        """Landed ids that are newer than the moment, and that no list of this pass shows."""
        held = yield from ask.updated_between(moment, self._future)
        return held - self._listing.rank.keys() - self._above

    def _is_between(self, id: str, last: datetime) -> bool:
        """Whether a witness belongs above the boundary, and did so when the list was made."""
        reading = self._readings.by_id.get(id)
        updated_at = reading.updated_at if reading is not None else None
        return updated_at is not None and last < updated_at <= self._limit

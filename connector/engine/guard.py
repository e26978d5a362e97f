"""The guard against mass deletion: what a key cannot see any more is not thereby deleted.

A handful of deletions is daily work. Hundreds at once are more often a key that lost a scope, a
wrong address or a server in trouble. What tells them apart is the list:

- a list that is suddenly much shorter than it was is not believed, until a person says so;
- neither is one that shows hardly any record that is landed, whatever its length;
- and where many records are said to be gone, lists must have stopped showing them as well.

While others create as much as they delete, any number may go, and all of it is found.
"""

from __future__ import annotations

from connector.engine.ask import Gone

GONE_MIN = 20
"""So many missing records are always believed, however few are landed."""

GONE_SHARE = 0.02
"""The share of the live records by which the list may be shorter than it last was."""

RECOGNISED_SHARE = 0.05
"""How many listed records must be landed for each that is absent: another agency has none."""


def gone_max(live: int) -> float:
    """By more than this no list may be shorter than it last was without a person's word."""
    return max(GONE_MIN, GONE_SHARE * live)


class Guard:
    """Holds back the tombstones of one pull until there is evidence enough for their number.

    `live` is the number of live rows when the pull began, `listed` the list's total when it was
    last believed (None: the live rows are taken for it); `accepts` is a person's word that all
    deletions are meant, which lets any number through. `refused` says why the guard refused, if it
    has: then it lets nothing through any more. `held` are tombstones that wait for lists that do
    not show them.
    """

    def __init__(self, live: int, listed: int | None, *, accepts: bool = False) -> None:
        self._accepts = accepts
        self._listed = live if listed is None else listed
        self._max = gone_max(live)
        self._passed = 0
        self.refused: str | None = None
        self.held: dict[str, Gone] = {}

    @property
    def holds_many(self) -> bool:
        """Whether so many are held that lists must be read before they are believed."""
        return self._passed + len(self.held) > self._max and not self._accepts

    def allows_list(self, total: int) -> bool:
        """Whether the list may have so many records now.

        An empty list is never believed where it had more than one: that is how a key looks that
        sees nothing any more.
        """
        if total == 0 and self._listed > 1:
            return self._judge(False, f"the list is empty, and it had {self._listed} records")
        missing = self._listed - total
        told = f"{missing} records are missing at once: {self._listed} were listed, and now {total}"
        return self._judge(missing <= self._max, told)

    def allows_absent(self, absent: int, recognised: int) -> bool:
        """Whether so many may be absent from lists that show so many of those that are landed."""
        is_familiar = recognised >= RECOGNISED_SHARE * absent
        told = f"{absent} records are missing, and the lists show {recognised} that are landed"
        return self._judge(absent <= self._max or is_familiar, told)

    def still_listed(self, ids: set[str]) -> None:
        """What is held and listed after all is not deleted, or not surely."""
        for id in ids & self.held.keys():
            del self.held[id]

    def let_through(self, gone: dict[str, Gone]) -> dict[str, Gone]:
        """The tombstones that may be made on the API's word alone; too many at once are held."""
        self.held |= gone
        if self.holds_many:
            return {}
        self._passed += len(self.held)
        return self.release()

    def release(self) -> dict[str, Gone]:
        """The tombstones that were held, since lists do not show them either."""
        held, self.held = self.held, {}
        return {} if self.refused is not None else held

    def _judge(self, is_believed: bool, told: str) -> bool:
        if is_believed or self._accepts:
            return True
        self.refused = told
        return False

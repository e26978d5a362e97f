"""The guard against mass deletion: what a key cannot see any more is not thereby deleted.

A handful of deletions is daily work. Hundreds at once are more often a key that lost a scope, a
wrong address or a server in trouble, so no tombstone is made of them until a person says so.

What tells them apart is the list. While others create as much as they delete, many records may go
and the list stays as long as it was; but a list that suddenly is much shorter than the landing, a
list of other records altogether, and records that are listed and yet said to be gone are not
believed.
"""

from __future__ import annotations

from connector.engine.ask import Gone

GONE_MIN = 20
"""So many missing records are always believed, however few are landed."""

GONE_SHARE = 0.02
"""The share of the live records by which the list may be shorter than the landing."""

ABSENT_SHARE = 0.5
"""The share of the live records that may be absent from a list of the right length."""


def gone_max(live: int) -> float:
    """More missing records than this are no deletions but a key that lost sight of them."""
    return max(GONE_MIN, GONE_SHARE * live)


class Guard:
    """Holds back the tombstones of one pull until it is known that they are not too many.

    `live` is the number of live rows when the pull began; `accepts` is a person's word that all
    deletions are meant, which lets any number through. `refused` says why the guard refused, if it
    has: then it lets nothing through any more. `held` are tombstones that wait for a list.
    """

    def __init__(self, live: int, *, accepts: bool = False) -> None:
        self._accepts = accepts
        self._max = gone_max(live)
        self._absent_max = max(GONE_MIN, ABSENT_SHARE * live)
        self._passed = self._absent = 0
        self.refused: str | None = None
        self.held: dict[str, Gone] = {}

    def allows_list(self, live: int, listed: int) -> bool:
        """Whether a list of so many records may stand beside so many live rows.

        An empty list is never believed where more than one record is landed: that is how a key
        looks that sees nothing any more.
        """
        if listed == 0 and live > 1:
            return self._judge(False, f"the list is empty, and {live} records are landed")
        return self._allows(live - listed, self._max)

    def allows_absent(self, missing: int) -> bool:
        """Whether so many more may be absent from lists that are as long as they should be."""
        return self._allows(self._absent + missing, self._absent_max)

    def still_listed(self, ids: set[str]) -> None:
        """What is held and listed after all is not deleted, or not surely."""
        for id in ids & self.held.keys():
            del self.held[id]

    def release(self, *, is_absent: bool = False) -> dict[str, Gone]:
        """What was held and may be made: with `is_absent`, since a later list does not show it."""
        held, self.held = self.held, {}
        return self.let_through(held, is_absent=is_absent)

    def let_through(self, gone: dict[str, Gone], *, is_absent: bool = False) -> dict[str, Gone]:
        """The tombstones that may be made: all of these, or none once anything was refused.

        With `is_absent` a list does not show them either; otherwise they may only be so many as the
        list may be too long.
        """
        if self.refused is not None:
            return {}
        if is_absent:
            is_allowed = self.allows_absent(len(gone))
            self._absent += len(gone) if is_allowed else 0
        else:
            is_allowed = self._allows(self._passed + len(gone), self._max)
            self._passed += len(gone) if is_allowed else 0
        return gone if is_allowed else {}

    def _allows(self, missing: int, most: float) -> bool:
        told = f"{missing} records are missing at once, and no more than {int(most)} are believed"
        return self._judge(missing <= most, told)

    def _judge(self, is_believed: bool, told: str) -> bool:
        if is_believed or self._accepts:
            return True
        self.refused = told
        return False

"""Guard against mass deletion: a record that a key no longer sees may still exist.

A handful of deletions is daily work. Hundreds at once are more often due to a key that lost a
scope, to a wrong address or to a server in trouble. The lists show the difference:

- a list that is suddenly much shorter is not accepted until a person confirms it;
- neither is a list that shows hardly any landed record, whatever its length;
- if details say that many records are gone, no list may show them either, and all lists must have
  been read.

As long as as many records are created as deleted, any number of deletions is accepted. A refusal
keeps deletions back and nothing else: new and changed records land all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from connector.warehouse.pull_commands import Gone, LandedRow

GONE_MIN = 20
"""So many missing records are always accepted, even of a small stream."""

GONE_SHARE = 0.02
"""Share of the live records by which the list may become shorter."""

EMPTIED_MAX = 5
"""A list of at most so many records may become empty; each of them must then be a 404."""

RECOGNISED_SHARE = 0.05
"""Listed records that are landed, for each that is absent; another agency's list has none."""


SAMPLES_MAX = 3
"""Missing records that a message names, for a person to look at."""


def deviation_limit(records: int) -> float:
    """Number of records by which a list may differ from what was expected of it."""
    return max(GONE_MIN, GONE_SHARE * records)


def capped_total(total: int, live: int) -> int:
    """The total that a bookmark keeps: no more than the landed rows support.

    A total that is too high would make the next list look much shorter than it was.
    """
    return total if total <= live + deviation_limit(live) else live


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason why deletions were held back.

    `code` is that of the error that says what to do (`connector/errors_api.py`). With
    `hides_changes` the lists may hide changed records as well, so that the bookmark must stay.
    """

    code: str
    message: str
    hides_changes: bool = False


class MassDeletionGuard:
    """Guard of one pull: it withholds tombstones until lists confirm so many of them.

    `live` is the number of live rows when the pull began, `listed` the list's total when it was
    last accepted (None: `live` is used). With `accepts` a person has confirmed all deletions.
    `refused` says why the guard refused, if it has: then it allows no tombstone any more.
    `withheld` are tombstones that wait until lists were read, `contradicted` the ids of those that
    a list showed, `absent` the ids of landed records that lists do not show.
    """

    def __init__(self, live: int, listed: int | None, *, accepts: bool = False) -> None:
        self._accepts = accepts
        self._live, self._listed = live, live if listed is None else listed
        self._is_emptied = False
        self._max = deviation_limit(live)
        self._passed = 0
        self._new: set[str] = set()
        self._waiting: set[str] = set()
        self.absent: set[str] = set()
        self.refused: Refusal | None = None
        self.withheld: dict[str, Gone] = {}
        self.contradicted: set[str] = set()

    @property
    def withholds_many(self) -> bool:
        """Whether so many are withheld that lists must be read before they are accepted."""
        return self._passed + len(self.withheld) > self._max and not self._accepts

    @property
    def hold(self) -> str | None:
        """Reason why lists prove nothing: refused, or suddenly empty; else None."""
        if self.refused is not None:
            return self.refused.message if self.refused.hides_changes else None
        message = f"the list is empty, but {self._live} records are loaded"
        return message if self._is_emptied else None

    @property
    def refusal(self) -> Refusal | None:
        """Reason why deletions were held back in this pull; None if none were."""
        found = self.refused
        if found is None and self._waiting:
            why = (
                f"{len(self._waiting)} records were reported as deleted, and no list was read since"
            )
            found = Refusal("deletions_waiting", why)
        samples = sorted(self._waiting | self.contradicted | self.absent)[:SAMPLES_MAX]
        if found is None or not samples:
            return found
        return replace(found, message=f"{found.message}, for example {', '.join(samples)}")

    def check_total(self, total: int) -> None:
        """Refuse a list that is much shorter than it was: the key may see fewer records."""
        self._is_emptied = total == 0 < self._live
        listed, missing = self._listed, self._listed - total
        is_emptied = total == 0 and listed > EMPTIED_MAX
        message = f"{missing} of {listed} listed records are missing"
        refusal = Refusal("list_shrank", message, hides_changes=True)
        self._judge(missing <= self._max and not is_emptied, refusal)

    def count_recognised(self, listed: Iterable[str], known: Mapping[str, LandedRow]) -> int:
        """Number of `known` records that were landed before this pull.

        A pull lands what it lists: of another agency's records, too, all would soon be known.
        """
        self._new.update(id for id in listed if id not in known)
        return sum(not row.is_deleted and id not in self._new for id, row in known.items())

    def check_missing(self, absent: int, recognised: int) -> None:
        """Refuse lists that lack many landed records and show few of them."""
        is_familiar = recognised >= RECOGNISED_SHARE * absent
        message = (
            f"{absent} records are missing, and the lists contain only {recognised} of the "
            "loaded records"
        )
        refusal = Refusal("list_unfamiliar", message, hides_changes=True)
        self._judge(absent <= self._max or is_familiar, refusal)

    def drop_listed(self, ids: set[str]) -> None:
        """Drop withheld tombstones of records that a list shows: they may exist."""
        shown = ids & self.withheld.keys()
        for id in shown:
            del self.withheld[id]
        self.contradicted |= shown
        count = len(self.contradicted)
        message = f"{count} records were reported as deleted, but the lists still contain them"
        self._judge(count <= self._max, Refusal("details_gone", message))

    def accept(self, gone: dict[str, Gone]) -> dict[str, Gone]:
        """Tombstones allowed on the API's word alone; too many at once are withheld."""
        self.withheld |= gone
        if self.withholds_many:
            return {}
        self._passed += len(self.withheld)
        return self.release()

    def release(self) -> dict[str, Gone]:
        """The withheld tombstones, which lists do not show either; none after a refusal."""
        released, self.withheld = self.withheld, {}
        self._waiting -= released.keys()
        return {} if self.refused is not None else released

    def defer(self) -> None:
        """Leave the withheld tombstones to the next pull, which reads all lists first."""
        self._waiting |= self.withheld.keys()
        self.withheld.clear()

    def _judge(self, is_believed: bool, refusal: Refusal) -> None:
        if not (is_believed or self._accepts):
            self.refused = refusal

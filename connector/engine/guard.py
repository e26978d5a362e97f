"""Guard against mass deletion: what a key no longer sees may still exist.

A handful of deletions is daily work. Hundreds at once are more often a key that lost a scope, a
wrong address or a server in trouble. What tells them apart is the list:

- a list that is suddenly much shorter than it was is not believed, until a person says so;
- neither is one that shows hardly any record that is landed, whatever its length;
- where many records are said to be gone, lists must have stopped showing them as well: those that
  still show them contradict it, and those that were not read yet have to be.

While others create as much as they delete, any number may go, and all of it is found. A refusal
keeps deletions back and nothing else: what is new or changed lands all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from connector.engine.commands import Gone

GONE_MIN = 20
"""So many missing records are always believed, however few are landed."""

GONE_SHARE = 0.02
"""The share of the live records by which the list may be shorter than it last was."""

EMPTIED_MAX = 5
"""A list of no more records may be empty: each of them is then asked for, and must be a 404."""

RECOGNISED_SHARE = 0.05
"""How many listed records must be landed for each that is absent: another agency has none."""


SAMPLES_MAX = 3
"""So many of the records that are missing are named, for a person to look at."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why deletions were kept back.

    `code` is that of the error that says what to do (`connector/errors_api.py`). With
    `hides_changes` the lists may hide changed records as well, so that the bookmark must stay.
    """

    code: str
    message: str
    hides_changes: bool = False


class Guard:
    """Guard of one pull: holds tombstones back until their number has evidence.

    `live` is the number of live rows when the pull began, `listed` the list's total when it was
    last believed (None: the live rows are taken for it); `accepts` is a person's word that all
    deletions are meant. `refused` says why the guard refused, if it has: then it lets nothing
    through any more. `held` are tombstones that wait for lists that do not show them,
    `contradicted` the ids of those that a list showed, `absent` ids that lists lack.
    """

    def __init__(self, live: int, listed: int | None, *, accepts: bool = False) -> None:
        self._accepts = accepts
        self._live, self._listed = live, live if listed is None else listed
        self._is_emptied = False
        self._max = max(GONE_MIN, GONE_SHARE * live)
        self._passed = 0
        self._waiting: set[str] = set()
        self.absent: set[str] = set()
        self.refused: Refusal | None = None
        self.held: dict[str, Gone] = {}
        self.contradicted: set[str] = set()

    @property
    def holds_many(self) -> bool:
        """Whether so many are held that lists must be read before they are believed."""
        return self._passed + len(self.held) > self._max and not self._accepts

    @property
    def blindness(self) -> str | None:
        """Reason why lists prove no change either: refused, or suddenly empty."""
        if self.refused is not None:
            return self.refused.message if self.refused.hides_changes else None
        message = f"the list is empty, and {self._live} records are landed"
        return message if self._is_emptied else None

    @property
    def refusal(self) -> Refusal | None:
        """Why deletions were kept back in this pull, if any were."""
        found = self.refused
        if found is None and self._waiting:
            told = f"{len(self._waiting)} records are said to be gone, and no list was read since"
            found = Refusal("deletions_waiting", told)
        samples = sorted(self._waiting | self.contradicted | self.absent)[:SAMPLES_MAX]
        if found is None or not samples:
            return found
        return replace(found, message=f"{found.message}; among them are {', '.join(samples)}")

    def check_total(self, total: int) -> None:
        """Refuse a list much shorter than it was: so looks a key that sees nothing."""
        self._is_emptied = total == 0 < self._live
        missing = self._listed - total
        is_emptied = total == 0 and self._listed > EMPTIED_MAX
        message = (
            f"{missing} records are missing at once: {self._listed} were listed, and now {total}"
        )
        refusal = Refusal("list_shrank", message, hides_changes=True)
        self._judge(missing <= self._max and not is_emptied, refusal)

    def check_absent(self, absent: int, recognised: int) -> None:
        """Refuse lists that lack so many landed records and show so few of them."""
        is_familiar = recognised >= RECOGNISED_SHARE * absent
        message = f"{absent} records are missing, and the lists show {recognised} that are landed"
        refusal = Refusal("list_unfamiliar", message, hides_changes=True)
        self._judge(absent <= self._max or is_familiar, refusal)

    def still_listed(self, ids: set[str]) -> None:
        """What is held and listed after all is not deleted, or not surely."""
        shown = ids & self.held.keys()
        for id in shown:
            del self.held[id]
        self.contradicted |= shown
        count = len(self.contradicted)
        message = f"{count} records are said to be gone, and the lists show them"
        self._judge(count <= self._max, Refusal("details_gone", message))

    def let_through(self, gone: dict[str, Gone]) -> dict[str, Gone]:
        """Tombstones allowed on the API's word alone; too many at once are held."""
        self.held |= gone
        if self.holds_many:
            return {}
        self._passed += len(self.held)
        return self.release()

    def release(self) -> dict[str, Gone]:
        """The tombstones that were held, since lists do not show them either."""
        held, self.held = self.held, {}
        self._waiting -= held.keys()
        return {} if self.refused is not None else held

    def put_off(self) -> None:
        """Leave what is held to the next pull, which reads all lists first."""
        self._waiting |= self.held.keys()
        self.held.clear()

    def _judge(self, is_believed: bool, refusal: Refusal) -> None:
        if not (is_believed or self._accepts):
            self.refused = refusal

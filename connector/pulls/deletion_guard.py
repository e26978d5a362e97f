"""Guard against mass deletion: records may still exist although the API key no longer sees them.

A few deletions are normal. Hundreds at the same time usually result from a key that lost a scope, a
wrong address or a server problem. The guard checks the lists:
- A list that is suddenly much shorter is not accepted until the user confirms it.
- A list that shows hardly any loaded record is not accepted either, whatever its length.
- If details report many records as gone, no list may show these records, and all lists must have
  been read.

If at least as many records are created as deleted, any number of deletions is accepted. A refusal
only holds deletions: new and changed records are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from connector.warehouse.pull_commands import DeletionProof, LandedRow

GONE_MIN = 20
"""Number of missing records that is always accepted, even in a small stream."""

GONE_SHARE = 0.02
"""Maximum share of live records by which a list may become shorter."""

EMPTIED_MAX = 5
"""Maximum length of a list that may become empty. Each record must then return 404."""

RECOGNISED_SHARE = 0.05
"""Required number of listed loaded records per absent record. Another agency's list has none."""


SAMPLES_MAX = 3
"""Maximum number of missing records that a message names."""


def deviation_limit(records: int) -> float:
    """Return how many records a list of this length may have more or less than expected."""
    return max(GONE_MIN, GONE_SHARE * records)


def capped_total(total: int, live: int) -> int:
    """Return the API's total, or `live` if the total is much larger than the loaded rows.

    A bookmark with a total that is too high would make the next list look much shorter.
    """
    return total if total <= live + deviation_limit(live) else live


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason why deletions were not accepted.

    Attributes:
        code: Code of the error that describes the next step (`connector/errors_api.py`).
        hides_changes: True if the lists may hide changed records too, so nothing is verified.
    """

    code: str
    message: str
    hides_changes: bool = False


class MassDeletionGuard:
    """Guard of one pull. It holds deletions until lists confirm that the records are gone.

    Attributes:
        refused: Reason of the refusal. A refusal blocks all later deletions.
        held: Deletions that wait until the lists were read, each with its proof.
        contradicted: Ids of held deletions that a list showed.
        absent: Ids of loaded records that lists do not show.
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
        self.held: dict[str, DeletionProof] = {}
        self.contradicted: set[str] = set()

    @property
    def holds_many(self) -> bool:
        """True if more deletions are held than may be accepted without reading the lists."""
        return self._passed + len(self.held) > self._max and not self._accepts

    @property
    def reason_to_hold(self) -> str | None:
        """Reason why the lists prove nothing: refused, or suddenly empty; else None."""
        if self.refused is not None:
            return self.refused.message if self.refused.hides_changes else None
        message = f"the list is empty, but {self._live} records are loaded"
        return message if self._is_emptied else None

    @property
    def refusal(self) -> Refusal | None:
        """Refusal of this pull with examples of record ids; None if no deletion is held."""
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
        """Refuse deletions if the list is much shorter than before, as for a restricted key."""
        self._is_emptied = total == 0 < self._live
        listed, missing = self._listed, self._listed - total
        is_emptied = total == 0 and listed > EMPTIED_MAX
        message = f"{missing} of {listed} listed records are missing"
        refusal = Refusal("list_shrank", message, hides_changes=True)
        self._refuse_unless(missing <= self._max and not is_emptied, refusal)

    def count_recognised(self, listed: Iterable[str], known: Mapping[str, LandedRow]) -> int:
        """Return the number of live rows in `known` that were loaded before this pull.

        Rows that this pull loaded itself prove nothing: they could be another agency's records.
        """
        self._new.update(id for id in listed if id not in known)
        return sum(not row.is_deleted and id not in self._new for id, row in known.items())

    def check_missing(self, absent: int, recognised: int) -> None:
        """Refuse deletions if lists lack many loaded records and show few of them."""
        is_familiar = recognised >= RECOGNISED_SHARE * absent
        message = (
            f"{absent} records are missing, and the lists contain only {recognised} of the "
            "loaded records"
        )
        refusal = Refusal("list_unfamiliar", message, hides_changes=True)
        self._refuse_unless(absent <= self._max or is_familiar, refusal)

    def drop_listed(self, ids: set[str]) -> None:
        """Remove held deletions of records that a list shows; refuse all if there are many."""
        shown = ids & self.held.keys()
        for id in shown:
            del self.held[id]
        self.contradicted |= shown
        count = len(self.contradicted)
        message = f"{count} records were reported as deleted, but the lists still contain them"
        self._refuse_unless(count <= self._max, Refusal("details_gone", message))

    def release_if_few(self, gone: dict[str, DeletionProof]) -> dict[str, DeletionProof]:
        """Hold these deletions too; return all held ones, or none if there are too many."""
        self.held |= gone
        if self.holds_many:
            return {}
        self._passed += len(self.held)
        return self.release_all()

    def release_all(self) -> dict[str, DeletionProof]:
        """Stop holding deletions and return them; return none after a refusal."""
        released, self.held = self.held, {}
        self._waiting -= released.keys()
        return {} if self.refused is not None else released

    def defer(self) -> None:
        """Leave the held deletions to the next pull, which reads all lists first."""
        self._waiting |= self.held.keys()
        self.held.clear()

    def _refuse_unless(self, is_plausible: bool, refusal: Refusal) -> None:
        """Store the refusal, unless deletions are plausible or the user has confirmed them."""
        if not (is_plausible or self._accepts):
            self.refused = refusal

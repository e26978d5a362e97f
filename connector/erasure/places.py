"""Where somebody is held, in counts. Plain values, and nothing personal in them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from connector.suppression import Mention


@dataclass(frozen=True, slots=True)
class Place:
    """One place that holds somebody: a file of the account's folder or the lakehouse, the table in
    it where it has tables, and how many rows of it.
    """

    file: str
    table: str | None
    rows: int

    def __str__(self) -> str:
        return self.file if self.table is None else f"{self.file} {self.table}"


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that is known of where somebody is.

    `records` counts the records that are the person's or name them, by resource. `batches` are the
    pushes in whose rows they are. `by_hand` are sentences on what the connector cannot clean;
    `not_searched` are places in the account's folder that it did not look into. `in_doubt` counts
    rows of pushes about the person whose fate is unknown, and `shared` the addresses, numbers and
    names that somebody else has as well. `mentions` are the texts that name the person and are of
    somebody else's records or rows.
    """

    records: dict[str, int]
    places: tuple[Place, ...]
    batches: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    not_searched: tuple[str, ...] = ()
    in_doubt: int = 0
    shared: int = 0
    mentions: tuple[Mention, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether the person is nowhere."""
        return not self.places and not self.by_hand

    def as_json(self) -> dict[str, Any]:
        """The same as `--json` prints it."""
        return {
            "found": not self.is_nothing,
            "records": self.records,
            "places": [asdict(each) for each in self.places],
            "batches": list(self.batches),
            "by_hand": list(self.by_hand),
            "not_searched": list(self.not_searched),
            "rows_in_doubt": self.in_doubt,
            "shared_identifiers": self.shared,
            "texts": [asdict(each) for each in self.mentions],
        }

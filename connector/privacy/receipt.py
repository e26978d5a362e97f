"""Receipts of erasures: what was removed where and when, and nothing personal.

A keyed hash stands for each identifier: whoever has the address and the account's key can show that
the receipt is about it, and nobody else can.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from connector.errors import count_noun, naming_file_errors
from connector.ledger.receipts import Listed
from connector.settings.layers import RECEIPTS_FOLDER
from connector.suppression.person import Mention
from connector.system.atomic_files import replacing


@dataclass(frozen=True, slots=True)
class PersonPlace:
    """A place that holds somebody: a file or the lakehouse, a table, and its rows."""

    file: str
    table: str | None
    rows: int

    def __str__(self) -> str:
        return self.file if self.table is None else f"{self.file} {self.table}"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Everything that is known of where somebody is.

    `records` counts the records that are the person's or name them, by resource. `batches` are the
    pushes in whose rows they are. `by_hand` are sentences on what the connector cannot clean;
    `not_searched` are places in the account's folder that it did not look into. `in_doubt` counts
    rows of pushes about the person whose fate is unknown, and `shared` the addresses, numbers and
    names that somebody else has as well. `mentions` are the texts that name the person and are of
    somebody else's records or rows.
    """

    records: Mapping[str, int] = field(default_factory=dict)
    places: tuple[PersonPlace, ...] = ()
    batches: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    not_searched: tuple[str, ...] = ()
    in_doubt: int = 0
    shared: int = 0
    mentions: tuple[Mention, ...] = ()

    def __add__(self, other: Whereabouts) -> Whereabouts:
        rows = Counter[tuple[str, str | None]]()
        for each in (*self.places, *other.places):
            rows[each.file, each.table] += each.rows
        return Whereabouts(
            records=Counter(self.records) + Counter(other.records),
            places=tuple(PersonPlace(*key, count) for key, count in rows.items()),
            batches=_distinct(self.batches, other.batches),
            by_hand=_distinct(self.by_hand, other.by_hand),
            not_searched=_distinct(self.not_searched, other.not_searched),
            in_doubt=self.in_doubt + other.in_doubt,
            shared=self.shared + other.shared,
            mentions=tuple(sorted({*self.mentions, *other.mentions})),
        )

    @property
    def is_nothing(self) -> bool:
        """Whether the person is nowhere."""
        return not self.places and not self.by_hand

    def as_json(self) -> dict[str, Any]:
        """The same as `--json` prints it."""
        return {
            "found": not self.is_nothing,
            "records": dict(self.records),
            "places": [asdict(each) for each in self.places],
            "batches": list(self.batches),
            "by_hand": list(self.by_hand),
            "not_searched": list(self.not_searched),
            "rows_in_doubt": self.in_doubt,
            "shared_identifiers": self.shared,
            "texts": [asdict(each) for each in self.mentions],
        }


KEPT = (
    "The rows of records: ids, states, dates, sources, and what is paid for bookings.",
    "Counts and sums in the models, which tell of nobody.",
    "The hashes of this receipt, by which a return is noticed.",
)
"""What stays, as every receipt says it; docs/PERSONAL_DATA.md says why."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Receipt of one erasure; `left` are places that still hold something.

    `waiting` are sentences on what could not be done yet: with any, the erasure goes on with the
    next one. Other fields are as in `Whereabouts`.
    """

    erasure: str
    account: str | None
    version: str
    begun_at: datetime
    ended_at: datetime
    hashes: tuple[Listed, ...]
    removed: tuple[PersonPlace, ...]
    left: tuple[PersonPlace, ...]
    by_hand: tuple[str, ...]
    not_searched: tuple[str, ...]
    waiting: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    shared: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left for a person to do."""
        return not (self.left or self.by_hand or self.waiting)

    def as_json(self) -> dict[str, Any]:
        """The receipt as it is kept; moments as ISO 8601."""
        return {
            "erasure": self.erasure,
            "account": self.account,
            "version": self.version,
            "begun_at": self.begun_at.isoformat(),
            "ended_at": self.ended_at.isoformat(),
            "hashes": [{"of": each.kind, "hmac_sha256": each.token} for each in self.hashes],
            "removed": [asdict(each) for each in self.removed],
            "texts": [asdict(each) for each in self.mentions],
            "shared_identifiers": self.shared,
            "left": [asdict(each) for each in self.left],
            "waiting": list(self.waiting),
            "by_hand": list(self.by_hand),
            "not_searched": list(self.not_searched),
            "kept": list(KEPT),
        }

    def as_text(self) -> str:
        """The receipt for people."""
        account = self.account or "the unnamed account"
        lines = [
            f"Receipt of the erasure {self.erasure}",
            f"Account: {account}. Recruitment Connector {self.version}.",
            f"Begun {self.begun_at:%Y-%m-%d %H:%M:%S}Z, ended {self.ended_at:%Y-%m-%d %H:%M:%S}Z.",
            *_section("Removed", [f"{each}: {each.rows:,}" for each in self.removed]),
            *_section("Changed in records and rows of others", self._mentions()),
            *_section("Left, since somebody else has it as well", self._left_alone()),
            *_section("Still there", [f"{each}: {each.rows:,}" for each in self.left]),
            *_section("Not done yet", self.waiting),
            *_section("To be done by hand", self.by_hand),
            *_section("Not searched", self.not_searched),
            *_section("Kept", KEPT),
            *_section("Hashes (HMAC-SHA256)", [f"{e.kind} {e.token}" for e in self.hashes]),
        ]
        return "\n".join(lines) + "\n"

    def _mentions(self) -> list[str]:
        """A line for each record or row of others that changed, with its fields."""
        fields: dict[str, list[str]] = {}
        for each in self.mentions:
            fields.setdefault(f"{each.where} {each.row}", []).append(each.field)
        return [f"{row}: {', '.join(names)}" for row, names in fields.items()]

    def _left_alone(self) -> list[str]:
        return [count_noun(self.shared, "address, number or name")] if self.shared else []


def keep(receipt: Receipt, folder: Path) -> Path:
    """Write the receipt into the folder, as JSON and as text; returns the text's path.

    Written again, it takes the former one's place. Raises a `WarehouseError`.
    """
    place = folder / RECEIPTS_FOLDER
    shown = json.dumps(receipt.as_json(), ensure_ascii=False, indent=2)
    texts = {"json": f"{shown}\n", "txt": receipt.as_text()}
    with naming_file_errors(place):
        place.mkdir(mode=0o700, exist_ok=True)
        for ending, text in texts.items():
            with replacing(place / f"{receipt.erasure}.{ending}") as file:
                file.write(text.encode())
    return place / f"{receipt.erasure}.txt"


def _distinct(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {each}" for each in lines)] if lines else []

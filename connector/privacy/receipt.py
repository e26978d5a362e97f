"""Receipts of erasures: what was removed, where and when, without personal data.

A receipt contains a keyed hash for each identifier. With the address and the account's key, you can
prove that the receipt belongs to it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from connector.atomic_files import write_atomically
from connector.errors import convert_file_errors, count_noun
from connector.ledger.person import Mention, key_fingerprint, read_or_create_key
from connector.ledger.receipts import ListedHash, MissingReceipt
from connector.settings.layers import RECEIPTS_FOLDER
from connector.settings.model import Settings
from connector.version import program_version

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PersonPlace:
    """Place that contains a person: a file, a table, and the number of rows."""

    file: str
    table: str | None
    rows: int

    def __str__(self) -> str:
        return self.file if self.table is None else f"{self.file} {self.table}"


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """Record with data of a person, and the fields that an erasure removes."""

    resource: str
    id: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PersonLocations:
    """Places in an account's folder that contain a person.

    Attributes:
        records: Records with fields that describe the person. An erasure removes these fields.
        places: Tables and files with rows of the person.
        batches: Ids of pushes with rows of the person.
        by_hand: Sentences on files that the user must correct.
        not_searched: Files and folders that were not read.
        rows_in_doubt: Number of the person's rows in pushes with an unknown result.
        shared_identifiers: Number of identifiers that another person has as well.
        mentions: Texts in other people's data that name the person. An erasure only lists them.
        whole_files: Workbooks that an erasure deletes, with rows of other people.
    """

    records: tuple[FoundRecord, ...] = ()
    places: tuple[PersonPlace, ...] = ()
    batches: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    not_searched: tuple[str, ...] = ()
    rows_in_doubt: int = 0
    shared_identifiers: int = 0
    mentions: tuple[Mention, ...] = ()
    whole_files: tuple[str, ...] = ()

    def __add__(self, other: PersonLocations) -> PersonLocations:
        rows = Counter[tuple[str, str | None]]()
        for each in (*self.places, *other.places):
            rows[each.file, each.table] += each.rows
        return PersonLocations(
            records=_union(self.records, other.records),
            places=tuple(PersonPlace(*key, count) for key, count in rows.items()),
            batches=_union(self.batches, other.batches),
            by_hand=_union(self.by_hand, other.by_hand),
            not_searched=_union(self.not_searched, other.not_searched),
            rows_in_doubt=self.rows_in_doubt + other.rows_in_doubt,
            shared_identifiers=self.shared_identifiers + other.shared_identifiers,
            mentions=tuple(sorted({*self.mentions, *other.mentions})),
            whole_files=_union(self.whole_files, other.whole_files),
        )

    @property
    def is_empty(self) -> bool:
        """Return True if there is no data about the person."""
        return not (self.places or self.by_hand or self.mentions)

    @property
    def is_erasable(self) -> bool:
        """Return True if an erasure has data to remove or to report."""
        return bool(self.places or self.by_hand)

    def as_json(self) -> dict[str, Any]:
        """Return the locations as `--json` prints them."""
        return {"found": not self.is_empty, **asdict(self)}


MENTIONED = "Texts about others that mention the person. Edit them on the platform or in the file"
MENTIONED_BEFORE = "Earlier versions and pushes of others that mention the person. They are kept"

KEPT = (
    "The rows of the records: ids, states, dates, sources, and the amounts of bookings.",
    "Counts and sums in the models.",
    "The hashes of this receipt. The connector recognizes the person by them.",
)
"""Data that is kept; docs/PERSONAL_DATA.md gives the reasons."""


REWRITTEN = (
    "The receipt was lost. It was written again from the ledger, which contains only the "
    "hashes and times."
)
"""Sentence in a receipt that replaces a lost one."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Receipt of one erasure.

    Attributes:
        erasure: Id of the erasure, and name of the receipt's files.
        key: Fingerprint of the account's key for hashes.
        removed: Places from which the person was removed.
        left: Places that still contain the person.
        waiting: Sentences on steps that failed. The next erasure repeats them.
    """

    erasure: str
    account: str | None
    version: str
    begun_at: datetime
    ended_at: datetime
    key: str
    hashes: tuple[ListedHash, ...]
    removed: tuple[PersonPlace, ...]
    left: tuple[PersonPlace, ...]
    by_hand: tuple[str, ...]
    not_searched: tuple[str, ...]
    waiting: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    shared_identifiers: int = 0
    whole_files: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Return True if the user has nothing left to do."""
        is_named = any(not each.is_past for each in self.mentions)
        return not (self.left or self.by_hand or self.waiting or is_named)

    def as_json(self) -> dict[str, Any]:
        """Return the receipt as it is stored; times as ISO 8601."""
        return {
            "erasure": self.erasure,
            "account": self.account,
            "version": self.version,
            "begun_at": self.begun_at.isoformat(),
            "ended_at": self.ended_at.isoformat(),
            "key": self.key,
            "hashes": [{"of": each.kind, "hmac_sha256": each.token} for each in self.hashes],
            "removed": [asdict(each) for each in self.removed],
            "whole_files": list(self.whole_files),
            "mentions": [asdict(each) for each in self.mentions],
            "shared_identifiers": self.shared_identifiers,
            "left": [asdict(each) for each in self.left],
            "waiting": list(self.waiting),
            "by_hand": list(self.by_hand),
            "not_searched": list(self.not_searched),
            "kept": list(KEPT),
        }

    def as_text(self) -> str:
        """Return the receipt as plain text with one section for each attribute."""
        account = self.account or "the unnamed account"
        lines = [
            f"Receipt of the erasure {self.erasure}",
            f"Account: {account}. Recruitment Connector {self.version}.",
            f"Started {self.begun_at:%Y-%m-%d %H:%M:%S}Z, ended "
            f"{self.ended_at:%Y-%m-%d %H:%M:%S}Z.",
            *_section("Removed", [f"{each}: {each.rows:,}" for each in self.removed]),
            *_section("Files that were deleted completely, with rows of others", self.whole_files),
            *_section(MENTIONED, mention_lines(self.mentions)),
            *_section(MENTIONED_BEFORE, mention_lines(self.mentions, is_past=True)),
            *_section(
                "Identifiers kept because the record of another person contains them, too",
                [count_noun(self.shared_identifiers, "identifier")]
                if self.shared_identifiers
                else [],
            ),
            *_section("Still present", [f"{each}: {each.rows:,}" for each in self.left]),
            *_section("Not done yet", self.waiting),
            *_section("To be done by hand", self.by_hand),
            *_section("Not searched", self.not_searched),
            *_section("Kept", KEPT),
            *_section("Hashes (HMAC-SHA256)", [f"{e.kind} {e.token}" for e in self.hashes]),
        ]
        return "\n".join(lines) + "\n"


def mention_lines(mentions: Sequence[Mention], *, is_past: bool = False) -> list[str]:
    """Return a line for each row with the names of the fields that mention the person.

    With `is_past` these are earlier versions and pushes; without, current texts.
    """
    fields: dict[str, list[str]] = {}
    for each in mentions:
        if each.is_past == is_past:
            fields.setdefault(f"{each.where} {each.row}".strip(), []).append(each.field)
    return [f"{row}: {', '.join(names)}" for row, names in fields.items()]


def write_receipt(receipt: Receipt, folder: Path) -> Path:
    """Write or replace the receipt, as JSON and text; return the path of the text."""
    place = folder / RECEIPTS_FOLDER
    shown = json.dumps(receipt.as_json(), ensure_ascii=False, indent=2)
    texts = {"json": f"{shown}\n", "txt": receipt.as_text()}
    with convert_file_errors(place):
        place.mkdir(mode=0o700, exist_ok=True)
        for ending, text in texts.items():
            with write_atomically(place / f"{receipt.erasure}.{ending}") as file:
                file.write(text.encode())
    return place / f"{receipt.erasure}.txt"


def rewrite_receipt(missing: MissingReceipt, settings: Settings) -> Path:
    """Write a missing receipt from the hashes in the ledger; return its text file."""
    receipt = Receipt(
        erasure=missing.path.stem,
        account=settings.account.value,
        version=program_version(),
        begun_at=missing.begun_at,
        ended_at=missing.ended_at,
        key=key_fingerprint(read_or_create_key(settings.folder)),
        hashes=missing.hashes,
        removed=(),
        left=(),
        by_hand=(),
        not_searched=(REWRITTEN,),
    )
    return write_receipt(receipt, settings.folder)


def _union(one: Sequence[T], other: Sequence[T]) -> tuple[T, ...]:
    """Return the items of both sequences in order, each once."""
    return tuple(dict.fromkeys((*one, *other)))


def _section(title: str, lines: Sequence[str]) -> list[str]:
    """Return an empty line, the title and the indented lines; nothing without lines."""
    return ["", f"{title}:", *(f"  {each}" for each in lines)] if lines else []

"""Erasing one person never touches another: over agencies in which people have much in common.

What is expected is worked out here from the records alone, with none of the code under test.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from connector.errors import Misused
from connector.privacy.erase import Erased, erase
from tests.privacy.agencies import Agency, rows
from tests.tiers import first_fast

MARK = "[erased]"
SEEDS = range(6)
PROSE = {
    "description",
    *("notes", "internal_notes", "title", "contract_notes", "requirements", "cancellation_reason"),
}
OF_BOOKING = PROSE | {"meeting_link", "meeting_id", "meeting_password", "meeting_join_url"}

Row = Mapping[str, Any]
Key = tuple[str, ...]


def digits(number: str | None) -> str:
    """The digits that count of a telephone number."""
    return re.sub(r"\D", "", number or "")[-9:]


def name_of(row: Row) -> str:
    """A person's name, in lower case."""
    return f"{row['first_name']} {row['last_name']}".lower()


class Expected:
    """Whose each row is, and which marks are the person's alone, worked out from the rows."""

    def __init__(self, before: Mapping[Key, Row], ids: set[str]) -> None:
        self.ids = ids
        mine = [each for key, each in before.items() if self.is_own(key)]
        own = [each for each in mine if each["email"] is not None]
        self.names = {name_of(each) for each in own}
        self.emails = {each["email"].lower() for each in own}
        self.numbers = {digits(each[n]) for each in own for n in ("phone", "mobile")} - {""}
        self.profiles = {each["network_url"].rstrip("/") for each in own if each["network_url"]}
        self.own_names, self.own_emails = set(self.names), set(self.emails)
        for key, row in before.items():
            for text in self._shown(key, row):
                self._drop(text)

    @staticmethod
    def is_landed(key: Key) -> bool:
        """Whether the row is a version of a record."""
        return key[0] in ("landing", "history")

    def is_own(self, key: Key) -> bool:
        """Whether the row is a version of the person's own record."""
        return self.is_landed(key) and key[2] in self.ids

    def is_contact(self, key: Key, row: Row) -> bool:
        """Whether a record's contact is the person: their address, and no other name."""
        prefix = {"companies": "primary_contact", "bookings": "contact"}.get(key[1])
        if prefix is None or (row[f"{prefix}_email"] or "").lower() not in self.own_emails:
            return False
        name = row[f"{prefix}_name"]
        return name is None or name.lower() in self.own_names

    def _shown(self, key: Key, row: Row) -> Iterator[str]:
        """What others' records and rows show in fields that are not prose."""
        if key[0] == "journal":
            yield from self._shown_in_journal(row)
        if not self.is_landed(key) or self.is_own(key):
            return
        contact = self.is_contact(key, row)
        if key[1] in ("candidates", "leads"):
            yield name_of(row)
        for name, value in row.items():
            is_text = isinstance(value, str) and name not in PROSE and not name.startswith("_")
            if is_text and not (contact and "contact_" in name):
                yield value

    def _shown_in_journal(self, row: Row) -> Iterator[str]:
        task = json.loads(row["task"]) if row.get("task") else None
        if task is not None and row["record_id"] not in self.ids:
            for each in (task["fields"], task["base"], task["identity"]):
                yield from (v for k, v in each.items() if isinstance(v, str) and k not in PROSE)
                if "first_name" in each:
                    yield name_of(each)

    def _drop(self, text: str) -> None:
        """What somebody else has as well is no mark."""
        lowered = text.lower()
        self.names = {
            each for each in self.names if not re.search(rf"(?<![\w-]){each}(?![\w-])", lowered)
        }
        self.emails -= {lowered}
        self.numbers -= {digits(text)} if len(digits(text)) == 9 else set()
        self.profiles = {each for each in self.profiles if each != text.rstrip("/")}

    def may_go(self, text: str) -> bool:
        """Whether what was taken out of a text is a mark of the person alone."""
        lowered = text.lower()
        last, _, first = lowered.partition(", ")
        return (
            text == MARK  # It was there before: somebody else was erased.
            or lowered in self.emails
            or lowered in self.names
            or f"{first} {last}" in self.names
            or text.rstrip("/") in self.profiles
            or (digits(text) in self.numbers and not re.search("[a-z]", lowered))
        )


def taken_out(before: str, after: str) -> list[str] | None:
    """What `MARK` took the place of; None where anything else changed as well."""
    pattern = "(.+?)".join(map(re.escape, after.split(MARK)))
    found = re.fullmatch(pattern, before, re.DOTALL)
    return None if found is None else list(found.groups())


def texts_of(row: Row) -> dict[str, Any]:
    """The fields of a row, with those of bodies and records in it in their places."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name in ("task", "body", "record") and value is not None:
            parts = json.loads(value)
            for part, each in parts.items() if name == "task" else (("", parts),):
                shown = each if isinstance(each, dict) else {"": each}
                found |= {f"{name}.{part}.{k}": v for k, v in shown.items()}
        elif name == "_record":
            found |= {f"_record.{k}": v for k, v in json.loads(value).items()}
        else:
            found[name] = value
    return found


def wrongs(
    before: Mapping[Key, Row], after: Mapping[Key, Row], done: Erased | None, ids: set[str]
) -> Iterator[str]:
    """Every way in which somebody else was touched, or the person was left."""
    expected = Expected(before, ids)
    receipts = [] if done is None else [each.as_json() for each in done.receipts]
    named = {(e["where"], e["row"], e["field"]) for r in receipts for e in r.get("texts", ())}
    if before.keys() != after.keys():
        yield f"rows came or went: {before.keys() ^ after.keys()}"
    for key, row in after.items():
        for email in expected.emails:
            if any(f"<{email}>" in str(text).lower() for text in texts_of(row).values()):
                yield f"{key}: an address is left that nobody else has"
    for key in before.keys() & after.keys():
        one, other = texts_of(before[key]), texts_of(after[key])
        is_theirs = expected.is_own(key) or is_about(key, before, expected)
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) == other.get(name):
                continue
            field = name.split(".")[-1]
            where = {"sync": "sync.events"}.get(key[0], key[1])
            if is_theirs:
                continue
            if (where, key[2], field) not in named:
                yield f"{key} {name}: the receipt does not name it"
            change = (field, one.get(name), other.get(name))
            if not is_allowed(key, before[key], change, expected):
                yield f"{key} {name}: {one.get(name)!r} became {other.get(name)!r}"


def is_about(key: Key, before: Mapping[Key, Row], expected: Expected) -> bool:
    """Whether a row of the journal is about the person's own record, or would have made one."""
    if key[0] != "journal" or key[1] == "push_batches":
        return False
    rows = [each for k, each in before.items() if k[1] == "push_rows" and k[2] == key[2]]
    (row,) = rows
    if row["record_id"] in expected.ids:
        return True
    fields = json.loads(row["task"])["fields"] if row["task"] else {}
    is_named = "first_name" in fields and name_of(fields) in expected.own_names
    return is_named and fields["email"].lower() in expected.own_emails


def is_allowed(key: Key, row: Row, change: tuple[str, Any, Any], expected: Expected) -> bool:
    """Whether a field of somebody else's row may be so: a booking that tells of the person, their
    own contact, or a text without marks that are the person's alone.
    """
    field, one, other = change
    refers = {row.get("candidate_id"), row.get("lead_id")} & expected.ids
    if key[1] == "bookings" and field in OF_BOOKING and refers:
        return True
    if "contact_" in field and expected.is_landed(key) and expected.is_contact(key, row):
        return other is None
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    gone = taken_out(one, other)
    return bool(gone) and all(map(expected.may_go, gone or ()))


@pytest.mark.parametrize("seed", first_fast(SEEDS, 2))
def test_nobody_else_is_touched(seed: int, tmp_path: Path) -> None:
    agency, chance = Agency(tmp_path, seed), random.Random(seed)
    someone, other = chance.sample(agency.people(), 2)
    for asked in (someone["id"], other["email"]):
        before = rows(agency)
        ids = {
            row["id"]
            for key, row in before.items()
            if key[1] in ("candidates", "leads")
            and asked.lower() in (row["id"], (row["email"] or "").lower())
        }
        done = None
        try:
            done = erase(agency.settings, asked, applies=True)
        except Misused:
            ids = set()

        assert [] == list(wrongs(before, rows(agency), done, ids))

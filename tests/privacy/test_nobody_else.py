"""Erasing one person never changes another, in random agencies in which people have much in
common.
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
from connector.privacy.erase import ErasureResult, erase
from tests.privacy.agencies import RandomAgency, read_all_rows
from tests.tiers import first_fast

MARK = "[erased]"
SEEDS = range(6)
OF_BOOKING = {
    *("title", "description", "contract_notes", "requirements", "internal_notes"),
    *("cancellation_reason", "meeting_link", "meeting_id", "meeting_password", "meeting_join_url"),
}
CONTACT = {"companies": "primary_contact", "bookings": "contact"}
URLS = ("network_url", "website")

Row = Mapping[str, Any]
Key = tuple[str, ...]


def extract_phone_digits(number: str | None) -> str:
    """Return the last nine digits of a phone number."""
    return re.sub(r"\D", "", number or "")[-9:]


class ExpectedErasure:
    """Identifiers that belong to the person only, derived from all rows before the erasure, and
    what the erasure may change.
    """

    def __init__(self, before: Mapping[Key, Row], person_ids: set[str]) -> None:
        self.ids = person_ids
        mine = [each for key, each in before.items() if self.is_of_person(key)]
        own = [each for each in mine if each["email"] is not None]
        self.emails = {each["email"].lower() for each in own}
        self.numbers = {
            extract_phone_digits(each[n]) for each in own for n in ("phone", "mobile")
        } - {""}
        self.profiles = {each["network_url"].rstrip("/") for each in own if each["network_url"]}
        self.names = {f"{each['first_name']} {each['last_name']}".lower() for each in own}
        all_emails = set(self.emails)
        for key, row in before.items():
            for shown in self._read_fields_of_others(key, row, all_emails):
                self.emails -= {(shown.get("email") or "").lower()}
                self.numbers -= {
                    extract_phone_digits(shown.get("phone")),
                    extract_phone_digits(shown.get("mobile")),
                }
                self.profiles -= {(shown.get(name) or "").rstrip("/") for name in URLS}

    @staticmethod
    def is_record_version(key: Key) -> bool:
        """Return True if the row is a version of a record."""
        return key[0] in ("landing", "history")

    def is_of_person(self, key: Key) -> bool:
        """Return True if the row is a version of the person's record."""
        return self.is_record_version(key) and key[2] in self.ids

    def _read_fields_of_others(self, key: Key, row: Row, emails: set[str]) -> Iterator[Row]:
        """Yield the fields of a row that describe another person. `emails` are the person's own."""
        if self.is_record_version(key) and not self.is_of_person(key) and key[1] != "bookings":
            yield row
        if key[0] == "journal" and row.get("task") and row["record_id"] not in self.ids:
            task = json.loads(row["task"])
            shown = {**task["base"], **task["identity"], **task["fields"]}
            if row["record_id"] or (shown.get("email") or "").lower() not in emails:
                yield shown
                yield task["base"]
        if key[:2] == ("journal", "push_before"):
            record = json.loads(row["record"])
            if record["id"] not in self.ids:
                yield record

    def may_name_person(self, text: str) -> bool:
        """Return True if a text may name the person."""
        lowered = text.lower()
        turned = (f"{last}, {first}" for first, _, last in (n.rpartition(" ") for n in self.names))
        return any(
            each in lowered for each in (*self.emails, *self.names, *self.profiles, *turned)
        ) or any(each in re.sub(r"\D", "", text) for each in self.numbers)

    def describes_person(self, key: Key, row: Row, field: str) -> bool:
        """Return True if a field of another record may be erased, since it describes the person."""
        refers = {row.get("candidate_id"), row.get("lead_id")} & self.ids
        if key[1] == "bookings" and field in OF_BOOKING and refers:
            return True
        contact = CONTACT.get(key[1], "-")
        if not field.startswith(f"{contact}_"):
            return False
        is_theirs = (row[f"{contact}_email"] or "").lower() in self.emails
        return is_theirs or (
            field.endswith("phone") and extract_phone_digits(row[field]) in self.numbers
        )


def flatten_texts(row: Row) -> dict[str, Any]:
    """Return the fields of a row; fields of nested objects are named OUTER.INNER."""
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


def find_faults(
    before: Mapping[Key, Row],
    after: Mapping[Key, Row],
    result: ErasureResult | None,
    person_ids: set[str],
) -> Iterator[str]:
    """Yield each wrong change of other people's data, and each field of the person that remains."""
    expected = ExpectedErasure(before, person_ids)
    receipts = [] if result is None else result.receipts
    named = {(each.where, each.row, each.field) for r in receipts for each in r.mentions}
    if before.keys() != after.keys():
        yield f"rows came or went: {before.keys() ^ after.keys()}"
    for key, row in after.items():
        yield from find_remains(key, row, expected, named)
    for key in before.keys() & after.keys():
        if expected.is_of_person(key) or is_about_person(key, before, expected):
            continue
        one, other = flatten_texts(before[key]), flatten_texts(after[key])
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) == other.get(name):
                continue
            change = (name, one.get(name), other.get(name))
            if not is_allowed_change(key, before[key], change, expected):
                yield f"{key} {name}: {one.get(name)!r} became {other.get(name)!r}"


def find_remains(
    key: Key, row: Row, expected: ExpectedErasure, listed: set[tuple[str, str, str]]
) -> Iterator[str]:
    """Yield the person's identifiers that remain in a contact, and mentions that are not `listed`
    in the receipt.
    """
    if not expected.is_record_version(key):
        return
    contact = CONTACT.get(key[1])
    if contact is not None and (
        (row[f"{contact}_email"] or "").lower() in expected.emails
        or extract_phone_digits(row[f"{contact}_phone"]) in expected.numbers
    ):
        yield f"{key}: the contact is left"
    for name, text in row.items():
        is_named = any(f"<{email}>" in str(text).lower() for email in expected.emails)
        is_listed = (f"landing.{key[1]}", key[2], name) in listed
        if key[0] == "landing" and is_named and name != "_record" and not is_listed:
            yield f"{key} {name}: the receipt does not list it"


def is_about_person(key: Key, before: Mapping[Key, Row], expected: ExpectedErasure) -> bool:
    """Return True if a row of the journal is about the person's own record."""
    if key[0] != "journal" or key[1] == "push_batches":
        return False
    rows = [each for k, each in before.items() if k[1] == "push_rows" and k[2] == key[2]]
    (row,) = rows
    if row["record_id"] in expected.ids:
        return True
    task = json.loads(row["task"]) if row["task"] else {"fields": {}, "identity": {}}
    shown = {**task["identity"], **task["fields"]}
    return (shown.get("email") or "").lower() in expected.emails


def is_allowed_change(
    key: Key, row: Row, change: tuple[str, Any, Any], expected: ExpectedErasure
) -> bool:
    """Return True if the change (field, before, after) of another person's row is allowed: the
    field describes the erased person, or is a message that names them.
    """
    name, one, other = change
    if expected.is_record_version(key):
        return other is None and expected.describes_person(
            key, row, name.rsplit(".", maxsplit=1)[-1]
        )
    is_message = name in ("detail", "file", "message", "reason", "received", "found", "fix")
    return is_message and other == MARK and expected.may_name_person(str(one))


@pytest.mark.parametrize("seed", first_fast(SEEDS))
def test_an_erasure_changes_no_data_of_other_people(seed: int, tmp_path: Path) -> None:
    agency, chance = RandomAgency(tmp_path, seed), random.Random(seed)
    someone, other = chance.sample(agency.people(), 2)
    for person in (someone["id"], other["email"]):
        before = read_all_rows(agency)
        ids = {
            row["id"]
            for key, row in before.items()
            if key[1] in ("candidates", "leads")
            and person.lower() in (row["id"], (row["email"] or "").lower())
        }
        done = None
        try:
            done = erase(agency.settings, person, applies=True)
        except Misused:
            ids = set()

        assert [] == list(find_faults(before, read_all_rows(agency), done, ids))

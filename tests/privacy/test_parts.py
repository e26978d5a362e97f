"""The small parts: who is known by what, whose each field is, and what remains of a record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from connector.catalog import CATALOG
from connector.errors import Misused
from connector.privacy.known_person import seed_of
from connector.spreadsheet.persons import empty_rows, rows_about
from connector.suppression.identifiers import (
    KEY_FILE,
    is_same_number,
    make_key,
    normal,
    replaced,
    token,
)
from connector.suppression.listed import Suppressed
from connector.suppression.person import Person, reduced

ANN = Person(
    ids=frozenset(("c-1",)),
    emails=frozenset(("ann@mail.example",)),
    phones=frozenset(("946095800",)),
    texts=frozenset(("ann lee",)),
)


@pytest.mark.parametrize(
    "written", ["+44 7946 095 800", "0044-7946-095800", "(07946) 095800", "07946.095.800"]
)
def test_numbers_are_one_however_written(written: str) -> None:
    assert normal("phone", "07946095800") == normal("phone", written)
    assert "call [x] now" == replaced(
        f"call {written} now", lambda kind, value: normal(kind, value) == "946095800", "[x]"
    )


@pytest.mark.parametrize(
    "text",
    [
        "xann@mail.example or ann@mail.example.uk",
        "Joann Lee, Ann Lees, Ann Lee-Jones, Ann LeeAnn",
        "GB29NWBK07946095800, R-07946095800, 7712079460958003, 2024-07946095800",
        "https://people.example/ann-old, other.people.example/ann, people.example/ann/7",
    ],
)
def test_what_only_looks_like_a_mark_stays(text: str) -> None:
    person = replace(ANN, texts=ANN.texts | {"people.example/ann"})

    assert text == person.without(text)


def test_marks_are_found_as_people_write_them() -> None:
    person = replace(
        ANN,
        texts=frozenset(("ann lee", "lee, ann", "people.example/ann")),
        numbers=frozenset(("07946 095800",)),
    )
    text = "(Ann\nLee's) Lee, Ann/ANN LEE; 12 07946 095800, +44 (0)7946 095800 and"
    left = "([erased]'s) [erased]/[erased]; 12 [erased], [erased] and"

    assert left == person.without(text)
    assert "see [erased]." == person.without("see https://www.people.example/ann/.")
    assert "99 946095800" == person.without("99 946095800")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("+44 7946 095800", "07946 095800", True),
        ("+44 (0)7946 095800", "0044 7946 095800", True),
        ("07946 095800", "7946095800", True),
        ("+44 7946 095800", "+49 7946 095800", False),
        ("07946 095800", "307946095800", False),
        ("946095800", "7946095800", False),
    ],
)
def test_numbers_are_the_same_digit_by_digit(one: str, other: str, is_same: bool) -> None:
    assert is_same == is_same_number(one, other) == is_same_number(other, one)


def test_fields_of_others_are_no_prose() -> None:
    record = {"id": "c-2", "first_name": "Ann Lee", "source": "Ann Lee", "phone": "07946 095800"}
    notes = {"notes": "Ann Lee", "internal_notes": "07946 095800"}

    assert {**record, "notes": "[erased]", "internal_notes": "[erased]"} == reduced(
        CATALOG["candidates"], {**record, **notes}, ANN
    )


def test_row_that_names_somebody_keeps_its_other_cells(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(
        "email,notes\nann@mail.example,hers\nbob@mail.example,knows Ann Lee\n"
        "x@y.example,Ann Leeds\n",
        encoding="utf-8",
    )

    assert 2 == rows_about(path, ANN).rows == empty_rows(path, ANN)
    assert [
        "email,notes",
        ",",
        "bob@mail.example,knows [erased]",
        "x@y.example,Ann Leeds",
    ] == path.read_text(encoding="utf-8").splitlines()


def test_short_numbers_are_nobodys() -> None:
    assert "" == normal("phone", "ext. 4521")


def test_every_personal_field_has_an_owner() -> None:
    for resource in CATALOG.values():
        personal = {each.name for each in resource.fields.values() if each.personal is not None}
        owned = {name for group in resource.subjects for name in group.fields}
        if resource.name not in ("jobs", "content_items"):
            assert personal == owned, resource.name
        for group in resource.subjects:
            known = (
                *group.ids,
                *group.emails,
                *group.phones,
                *(n for ns in group.names for n in ns),
            )
            assert set(known) <= set(resource.fields), group


def test_booking_keeps_what_is_the_clients() -> None:
    booking = {
        "id": "b-1",
        "title": "Ann meets them",
        "candidate_id": "C-1",
        "status": "completed",
        "start_datetime": "2026-09-01T09:00:00Z",
        "day_rate": 500,
        "contact_email": "client@firm.example",
        "interview_panel": "Mr Client",
    }

    left = reduced(CATALOG["bookings"], booking, ANN)

    assert {name: value for name, value in booking.items() if name != "title"} == left


def test_contact_leaves_the_candidate() -> None:
    booking = {
        "id": "b-1",
        "title": "Bob",
        "candidate_id": "c-2",
        "contact_email": "ANN@mail.example",
    }
    booking |= {"contact_name": "Ann", "contact_phone": "1"}

    assert {"id": "b-1", "title": "Bob", "candidate_id": "c-2"} == reduced(
        CATALOG["bookings"], booking, ANN
    )


def test_texts_lose_the_mention_alone() -> None:
    job = {
        "id": "c-1",
        "created_at": "2026-09-01",
        "description": "Ask ANN LEE (Ann@Mail.example, 07946 095800).",
        "extra": {"by": ["ann lee", 7]},
    }

    assert {
        **job,
        "description": "Ask [erased] ([erased], [erased]).",
        "extra": {"by": ["[erased]", 7]},
    } == reduced(CATALOG["jobs"], job, ANN)


def test_hash_needs_the_key(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    key, other = make_key(tmp_path), make_key(tmp_path / "other")

    assert key == make_key(tmp_path)
    assert 0o600 == (tmp_path / KEY_FILE).stat().st_mode & 0o777
    assert token(key, "email", " ANN@mail.example") == token(key, "email", "ann@mail.example")
    assert token(key, "email", "ann@mail.example") != token(other, "email", "ann@mail.example")
    assert token(key, "id", "ann@mail.example") != token(key, "email", "ann@mail.example")
    assert "" == token(key, "phone", "12")


def test_the_number_of_an_erased_person_takes_nobody_out(tmp_path: Path) -> None:
    key, number = make_key(tmp_path), "+44 20 7946 0123"
    listed = Suppressed(key, frozenset((token(key, "phone", number),)))
    person = {
        "id": "c-2",
        "first_name": "New",
        "last_name": "One",
        "email": "new@x.example",
        "phone": "020 7946 0123",
        "notes": "My number is 020 7946 0123.",
        "source": number,
    }

    for resource, values in (("candidates", person), ("companies", {"id": "1", "phone": number})):
        record = CATALOG[resource].record(values)
        assert record is listed.strip(record)


def test_nobody_listed_costs_one_look(tmp_path: Path) -> None:
    assert Suppressed.of(tmp_path) is None
    make_key(tmp_path)
    assert Suppressed.of(tmp_path) is None
    assert [KEY_FILE] == [each.name for each in tmp_path.iterdir()]


@pytest.mark.parametrize("asked", ["", "  ", "Ann Lee", "short"])
def test_only_addresses_and_ids_are_people(asked: str) -> None:
    with pytest.raises(Misused):
        seed_of(asked)

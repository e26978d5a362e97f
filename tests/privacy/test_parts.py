"""Parts of erasure: identifiers, the owner of each field, and the remaining fields of a record."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from connector.catalog import CATALOG
from connector.errors import Misused
from connector.ledger.person import (
    KEY_FILE,
    Mention,
    Person,
    SuppressionList,
    find_mentions,
    has_known_identifier,
    hash_identifier,
    normalize_identifier,
    read_or_create_key,
    without_person,
)
from connector.privacy.locate import parse_address_or_id
from connector.spreadsheet.persons import TableMatches, count_rows_about, remove_rows, search_table

ANN = Person(
    ids=frozenset(("c-1",)),
    emails=frozenset(("ann@mail.example",)),
    phones=frozenset(("946095800",)),
    profiles=frozenset(("people.example/ann",)),
    names=frozenset(("ann lee",)),
)


@pytest.mark.parametrize(
    "written", ["+44 7946 095 800", "0044-7946-095800", "(07946) 095800", "07946.095.800"]
)
def test_phone_numbers_match_in_any_notation(written: str) -> None:
    assert normalize_identifier("phone", "07946095800") == normalize_identifier("phone", written)
    assert has_known_identifier(f"call {written} now", ANN.has_identifier)
    assert ANN.is_in_row(["x", written])


@pytest.mark.parametrize(
    "text",
    [
        "xann@mail.example or ann@mail.example.uk",
        "Joann Lee; Ann Lees; Ann Lee-Jones; Ann LeeAnn; Ann and Lee",
        "GB29NWBK07946095800, R-07946095800, 7712079460958003, 2024-07946095800",
        "https://people.example/ann-old, other.people.example/ann, people.example/ann/7",
    ],
)
def test_similar_texts_are_not_mentions(text: str) -> None:
    assert not ANN.is_named_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "ask ANN@Mail.example.",
        "(Ann\nLee's) notes",
        "see Lee, Ann/Bob",
        "12 07946 095800 after six",
        "+44 (0)7946 095800 / 020 7946 0000",
        "see https://www.people.example/ann/.",
    ],
)
def test_mentions_are_found_in_any_spelling(text: str) -> None:
    assert ANN.is_named_in(text)


@pytest.mark.parametrize("written", ["https://People.example/ann/", "www.people.example/ann"])
def test_profile_links_match_in_any_notation(written: str) -> None:
    assert ANN.has_identifier("profile", written)
    assert "" == normalize_identifier("profile", "ann@mail.example")


def test_a_long_text_is_searched_in_linear_time() -> None:
    begun = time.process_time()

    assert ANN.is_named_in(f"{'x' * 100_000} ann@mail.example")
    assert time.process_time() - begun < 2


def test_texts_of_others_stay_and_are_listed_as_mentions() -> None:
    job = {
        "id": "c-9",
        "title": "Nurse",
        "description": "Ask ANN LEE.",
        "extra": {"by": ["Ann Lee"]},
    }
    candidate = {"id": "c-2", "first_name": "Ann Lee", "phone": "07946 095800", "notes": "Ann Lee"}

    assert job == without_person(CATALOG["jobs"], job, ANN)
    assert [Mention("landing.jobs", "c-9", each) for each in ("description", "extra")] == list(
        find_mentions("landing.jobs", "c-9", job, ANN)
    )
    # Numbers are reassigned: another person's own number stays.
    assert candidate == without_person(CATALOG["candidates"], candidate, ANN)


def test_exact_identifiers_are_removed_from_contacts_of_other_records() -> None:
    company = {"id": "f-1", "name": "Firm", "primary_contact_name": "Bob", "phone": "07946 095800"}
    with_number = {**company, "primary_contact_phone": "+44 7946 095800"}
    with_address = {**with_number, "primary_contact_email": "ANN@mail.example"}
    job = {"id": "j-1", "title": "Nurse", "application_email": "Ann@mail.example"}
    booking = {"id": "b-1", "meeting_link": "http://people.example/ann", "title": "Ann Lee"}

    assert company == without_person(CATALOG["companies"], with_number, ANN)
    assert {"id": "f-1", "name": "Firm", "phone": "07946 095800"} == without_person(
        CATALOG["companies"], with_address, ANN
    )
    assert {"id": "j-1", "title": "Nurse"} == without_person(CATALOG["jobs"], job, ANN)
    assert {"id": "b-1", "title": "Ann Lee"} == without_person(CATALOG["bookings"], booking, ANN)


def test_removing_a_csv_row_keeps_every_other_byte(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    kept = (
        '\ufeffemail;"notes"\n',
        '"bob@mail.example";knows Ann Lee\r\n',
        'x@y.example;"Ann\nLeeds"',
    )
    text = f'{kept[0]}{kept[1]}ann@mail.example;"hers\nand more"\n{kept[2]}'
    path.write_bytes(text.encode())
    path.chmod(0o640)

    assert TableMatches(1, (("row 2", "B"),)) == search_table(path, ANN)
    assert 1 == count_rows_about(path, ANN)
    remove_rows(path, ANN)

    assert "".join(kept) == path.read_bytes().decode()
    assert 0o640 == path.stat().st_mode & 0o777


def test_short_numbers_are_not_identifiers() -> None:
    assert "" == normalize_identifier("phone", "ext. 4521")


def test_every_personal_field_has_an_owner() -> None:
    for resource in CATALOG.values():
        personal = {each.name for each in resource.fields.values() if each.personal is not None}
        owned = {name for group in resource.subjects for name in group.fields}
        if resource.name != "content_items":
            assert personal - {"internal_notes"} == owned - {"internal_notes"}, resource.name
        for group in resource.subjects:
            known = (
                *group.ids,
                *group.emails,
                *group.phones,
                *(n for ns in group.names for n in ns),
            )
            assert set(known) <= set(resource.fields), group


def test_an_erased_candidates_booking_keeps_the_clients_fields() -> None:
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

    left = without_person(CATALOG["bookings"], booking, ANN)

    assert {name: value for name, value in booking.items() if name != "title"} == left


def test_an_erased_contact_leaves_the_bookings_candidate() -> None:
    booking = {
        "id": "b-1",
        "title": "Bob",
        "candidate_id": "c-2",
        "contact_email": "ANN@mail.example",
    }
    booking |= {"contact_name": "Ann", "contact_phone": "1"}

    assert {"id": "b-1", "title": "Bob", "candidate_id": "c-2"} == without_person(
        CATALOG["bookings"], booking, ANN
    )


def test_identifier_hashes_depend_on_the_key(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    key, other = read_or_create_key(tmp_path), read_or_create_key(tmp_path / "other")

    assert key == read_or_create_key(tmp_path)
    assert 0o600 == (tmp_path / KEY_FILE).stat().st_mode & 0o777
    assert hash_identifier(key, "email", " ANN@mail.example") == hash_identifier(
        key, "email", "ann@mail.example"
    )
    assert hash_identifier(key, "email", "ann@mail.example") != hash_identifier(
        other, "email", "ann@mail.example"
    )
    assert hash_identifier(key, "id", "ann@mail.example") != hash_identifier(
        key, "email", "ann@mail.example"
    )
    assert "" == hash_identifier(key, "phone", "12")


def test_a_shared_phone_number_does_not_suppress_another_person(tmp_path: Path) -> None:
    key, number = read_or_create_key(tmp_path), "+44 20 7946 0123"
    listed = SuppressionList(key, frozenset((hash_identifier(key, "phone", number),)))
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


def test_an_empty_suppression_list_is_not_loaded(tmp_path: Path) -> None:
    assert SuppressionList.read_from(tmp_path) is None
    read_or_create_key(tmp_path)
    assert SuppressionList.read_from(tmp_path) is None
    assert [KEY_FILE] == [each.name for each in tmp_path.iterdir()]


@pytest.mark.parametrize("text", ["", "  ", "Ann Lee", "short"])
def test_an_erasure_by_name_or_short_text_is_refused(text: str) -> None:
    with pytest.raises(Misused):
        parse_address_or_id(text)

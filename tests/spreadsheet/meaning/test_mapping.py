"""Headings find their fields by name or a known other name, never by likeness."""

from __future__ import annotations

from itertools import chain

import pytest

from connector.catalog import CATALOG
from connector.errors import Misused, UnknownName
from connector.ledger.push_states import Mode
from connector.spreadsheet.cells import CellOptions
from connector.spreadsheet.columns import HINTS, normalized_heading
from connector.spreadsheet.mapping import map_headings, to_saved_map
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.target_columns import target_columns
from tests.spreadsheet.meaning.sheet import aimed, mapped

MODES: tuple[Mode, ...] = ("create", "update")
WRITABLE = [name for name, each in CATALOG.items() if "create" in each.operations]


@pytest.mark.parametrize(
    "heading",
    ["first_name", "First Name", "FIRST-NAME", " first  name ", "First.Name:", "Fírst námé"],
)
def test_own_name_is_found_however_it_is_written(heading: str) -> None:
    assert {heading: ("first_name", "name")} == mapped(map_headings([heading], aimed()))


@pytest.mark.parametrize(
    ("heading", "column"),
    [
        ("Forename", "first_name"),
        ("SURNAME", "last_name"),
        ("E-mail address", "email"),
        ("Mobile No.", "mobile"),
        ("Current Employer", "current_company"),
        ("Post code", "postal_code"),
        ("Prénom", "first_name"),
    ],
)
def test_known_other_names_are_found(heading: str, column: str) -> None:
    assert {heading: (column, "alias")} == mapped(map_headings([heading], aimed()))


@pytest.mark.parametrize(
    ("heading", "column", "reason"),
    [
        ("Emial", "email", "spelling is close to"),
        ("Salary", "expected_salary", "several fields"),
        ("Candidate surname as in passport", "last_name", "contains the words of"),
        ("Contract type", "employment_type", "this heading is often used for the field"),
    ],
)
def test_likeness_is_suggested_and_not_used(heading: str, column: str, reason: str) -> None:
    found = map_headings([heading], aimed())

    assert () == found.columns
    assert heading == found.unmapped[0].heading
    (told,) = [why for name, why in found.unmapped[0].suggestions if name == column]
    assert reason in told


def test_fields_that_the_mode_does_not_take_are_told_so() -> None:
    found = map_headings(["created_at", "CV file path", "id"], aimed())

    assert () == found.columns
    assert all("mode create does not write" in each.reason for each in found.unmapped)


def test_of_two_columns_for_one_field_the_second_fills_nothing() -> None:
    found = map_headings(["E-mail", "Mail"], aimed())
    assert {"E-mail": ("email", "name")} == mapped(found)
    assert "column 'E-mail' already fills email" == found.unmapped[0].reason
    assert {"company_id": ("company_id", "name")} == mapped(
        map_headings(["Client", "company_id"], aimed("jobs"))
    )
    assert {"Mail": ("email", "alias")} == mapped(
        map_headings(["E-mail", "Mail"], aimed(), ignored=["e-MAIL"])
    )
    both = {name: ("email", CellOptions()) for name in ("A", "B")}
    with pytest.raises(Misused, match=r"'A' and 'B' both fill email"):
        map_headings(["A", "B"], aimed(), saved=SavedMap("candidates", both))


def test_a_whole_name_is_used_where_no_part_of_it_has_a_column() -> None:
    assert {"Name": ("full_name", "alias")} == mapped(map_headings(["Name"], aimed()))
    assert () == map_headings(["Full name", "Mail", "employment_type"], aimed()).missing
    assert {"Vorname": ("first_name", "alias"), "Name": ("last_name", "alias")} == mapped(
        map_headings(["Vorname", "Name"], aimed())
    )


def test_missing_names_what_a_create_cannot_do_without() -> None:
    saved = SavedMap("candidates", constants={"employment_type": "permanent"})

    assert ("last_name", "email") == map_headings(["Forename"], aimed(), saved=saved).missing
    assert () == map_headings(["id"], aimed(mode="update")).missing


def test_references_have_several_columns_and_a_plain_field_stays_one() -> None:
    booking = map_headings(["Candidate email", "job_reference_code", "Client"], aimed("bookings"))
    lead = map_headings(["Company name"], aimed("leads"))

    assert [("candidates", "email"), ("jobs", "reference_code"), ("companies", "name")] == [
        (r.resource, r.by) for each in booking.columns if (r := each.target.reference)
    ]
    assert lead.columns[0].target.reference is None


def test_what_was_decided_goes_first() -> None:
    saved = SavedMap(
        "candidates",
        {"Phone": ("mobile", CellOptions(policy="fill")), "Handy": ("phone", CellOptions())},
        ignored=("Mobile",),
    )
    found = map_headings(["Phone", "handy", "Mobile"], aimed(), saved=saved)

    assert {"Phone": ("mobile", "given"), "handy": ("phone", "given")} == mapped(found)
    assert ("Mobile",) == found.ignored
    assert "fill" == found.columns[0].options.policy


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        (SavedMap("jobs"), "is for jobs"),
        (SavedMap("candidates", {"Mial": ("email", CellOptions())}), "'Mial'"),
        (SavedMap("candidates", {"Mail": ("emial", CellOptions())}), "'emial'.*'email'"),
        (SavedMap("candidates", constants={"email": "a@b.example"}), "constant for email"),
        (SavedMap("candidates", constants={"rating": "good"}), "rating is 'good'.*not a number"),
        (
            SavedMap(
                "candidates", {"Type": ("employment_type", CellOptions(values={"Perm": "some"}))}
            ),
            "'Perm' of employment_type is mapped to 'some'",
        ),
    ],
)
def test_decisions_that_make_no_sense_are_refused(saved: SavedMap, said: str) -> None:
    with pytest.raises((Misused, UnknownName), match=said):
        map_headings(["Mail", "Type"], aimed(), saved=saved)


def test_policy_fill_is_refused_where_nothing_shows_what_is_there() -> None:
    """A write-only field cannot be only filled, since it may be empty or not."""
    saved = SavedMap("jobs", {"Notes": ("internal_notes", CellOptions(policy="fill"))})

    with pytest.raises(Misused, match="never returns that field"):
        map_headings(["Notes"], aimed("jobs", "update"), saved=saved)


def test_policy_append_is_refused_for_fields_that_are_no_long_texts() -> None:
    saved = SavedMap("jobs", {"Town": ("location", CellOptions(policy="append"))})

    with pytest.raises(Misused, match="not a long text"):
        map_headings(["Town"], aimed("jobs", "update"), saved=saved)


def test_map_is_the_same_when_saved_and_given_again() -> None:
    headings = ["Forename", "Surname", "Mail", "Perm?", "Salary"]
    found = map_headings(headings, aimed(), ignored=["Perm?"])
    again = map_headings(headings, aimed(), saved=to_saved_map(found))

    assert [e.target for e in found.columns] == [e.target for e in again.columns]
    assert {"given"} == {each.match_kind for each in again.columns}
    assert (("Perm?",), "Salary") == (again.ignored, again.unmapped[0].heading)


@pytest.mark.parametrize("resource", WRITABLE)
def test_every_accepted_field_is_found_by_its_name(resource: str) -> None:
    declared = CATALOG[resource]
    made = target_columns(declared, "create")
    own = {normalized_heading(each.name) for each in made}
    columns: dict[str, set[str]] = {}
    for each in made:
        for alias in each.aliases:
            columns.setdefault(normalized_heading(alias), set()).add(each.name)

    # A column's own name goes before an alias, so that there is no doubt about it.
    assert {} == {a: names for a, names in columns.items() if len(names) > 1 and a not in own}
    assert len(made) == len({each.name for each in made})


def test_hints_name_columns_that_exist() -> None:
    columns = {
        each.name
        for declared in CATALOG.values()
        for mode in MODES
        for each in target_columns(declared, mode)
    }
    hinted = set(chain.from_iterable(names for names, _ in HINTS.values()))

    assert set() == hinted - columns
    assert all(heading == normalized_heading(heading) for heading in HINTS)

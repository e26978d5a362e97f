"""Headings are mapped to fields by name or known alias, never by similarity."""

from __future__ import annotations

import pytest

from connector.catalog import CATALOG
from connector.errors import Misused, UnknownName
from connector.spreadsheet.headings import normalized_heading
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.targets import CellOptions, target_columns
from connector.state.row import Mode
from tests.spreadsheet.meaning.sheet import list_mappings, make_target

MODES: tuple[Mode, ...] = ("create", "update")
WRITABLE = [name for name, each in CATALOG.items() if "create" in each.operations]


@pytest.mark.parametrize(
    "heading",
    ["first_name", "First Name", "FIRST-NAME", " first  name ", "First.Name:", "Fírst námé"],
)
def test_a_field_name_is_found_in_any_spelling(heading: str) -> None:
    assert {heading: ("first_name", "name")} == list_mappings(
        map_headings([heading], make_target())
    )


@pytest.mark.parametrize(
    ("heading", "column"),
    [
        ("Forename", "first_name"),
        ("SURNAME", "last_name"),
        ("E-mail address", "email"),
        ("Mobile No.", "mobile"),
        ("Current Employer", "current_company"),
        ("Prénom", "first_name"),
    ],
)
def test_known_aliases_are_found(heading: str, column: str) -> None:
    assert {heading: (column, "alias")} == list_mappings(map_headings([heading], make_target()))


@pytest.mark.parametrize(
    ("heading", "column"),
    [("Emial", "email"), ("Salary", "expected_salary"), ("Contract type", "employment_type")],
)
def test_a_similar_column_is_suggested_but_not_used(heading: str, column: str) -> None:
    found = map_headings([heading], make_target())

    assert () == found.columns
    assert heading == found.unmapped[0].heading
    assert column in found.unmapped[0].suggestions


def test_the_second_of_two_columns_for_one_field_is_not_mapped() -> None:
    found = map_headings(["E-mail", "Mail"], make_target())
    assert {"E-mail": ("email", "name")} == list_mappings(found)
    assert "column 'E-mail' already fills email" == found.unmapped[0].reason
    assert {"company_id": ("company_id", "name")} == list_mappings(
        map_headings(["Client", "company_id"], make_target("jobs"))
    )
    assert {"Mail": ("email", "alias")} == list_mappings(
        map_headings(["E-mail", "Mail"], make_target(), ignored=["e-MAIL"])
    )
    both = {name: ("email", CellOptions()) for name in ("A", "B")}
    with pytest.raises(Misused, match=r"'A' and 'B' both fill email"):
        map_headings(["A", "B"], make_target(), saved=SavedMap("candidates", both))


def test_a_full_name_is_used_only_if_no_part_has_its_own_column() -> None:
    assert {"Name": ("full_name", "alias")} == list_mappings(map_headings(["Name"], make_target()))
    assert () == map_headings(["Full name", "Mail", "employment_type"], make_target()).missing


def test_references_can_be_given_by_email_code_or_name() -> None:
    booking = map_headings(
        ["Candidate email", "job_reference_code", "Client"], make_target("bookings")
    )
    lead = map_headings(["Company name"], make_target("leads"))

    assert [("candidates", "email"), ("jobs", "reference_code"), ("companies", "name")] == [
        (r.resource, r.by) for each in booking.columns if (r := each.target.reference)
    ]
    assert lead.columns[0].target.reference is None


def test_a_saved_mapping_precedes_automatic_matches() -> None:
    saved = SavedMap(
        "candidates",
        {"Phone": ("mobile", CellOptions(policy="fill")), "Handy": ("phone", CellOptions())},
        ignored=("Mobile",),
    )
    found = map_headings(["Phone", "handy", "Mobile"], make_target(), saved=saved)

    assert {"Phone": ("mobile", "given"), "handy": ("phone", "given")} == list_mappings(found)
    assert ("Mobile",) == found.ignored
    assert "fill" == found.columns[0].options.policy


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (SavedMap("jobs"), "is for jobs"),
        (SavedMap("candidates", {"Mial": ("email", CellOptions())}), "'Mial'"),
        (SavedMap("candidates", {"Mail": ("emial", CellOptions())}), "'emial'.*'email'"),
        (
            SavedMap("candidates", constants={"email": "a@b.example"}),
            "email has a value for all rows",
        ),
        (SavedMap("candidates", constants={"rating": "good"}), "rating is 'good'.*not a number"),
        (
            SavedMap(
                "candidates", {"Type": ("employment_type", CellOptions(values={"Perm": "some"}))}
            ),
            "'Perm' of employment_type is mapped to 'some'",
        ),
    ],
)
def test_invalid_saved_mappings_are_rejected(saved: SavedMap, message: str) -> None:
    with pytest.raises((Misused, UnknownName), match=message):
        map_headings(["Mail", "Type"], make_target(), saved=saved)


def test_the_policy_fill_is_rejected_for_a_write_only_field() -> None:
    saved = SavedMap("jobs", {"Notes": ("internal_notes", CellOptions(policy="fill"))})

    with pytest.raises(Misused, match="never returns that field"):
        map_headings(["Notes"], make_target("jobs", "update"), saved=saved)


@pytest.mark.parametrize("resource", WRITABLE)
def test_every_writable_field_is_found_by_its_name_and_aliases(resource: str) -> None:
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


def test_fields_that_the_mode_does_not_write_are_reported() -> None:
    found = map_headings(["created_at", "CV file path", "id"], make_target())

    assert () == found.columns
    assert all("mode create does not write" in each.reason for each in found.unmapped)

"""Cells, headings and files as agencies have them, each with what the preview does."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from connector.errors import SpreadsheetError
from connector.pushes.preview import ask_about_lost_columns
from connector.spreadsheet.check import check_rows
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.mapping_file import SavedMap, with_options
from connector.spreadsheet.row_reader import CheckedRow, ColumnMeanings, describe_remarks
from connector.spreadsheet.table import open_table
from connector.spreadsheet.targets import CellOptions
from connector.state.row import KnownId
from tests.spreadsheet.corpus.files import encode_csv, make_workbook
from tests.spreadsheet.files.made import make_text_row, write_workbook_file
from tests.spreadsheet.meaning.sheet import (
    CANDIDATE,
    InMemoryLanding,
    make_landing,
    make_table,
    make_target,
)

HEAD = ("First name", "Last name", "Email", "Employment type")
ANN = ("Ann", "Lee", "ann@people.example", "permanent")


@dataclass(frozen=True)
class Read:
    """Rows of a file, with the notices and questions about it."""

    rows: Sequence[CheckedRow]
    notices: Sequence[str]
    questions: Sequence[str]

    def values(self, row: int = 0) -> Mapping[str, Any]:
        """Return the values that a row would create."""
        task = self.rows[row].task
        assert task is not None, self.rows[row].problems
        return {**task.fields, **task.then}

    def codes(self, row: int = 0) -> list[str]:
        """Return the codes of the row's problems, warnings and remarks."""
        found = self.rows[row]
        return [each.code for each in (*found.problems, *found.warnings, *found.remarks)]


def read_file(
    folder: Path,
    content: bytes,
    resource: str = "candidates",
    landing: InMemoryLanding | None = None,
    **options: Any,
) -> Read:
    """Read and check a file as a preview does."""
    path = folder / ("people.xlsx" if content.startswith(b"PK") else "people.csv")
    path.write_bytes(content)
    table, target = open_table(path), make_target(resource)
    constants = options.pop("constants", {})
    saved = with_options(SavedMap(resource, constants=constants), CellOptions(**options))
    columns = map_headings(table.headings, target, saved=saved)
    meanings = ColumnMeanings(table.rows, columns.columns)
    rows = list(
        check_rows(table.rows(), columns, target, landing or InMemoryLanding(), meanings=meanings)
    )
    questions = [each.code for each in table.questions]
    notices = (*table.notices, *meanings.notices, *describe_remarks(rows))
    return Read(rows, notices, questions)


def read_column(folder: Path, heading: str, *cells: Any, **options: Any) -> Read:
    """Read a csv of candidates with one more column."""
    people = [(f"Ann{chr(97 + n)}", "Lee", f"a{n}@people.example", "permanent") for n in range(9)]
    rows = [(*HEAD, heading), *((*people[n], cell) for n, cell in enumerate(cells))]
    return read_file(folder, encode_csv(rows), **options)


@pytest.mark.parametrize(
    ("heading", "cell", "key", "value"),
    [
        ("Desired salary", "\u00a326,500", "expected_salary", 26500),
        ("Desired salary", "50,000", "expected_salary", 50000),
        ("Desired salary", "18,00,000", "expected_salary", 1800000),
        ("Day Rate", "\u00a3450/day", "expected_day_rate", 450),
        ("D.O.B.", "06/07/73", "date_of_birth", "1973-07-06"),
        ("Birthday", "0/0/00", "date_of_birth", None),
        ("Mobile", "07700 900000", "mobile", "+447700900000"),
        ("Mobile", "0044 7700 900169", "mobile", "+447700900169"),
        ("Home Tel", "01632 960116 ext 12", "phone", "+441632960116 ext. 12"),
        ("Notice", "4 weeks", "notice_period_days", 28),
        ("Notice", "3 months", "notice_period_days", 90),
        ("Notice", "Immediate", "notice_period_days", 0),
        ("Availability", "Mon 04/01/2027", "available_from", "2027-01-04"),
        ("LinkedIn", "https://network.example/ann", "network_url", "https://network.example/ann"),
        ("IR35", "OUT", "ir35_status", "outside"),
        ("IR35", "O/S", "ir35_status", "outside"),
        ("Desired Sal", "Neg", "expected_salary", None),
        ("Home Tel", "ex dir", "phone", None),
        ("Town", "Le\u200beds", "city", "Leeds"),
        ("Addr 1", "Flat 2\n12 Mill Lane", "address_line1", "Flat 2 12 Mill Lane"),
        ("Town", "York\r\n", "city", "York"),
        ("Town", "York\tUK", "city", "York UK"),
        ("Town", "\\N", "city", None),
        ("Desired Sal", "\\N", "expected_salary", None),
    ],
)
def test_a_british_cell_is_read_without_a_question(
    tmp_path: Path, heading: str, cell: str, key: str, value: Any
) -> None:
    read = read_column(tmp_path, heading, cell)
    assert value == read.values().get(key)
    assert ((), []) == (read.rows[0].warnings, read.questions)


@pytest.mark.parametrize(
    ("heading", "cell", "code"),
    [
        ("Notice", "-5", "negative"),
        ("Notice", "4.5", "not_whole"),
        ("Notice", "two weeks", "not_a_number"),
        ("Tel", "4,47701E+11", "scientific"),
        ("Tel", "call agent", "phone_format"),
        ("Current Employer", "########", "scientific"),
        ("Post Code", "LS1\u200e4AP", "hidden_character"),
        ("Notes", "rang\x07 twice", "control_character"),
        ("Employment status", "looking", "unknown_value"),
        ("D.O.B.", "1985-02-30", "no_such_date"),
        ("Availability", "2026-04-03T14:30", "time_in_date"),
        ("Desired salary", "45%", "percent_sign"),
        ("Currency of salary", "$", "currency_format"),
        ("Portfolio", "example.com/work", "url_format"),
        ("Relocate", "-1", "not_true_or_false"),
        ("Desired salary", "45,0000", "not_a_number"),
        ("Currency of salary", "UKP", "currency_format"),
        ("IR35", "n/a", "unknown_value"),
        ("Availability", "mid March", "date_format"),
        ("Availability", "Now", "immediately"),
        ("Town", "York\\, UK", "escaped_signs"),
        ("Portfolio URL", "http\\://x.example", "url_format"),
        ("Town", "Ren?e", "odd_letters"),
        ("Town", "Ren\ufffde", "odd_letters"),
        ("Town", "M\u00c3\u00bcnchen", "mojibake"),
        ("Town", "?ric", "odd_letters"),
        ("Town", '="Leeds"', "invisible"),
        ("Mobile", "+44 7700\n900123", "hidden_character"),
        ("Mobile", "07700 900630 / 07700 900631", "phone_format"),
        ("Current Sal", "\u00a360K + car", "not_a_number"),
        ("Desired Sal", "\u00a365k basic / 90k OTE", "not_a_number"),
        ("Day Rate", "\u00a3350 + VAT", "not_a_number"),
        ("Day Rate", "\u00a3450-\u00a3500", "not_a_number"),
        ("Current Sal", "45k+", "not_a_number"),
        ("Day Rate", "\u00a355 ph", "other_period"),
        ("Availability", "Tue 04/01/2027", "weekday_differs"),
        ("Mobile", "07700 90000", "odd_phone"),
        ("Tel", "0171 1234567", "odd_phone"),
        ("Desired salary", "\u20ac45,000", "currency_taken"),
    ],
)
def test_an_unclear_cell_is_reported(tmp_path: Path, heading: str, cell: str, code: str) -> None:
    assert code in read_column(tmp_path, heading, cell).codes()


@pytest.mark.parametrize(
    ("field", "cell", "code"),
    [
        ("Email", "   ", "required"),
        ("Email", "ann@x.example; bo@x.example", "several_emails"),
        ("Employment type", "Some", "unknown_value"),
        ("Employment type", "Freelance", "value_not_accepted"),
        ("Employment type", "", "required"),
    ],
)
def test_a_required_cell_is_right_or_reported(
    tmp_path: Path, field: str, cell: str, code: str
) -> None:
    row = dict(zip(HEAD, ANN, strict=True)) | {field: cell}
    assert [code] == read_file(tmp_path, encode_csv([HEAD, tuple(row.values())])).codes()


def test_today_is_the_day_of_the_import(tmp_path: Path) -> None:
    before = date.today()
    read = read_column(tmp_path, "Availability", "today")
    assert read.values()["available_from"] in (before.isoformat(), date.today().isoformat())


@pytest.mark.parametrize(
    "email",
    ["a..b@x.example", ".a@x.example", "a@-x.example", "\uff41nn@x.example", "\u0430nn@x.example"],
)
def test_an_impossible_email_address_is_refused(tmp_path: Path, email: str) -> None:
    read = read_file(tmp_path, encode_csv([HEAD, ("Ann", "Lee", email, "permanent")]))
    assert "email_format" in read.codes()


@pytest.mark.parametrize("name", ["\U0001f680", "PMP\u00ae", "DVM", "MSc", "III", "she/her", "Dr"])
def test_a_sign_or_a_title_is_no_last_name(tmp_path: Path, name: str) -> None:
    read = read_file(tmp_path, encode_csv([HEAD, ("Ann", name, "a@x.example", "permanent")]))
    assert "name_unclear" in read.codes()
    whole = [("Full name", *HEAD[2:]), (f"Ana Ruiz {name}", "a@x.example", "permanent")]
    assert "name_unclear" in read_file(tmp_path, encode_csv(whole)).codes()


@pytest.mark.parametrize("name", ["Lee MSc", "Lee \U0001f680", "Lee, PMP", "Dr Lee"])
def test_a_title_or_a_sign_beside_a_name_is_a_warning(tmp_path: Path, name: str) -> None:
    read = read_file(tmp_path, encode_csv([HEAD, ("Ann", name, "a@x.example", "permanent")]))
    assert (["odd_name"], name) == (read.codes(), read.values()["last_name"])


def test_a_comma_at_a_wrong_place_costs_one_row(tmp_path: Path) -> None:
    read = read_column(tmp_path, "Desired salary", "26,500", "45,0000")
    assert (26500, ["not_a_number"]) == (read.values()["expected_salary"], read.codes(1))


def test_every_word_that_is_dropped_is_named(tmp_path: Path) -> None:
    (notice,) = read_column(tmp_path, "Town", "Neg", "tbc", "n/a").notices
    assert "tbc" in notice
    assert "n/a" in notice


def test_a_word_for_nothing_in_a_required_cell_is_named(tmp_path: Path) -> None:
    read = read_file(tmp_path, encode_csv([HEAD, ("Ann", "NULL", "a@x.example", "permanent")]))
    (problem,) = read.rows[0].problems
    assert ("word_for_nothing", True) == (problem.code, "NULL" in problem.text)


def test_the_value_of_a_formula_is_read_and_a_formatted_empty_cell_is_none(tmp_path: Path) -> None:
    cells = "".join(
        f'<c r="{place}2" t="inlineStr"><is><t>{text}</t></is></c>'
        for place, text in zip("ABCD", ANN, strict=True)
    )
    formula = '<c r="E2"><f>40000+5000</f>{}</c><c r="F2"/>'
    head = make_text_row(1, *HEAD, "Desired salary")
    for value, codes in (("<v>45000</v>", []), ("", ["formula_without_value"])):
        xml = f'<row r="2">{cells}{formula.format(value)}</row>'
        content = write_workbook_file(tmp_path, head, xml).read_bytes()
        read = read_file(tmp_path, content)
        assert codes == read.codes()
        assert codes or 45000 == read.values()["expected_salary"]


def test_signs_that_a_workbook_writes_by_number_are_no_text(tmp_path: Path) -> None:
    rows = [(*HEAD, "Town"), (*ANN, "New _x000D_York")]
    read = read_file(tmp_path, make_workbook(rows))
    assert ("New York", ["line_break"]) == (read.values()["city"], read.codes())


def test_a_quote_after_a_missing_separator_is_a_warning(tmp_path: Path) -> None:
    line = 'Ann,Lee,ann@people.example,permanent,York"Acme, Ltd"'
    content = f"{','.join(HEAD)},Town,Current employer\n{line}\n".encode()
    assert ["odd_letters", "odd_letters"] == read_file(tmp_path, content).codes()


def test_a_column_has_one_currency_and_one_remark(tmp_path: Path) -> None:
    read = read_column(tmp_path, "Current Sal", "\u20ac45,000", "52000", "\u20ac50k")
    assert ["EUR"] * 3 == [read.values(n)["salary_currency"] for n in range(3)]
    assert 1 == len([each for each in read.notices if "Current Sal" in each])
    headed = read_column(tmp_path, "Desired Salary (\u00a3)", "45000")
    assert ("GBP", []) == (headed.values()["salary_currency"], headed.codes())


def test_a_number_of_employees_is_the_range_that_contains_it(tmp_path: Path) -> None:
    rows = [("Company name", "Email", "Company size"), ("Bay", "a@x.example", "75")]
    read = read_file(tmp_path, encode_csv([*rows, ("Brook", "b@x.example", "1,200")]), "companies")
    assert ["51-200", "1000+"] == [read.values(n)["company_size"] for n in range(2)]
    assert ["band_chosen"] == read.codes()


def test_a_postal_code_that_lost_its_zero_is_a_warning(tmp_path: Path) -> None:
    rows = [(*HEAD, "Country", "ZIP Code"), (*ANN, "DE", "4103")]
    assert ["lost_zero"] == read_file(tmp_path, encode_csv(rows)).codes()


def test_lines_below_the_totals_are_left_out_and_named(tmp_path: Path) -> None:
    rows = [HEAD, ANN, (), ("Grand Totals (1 records)",), ("Confidential",), ("Copyright",)]
    read = read_file(tmp_path, encode_csv(rows))
    assert (1, True) == (len(read.rows), any("Copyright" in each for each in read.notices))


PLACEMENT = ("Contractor", "Client", "Start", "End", "Day rate")
AGENCY = make_landing(
    candidates=[
        {"id": "c1", "first_name": "Ada", "last_name": "D'Angelo", "email": "ada@x.example"},
        {"id": "c2", "first_name": "Bo", "last_name": "Ray", "email": "bo@x.example"},
        {"id": "c3", "first_name": "Bo", "last_name": "Ray", "email": "ray@x.example"},
    ],
    companies=[
        {"id": "k1", "name": "Zenith Holdings plc"},
        {"id": "k2", "name": "Zenith Holdings 2"},
    ],
    jobs=[{"id": "j1", "title": "Nurse", "reference_code": "REF-1"}],
)
CONTRACT = {"booking_type": "contract", "job_reference_code": "REF-1"}


def read_placement(folder: Path, *cells: str, **options: Any) -> Read:
    """Read a csv with one contract placement."""
    content = encode_csv([PLACEMENT, cells])
    return read_file(folder, content, "bookings", AGENCY, constants=CONTRACT, **options)


def test_a_placement_is_found_by_names_and_days_get_their_hours(tmp_path: Path) -> None:
    cells = ("D'Angelo, Ada", "zenith holdings plc", "01/09/2026", "30/11/2026", "\u00a3450/day")
    asked = read_placement(tmp_path, *cells)
    assert ["time_missing", "time_missing"] == asked.codes()[:2]
    read = read_placement(tmp_path, *cells, day_hours="09:00-17:30")
    assert {
        "booking_type": "contract",
        "candidate_id": "c1",
        "company_id": "k1",
        "job_id": "j1",
        "start_datetime": "2026-09-01T08:00:00Z",
        "end_datetime": "2026-11-30T17:30:00Z",
        "day_rate": 450,
    } == read.values()
    assert True is read_placement(tmp_path, *cells, day_hours="all-day").values()["all_day"]


def test_near_and_shared_names_are_proposed_and_never_used(tmp_path: Path) -> None:
    cells = ("Bo Ray", "Zenith Holdings", "2026-09-01T09:00Z", "2026-11-30T09:00Z", "450")
    contractor, client = read_placement(tmp_path, *cells).rows[0].problems
    assert ("reference_ambiguous", "reference_unknown") == (contractor.code, client.code)
    assert "bo@x.example" in contractor.message
    assert "ray@x.example" in contractor.message
    assert "Did you mean Zenith Holdings plc?" in str(client.fix)


@pytest.mark.parametrize("values", [{}, {"45,000": "45000"}])
def test_a_number_that_may_be_a_fraction_needs_an_answer(values: dict[str, str]) -> None:
    options = CellOptions(region="FR", values=values)
    saved = SavedMap("candidates", {"Salary": ("expected_salary", options)})
    table, target = make_table({**CANDIDATE, "Salary": "45,000"}), make_target()
    columns = map_headings(table.headings, target, saved=saved)
    meanings = ColumnMeanings(table.rows, columns.columns)
    (row,) = check_rows(table.rows(), columns, target, InMemoryLanding(), meanings=meanings)

    assert (not values) == (["ambiguous_number"] == [each.code for each in row.problems])
    assert not values or (row.task is not None and row.task.fields["expected_salary"] == 45_000)


def test_a_consultant_is_a_known_name_or_a_question(tmp_path: Path) -> None:
    landing = InMemoryLanding(known={"assigned_to": [KnownId("u1", "Kelly"), KnownId("u2")]})
    read = read_column(tmp_path, "Consultant", "kelly", "JS", "u2", "", landing=landing)
    assert ("u1", "u2") == (read.values(0)["assigned_to"], read.values(2)["assigned_to"])
    (problem,) = read.rows[1].problems
    assert ("reference_unknown", "Kelly") == (problem.code, str(problem.allowed).split(",")[0])
    assert "assigned_to" not in read.values(3)


def test_a_name_of_two_consultants_is_no_choice_of_one(tmp_path: Path) -> None:
    landing = InMemoryLanding(known={"assigned_to": [KnownId("u1", "Jo"), KnownId("u2", "Jo")]})
    (problem,) = read_column(tmp_path, "Consultant", "jo", landing=landing).rows[0].problems
    assert ("reference_ambiguous", "u1 u2") == (problem.code, problem.found)


def test_a_lead_of_a_fair_gets_a_status_for_all_rows(tmp_path: Path) -> None:
    landing = InMemoryLanding(known={"lead_status_id": [KnownId("s1", "New")]})
    rows = [
        ("Name", "Company", "Position", "Email"),
        ("Sarah St. John", "Wren", "HR", "s@x.example"),
    ]
    read = read_file(
        tmp_path, encode_csv(rows), "leads", landing, constants={"lead_status_id": "new"}
    )
    assert {
        "first_name": "Sarah",
        "last_name": "St. John",
        "company_name": "Wren",
        "job_title": "HR",
        "email": "s@x.example",
        "lead_status_id": "s1",
    } == read.values()


@pytest.mark.parametrize(
    ("resource", "heading"),
    [
        *(("candidates", each) for each in ("Unwilling to Relocate", "Unavailable From")),
        *(("candidates", each) for each in ("Manager Email", "Emergency Contact Phone")),
        *(("candidates", each) for each in ("Company Name", "# Employees", "Ex-employer")),
        *(("jobs", each) for each in ("Salary Low", "Salary Bottom", "Unpublished")),
        *(("companies", each) for each in ("Company URL", "Founder", "Previous Name")),
    ],
)
def test_no_field_is_suggested_for_a_heading_that_turns_or_narrows_it(
    resource: str, heading: str
) -> None:
    (left,) = map_headings([heading], make_target(resource)).unmapped
    assert () == left.suggestions


def test_a_file_that_is_no_workbook_is_refused_with_the_next_step(tmp_path: Path) -> None:
    book = Workbook()
    content = io.BytesIO()
    book.save(content)
    for broken in (b"PK\x03\x04xl/workbook.xml", content.getvalue()[:-200]):
        path = tmp_path / "broken.xlsx"
        path.write_bytes(broken)
        with pytest.raises(SpreadsheetError) as refused:
            open_table(path)
        assert "save" in refused.value.action


@pytest.mark.parametrize(("cell", "codes"), [("0/0/00", []), ("2 May", ["columns_lost"])])
def test_an_unknown_column_is_a_question_only_if_it_has_values(
    tmp_path: Path, cell: str, codes: list[str]
) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(encode_csv([(*HEAD, "Anniversary"), (*ANN, cell)]))
    table = open_table(path)
    columns = map_headings(table.headings, make_target())
    assert codes == [each.code for each in ask_about_lost_columns(table, columns)]

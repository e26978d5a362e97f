"""Clear cells are read exactly, and unclear ones are rejected with a reason."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import pytest

from connector.spreadsheet.cells import AS_WRITTEN, CellOptions, cell_reader
from connector.spreadsheet.problems import (
    PROBLEMS,
    Amount,
    Cell,
    CellError,
    ValueWithNotes,
    visible_text,
)
from connector.spreadsheet.target_columns import TargetColumn
from tests.spreadsheet.meaning.sheet import make_target

BRITISH = CellOptions(date_format="DD/MM/YYYY")
GERMAN = CellOptions(decimal=",")
BRITISH_NUMBERS = CellOptions(region="GB")
LONDON = CellOptions(timezone="Europe/London")
WHOLE = CellOptions(whole_numbers=True)


def find_column(name: str, resource: str = "candidates") -> TargetColumn:
    """Return the column with this name of a push that creates records."""
    return next(each for each in make_target(resource).columns if each.name == name)


def read_cell(name: str, cell: Cell, options: CellOptions = AS_WRITTEN) -> Any:
    """Return the value read from a cell. `name` is a candidate's field or `resource.field`."""
    resource, _, field = name.rpartition(".")
    value = cell_reader(find_column(field, resource or "candidates"), "create", options).read(cell)
    return value.value if isinstance(value, ValueWithNotes) else value


def read_refused(name: str, cell: Cell, options: CellOptions = AS_WRITTEN) -> CellError:
    """Return the error of reading a cell that must be rejected."""
    with pytest.raises(CellError) as caught:
        read_cell(name, cell, options)
    return caught.value


KEPT: list[tuple[str, Cell, Any]] = [
    *(("notes", text, text) for text in ("00123", "+44 20 7946 0123", "TRUE", "Nil by Mouth")),
    *(("notes", text, text) for text in ("1-2", "03/04/2025", "💪 👩‍👩‍👧", "A-Z")),
    (
        "notes",
        "\u05e9\u05dc\u05d5\u05dd \u200f\u0628\u062e",
        "\u05e9\u05dc\u05d5\u05dd \u200f\u0628\u062e",
    ),
    *(("notes", text, text) for text in ("=1+1", "1E5", "#hash", "a\nb\tc", "é", "e\u0301", "'a")),
    ("notes", "  outer blanks go \u00a0", "outer blanks go"),
    ("notes", 1234, "1234"),
    ("notes", 5.0, "5"),
    *(("phone", text, text) for text in ("+44 20 7946 0123", "0161 496-0123 ext. 5")),
    *(("jobs.reference_code", text, text) for text in ("00123", "1E5", "A/7")),
    *(("notes", text, None) for text in ("NA", "null", "-", "k.A.", "néant", "n.v.t.")),
    *(("expected_salary", text, 45000) for text in ("45 000", "45k", "45'000", "45000 p.a.")),
    ("expected_salary", "1,250,000", 1250000),
    ("expected_salary", "45000,50", 45000.5),
    ("expected_salary", "£45,000.00", Amount(45000.0, "GBP")),
    ("expected_salary", "EUR 45000", Amount(45000, "EUR")),
    ("companies.fee_percentage", "17,5 %", 17.5),
    ("email", "an\u200bna@b.example", "anna@b.example"),
    ("email", "Anna <a@b.example>", "a@b.example"),
    ("phone", "0161\u200b496 0123", "0161496 0123"),
    ("employment_type", "Perm", "permanent"),
    *(("date_of_birth", text, "1985-12-25") for text in ("25/12/1985", "25. Dez. 1985")),
    *(("email", text, text) for text in ("a@b.example", "o'brien+x@b.example")),
    ("email", "zoë@bücher.example", "zoë@bücher.example"),
    ("portfolio_url", "HTTPS://a.example/b?c=d&e=é", "HTTPS://a.example/b?c=d&e=é"),
    ("salary_currency", "gbp", "GBP"),
    ("bookings.timezone", "Europe/London", "Europe/London"),
    ("expected_salary", "45000", 45000),
    ("expected_salary", "+45000.5", 45000.5),
    ("expected_salary", "-0.125", -0.125),
    ("expected_salary", "1234.567", 1234.567),
    ("expected_salary", 45000.25, 45000.25),
    ("rating", "007", 7),
    ("rating", "4.0", 4),
    ("rating", 4.0, 4),
    *(("willing_to_relocate", text, True) for text in ("true", "Yes", "Y", "1", "TRUE", True, 1)),
    *(("willing_to_relocate", text, False) for text in ("FALSE", "no", "n", "0", False, 0.0)),
    ("date_of_birth", "1985-04-03", "1985-04-03"),
    ("date_of_birth", "1985-04-03T00:00:00Z", "1985-04-03"),
    ("date_of_birth", date(1985, 4, 3), "1985-04-03"),
    ("date_of_birth", datetime(1985, 4, 3), "1985-04-03"),
    ("bookings.start_datetime", "2025-04-03T09:30Z", "2025-04-03T09:30:00Z"),
    ("bookings.start_datetime", "2025-04-03 11:30:00 +0200", "2025-04-03T09:30:00Z"),
    *(("employment_type", text, "permanent") for text in ("permanent", "Permanent", " PERMANENT ")),
    ("employment_type", "Contract to perm", "contract_to_perm"),
    ("employment_type", "contract-to-PERM", "contract_to_perm"),
    *(("companies.company_size", text, "1-10") for text in ("1-10", "1 \u2013 10", "1_10")),
    ("assigned_to", "6f9c-11_A", "6f9c-11_A"),
    ("assigned_to", 1001, "1001"),
]


@pytest.mark.parametrize(("field", "cell", "value"), KEPT, ids=str)
def test_clear_values_are_read_with_their_type(field: str, cell: Cell, value: Any) -> None:
    found = read_cell(field, cell)

    assert value == found
    assert type(value) is type(found)


DECLARED: list[tuple[str, Cell, CellOptions, Any]] = [
    ("date_of_birth", "03/04/1985", BRITISH, "1985-04-03"),
    ("date_of_birth", "3/4/1985", BRITISH, "1985-04-03"),
    ("date_of_birth", "1985-04-03", BRITISH, "1985-04-03"),
    ("date_of_birth", "04/03/1985", CellOptions(date_format="MM/DD/YYYY"), "1985-04-03"),
    ("date_of_birth", "3. April 1985", CellOptions(date_format="D. MMM YYYY"), "1985-04-03"),
    ("date_of_birth", "03-apr-1985", CellOptions(date_format="DD-MMM-YYYY"), "1985-04-03"),
    ("bookings.start_datetime", "2025-04-03 09:30", LONDON, "2025-04-03T08:30:00Z"),
    ("bookings.start_datetime", "2025-01-03T09:30", LONDON, "2025-01-03T09:30:00Z"),
    ("bookings.start_datetime", datetime(2025, 7, 1, 9, 30), LONDON, "2025-07-01T08:30:00Z"),
    (
        "bookings.start_datetime",
        "03/04/2025 09:30",
        CellOptions(date_format="DD/MM/YYYY hh:mm", timezone="UTC"),
        "2025-04-03T09:30:00Z",
    ),
    ("expected_salary", "1.250.000,50", GERMAN, 1250000.5),
    ("date_of_birth", "3/4/85", CellOptions(date_format="dmy", century=1930), "1985-04-03"),
    ("date_of_birth", "3/4/85", CellOptions(date_format="mdy", century=1930), "1985-03-04"),
    ("expected_salary", "45,5", GERMAN, 45.5),
    ("expected_salary", "45,000", GERMAN, 45.0),
    ("expected_salary", "45.000", CellOptions(decimal="."), 45.0),
    ("rating", "4,0", GERMAN, 4),
    ("phone", 447700900123, WHOLE, "447700900123"),
    ("employment_type", "perm", CellOptions(values={"Perm": "permanent"}), "permanent"),
    ("notes", "N/A", CellOptions(values={"N/A": ""}), None),
    ("rating", "good", CellOptions(values={"Good": "4"}), 4),
]


@pytest.mark.parametrize(("field", "cell", "options", "value"), DECLARED, ids=str)
def test_values_are_read_with_the_declared_options(
    field: str, cell: Cell, options: CellOptions, value: Any
) -> None:
    assert value == read_cell(field, cell, options)


REFUSED: list[tuple[str, Cell, CellOptions, str, str]] = [
    *(
        (name, "4.479E+11", AS_WRITTEN, "scientific", "format the column as text")
        for name in ("phone", "notes")
    ),
    ("jobs.reference_code", "1E+05", AS_WRITTEN, "scientific", "format the column as text"),
    ("expected_salary", "4.5E4", AS_WRITTEN, "scientific", "format the column as text"),
    ("notes", "########", AS_WRITTEN, "spreadsheet_error", "column wider"),
    ("notes", "a\0b", AS_WRITTEN, "control_character", "enter the text again"),
    ("email", "\u202eanna@b.example", AS_WRITTEN, "hidden_character", "anna@b.example"),
    ("email", "an\tna@b.example", AS_WRITTEN, "hidden_character", "anna@b.example"),
    ("email", "a@b.example, c@d.example", AS_WRITTEN, "several_emails", "a@b.example"),
    ("email", "a@b.example/c@d.example", AS_WRITTEN, "several_emails", "a@b.example"),
    ("email", "anna at b.example", AS_WRITTEN, "email_format", "anna@example.com"),
    ("email", 12.0, AS_WRITTEN, "email_format", "anna@example.com"),
    ("phone", 447700900123, AS_WRITTEN, "number_in_text", "format"),
    ("jobs.reference_code", 123, AS_WRITTEN, "number_in_text", "format"),
    ("phone", 4.4770090012345e17, WHOLE, "not_text", "enter"),
    ("notes", 3.5, AS_WRITTEN, "not_text", "enter"),
    ("notes", True, AS_WRITTEN, "not_text", "enter"),
    ("notes", date(2025, 2, 1), AS_WRITTEN, "not_text", "enter"),
    ("notes", time(9, 30), AS_WRITTEN, "not_text", "enter"),
    ("companies.company_size", datetime(2025, 1, 10), AS_WRITTEN, "not_text", "enter"),
    ("employment_type", "permanant", AS_WRITTEN, "unknown_value", "permanent"),
    ("employment_type", "zebra", AS_WRITTEN, "unknown_value", "allowed"),
    ("companies.company_size", "110", AS_WRITTEN, "unknown_value", ""),
    ("portfolio_url", "example.com", AS_WRITTEN, "url_format", "https://example.com"),
    ("portfolio_url", "javascript:alert(1)", AS_WRITTEN, "url_format", "Enter"),
    ("salary_currency", "$", AS_WRITTEN, "currency_format", "GBP"),
    ("email", "ann lee@people.example", AS_WRITTEN, "email_format", "lee@people.example"),
    ("email", "ann@people.example 07700 900123", AS_WRITTEN, "email_format", "ann@people"),
    ("email", "mailto:ann@people.example?subject=x", AS_WRITTEN, "email_format", "ann@people"),
    ("phone", "0000000000", AS_WRITTEN, "phone_format", "+44"),
    ("phone", "01234", CellOptions(region="GB"), "phone_format", "+44"),
    ("city", "''", AS_WRITTEN, "ditto", "itself"),
    ("current_company", "Ditto", AS_WRITTEN, "ditto", "itself"),
    ("expected_salary", "350 per day", AS_WRITTEN, "other_period", "per year"),
    ("expected_day_rate", "45000 p.a.", AS_WRITTEN, "other_period", "per day"),
    ("expected_day_rate", "£25/hr", AS_WRITTEN, "other_period", "per day"),
    ("notice_period_days", "2 years", AS_WRITTEN, "other_period", "days"),
    ("notice_period_days", "3 Monate", AS_WRITTEN, "month_length", "days"),
    ("notice_period_days", "sofort", AS_WRITTEN, "immediately", "immediately"),
    ("available_from", "dès que possible", AS_WRITTEN, "immediately", "immediately"),
    ("date_of_birth", "asap", AS_WRITTEN, "date_format", "date"),
    ("expected_day_rate", "1200 per week", AS_WRITTEN, "other_period", "per day"),
    ("rating", "4 years", AS_WRITTEN, "other_period", "alone"),
    ("bookings.timezone", "../etc/passwd", AS_WRITTEN, "timezone_format", "Europe/London"),
    ("bookings.timezone", "London", AS_WRITTEN, "timezone_format", "Europe/London"),
    ("assigned_to", "Anna Berg", AS_WRITTEN, "id_format", "map"),
    ("assigned_to", "../x", AS_WRITTEN, "id_format", "map"),
    ("expected_salary", "45,000", AS_WRITTEN, "ambiguous_number", "45000"),
    ("expected_salary", "45.000", AS_WRITTEN, "ambiguous_number", "45000"),
    ("expected_salary", "45000.50", GERMAN, "decimal_sign", "comma"),
    *(("phone", text, AS_WRITTEN, "phone_format", "+44") for text in ("call agent", "00123")),
    *(("phone", text, AS_WRITTEN, "number_in_text", "text") for text in ("77009.0", "447,700,900")),
    ("phone", "0161 4960123 / 0161 4960124", AS_WRITTEN, "several_phones", "0161 4960123"),
    ("phone", "0161 49601234567", BRITISH_NUMBERS, "phone_format", "+44"),
    ("date_of_birth", "25/12/85", AS_WRITTEN, "two_digit_year", "four"),
    ("expected_salary", "12%", AS_WRITTEN, "percent_sign", "amount"),
    ("expected_salary", "45-50k", AS_WRITTEN, "not_a_number", "one number"),
    ("expected_salary", "٤٥", AS_WRITTEN, "not_a_number", "digits"),
    ("expected_salary", True, AS_WRITTEN, "not_a_number", "number"),
    ("expected_salary", float("nan"), AS_WRITTEN, "not_a_number", "number"),
    ("rating", "4.5", AS_WRITTEN, "not_whole", "round"),
    ("rating", 4.5, AS_WRITTEN, "not_whole", "round"),
    ("rating", "5.000", AS_WRITTEN, "ambiguous_number", "5000"),
    ("rating", "1" * 30, AS_WRITTEN, "too_large", "18"),
    ("willing_to_relocate", "perhaps", AS_WRITTEN, "not_true_or_false", "yes or no"),
    ("willing_to_relocate", 2, AS_WRITTEN, "not_true_or_false", "yes or no"),
    ("date_of_birth", "03/04/1985", AS_WRITTEN, "ambiguous_date", "1985-04-03 or 1985-03-04"),
    ("date_of_birth", "25/13/1985", AS_WRITTEN, "no_such_date", "existing"),
    ("date_of_birth", "1985-02-30", AS_WRITTEN, "no_such_date", "existing"),
    ("date_of_birth", "30/02/1985", BRITISH, "no_such_date", "existing"),
    ("date_of_birth", "0085-04-03", AS_WRITTEN, "no_such_date", "year"),
    ("date_of_birth", "03/04/85", BRITISH, "date_format", "DD/MM/YYYY"),
    ("date_of_birth", "1985-04-03T14:30", AS_WRITTEN, "time_in_date", "1985-04-03"),
    ("date_of_birth", datetime(1985, 4, 3, 14, 30), AS_WRITTEN, "time_in_date", "1985-04-03"),
    ("date_of_birth", 31140, AS_WRITTEN, "date_format", "Format"),
    ("date_of_birth", "31140", AS_WRITTEN, "date_format", "2026-05-01"),
    ("bookings.start_datetime", "2025-04-03", AS_WRITTEN, "time_missing", "T09:30"),
    ("bookings.start_datetime", date(2025, 4, 3), AS_WRITTEN, "time_missing", "T09:30"),
    ("bookings.start_datetime", "2025-04-03 09:30", AS_WRITTEN, "no_time_zone", "UTC"),
    ("bookings.start_datetime", datetime(2025, 4, 3, 9), AS_WRITTEN, "no_time_zone", "UTC"),
    ("bookings.start_datetime", "2025-03-30 01:30", LONDON, "clock_change", "UTC"),
    ("bookings.start_datetime", "2025-10-26 01:30", LONDON, "clock_change", "UTC"),
    ("bookings.start_datetime", "2025-04-03T25:00Z", AS_WRITTEN, "no_such_date", "existing"),
]


@pytest.mark.parametrize(("field", "cell", "options", "code", "fix"), REFUSED, ids=str)
def test_unclear_or_damaged_values_are_rejected_with_a_fix(
    field: str, cell: Cell, options: CellOptions, code: str, fix: str
) -> None:
    error = read_refused(field, cell, options)

    assert code == error.problem().code
    assert code in PROBLEMS
    assert fix.lower() in str(error.problem().fix).lower()
    assert error.problem().message.endswith((".", "?"))


def test_invisible_characters_are_named_and_made_visible() -> None:
    error = read_refused("email", "an\u200fna@b.example")

    assert "right-to-left mark (U+200F)" in error.problem().message
    assert "an<U+200B>na@b.example" == visible_text("an\u200bna@b.example")
    assert 80 == len(visible_text("x" * 500))


@pytest.mark.parametrize("text", ["DD/MM", "DDMMYYYY", "YYYY-MM-DD-MM", "%d/%m/%Y", "DD/MM/YY", ""])
def test_date_formats_without_day_month_or_year_are_rejected(text: str) -> None:
    if not text:
        assert "1985-04-03" == read_cell(
            "date_of_birth", "1985-04-03", CellOptions(date_format=text)
        )
        return
    with pytest.raises(ValueError, match=r"."):
        cell_reader(find_column("date_of_birth"), "create", CellOptions(date_format=text))


IN_DAYS = CellOptions(month_days=30, immediately="today")


@pytest.mark.parametrize(
    ("text", "days"),
    [
        *(("4 weeks", 28), ("6 Wochen", 42), ("2 semaines", 14), ("1 week", 7), ("90 Tage", 90)),
        *(("3 Monate", 90), ("1 mois", 30), ("sofort", 0), ("immédiat", 0), ("ASAP", 0)),
    ],
)
def test_a_duration_is_read_in_days(text: str, days: int) -> None:
    assert days == read_cell("notice_period_days", text, IN_DAYS)


def test_immediately_is_read_as_today_or_empty() -> None:
    assert date.today().isoformat() == read_cell("available_from", "sofort", IN_DAYS)
    assert read_cell("available_from", "sofort", CellOptions(immediately="empty")) is None

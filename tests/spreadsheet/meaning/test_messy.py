"""A messy file of candidates: the check finds exactly the planted problems."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from connector.spreadsheet.check import CheckedRow
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.problems import PROBLEMS
from tests.seeds import seeds
from tests.spreadsheet.meaning.messy import FLAWS, HEADINGS, UNKNOWN, MessyFile, make_messy_file
from tests.spreadsheet.meaning.sheet import (
    InMemoryLanding,
    ValuesTable,
    check_table,
    make_landing,
    make_target,
    parse_csv,
)

LANDED = tuple(f"landed{n}@people.example" for n in range(20))
ROWS = 600


@pytest.fixture(scope="module", params=seeds(3, first=1))
def messy_file(request: pytest.FixtureRequest) -> MessyFile:
    """A messy file with all problems, generated from one of the seeds."""
    return make_messy_file(request.param, ROWS, existing_emails=LANDED)


def landing() -> InMemoryLanding:
    """A landing with the existing candidates of the messy files."""
    return make_landing(
        candidates=[{"id": f"c{n}", "email": email} for n, email in enumerate(LANDED)]
    )


def check_rows(made: ValuesTable) -> list[CheckedRow]:
    """Return the rows of the table after a check against this landing."""
    return check_table(made, make_target(landing=landing()), landing())


def test_the_check_finds_exactly_the_planted_problems(messy_file: MessyFile) -> None:
    found = check_rows(parse_csv(messy_file.content, ";"))
    reported = [(each.row.number, str(p.column), p.code) for each in found for p in each.problems]

    assert [(p.row, p.column, p.code) for p in messy_file.planted] == sorted(reported)
    assert messy_file.filled_row_count == len(found)
    for each in found:
        is_bad = each.row.number in messy_file.bad_rows
        assert is_bad == (each.outcome in ("invalid", "duplicate"))
        assert is_bad or each.task is not None


def test_a_corrected_file_has_no_problem(messy_file: MessyFile) -> None:
    found = check_rows(ValuesTable(HEADINGS, messy_file.corrected_rows()))

    assert [] == [p for each in found for p in each.problems]
    emails = [str(each.task.fields["email"]) for each in found if each.task]
    assert messy_file.filled_row_count == len(set(emails)) == len(emails)
    assert not set(emails) & set(LANDED)


def test_the_messy_file_generator_is_reproducible_and_varied() -> None:
    made = make_messy_file(7, 3000, existing_emails=LANDED)
    codes = {each.code for each in made.planted}

    assert made == make_messy_file(7, 3000, existing_emails=LANDED)
    assert made.content != make_messy_file(8, 3000, existing_emails=LANDED).content
    assert 0.10 < len(made.bad_rows) / made.filled_row_count < 0.14
    assert len(codes) >= 15
    assert codes <= set(PROBLEMS)
    assert {code for _, code, _ in FLAWS} | {"duplicate_in_file", "duplicate_in_warehouse"} == codes
    assert made.content.startswith(b"\xef\xbb\xbf")
    assert made.filled_row_count < len(made.rows) <= 3000 + len(FLAWS)


def test_unknown_columns_are_reported_as_unmapped() -> None:
    columns = map_headings(HEADINGS, make_target())
    unmapped: Mapping[str, str] = {each.heading: each.reason for each in columns.unmapped}

    assert list(UNKNOWN) == list(unmapped)
    assert len(HEADINGS) - len(UNKNOWN) == len(columns.columns)
    assert () == columns.missing

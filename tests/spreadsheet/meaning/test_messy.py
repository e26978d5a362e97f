"""A messy file of candidates: the check finds exactly the planted problems."""

from __future__ import annotations

import pytest

from connector.spreadsheet.row_reader import CheckedRow
from tests.seeds import seeds
from tests.spreadsheet.meaning.messy import HEADINGS, MessyFile, make_messy_file
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

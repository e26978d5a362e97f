"""A messy file of candidates: the check finds exactly what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from connector.spreadsheet.check import CheckedRow
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.problems import PROBLEMS
from tests.seeds import seeds
from tests.spreadsheet.meaning.messy import FLAWS, HEADINGS, UNKNOWN, MessyFile, messy
from tests.spreadsheet.meaning.sheet import (
    DeclaredLanding,
    ValuesTable,
    aimed,
    checked,
    from_csv,
    landing,
)

LANDED = tuple(f"landed{n}@people.example" for n in range(20))
ROWS = 600


@pytest.fixture(scope="module", params=seeds(3, first=1))
def file(request: pytest.FixtureRequest) -> MessyFile:
    return messy(request.param, ROWS, landed=LANDED)


def said() -> DeclaredLanding:
    """A landing that has the candidates who come again."""
    return landing(candidates=[{"id": f"c{n}", "email": email} for n, email in enumerate(LANDED)])


def outcome(made: ValuesTable) -> list[CheckedRow]:
    """Every row of the table after the check."""
    return checked(made, aimed(said=said()), said())


def test_finds_exactly_the_planted_problems(file: MessyFile) -> None:
    found = outcome(from_csv(file.content, ";"))
    told = [(each.row.number, str(p.column), p.code) for each in found for p in each.problems]

    assert [(p.row, p.column, p.code) for p in file.planted] == sorted(told)
    assert file.people == len(found)
    for each in found:
        is_bad = each.row.number in file.bad_rows
        assert is_bad == (each.outcome in ("invalid", "duplicate"))
        assert is_bad or each.task is not None


def test_corrected_file_has_nothing_wrong(file: MessyFile) -> None:
    found = outcome(ValuesTable(HEADINGS, file.corrected_rows()))

    assert [] == [p for each in found for p in each.problems]
    emails = [str(each.task.fields["email"]) for each in found if each.task]
    assert file.people == len(set(emails)) == len(emails)
    assert not set(emails) & set(LANDED)


def test_generator_keeps_its_word() -> None:
    made = messy(7, 3000, landed=LANDED)
    codes = {each.code for each in made.planted}

    assert made == messy(7, 3000, landed=LANDED)
    assert made.content != messy(8, 3000, landed=LANDED).content
    assert 0.10 < len(made.bad_rows) / made.people < 0.14
    assert len(codes) >= 15
    assert codes <= set(PROBLEMS)
    assert {code for _, code, _ in FLAWS} | {"duplicate_in_file", "duplicate_in_warehouse"} == codes
    assert made.content.startswith(b"\xef\xbb\xbf")
    assert made.people < len(made.rows) <= 3000 + len(FLAWS)


def test_unknown_columns_are_told() -> None:
    columns = map_headings(HEADINGS, aimed())
    unmapped: Mapping[str, str] = {each.heading: each.reason for each in columns.unmapped}

    assert list(UNKNOWN) == list(unmapped)
    assert len(HEADINGS) - len(UNKNOWN) == len(columns.columns)
    assert () == columns.missing

"""The documents for those who query: equal to the declarations, and to what comes back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from connector.cli.demo import COUNTS
from tests.publishing.demonstration import publish_agency
from tests.publishing.questions import PAGE, answered, questions
from tests.support.agency import reading

DATA = PAGE.parent / "DATA.md"


def test_every_column_has_a_meaning() -> None:
    rows = [line.split(" | ") for line in DATA.read_text(encoding="utf-8").splitlines()]

    assert [] == [row for row in rows if row[0].startswith("| `") and not row[2].strip(" |")]


@pytest.mark.slow
def test_questions_are_answered_as_the_page_says(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    file = publish_agency(tmp_path, COUNTS)
    with reading(file) as connection:
        kinds = [str(each[1]) for q in questions(page) for each in connection.sql(q).description]
    assert not {"HUGEINT", "DECIMAL(38,0)"} & {*kinds}
    assert [] == re.findall(r"20\d\d", " ".join(questions(page)))
    assert "| user " not in page

    assert questions(page)
    assert page == answered(page, file), "run python -m tests.publishing.questions"

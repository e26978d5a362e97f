"""The documents for those who query: equal to the declarations, and to what comes back."""

from __future__ import annotations

from pathlib import Path

from connector.cli.demo import COUNTS
from tests.publishing.demonstration import publish_agency
from tests.publishing.questions import PAGE, answered, questions

DATA = PAGE.parent / "DATA.md"


def test_every_column_has_a_meaning() -> None:
    """`docs/DATA.md` says of every table and column what it means."""
    rows = [line.split(" | ") for line in DATA.read_text(encoding="utf-8").splitlines()]

    assert [] == [row for row in rows if row[0].startswith("| `") and not row[2].strip(" |")]


def test_ten_questions_are_answered_as_the_page_says(tmp_path: Path) -> None:
    """Every query of the page runs on the demonstration's data and gives what stands below it."""
    page = PAGE.read_text(encoding="utf-8")
    file = publish_agency(tmp_path, COUNTS)

    assert 10 == len(questions(page))
    assert page == answered(page, file), "run python -m tests.publishing.questions"

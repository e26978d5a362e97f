"""The documents for those who query: equal to the declarations, and to what comes back."""

from __future__ import annotations

from pathlib import Path

from connector.cli.demo import COUNTS
from connector.publishing import dictionary
from tests.publishing.demonstration import publish_agency
from tests.publishing.questions import PAGE, answered, questions

DATA = PAGE.parent / "DATA.md"


def test_the_dictionary_is_that_of_the_declarations() -> None:
    """`docs/DATA.md` has every table and column with its type and text, and nothing else."""
    text = dictionary.text()
    blank = [line for line in text.splitlines() if line.startswith("| `") and "|  |" in line]

    assert text == DATA.read_text(encoding="utf-8"), f"run {dictionary.COMMAND}"
    assert [] == [line for line in blank if line.split(" | ")[2].strip(" |") == ""]


def test_ten_questions_are_answered_as_the_page_says(tmp_path: Path) -> None:
    """Every query of the page runs on the demonstration's data and gives what stands below it."""
    page = PAGE.read_text(encoding="utf-8")
    file = publish_agency(tmp_path, COUNTS)

    assert 10 == len(questions(page))
    assert page == answered(page, file), "run python -m tests.publishing.questions"

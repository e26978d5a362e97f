"""The documents for analysts agree with the declarations and with the results of their queries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from connector.cli.demo import COUNTS
from generate.data_page import data_page
from tests.models.demonstration import publish_generated_records
from tests.models.questions import PAGE, add_results, parse_queries
from tests.support.agency import open_read_only


def test_every_column_in_the_reference_has_a_meaning() -> None:
    (text,) = data_page().values()
    rows = [line.split(" | ") for line in text.splitlines()]

    assert len(rows) > 1_000

    assert [] == [row for row in rows if row[0].startswith("| `") and not row[2].strip(" |")]


@pytest.mark.slow
def test_documented_queries_return_the_documented_results(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    file = publish_generated_records(tmp_path, COUNTS)
    with open_read_only(file) as connection:
        kinds = [
            str(each[1]) for q in parse_queries(page) for each in connection.sql(q).description
        ]
    assert not {"HUGEINT", "DECIMAL(38,0)"} & {*kinds}
    assert [] == re.findall(r"20\d\d", " ".join(parse_queries(page)))
    assert "| user " not in page

    assert parse_queries(page)
    assert page == add_results(page, file), "run python -m tests.models.questions"

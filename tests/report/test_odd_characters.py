"""Control characters in names do not break charts or the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from connector.report import charts
from connector.report.figure import Chart
from connector.report.page import SECTIONS
from tests.report.conftest import Change, render_page
from tests.tiers import first_fast

ODD = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x202E, 0xFFFE, 0xFFFF)]
"""Control characters, and others that XML or terminals do not support."""

FORBIDDEN = [
    each for each in ODD if each not in "\t\n\r" and (ord(each) < 32 or ord(each) > 0xFFF0)
]
"""Characters of `ODD` that XML forbids."""


def make_charts(name: str) -> list[Chart]:
    """Return one chart of every kind whose only label is `name`."""
    row: dict[str, Any] = {"label": name, "value": 3, "current_p50_days": 2}
    rows = [{**row, **{f"p{part}_days": part for part in (10, 25, 50, 75, 90)}}]
    return [
        charts.bar_chart(
            rows, "label", "value", unit="things", text=lambda each: str(each["label"])
        ),
        charts.stacked_bar_chart(rows, "label", {"value": "a part"}, unit="things"),
        charts.stacked_bar_chart(
            rows, "label", {"value": "a part"}, unit="things", is_upright=True
        ),
        charts.column_chart(rows, "label", "value", unit="things", across="month"),
        charts.range_chart(rows, "label", unit="things"),
    ]


@pytest.mark.parametrize("odd", ODD, ids=lambda each: f"u{ord(each):04x}")
def test_charts_contain_no_control_characters(odd: str) -> None:
    for chart in make_charts(f"Acme{odd}Ltd"):
        texts = json.dumps(chart.specification, ensure_ascii=False)
        escaped = json.dumps(odd)[1:-1]
        if odd != "\n":
            assert odd not in texts
            assert escaped not in texts.replace("\\\\", "")


@pytest.mark.parametrize("odd", FORBIDDEN, ids=lambda each: f"u{ord(each):04x}")
def test_a_chart_with_a_control_character_in_its_name_is_drawn(odd: str) -> None:
    assert "Acme" in charts.render_svg(make_charts(f"Acme{odd}Ltd")[0])


def find_text_fields(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Return table and column of the marts' texts that users fill in and the report reads."""
    read = {mart for section in SECTIONS for each in section.figures for mart in each.marts}
    words = ("name", "title", "about", "source_group", "currency")
    rows = connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() "
        "WHERE schema_name = 'marts' AND data_type = 'VARCHAR'"
    ).fetchall()
    return sorted(each for each in rows if each[0] in read and each[1].endswith(words))


@pytest.mark.parametrize("odd", first_fast(["\x01", "\x1b", "\uffff"]))
def test_the_page_renders_with_control_characters_in_every_text_field(
    change_file: Callable[[Change], Any], odd: str
) -> None:
    fields: list[tuple[str, str]] = []

    def change(connection: duckdb.DuckDBPyConnection) -> None:
        fields.extend(find_text_fields(connection))
        for mart, column in fields:
            if (mart, column) != ("sum_offer_acceptance", "group_name"):
                connection.execute(
                    f"UPDATE marts.{mart} SET {column} = {column} || ? || 'x' "
                    f"WHERE {column} NOT IN ('all')",
                    [odd],
                )

    html = render_page(change_file(change)).html

    assert len(fields) > 10
    assert odd not in html
    assert "</html>" in html

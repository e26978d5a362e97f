"""The first page: its figures equal the marts of the period, and unknown ones are explained."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest

from connector.report.page import ReportPage
from connector.report.period import ReportPeriod, parse_compared_periods, parse_period
from connector.warehouse.published_file import query
from tests.report.conftest import Change, render_page
from tests.report.document import Document

TODAY = date(2026, 3, 6)


def query_value(file: Path, sql: str) -> Any:
    """Return the only value of a query on the file."""
    return query(file, sql).rows[0][0]


@pytest.mark.parametrize(
    ("text", "begins", "ends", "name"),
    [
        ("last-month", "2026-02-01", "2026-02-28", "February 2026"),
        ("this-month", "2026-03-01", "2026-03-06", "1 to 6 March 2026"),
        ("this-quarter", "2026-01-01", "2026-03-06", "1 January to 6 March 2026"),
        ("last-quarter", "2025-10-01", "2025-12-31", "Q4 2025"),
        ("last-year", "2025-01-01", "2025-12-31", "2025"),
        ("2024-02", "2024-02-01", "2024-02-29", "February 2024"),
        ("2025-q3", "2025-07-01", "2025-09-30", "Q3 2025"),
        ("2024", "2024-01-01", "2024-12-31", "2024"),
    ],
)
def test_periods_are_parsed_with_begin_end_and_name(
    text: str, begins: str, ends: str, name: str
) -> None:
    period = parse_period(text, TODAY)

    assert (begins, ends, name) == (str(period.begins), str(period.ends), period.name)


def test_compared_periods_are_as_long_as_the_elapsed_period() -> None:
    unfinished = parse_period("2026-03", TODAY)
    names = [each.name for each in parse_compared_periods((), unfinished, TODAY)]
    year = parse_compared_periods(
        ("previous", "year-before", "2023"), parse_period("2025", TODAY), TODAY
    )

    assert ["1 to 6 February 2026", "1 to 6 March 2025"] == names
    assert ["2024", "2023"] == [each.name for each in year]
    assert "2026-02-28" == str(ReportPeriod(date(2026, 2, 1), 1, days=31).ends)


def test_figures_of_a_period_equal_the_counts_in_the_marts(published_file: Path) -> None:
    page = render_page(published_file, "2026-Q1", ("previous",))
    results = {each.declaration.key: each for each in page.front.figures}
    days = {"now": "'2026-01-01' AND '2026-03-06'", "before": "'2025-10-01' AND '2025-12-04'"}
    counted = {
        "placements": "marts.fct_placements WHERE is_placement AND placed_on",
        "interviews": "marts.fct_interviews WHERE outcome = 'held' AND start_date",
        "candidates_added": "marts.fct_pipeline_candidates WHERE created_at::DATE",
        "jobs_opened": "marts.fct_time_to_fill WHERE opened_on",
    }

    for key, sql in counted.items():
        what = "DISTINCT job_id" if key == "jobs_opened" else "*"
        now, before = (
            query_value(published_file, f"SELECT count({what}) FROM {sql} BETWEEN {each}")
            for each in days.values()
        )
        (other,) = results[key].compared
        assert now == results[key].reading.value, key
        assert other.reading.value in (before, None), key
    assert (results["placements"].reading.value or 0) > 0


def test_figures_of_today_equal_the_counts_in_the_marts(published_file: Path) -> None:
    results = {
        each.declaration.key: each.reading
        for each in render_page(published_file, "this-month").front.figures
    }

    assert results["open_jobs"].value == query_value(
        published_file, "SELECT count(*) FROM marts.fct_pipeline_jobs"
    )
    assert results["active_candidates"].value == query_value(
        published_file, "SELECT count(*) FROM marts.fct_pipeline_candidates WHERE is_active"
    )
    assert results["contractors"].value == query_value(
        published_file,
        "SELECT count(DISTINCT candidate_id) FROM marts.fct_contracts "
        "WHERE contract_state = 'running'",
    )


def test_a_change_is_shown_with_the_compared_value(change_file: Callable[[Change], Path]) -> None:
    def change(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("UPDATE marts.fct_bookings SET created_date = '2020-01-01'")
        connection.execute("CREATE TABLE one AS FROM marts.fct_placements LIMIT 1")
        connection.execute("DELETE FROM marts.fct_placements")
        for day, number in (("2026-02-03", 24), ("2026-01-31", 20), ("2025-02-01", 29)):
            connection.execute(
                "INSERT INTO marts.fct_placements SELECT one.* REPLACE "
                f"(DATE '{day}' AS placed_on, NULL AS fee, NULL AS reporting_fee) "
                f"FROM one, range({number})"
            )

    page = render_page(change_file(change))
    current, lines = Document.parse(page.html).read_key_figures()["Placements agreed"]

    assert "24" == current
    assert "Jan 2026 20 +4, +20% | Feb 2025 29 −5, −17%" in lines  # noqa: RUF001 # a minus sign
    assert (
        "no placement has a known fee"
        in Document.parse(page.html).read_key_figures()["Placement fees (known)"][1]
    )


def test_unknown_figures_are_explained_and_show_no_change(
    change_file: Callable[[Change], Path],
) -> None:
    def change(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("UPDATE marts.fct_bookings SET created_date = '2026-01-10'")
        connection.execute(
            "UPDATE marts.fct_pipeline_candidates SET created_at = '2026-01-20 12:00:00+00'"
        )
        connection.execute("DELETE FROM marts.fct_pipeline_days WHERE day < '2026-02-01'")

    file = change_file(change)
    first = Document.parse(
        render_page(file, "2026-01", ("2025-12", "2026-02")).html
    ).read_key_figures()
    later = Document.parse(render_page(file, "2026-02", ("2026-01",)).html).read_key_figures()
    before = Document.parse(render_page(file, "2025-12").html)

    assert (
        "no data before 10 January 2026 | Dec 2025 not known | Feb 2026"
        in first["Candidates added"][1]
    )
    assert not any(sign in first["Candidates added"][1] for sign in "+±−")  # noqa: RUF001
    assert later["Candidates added"][1].endswith("Jan 2026 not known")
    assert ("–", "no data before 1 February 2026") == (  # noqa: RUF001 # a dash as wide as a digit
        first["Active candidates"][0],
        first["Active candidates"][1].partition(" |")[0],
    )
    assert {"–"} == {shown for shown, _ in before.read_key_figures().values()}  # noqa: RUF001


def test_fees_without_an_exchange_rate_are_not_added(change_file: Callable[[Change], Path]) -> None:
    def change(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("CREATE TABLE one AS FROM marts.fct_placements LIMIT 1")
        connection.execute("DELETE FROM marts.fct_placements")
        for day, code in (
            ("2026-02-03", "'EUR'"),
            ("2026-02-04", "'CHF'"),
            ("2026-01-05", "'EUR'"),
        ):
            connection.execute(
                "INSERT INTO marts.fct_placements SELECT * REPLACE "
                f"(DATE '{day}' AS placed_on, {code} AS currency, 1500 AS fee, "
                "NULL AS reporting_fee) FROM one"
            )
        connection.execute(
            "INSERT INTO marts.fct_placements SELECT * REPLACE (DATE '2026-01-06' AS placed_on, "
            "NULL AS fee, NULL AS reporting_fee) FROM one"
        )

    file = change_file(change)
    shown, lines = Document.parse(render_page(file).html).read_key_figures()[
        "Placement fees (known)"
    ]
    earlier = Document.parse(render_page(file, "2026-01", ("2026-02",)).html).read_key_figures()

    assert "CHF 1,500 EUR 1,500" == shown
    assert (
        "for 2 of 2 placements; no total, because exchange rates are missing | Jan 2026 EUR 1,500 |"
        in lines
    )
    assert ("EUR 1,500", "for 1 of 2 placements | Feb 2026 CHF 1,500, EUR 1,500") == (
        earlier["Placement fees (known)"]
    )


def test_lists_account_for_every_row_of_the_marts(published_file: Path, page: ReportPage) -> None:
    counts = (
        "fct_contracts WHERE ends_within_30_days AND next_booking_id IS NULL AND NOT is_replaced",
        "fct_job_ageing WHERE job_status = 'published' AND days_since_last_booking >= 30",
        "(SELECT DISTINCT consultant_id FROM marts.fct_pipeline_candidates "
        "WHERE stage = 'offer_made')",
    )
    for (_, rows, more), sql in zip(page.front.lists, counts, strict=True):
        source = sql if sql.startswith("(") else f"marts.{sql}"
        assert len(rows) + more == query_value(published_file, f"SELECT count(*) FROM {source}")
    assert any(rows for _, rows, _ in page.front.lists)


def test_timestamps_are_in_the_time_zone_of_the_account(
    change_file: Callable[[Change], Path],
) -> None:
    def change(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("UPDATE sync.publications SET time_zone = 'America/New_York'")

    document = Document.parse(render_page(change_file(change)).html)

    assert "As of 5 March 2026, 19:00 EST" in document.root.text
    assert "Written 8 March 2026, 08:00 EDT" in document.root.text
    proven = {row[5] for row in document.read_table("Loaded records by resource")}
    assert "5 March 2026, 19:00 EST" in proven
    assert " UTC" not in document.root.text


def test_age_bands_without_jobs_are_shown(page: ReportPage) -> None:
    bands = Document.parse(page.html).read_table("Open jobs by age in days")

    assert ["0-14", "15-30", "31-60", "61-90", "over 90"] == [row[0] for row in bands]
    assert {"0"} < {row[3] for row in bands}


def test_the_summary_names_no_database_table(page: ReportPage) -> None:
    document = Document.parse(page.html)
    front = next(e for e in document.root.descendants() if e.attributes.get("class") == "front")
    classes = ("finding", "coverage", "about")
    sentences = [
        e.text for e in document.root.descendants("p") if e.attributes.get("class") in classes
    ]

    assert "_" not in front.text
    assert len(sentences) > 20
    named = [each.replace("seeds/lead_statuses.csv", "") for each in sentences]
    assert [] == [each for each in named if "_" in each or " seed " in each]
    assert not any(
        each.descendants("code") and [*each.descendants("code")]
        for each in document.root.descendants("article")
    )

"""The page: its figures equal the marts, and it loads no external resource."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest

from connector.report.page import SECTIONS, ReportPage
from connector.report.published import split_mart_comment
from connector.warehouse.published_file import query
from tests.report.conftest import MARKUP, Change, render_page
from tests.report.document import Document

FIGURES = [figure for section in SECTIONS for figure in section.figures]


def format_number(value: Any) -> str:
    """Format a number without decimals as the report does; None is a dash."""
    return "\u2013" if value is None else f"{value:,.0f}"


def format_days(value: Any) -> str:
    """Format days with one decimal below ten; None is a dash."""
    if value is None:
        return "\u2013"
    return f"{value:.1f}".removesuffix(".0") if value < 10 else f"{value:,.0f}"


def query_rows(file: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query on the file."""
    return list(query(file, sql).rows)


# -- Figures ---------------------------------------------------------------------------------------


TABLES = {
    "Candidates who advanced from each stage to a later one": "SELECT "
    "replace(stage, '_', ' '), entered, advanced, arrived, "
    "in_progress, lost, deleted FROM marts.sum_stage_conversion WHERE group_by = 'all' "
    "ORDER BY stage_order",
    "Leads by their status": "SELECT group_name, leads, converted, lost "
    "FROM marts.sum_lead_conversion WHERE group_by = 'lead_status' ORDER BY leads DESC, group_name",
    "Days in each stage": "SELECT replace(stage, '_', ' '), exits_observed, p10_days, p25_days, "
    "p50_days, p75_days, p90_days FROM marts.sum_time_in_stage "
    "ORDER BY stage_order NULLS LAST, stage",
    "Loaded records by resource": "SELECT replace(resource, '_', ' '), current_rows FROM "
    "marts.data_freshness ORDER BY resource",
}


@pytest.mark.parametrize("caption", TABLES)
def test_each_table_equals_its_mart(published_file: Path, document: Document, caption: str) -> None:
    found = query_rows(published_file, TABLES[caption])
    shown = [row[: len(found[0])] for row in document.read_table(caption)]

    assert any(row[1] for row in found)
    assert shown == [
        [name, *(format_days(v) if isinstance(v, float) else format_number(v) for v in values)]
        for name, *values in found
    ]


def test_leads_with_an_unmapped_status_are_reported(document: Document) -> None:
    figure = document.find_figure("lead_statuses").text

    assert ["New", "Lost", "Won", "unmapped"] == [
        row[0] for row in document.read_table("Leads by their status")
    ]
    assert "5 of 8 leads (62%) have the status New." in figure
    assert "1 of 8 leads (12%) have a status without a name." in figure


def test_the_table_of_content_items_equals_its_mart(document: Document) -> None:
    assert [
        ["Posts", "yes", "3", "2", "1", "2 February 2026", "5 February 2026"],
        ["pages", "no", "0", "0", "0", *["\u2013"] * 2],
    ] == document.read_table("Content items by their type")
    assert "2 of 3 content items (67%) are published." in document.find_figure("content_items").text


def test_open_openings_are_mentioned_next_to_the_filled_ones(
    change_file: Callable[[Change], Path],
) -> None:
    file = change_file(
        lambda connection: connection.execute(
            "UPDATE marts.sum_time_to_fill SET openings_open = 12, open_p50_days = 90 "
            "WHERE group_by = 'all'"
        )
    )

    message = "12 more openings are still open and not included: median 90 days so far"
    assert message in Document.parse(render_page(file).html).find_figure("time-to-fill").text


@pytest.mark.parametrize(
    ("caption", "facts", "column"),
    [
        ("Filled openings by days", "fct_time_to_fill WHERE is_measured", "days_to_fill"),
        (
            "Placements by days",
            "fct_placements WHERE is_placement AND days_to_hire IS NOT NULL",
            "days_to_hire",
        ),
    ],
)
def test_the_bands_of_days_contain_all_measured_records(
    published_file: Path, document: Document, caption: str, facts: str, column: str
) -> None:
    ((measured,),) = query_rows(published_file, f"SELECT count(*) FROM marts.{facts}")
    bands = [(band, int(number)) for band, number in document.read_table(caption)]

    assert 0 < measured == sum(number for _, number in bands)
    for band, number in bands:
        low, _, high = band.rstrip("+").partition("-")
        upper = "" if band.endswith("+") else f"AND {column} < {int(high or low) + 1}"
        assert [(number,)] == query_rows(
            published_file, f"SELECT count(*) FROM marts.{facts} AND {column} >= {low} {upper}"
        )


def test_the_fee_forecast_equals_its_mart_per_currency(
    published_file: Path, document: Document
) -> None:
    found = query_rows(
        published_file,
        "SELECT strftime(month_start, '%B %Y'), currency, placements, placements_with_fee, "
        "coalesce(fee, 0) FROM marts.sum_fee_forecast "
        "WHERE month_start >= DATE '2025-09-01' ORDER BY month_start, currency NULLS LAST",
    )
    table = document.read_table("Fees by month of the start and currency")
    ahead = query_rows(
        published_file,
        "SELECT currency || ' ' || format('{:,.0f}', sum(fee)) FROM marts.sum_fee_forecast "
        "WHERE month_kind <> 'past' AND currency IS NOT NULL GROUP BY currency "
        "HAVING sum(fee) > 0 ORDER BY currency",
    )

    assert [
        [
            month,
            currency or "\u2013",
            format_number(all),
            format_number(with_fee),
            format_number(fee),
        ]
        for month, currency, all, with_fee, fee in found
    ] == [[row[0], row[1], row[2], row[3], row[5]] for row in table]
    assert len({row[1] for row in table}) > 1
    amounts = ", ".join(text for (text,) in ahead)
    assert f"Fees from this month on: {amounts}" in document.find_figure("forecast").text


def test_all_currencies_are_shown_in_alphabetical_order(
    change_file: Callable[[Change], Path],
) -> None:
    def change(connection: duckdb.DuckDBPyConnection) -> None:
        for place, code in enumerate(("'ZAR'", "'JPY'", "'CHF'", "'AUD'", "'NOK'", "NULL")):
            connection.execute(
                "INSERT INTO marts.sum_fee_forecast BY NAME SELECT * REPLACE "
                f"({code} AS currency, {10 ** (9 - place)} AS fee, 0 AS confirmed_fee, "
                "NULL AS reporting_fee) "
                "FROM marts.sum_fee_forecast WHERE month_start = '2026-03-01' AND currency = 'GBP'"
            )

    document = Document.parse(render_page(change_file(change)).html)
    figure = document.find_figure("forecast")
    finding = next(
        each for each in figure.descendants("p") if each.attributes["class"] == "finding"
    ).text

    named = re.findall("[A-Z]{3}", finding.partition(";")[0])
    assert ["AUD", "CHF", "EUR", "GBP", "JPY", "NOK", "ZAR"] == named
    assert "; in total GBP 15,600 (currencies with an exchange rate)." in finding
    # Dollars are those of February.
    assert 8 == len(list(figure.descendants("svg")))
    assert "have a fee in an unknown currency" in figure.text


def test_possible_fees_include_currencies_with_an_exchange_rate(
    published_file: Path, document: Document
) -> None:
    ((total,),) = query_rows(
        published_file, "SELECT sum(reporting_value) FROM marts.fct_pipeline_jobs"
    )
    currencies = query_rows(published_file, "SELECT DISTINCT currency FROM marts.fct_pipeline_jobs")

    message = f"GBP {total:,.0f} possible fees, for currencies with an exchange rate."
    assert message in document.find_figure("worth").text
    table = document.read_table("Possible fees of open jobs, by currency")
    assert {row[0] for row in table} == {code or "\u2013" for (code,) in currencies}


def test_waiting_candidates_are_mentioned_next_to_the_slowest_stage(
    change_file: Callable[[Change], Path],
) -> None:
    def change(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(
            "UPDATE marts.sum_time_in_stage SET p50_days = 10 WHERE stage = 'interviewing'; "
            "UPDATE marts.sum_time_in_stage SET p50_days = NULL, "
            "current_visits = 189, current_p50_days = 194 WHERE stage = 'offer_made'"
        )

    figure = Document.parse(render_page(change_file(change)).html).find_figure("time-in-stage").text

    assert "Interviewing is the slowest stage: median 10 days." in figure
    assert "Offer made waits longest: median 194 days so far (189 candidates)." in figure


def test_months_without_offers_are_shown_and_undated_offers_are_separate(
    change_file: Callable[[Change], Path],
) -> None:
    def change(connection: duckdb.DuckDBPyConnection) -> None:
        for month in ("2025-10", "not_observed"):
            connection.execute(
                "INSERT INTO marts.sum_offer_acceptance "
                f"SELECT * REPLACE ('{month}' AS group_name) "
                "FROM marts.sum_offer_acceptance WHERE group_name = '2026-02'"
            )

    page = Document.parse(render_page(change_file(change)).html)
    figure = page.find_figure("offers")
    (picture,) = (each for each in figure.descendants() if each.attributes.get("role") == "img")
    label = picture.attributes["aria-label"]

    assert all(month in label for month in ("Oct 25", "Nov 25 0", "Dec 25 0", "Feb 26", "Mar 26 0"))
    assert "1 of 3 offers (33%) were made before the first pull and have no month." in figure.text
    named = {row[0] for row in page.read_table("Offers by the month in which they were made")}
    assert {"October 2025", "February 2026", "Before the first pull", "All months"} <= named


def test_a_deleted_client_is_marked_as_deleted(change_file: Callable[[Change], Path]) -> None:
    document = Document.parse(
        render_page(
            change_file(
                lambda connection: connection.execute(
                    "UPDATE marts.sum_client_fill_rate SET is_company_deleted = company_id = 'beta'"
                )
            )
        ).html
    )

    clients = document.read_table("The 2 clients with the most decided jobs")
    assert ["Beta (deleted)"] == [row[0] for row in clients if row[0].startswith("Beta")]


def test_failed_checks_and_the_time_of_the_data_are_shown(
    published_file: Path, document: Document
) -> None:
    ((checks, failed),) = query_rows(
        published_file,
        "SELECT checks, failed_checks FROM sync.publications ORDER BY started_at DESC LIMIT 1",
    )
    money = {"fees_have_a_currency", "placements_have_fees", "unmapped_currencies"} & {*failed}

    assert checks > len(failed) > len(money) > 0
    warns = "warns" if len(failed) == 1 else "warn"
    concerns = "concerns" if len(money) == 1 else "concern"
    message = f"{len(failed)} of {checks} checks {warns}; {len(money)} {concerns} money."
    assert message in document.root.find_by_id("main").text
    assert not any(name in document.root.text for name in failed)
    assert "As of 6 March 2026, 00:00 UTC" in document.root.text
    assert "the data were 2 days old" in document.root.text


@pytest.mark.parametrize(
    ("verified_at", "expected_text"),
    [("'2026-03-01 06:00:00+00'", "1 March 2026, 06:00 UTC"), ("NULL", "not yet")],
)
def test_the_verified_time_is_the_earliest_of_all_loaded_resources(
    change_file: Callable[[Change], Path], verified_at: str, expected_text: str
) -> None:
    """Other resources were verified five days later."""

    def change(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(
            "UPDATE marts.data_freshness SET proven_at = "
            f"if(resource = 'leads', {verified_at}, TIMESTAMPTZ '2026-03-06 00:00:00+00')"
        )

    text = Document.parse(render_page(change_file(change)).html).root.find_by_id("main").text

    assert f"All loaded records verified up to {expected_text}" in text


# -- Definitions -----------------------------------------------------------------------------------


def test_definitions_come_from_the_comments_of_the_file(
    change_file: Callable[[Change], Path],
) -> None:
    comment = "Definition: counted <so>.\\nGrain: one row.\\nNumerator: the upper.".replace(
        "\\n", "\n"
    )

    def change(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(f"COMMENT ON TABLE marts.sum_coverage IS '{comment}'")
        connection.execute("COMMENT ON COLUMN marts.sum_coverage.missing IS 'What is not there.'")

    figure = (
        Document.parse(render_page(change_file(change)).html).root.find_by_id("how-coverage").text
    )

    assert "Definition Counted <so>." in figure
    assert "Numerator The upper." in figure
    assert "Missing What is not there." in figure


def test_every_figure_has_a_definition_and_names_its_marts(document: Document) -> None:
    for figure in FIGURES:
        text = document.root.find_by_id(f"how-{figure.key}").text
        assert "Definition" in text, figure.key
        assert all(f"marts.{mart}" in text for mart in figure.marts), figure.key


def test_a_table_comment_is_parsed_into_labelled_paragraphs() -> None:
    read = split_mart_comment("Definition: one\n  and two.\nTrap: beware: this.\n")

    assert {"Definition": "one and two.", "Trap": "beware: this."} == read
    assert {"Definition": "Just words."} == split_mart_comment("Just words.")
    assert {} == split_mart_comment("")


# -- Missing data ----------------------------------------------------------------------------------


def test_a_page_without_records_explains_each_empty_figure(empty_page: ReportPage) -> None:
    document = Document.parse(empty_page.html)

    assert [] == list(document.root.descendants("svg"))
    for figure in FIGURES:
        text = document.find_figure(figure.key).text
        assert figure.text_if_empty in text, figure.key
    assert {"\u2013"} == {value for value, _ in document.read_key_figures().values()}
    assert "No data was pulled yet" in document.root.text


def test_a_missing_mart_is_reported_at_each_figure_that_needs_it(
    change_file: Callable[[Change], Path],
) -> None:
    def change(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("DROP TABLE marts.fct_job_ageing")
        connection.execute("ALTER TABLE marts.sum_lead_conversion DROP COLUMN lost")
        connection.execute("DROP SCHEMA staging CASCADE")
        connection.execute("DROP SCHEMA sync CASCADE")

    document = Document.parse(render_page(change_file(change)).html)

    assert "has no marts.fct_job_ageing" in document.find_figure("ageing").text
    assert "has no marts.sum_lead_conversion.lost" in document.find_figure("leads").text
    assert "the file was published without the schema sync" in document.root.text
    assert "As of 6 March 2026, 00:00 UTC" in document.root.text
    assert document.read_table("Days in each stage")


# -- Privacy and external resources ----------------------------------------------------------------


def test_markup_in_data_is_escaped(page: ReportPage, document: Document) -> None:
    assert MARKUP in {
        cell for row in document.read_table("Activity of the last twelve months") for cell in row
    }
    assert [] == list(document.root.descendants("img", "b", "script", "iframe", "object", "embed"))
    assert not [n for e in document.root.descendants() for n in e.attributes if n.startswith("on")]
    assert "<img src=x" not in page.html


def test_the_page_loads_no_external_resource(page: ReportPage, document: Document) -> None:
    text = page.html.replace("&lt;img src=x", "")

    assert [] == re.findall(r"https?:|//\w|@import|url\(|\bsrc\s*=|<script|javascript:", text)
    assert {"data:,"} == {each.attributes["href"] for each in document.root.descendants("link")}
    assert all(each.attributes["href"].startswith("#") for each in document.root.descendants("a"))
    assert "default-src 'none'" in page.html


def test_the_page_names_no_candidate(published_file: Path, page: ReportPage) -> None:
    columns = ("full_name", "email", "phone", "candidate_id::VARCHAR")
    for column in columns:
        for (value,) in query_rows(
            published_file, f"SELECT {column} FROM marts.dim_candidates WHERE length({column}) > 4"
        ):
            assert value not in page.html


# -- Accessibility ---------------------------------------------------------------------------------


def test_headings_ids_and_links_of_the_page_are_valid(document: Document) -> None:
    elements = list(document.root.descendants())
    levels = [int(each.tag[1]) for each in elements if re.fullmatch("h[1-6]", each.tag)]
    ids = [each.attributes["id"] for each in elements if "id" in each.attributes]
    aims = [each.attributes["href"][1:] for each in elements if each.tag == "a"]
    aims += [e.attributes["aria-labelledby"] for e in elements if "aria-labelledby" in e.attributes]
    pictures = [each for each in elements if each.attributes.get("role") == "img"]

    assert {"lang": "en"} == next(document.root.descendants("html")).attributes
    assert 1 == levels.count(1)
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert {"header", "nav", "main", "footer"} <= {each.tag for each in elements}
    assert len(ids) == len(set(ids))
    assert set(aims) <= set(ids)
    for table in document.root.descendants("table"):
        assert [next(table.descendants("caption")).text]
        assert all(th.attributes["scope"] in ("col", "row") for th in table.descendants("th"))
    assert len(pictures) == len(list(document.root.descendants("svg"))) > 10
    assert all(len(each.attributes["aria-label"]) > 20 for each in pictures)


def test_every_chart_has_a_table_of_its_numbers(document: Document) -> None:
    for figure in document.root.descendants("article"):
        if any(figure.descendants("svg")):
            assert any(figure.descendants("table")), figure.attributes

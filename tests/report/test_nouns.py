"""No count of a noun in the report exceeds the number of its records in the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import duckdb
import pytest

from connector.report.page import make_page
from connector.report.published import open_published
from connector.warehouse.published_file import query
from tests.report.conftest import WRITTEN_AT, Change, render_page
from tests.report.document import Document

NOUNS: Mapping[str, str] = {
    "candidate": "SELECT count(DISTINCT candidate_id) FROM (SELECT candidate_id "
    "FROM marts.fct_candidate_stages UNION SELECT candidate_id FROM marts.fct_bookings)",
    "job": "SELECT count(*) FROM marts.dim_jobs",
    "opening": "SELECT count(*) FROM marts.fct_job_openings",
    "placement": "SELECT count(*) FROM marts.fct_placements",
    "interview": "SELECT count(*) FROM marts.fct_interviews",
    "lead": "SELECT count(*) FROM marts.fct_lead_conversion",
    "client": "SELECT count(*) FROM marts.dim_companies",
    "contract": "SELECT count(*) FROM marts.fct_placements WHERE booking_type = 'contract'",
    "consultant": "SELECT count(*) FROM marts.dim_people",
    "offer": "SELECT coalesce(sum(offers + accepted_offer_not_observed), 0) "
    "FROM marts.sum_offer_acceptance WHERE group_by = 'all'",
}
"""Query for the number of records of each noun."""

_WORD = "|".join(NOUNS)
_COUNT = re.compile(
    rf"(?<![\d-])(\d[\d,]*) (?:(?:decided|active|open|more|filled|placed|comparable) )?"
    rf"({_WORD})s?\b",
    re.IGNORECASE,
)


def find_counts(document: Document) -> Iterator[tuple[str, int, str]]:
    """Yield noun, number and context of each count on a page, for example of "3 open jobs"."""
    for each in document.root.descendants("p", "dd", "span", "div"):
        text = each.text if each.tag != "div" else each.attributes.get("aria-label", "")
        for number, noun in _COUNT.findall(text):
            yield noun.lower(), int(number.replace(",", "")), text[:80]
    for label, (value, _) in document.read_key_figures().items():
        noun = re.match(rf"(?:Open |Active )?({_WORD})s\b", label, re.IGNORECASE)
        if noun and value.replace(",", "").isdigit():
            yield noun[1].lower(), int(value.replace(",", "")), label
    for table in document.root.descendants("table"):
        caption = next(table.descendants("caption")).text
        heads = [cell.text for cell in next(table.descendants("thead")).descendants("th")]
        for row in next(table.descendants("tbody")).descendants("tr"):
            for head, cell in zip(heads, row.descendants("th", "td"), strict=True):
                noun = re.fullmatch(rf"(?:Open )?({_WORD})s", head, re.IGNORECASE)
                if noun and cell.text.replace(",", "").isdigit():
                    yield noun[1].lower(), int(cell.text.replace(",", "")), f"{caption}: {head}"


def find_excessive_counts(
    file: Path, document: Document
) -> tuple[set[str], list[tuple[str, int, str]]]:
    """Return all counted nouns, and the counts that exceed the number of records in the file."""
    known = {noun: int(query(file, sql).rows[0][0]) for noun, sql in NOUNS.items()}
    found = list(find_counts(document))
    return {noun for noun, _, _ in found}, [each for each in found if each[1] > known[each[0]]]


@pytest.mark.parametrize("period", ["2026", "2026-01", "this-month"])
def test_no_count_exceeds_the_total_of_its_noun(published_file: Path, period: str) -> None:
    nouns, wrong = find_excessive_counts(
        published_file, Document.parse(render_page(published_file, period).html)
    )

    assert [] == wrong
    assert {"candidate", "job", "placement", "interview", "lead", "client", "offer"} <= nouns


def test_a_job_opened_twice_counts_as_one_job(published_file: Path) -> None:
    with open_published(published_file) as file:
        page = make_page(file, written_at=WRITTEN_AT, period="2026", compare=("2025",))
    (figure,) = (each for each in page.front.figures if each.declaration.key == "jobs_opened")
    days = "BETWEEN '2026-01-01' AND '2026-03-06'"

    openings, jobs = query(
        published_file,
        "SELECT count(*), count(DISTINCT job_id) FROM marts.fct_time_to_fill "
        f"WHERE opened_on {days}",
    ).rows[0]
    assert figure.reading.value == jobs
    assert openings >= jobs


def test_candidates_who_skipped_stages_count_once(published_file: Path, document: Document) -> None:
    ((everybody,),) = query(
        published_file, "SELECT count(DISTINCT candidate_id) FROM marts.fct_stage_conversion"
    ).rows
    skipped = re.search(
        r"(\d+) of (\d+) candidates?.{0,8} were seen in a later stage",
        document.find_figure("funnel").text,
    )

    assert skipped is not None
    assert int(skipped[1]) <= int(skipped[2]) == everybody


def test_completed_contracts_are_not_counted_as_contractors_at_work(
    change_file: Callable[[Change], Path],
) -> None:
    def change(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(
            "UPDATE marts.fct_placements SET booking_status = 'completed', "
            "contract_state = 'ended', completed_on = '2026-03-01', last_day = '2026-03-01' "
            "WHERE contract_state = 'running'"
        )

    file = change_file(change)
    shown = Document.parse(render_page(file, "this-month").html).read_key_figures()[
        "Contractors at work"
    ]

    assert "0" == shown[0]

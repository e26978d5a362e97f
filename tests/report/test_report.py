"""`connector report`: its figures, periods, errors, and names that contain anything."""

from __future__ import annotations

import re
import shutil
import stat
from pathlib import Path

import duckdb
import pytest

from connector.models.publish import publish
from connector.report.figures import SECTIONS, TILES
from connector.report.page import REPORT_FILE, write_report
from connector.settings import load_settings
from connector.warehouse.user_query import query
from tests.models.marts.world import ModelWorld, read_yaml
from tests.support.command import call, variables

ODD = "<img src=x onerror=alert(1)> & 'x' \\ \"y\" \ufffe\x1b[2J\n\u202e end"
"""A name with markup, quotes, and characters that XML, a terminal and a line forbid."""

TABLE_ROW = re.compile(r"<tr><th scope=\"row\">(.*?)</tr>")


@pytest.fixture(scope="module")
def published_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file published by `publish`: candidates, jobs, contracts and leads until March 2026."""
    folder = tmp_path_factory.mktemp("report")
    world = ModelWorld(folder)
    with world.warehouse.keep_open():
        world.run_steps([*read_yaml("people"), *read_yaml("jobs")])
    world.warehouse.close()
    environ = {"CONNECTOR_DATA_DIR": str(folder), "CONNECTOR_MODELS": "on"}
    return publish(load_settings({}, environ, folder)).file


def change(file: Path, folder: Path, sql: str) -> Path:
    """Return a copy of the published file in the folder, changed by a statement."""
    copy = folder / "recruitment.duckdb"
    shutil.copyfile(file, copy)
    with duckdb.connect(str(copy)) as connection:
        connection.execute(sql)
    return copy


@pytest.mark.slow
def test_the_report_is_written_next_to_the_published_file(published_file: Path) -> None:
    page = published_file.parent / REPORT_FILE
    page.write_text("an old page", encoding="utf-8")
    page.chmod(0o644)
    before = {each.name for each in page.parent.iterdir()}

    called = call(["report"], variables(None, page.parent, None))

    assert (0, f"{page}\n") == (called.status, called.out)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert 0o600 == stat.S_IMODE(page.stat().st_mode)
    assert before == {each.name for each in page.parent.iterdir()}


def make_page(file: Path, folder: Path, account: str | None = None) -> str:
    """Write the report of a file to the folder, and return its HTML."""
    write_report(file, folder / "page.html", account=account)
    return (folder / "page.html").read_text(encoding="utf-8")


def test_figures_are_those_of_the_period_and_of_the_one_before(
    published_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "page.html"
    called = call(
        ["report", "--out", str(out), "--period", "2026-Q1"],
        variables(None, published_file.parent, None),
    )
    counted = query(
        published_file,
        "SELECT count(*) FILTER (placed_on BETWEEN '2026-01-01' AND '2026-03-06') AS now,"
        " count(*) FILTER (placed_on BETWEEN '2025-10-01' AND '2025-12-04') AS before"
        " FROM marts.fct_placements WHERE is_placement",
    )

    assert 0 == called.status, called.err
    html = out.read_text(encoding="utf-8")
    before = "1 October to 4 December 2025"
    assert f"<strong>1 January to 6 March 2026</strong>, compared with {before}." in html
    assert "Data as of 6 Mar 2026, 00:00 UTC." in html
    texts = re.findall(
        r'<h2>(.+)</h2>\n<p class="value.*">(.+)</p>\n<p class="before">(.+)</p>', html
    )
    assert [each.label for each in TILES] == [label for label, *_ in texts]
    ((_, placements, earlier),) = (each for each in texts if each[0] == "Placements")
    assert counted.rows == ((int(placements), int(earlier.removeprefix(f"{before}: "))),)
    assert int(placements) > 0


def test_every_card_shows_its_rows_and_its_definition(published_file: Path, tmp_path: Path) -> None:
    html = make_page(published_file, tmp_path)

    for _, cards in SECTIONS:
        for card in cards:
            assert f"<h3>{card.title}</h3>" in html
    assert "lacks one of its columns" not in html
    assert html.count("<summary>Definition</summary>") == len(TILES) + sum(
        len(cards) for _, cards in SECTIONS
    )
    ((open_jobs,),) = query(published_file, "SELECT sum(is_open::int) FROM marts.dim_jobs").rows
    section = html.partition("<h3>Open jobs by age in days</h3>")[2].partition("</section>")[0]
    assert open_jobs == sum(
        int(row.split(">")[-2].split("<")[0]) for row in TABLE_ROW.findall(section)
    )
    assert "<svg" in section


def test_names_with_markup_and_control_characters_are_only_text(
    published_file: Path, tmp_path: Path
) -> None:
    copy = change(published_file, tmp_path, "SELECT 1")
    with duckdb.connect(str(copy)) as connection:
        connection.execute("UPDATE marts.dim_jobs SET age_band = ?, job_title = ?", [ODD, ODD])
        connection.execute("UPDATE marts.fct_candidates SET stage = ?", [ODD])
        connection.execute("UPDATE marts.fct_placements SET currency = ?", [ODD])

    html = make_page(copy, tmp_path, ODD)

    assert "<img" not in html
    assert "&lt;img" in html
    assert not {"\ufffe", "\x1b", "\u202e"} & set(html)


def test_a_report_of_a_file_without_a_mart_says_so(published_file: Path, tmp_path: Path) -> None:
    copy = change(published_file, tmp_path, "DROP TABLE marts.fct_offers")

    html = make_page(copy, tmp_path)

    assert "The published file has no marts.fct_offers, or lacks one of its columns." in html
    assert "<h3>How recent the copy is</h3>" in html


def test_a_report_without_rows_is_written(published_file: Path, tmp_path: Path) -> None:
    html = make_page(change(published_file, tmp_path, "DELETE FROM marts.fct_placements"), tmp_path)

    assert "<strong>February 2026</strong>" in html


@pytest.mark.parametrize(
    ("period", "message"),
    [
        ("2026-13", "'2026-13' is not a period."),
        ("last-weak", "'last-weak' is not a period."),
        ("2026-04", "April 2026 has not begun: the data ends on 2026-03-06"),
    ],
)
def test_invalid_periods_are_rejected_and_no_page_is_written(
    published_file: Path, tmp_path: Path, period: str, message: str
) -> None:
    out = tmp_path / "page.html"

    called = call(
        ["report", "--out", str(out), "--json", "--period", period],
        variables(None, published_file.parent, None),
    )

    assert 2 == called.status
    assert message in called.object["error"]["message"]
    assert called.object["error"]["action"]
    assert not out.exists()


def test_a_report_without_a_published_file_or_marts_says_what_to_do(tmp_path: Path) -> None:
    missing = call(["report", "--json"], variables(None, tmp_path / "data", None))
    duckdb.connect(str(tmp_path / "recruitment.duckdb")).close()
    bare = call(["report", "--json"], variables(None, tmp_path, None))

    assert (1, "nothing_published") == (missing.status, missing.object["error"]["code"])
    assert "connector pull" in missing.object["error"]["action"]
    assert (1, "marts_missing") == (bare.status, bare.object["error"]["code"])
    assert "CONNECTOR_MODELS" in bare.object["error"]["action"]
    assert not (tmp_path / REPORT_FILE).exists()


def test_a_page_that_cannot_be_written_leaves_no_file(published_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "gone" / "page.html"

    called = call(["report", "--out", str(out)], variables(None, published_file.parent, None))

    assert 1 == called.status
    assert str(out) in called.err
    assert [] == list(tmp_path.iterdir())

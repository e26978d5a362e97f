"""The page in a real browser: it sends no request and fits every screen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import get_args

import duckdb
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright
from pypdfium2 import PdfDocument

from connector.report import charts
from connector.report.charts import PALETTE, Theme, render_svg
from connector.report.page import ReportPage
from tests.report.conftest import Change, render_page

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.access(CHROMIUM, os.X_OK), reason="chromium is not installed on this machine"
    ),
]

THEMES: tuple[Theme, ...] = get_args(Theme)

_LANDMARKS = "['header','nav','main','footer'].map(tag => document.querySelectorAll(tag).length)"
_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_OUTSIDE = """() => {
    const wide = document.documentElement.clientWidth;
    return [...document.querySelectorAll('h1,h2,h3,p,svg,li,summary,.card,.key')]
        .filter(each => each.checkVisibility() && !each.closest('.scroll, .hidden, .skip'))
        .filter(each => each.getBoundingClientRect().right > wide + 0.5)
        .map(each => each.tagName + ' ' + each.textContent.slice(0, 40));
}"""
_CUT = """() => [...document.querySelectorAll('svg')].flatMap(svg => {
    const box = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')]
        .filter(text => { const r = text.getBoundingClientRect();
            return r.width && (r.left < box.left - 1 || r.right > box.right + 1
                || r.top < box.top - 2 || r.bottom > box.bottom + 2); })
        .map(text => text.textContent);
})"""


_TWO_LINES = "[...document.querySelectorAll('svg text')].filter(e => e.children.length > 1).length"
_CLOSE = """() => {
    const boxes = [...document.querySelectorAll('svg text')]
        .filter(text => text.getAttribute('text-anchor') === 'end')
        .map(text => text.getBoundingClientRect()).sort((one, other) => one.top - other.top);
    return boxes.slice(1).map((box, place) => box.top - boxes[place].bottom).filter(gap => gap < 3);
}"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium of this machine with an empty profile."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(page: ReportPage, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report as a file URL."""
    file = tmp_path_factory.mktemp("browser") / "recruitment.html"
    file.write_text(page.html, encoding="utf-8")
    return file.as_uri()


def collect_messages(opened: Page) -> list[str]:
    """Return a list that grows by each request, console message and error of the page."""
    messages: list[str] = []
    opened.on("request", lambda request: messages.append(f"request {request.url}"))
    opened.on("console", lambda entry: messages.append(f"console {entry.text}"))
    opened.on("pageerror", lambda error: messages.append(f"error {error}"))
    return messages


def format_rgb(colour: str) -> str:
    """Format a colour #rrggbb as browsers do, for example rgb(14, 79, 125)."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"


def test_the_page_opens_as_a_file_and_fits_the_window(browser: Browser, address: str) -> None:
    for theme, width in product(THEMES, (375, 1440)):
        opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        messages = collect_messages(opened)
        opened.goto(address)

        assert [f"request {address}"] == messages
        assert 0 == opened.evaluate(_OVERFLOW), (theme, width)
        assert [] == opened.evaluate(_OUTSIDE), (theme, width)
        assert [] == opened.evaluate(_CUT), (theme, width)
        assert [1, 1, 1, 1] == opened.evaluate(_LANDMARKS)
        assert 1 == opened.get_by_role("heading", level=1).count()
        assert 10 == opened.get_by_role("heading", level=2).count()
        paper = opened.evaluate("getComputedStyle(document.body).backgroundColor")
        assert format_rgb(getattr(PALETTE["paper"], theme)) == paper
        opened.close()


def test_no_text_of_a_chart_is_cut_off(browser: Browser) -> None:
    long = "WWWWWWWWWW and WWWWWWWWWWWWWW"
    rows = [
        {
            "label": long,
            "month": f"{name} 26",
            "value": 1_234_567,
            **{f"p{part}_days": part * 10 for part in (10, 25, 50, 75, 90)},
            "current_p50_days": 700,
        }
        for name in ("Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec") * 2
    ]
    parts = {"value": "a part"}
    drawn = [
        charts.bar_chart(
            rows, "label", "value", unit="things", text=lambda _: "123,456 of 234,567"
        ),
        charts.stacked_bar_chart(rows, "label", parts, unit="things"),
        charts.stacked_bar_chart(rows, "month", parts, unit="things", is_upright=True),
        charts.column_chart(rows, "month", "value", unit="things", across="month"),
        charts.range_chart(rows, "label", unit="things"),
    ]
    opened = browser.new_page(viewport={"width": 375, "height": 900})
    for font in ("system-ui", "DejaVu Sans", "sans-serif"):
        style = f"<style>svg{{display:block;font-family:{font}}}</style>"
        opened.set_content(style + "".join(render_svg(chart) for chart in drawn))
        assert [] == opened.evaluate(_CUT), font
    assert 5 == opened.locator("svg").count()
    opened.close()


def test_shortened_chart_labels_stay_distinct(browser: Browser) -> None:
    begins = "The Northern Recruitment and Staffing Company of"
    names = ["Acme", "Acme", *(f"{begins} {place} Holdings Limited" for place in ("Leeds", "York"))]
    names += [f"{begins} Leeds Holdings {kind}" for kind in ("LLP", "GmbH", "LLP")]
    shown = [{"label": name, "value": 1} for name in names]
    opened = browser.new_page(viewport={"width": 375, "height": 900})
    opened.set_content(render_svg(charts.bar_chart(shown, "label", "value", unit="things")))
    # A label is one element of text; its lines are elements in it, or itself.
    found = opened.evaluate(
        "[...document.querySelectorAll('svg text')].map(text => text.textContent)"
    )
    labels = [each for each in found if each != "1"]

    assert len(names) == len(set(labels)) == len(labels)
    assert 5 == opened.evaluate(_TWO_LINES)
    assert [] == opened.evaluate(_CLOSE)
    assert {"Acme", "Acme (2)"} <= set(labels)
    assert [] == opened.evaluate(_CUT)
    opened.close()


def test_only_tables_scroll_sideways_and_show_a_hint(browser: Browser, address: str) -> None:
    opened = browser.new_page(viewport={"width": 375, "height": 900})
    opened.goto(address)
    opened.locator("details").evaluate_all("all => all.forEach(each => each.open = true)")
    # A browser looks at what scrolls once a frame, and what it found shows in the next one.
    opened.evaluate(
        "() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))"
    )
    slides = opened.locator(".scroll").evaluate_all(
        "all => all.map(each => [each.scrollWidth > each.clientWidth,"
        " each.querySelector('.sideways').checkVisibility()])"
    )

    assert {(True, True), (False, False)} >= {tuple(each) for each in slides} > {(False, False)}
    assert [] == opened.evaluate(_OUTSIDE)
    opened.close()


def test_rows_of_cards_have_no_gaps(browser: Browser, address: str) -> None:
    opened = browser.new_page()
    opened.goto(address)
    for screen in (375, 640, 900, 1440):
        opened.set_viewport_size({"width": screen, "height": 900})
        grids = opened.locator(".figures, .grid, .pictures, .lists").evaluate_all(
            "all => all.map(grid => [grid.clientWidth, [...grid.children].map(card => {"
            " const box = card.getBoundingClientRect();"
            " return [box.top, box.right - grid.getBoundingClientRect().left, box.height]; })])"
        )

        for width, cards in grids:
            for top in {each[0] for each in cards}:
                row = [each for each in cards if each[0] == top]
                assert width == pytest.approx(max(right for _, right, _ in row), abs=1), screen
                assert 1 == len({round(height) for *_, height in row}), screen
        assert 11 == len(grids)
    opened.close()


def test_the_reader_can_choose_a_theme_and_open_the_numbers(browser: Browser, address: str) -> None:
    opened = browser.new_page(color_scheme="light")
    opened.goto(address)
    opened.keyboard.press("Tab")

    assert "Skip to the figures" == opened.evaluate("document.activeElement.textContent")
    assert opened.locator(".skip").bounding_box()["y"] >= 0  # type: ignore[index] # it is shown
    opened.get_by_label("Dark").check()
    colours = "getComputedStyle(document.body)"
    assert format_rgb(PALETTE["ink"].dark) == opened.evaluate(f"{colours}.color")
    bar = opened.evaluate(
        "getComputedStyle(document.querySelector('svg [fill=\"var(--first)\"]')).fill"
    )
    assert format_rgb(PALETTE["first"].dark) == bar
    figure = opened.locator("article[aria-labelledby=stages]")
    assert not figure.locator("table").is_visible()
    figure.locator("summary").press("Enter")
    assert figure.locator("table").is_visible()
    opened.close()


def read_pages(printed: bytes) -> list[str]:
    """Return the text of each printed page, with whitespace collapsed."""
    with closing(PdfDocument(printed)) as document:
        return [" ".join(each.get_textpage().get_text_range().split()) for each in document]


def test_the_first_printed_page_contains_the_whole_summary(
    browser: Browser, change_file: Callable[[Change], Path], tmp_path: Path
) -> None:
    def lengthen(connection: duckdb.DuckDBPyConnection) -> None:
        for mart in ("fct_contracts", "fct_job_ageing"):
            long = "repeat(job_title || ' of the Northern Region ', 4)"
            connection.execute(
                f"CREATE TABLE one AS FROM marts.{mart} LIMIT 1; DELETE FROM marts.{mart}; "
                f"INSERT INTO marts.{mart} SELECT one.* REPLACE ({long} AS job_title, "
                "repeat(company_name || ' and Sons ', 4) AS company_name) FROM one, range(9); "
                "DROP TABLE one"
            )
        connection.execute(
            "UPDATE marts.fct_contracts SET ends_within_30_days = true, "
            "next_booking_id = NULL, is_replaced = false; UPDATE marts.fct_job_ageing SET "
            "job_status = 'published', days_since_last_booking = 1234; "
            "CREATE TABLE one AS FROM marts.fct_placements LIMIT 1"
        )
        for code in ("AUD", "CHF", "EUR", "JPY", "NOK", "SEK", "ZAR"):
            connection.execute(
                "INSERT INTO marts.fct_placements SELECT * REPLACE (DATE '2026-02-03' AS "
                f"placed_on, '{code}' AS currency, 123456789 AS fee, NULL AS reporting_fee) "
                "FROM one"
            )
        connection.execute("UPDATE marts.fct_placements SET reporting_fee = NULL")

    file = tmp_path / "page.html"
    for page in (render_page(change_file(lambda _: None)), render_page(change_file(lengthen))):
        file.write_text(page.html, encoding="utf-8")
        opened = browser.new_page()
        opened.goto(file.as_uri())
        first, second, *_ = read_pages(opened.pdf(prefer_css_page_size=True))

        assert first.startswith("Recruitment report acme As of")
        assert first.endswith("no change is shown then.")
        assert all(each.declaration.label in first for each in page.front.figures)
        assert second.startswith("Candidates Each person counts once")
        opened.close()


def find_lowest_lines(printed: bytes) -> list[str]:
    """Return the lowest line of text on each printed page."""
    found = []
    with closing(PdfDocument(printed)) as document:
        for page in document:
            text = page.get_textpage()
            lowest = min(text.get_rect(place)[1] for place in range(text.count_rects()))
            found.append(" ".join(text.get_text_bounded(bottom=0, top=lowest + 6).split()))
    return found


def test_headings_are_printed_on_the_page_of_their_charts(browser: Browser, address: str) -> None:
    opened = browser.new_page()
    opened.goto(address)
    headings = opened.locator("h2, h3, caption, .finding").all_inner_texts()
    # The sentences under a section's heading may take several lines, and are printed whole.
    opened.locator(".about").evaluate_all("all => all.forEach(p => p.append(` ${p.textContent}`))")
    about = opened.locator(".about").all_inner_texts()
    for height in range(297, 217, -16):
        printed = find_lowest_lines(opened.pdf(width="210mm", height=f"{height}mm"))

        assert len(printed) > 5
        assert all(printed)
        for line in printed[:-1]:
            assert not [each for each in headings if " ".join(each.split()).endswith(line)], line
            assert not [each for each in about if line in " ".join(each.split())], line
    opened.close()


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_no_serious_accessibility_problem(
    browser: Browser, address: str, theme: Theme
) -> None:
    for width in (375, 1440):
        context = browser.new_context(
            bypass_csp=True, color_scheme=theme, viewport={"width": width, "height": 900}
        )
        opened = context.new_page()
        opened.goto(address)
        opened.locator("details").evaluate_all("all => all.forEach(each => each.open = true)")
        found = Axe().run(opened).response["violations"]

        assert [] == [
            (each["id"], each["nodes"][0]["html"])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        context.close()


def test_the_page_prints_in_light_colours_with_all_tables_open(
    browser: Browser, address: str
) -> None:
    opened = browser.new_page(viewport={"width": 700, "height": 1000}, color_scheme="dark")
    opened.goto(address)
    opened.emulate_media(media="print", color_scheme="dark")

    assert format_rgb("#ffffff") == opened.evaluate(
        "getComputedStyle(document.body).backgroundColor"
    )
    assert format_rgb(PALETTE["ink"].light) == opened.evaluate(
        "getComputedStyle(document.body).color"
    )
    assert 0 == opened.evaluate(_OVERFLOW)
    assert [] == opened.evaluate(_CUT)
    tables = opened.locator("table")
    assert all(each.bounding_box()["height"] > 0 for each in tables.all())  # type: ignore[index]
    assert not opened.locator(".themes").is_visible()
    assert opened.pdf(format="A4").startswith(b"%PDF")
    opened.close()

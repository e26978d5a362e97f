"""The page in a real browser, opened from the disk: it asks for nothing and fits every screen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import product
from typing import get_args

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from connector.report import charts
from connector.report.charts import PALETTE, Theme, draw
from connector.report.page import ReportPage

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)

pytestmark = pytest.mark.skipif(
    not os.access(CHROMIUM, os.X_OK), reason="chromium is not installed on this machine"
)

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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The system's own browser, with nothing remembered."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(page: ReportPage, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page as a file on the disk."""
    file = tmp_path_factory.mktemp("browser") / "recruitment.html"
    file.write_text(page.html, encoding="utf-8")
    return file.as_uri()


def told(opened: Page) -> list[str]:
    """What the page asks for and complains of, as it happens."""
    heard: list[str] = []
    opened.on("request", lambda asked: heard.append(f"request {asked.url}"))
    opened.on("console", lambda said: heard.append(f"console {said.text}"))
    opened.on("pageerror", lambda error: heard.append(f"error {error}"))
    return heard


def rgb(colour: str) -> str:
    """A colour as browsers write it."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"


def test_page_opens_from_the_disk_and_fits(browser: Browser, address: str) -> None:
    """In both themes, at 375 and 1440 pixels: one request, for the file itself; nothing on the
    console; nothing wider than the screen, no text of a chart cut off; landmarks and headings
    there; and the theme's colours.
    """
    for theme, width in product(THEMES, (375, 1440)):
        opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        heard = told(opened)
        opened.goto(address)

        assert [f"request {address}"] == heard
        assert 0 == opened.evaluate(_OVERFLOW), (theme, width)
        assert [] == opened.evaluate(_OUTSIDE), (theme, width)
        assert [] == opened.evaluate(_CUT), (theme, width)
        assert [1, 1, 1, 1] == opened.evaluate(_LANDMARKS)
        assert 1 == opened.get_by_role("heading", level=1).count()
        assert 8 == opened.get_by_role("heading", level=2).count()
        paper = opened.evaluate("getComputedStyle(document.body).backgroundColor")
        assert rgb(getattr(PALETTE["paper"], theme)) == paper
        opened.close()


def test_no_chart_cuts_off_its_text(browser: Browser) -> None:
    """Charts of every kind, with the longest labels and figures, show all of them, whatever font
    the reader has.
    """
    long = "WWWWWWWWWW and WWWWWWWWWWWWWW"
    rows = [
        {
            "label": long,
            "month": f"{name} 26",
            "value": 1_234_567,
            **{f"p{part}_days": part * 10 for part in (10, 25, 50, 75, 90)},
        }
        for name in ("Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec") * 2
    ]
    parts = {"value": "a part"}
    drawn = [
        charts.bars(rows, "label", "value", unit="things", text=lambda _: "123,456 of 234,567"),
        charts.stacked(rows, "label", parts, unit="things"),
        charts.stacked(rows, "month", parts, unit="things", is_upright=True),
        charts.uprights(rows, "month", "value", unit="things", across="month"),
        charts.ranges(rows, "label", unit="things"),
    ]
    opened = browser.new_page(viewport={"width": 375, "height": 900})
    for font in ("system-ui", "DejaVu Sans", "sans-serif"):
        style = f"<style>svg{{display:block;font-family:{font}}}</style>"
        opened.set_content(style + "".join(draw(chart) for chart in drawn))
        assert [] == opened.evaluate(_CUT), font
    assert 5 == opened.locator("svg").count()
    opened.close()


def test_reader_chooses_a_theme_and_unfolds_numbers(browser: Browser, address: str) -> None:
    """By keyboard alone and without a script: skip to the figures, another theme, and a table."""
    opened = browser.new_page(color_scheme="light")
    opened.goto(address)
    opened.keyboard.press("Tab")

    assert "Skip to the figures" == opened.evaluate("document.activeElement.textContent")
    assert opened.locator(".skip").bounding_box()["y"] >= 0  # type: ignore[index] # it is shown
    opened.get_by_label("Dark").check()
    colours = "getComputedStyle(document.body)"
    assert rgb(PALETTE["ink"].dark) == opened.evaluate(f"{colours}.color")
    bar = opened.evaluate(
        "getComputedStyle(document.querySelector('svg [fill=\"var(--first)\"]')).fill"
    )
    assert rgb(PALETTE["first"].dark) == bar
    figure = opened.locator("article[aria-labelledby=time-in-stage]")
    assert not figure.locator("table").is_visible()
    figure.locator("summary").press("Enter")
    assert figure.locator("table").is_visible()
    opened.close()


def test_page_prints_in_light_with_every_number(browser: Browser, address: str) -> None:
    """On paper: light whatever the screen was, every table unfolded, nothing wider than the sheet,
    and no control.
    """
    opened = browser.new_page(viewport={"width": 700, "height": 1000}, color_scheme="dark")
    opened.goto(address)
    opened.emulate_media(media="print", color_scheme="dark")

    assert rgb("#ffffff") == opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert rgb(PALETTE["ink"].light) == opened.evaluate("getComputedStyle(document.body).color")
    assert 0 == opened.evaluate(_OVERFLOW)
    assert [] == opened.evaluate(_CUT)
    tables = opened.locator("table")
    assert all(each.bounding_box()["height"] > 0 for each in tables.all())  # type: ignore[index]
    assert not opened.locator(".themes").is_visible()
    assert opened.pdf(format="A4").startswith(b"%PDF")
    opened.close()

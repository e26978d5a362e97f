"""Recruiters import German, French and English files alone, with few clicks."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.page.recruiters import (
    LEADS,
    MISTYPED,
    PEOPLE,
    WRONG_EMAILS,
    write_english_leads,
    write_french_list,
    write_german_export,
)
from tests.page.serving import serve_page
from tests.support.agency import settings_of

CLICKS_MAX, TYPED_MAX = 25, 5

pytestmark = pytest.mark.slow


class CountedActions:
    """Actions of a recruiter on the page. `clicks` and `typed` count clicks and typed cells."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.typed = page, 0, 0

    def click(self, element: Locator) -> None:
        """Click a button or a checkbox."""
        element.click()
        self.clicks += 1

    def select_option(self, element: Locator, value: str) -> None:
        """Select an option of a list, which counts as one click."""
        element.select_option(value)
        self.clicks += 1

    def type_text(self, element: Locator, text: str) -> None:
        """Type into a cell and leave it with the keyboard."""
        element.fill(text)
        element.press("Tab")
        self.typed += 1

    def press_button(self, name: str) -> None:
        """Click the button of this name."""
        self.click(self.page.get_by_role("button", name=name))

    def choose_column_field(self, heading: str, field: str) -> None:
        """Choose the field of the column with this heading."""
        row = self.page.locator("ul.columns > li", has=self.page.get_by_text(heading, exact=True))
        self.select_option(row.locator("select").first, field)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """Sandbox with some candidates."""
    with Sandbox(counts={"candidates": 80}) as opened:
        yield opened


def test_a_german_export_is_imported_with_few_clicks(
    browser: Browser, sandbox: Sandbox, tmp_path: Path
) -> None:
    before = set(sandbox.store.records("candidates"))
    with (
        serve_page(sandbox, tmp_path) as (served_page, address),
        browser.new_context(locale="de-DE") as context,
    ):
        page = context.new_page()
        hand = CountedActions(page)
        page.goto(address + served_page.access.create_link())
        page.set_input_files("#file", write_german_export(tmp_path / "kandidaten_export.csv"))
        hand.clicks += 1
        hand.click(page.locator("button.go"))
        page.wait_for_url("**/columns")
        hand.choose_column_field("Kündigungsfrist", "notice_period_days")
        hand.click(page.locator("button[name=rest]"))
        page.wait_for_url("**/values")
        for value in ("befristet", "Zeitarbeit", "Festanstellung (Vollzeit)", "Teilzeit"):
            hand.select_option(page.get_by_label(value, exact=True), "permanent")
        hand.select_option(page.get_by_label("bedingt", exact=True), "")
        for value in ("VB", "1.200 €/Tag"):
            hand.click(page.get_by_label(f"Leave empty {value}"))
        hand.type_text(page.get_by_label("6 Wochen zum Quartalsende", exact=True), "42")
        hand.press_button("Continue")
        page.wait_for_url("**/rows")
        for place in (11, 23):
            hand.type_text(page.locator(f"#e{place + 2}-4"), f"k{place}@beispiel.example")
        with page.expect_navigation():
            hand.click(page.locator("button[name=later]"))
        for _ in range(3):
            missing = page.locator("#e33-4")
            if missing.count() and missing.input_value() == WRONG_EMAILS[31]:
                hand.type_text(missing, "k31@beispiel.example")
                button = page.locator("button[name=later]")
            else:
                button = page.locator("button[name=empty]")
            with page.expect_navigation(url="**/rows*"):
                hand.click(button)
            expect(page.locator("nav.kinds")).to_be_visible()
        with page.expect_navigation():
            hand.press_button("Import the first row of each group")
        hand.press_button("Continue")
        page.wait_for_url("**/look")
        hand.click(page.locator("button.go"))
        page.wait_for_url("**/result", timeout=60_000)
        people = sandbox.store.records("candidates")
        created = [people[id] for id in people if id not in before]
        assert PEOPLE == len(created)
        assert {0, 28, 30, 42, 90, None} == {each["notice_period_days"] for each in created}
        assert hand.clicks <= CLICKS_MAX, hand.clicks
        assert hand.typed <= TYPED_MAX, hand.typed


def test_a_french_list_with_durations_is_imported_completely(
    browser: Browser, sandbox: Sandbox, tmp_path: Path
) -> None:
    # The browser runs an event loop in this thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, pull(settings_of(sandbox, tmp_path), ["candidates"])).result()
    people = {each["email"]: each for each in sandbox.store.records("candidates").values()}
    book = write_french_list(tmp_path / "maj_candidats.xlsx", [*people.values()])
    with (
        serve_page(sandbox, tmp_path) as (served_page, address),
        browser.new_context(locale="fr-FR") as context,
    ):
        page = context.new_page()
        hand = CountedActions(page)
        page.goto(address + served_page.access.create_link())
        hand.click(page.locator("input[name=mode][value=update]"))
        page.set_input_files("#file", book)
        hand.click(page.locator("button.go"))
        page.wait_for_url("**/columns")
        hand.choose_column_field("Préavis", "notice_period_days")
        hand.click(page.locator("button[name=rest]"))
        page.wait_for_url("**/values")
        hand.select_option(page.get_by_label("à voir", exact=True), "")
        hand.press_button("Continue")
        page.wait_for_url("**/rows")
        kinds = page.locator("nav.kinds li b").all_inner_texts()
        assert "Préavis" not in kinds
        assert "Courriel" in kinds
        page.goto(page.url.replace("/rows", "/look"))
        hand.click(page.locator("input[name=accept]"))
        hand.click(page.locator("button.go"))
        page.wait_for_url("**/result", timeout=60_000)
        expect(page.locator(".tiles .updated b")).to_have_text("26")
        notice = {
            each["notice_period_days"]
            for each in sandbox.store.records("candidates").values()
            if each["city"] in ("Lyon", "Grenoble")
        }
        assert {0, 15, 30, 42, 90} <= notice


def test_an_english_list_of_leads_is_converted_with_few_clicks(
    browser: Browser, tmp_path: Path
) -> None:
    with Sandbox(counts={"leads": 260}) as sandbox:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, pull(settings_of(sandbox, tmp_path), ["leads"])).result()
        found = sandbox.store.records("leads").values()
        count = Counter(each["email"].lower() for each in found if each["email"])
        opened = [each for each in found if count[(each["email"] or "").lower()] == 1]
        with (
            serve_page(sandbox, tmp_path) as (served_page, address),
            browser.new_context(locale="en-GB") as context,
        ):
            page = context.new_page()
            hand = CountedActions(page)
            page.goto(address + served_page.access.create_link())
            hand.click(page.locator("input[name=resource][value=leads]"))
            hand.click(page.locator("input[name=mode][value=convert]"))
            page.set_input_files(
                "#file", write_english_leads(tmp_path / "leads_to_convert.csv", opened)
            )
            hand.click(page.locator("button.go"))
            page.wait_for_url("**/columns")
            hand.click(page.locator("button[name=rest]"))
            page.wait_for_url("**/rows")
            with page.expect_navigation():
                hand.click(page.locator("button[name=later]"))
            with page.expect_navigation():
                hand.press_button("Import the first row of each group")
            hand.press_button("Continue")
            page.wait_for_url("**/look")
            expect(page.locator(".tiles .convert b")).to_have_text(str(LEADS - len(MISTYPED)))
            expect(page.locator(".tiles .invalid b")).to_have_text(str(len(MISTYPED)))
            first, company = opened[0], opened[0]["company_name"]
            shown = page.locator("ul.list.rows > li").first
            expect(shown).to_contain_text(f"{first['first_name']} {first['last_name']}")
            if company:
                expect(shown).to_contain_text(company)
            assert page.get_by_text("undo this import").count() == 0
            page.goto(f"{page.url}?show=convert&page=8")
            expect(page.locator(".found").last).to_contain_text(re.compile(" · (lead|prospect)"))
            send = page.get_by_role("button", name="Convert 197 leads")
            send.click()
            assert "/look" in page.url, "the conversion is not confirmed"
            hand.click(page.get_by_label("A conversion cannot be undone."))
            hand.click(send)
            page.wait_for_url("**/result", timeout=120_000)
            expect(page.locator(".tiles .converted b")).to_have_text(str(LEADS - len(MISTYPED)))
            assert page.locator("[href*=undo], [action*=undo]").count() == 0
            assert hand.clicks <= CLICKS_MAX, hand.clicks
            assert hand.typed == 0

"""A complete import in a real browser, from a messy German file to its undo."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from connector.sandbox.server import Sandbox
from tests.page.serving import PageProcess, make_environ, write_german_workbook

WIDTHS = (375, 1440)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

# A machine that is busy is slow, and not wrong.
expect.set_options(timeout=60_000)

pytestmark = pytest.mark.slow

ROWS = (
    *("Jörg Müller joerg@example.de 0171/2345678 03/04/1985 festangestellt Köln a blau",),
    *("Änne Weiß aenne(at)example.de 0172/2345678 05/06/1990 festangestellt Bonn b rot",),
    *("Karl Groß karl@example.de 0173/2345678 07/08/1979 frei Bonn c grün",),
    *("Uwe Süß uwe 0174/2345678 11/12/1981 festangestellt Aachen d -",),
    *("Max Bär max@example.de anrufen 01/02/1988 festangestellt Mainz e -",),
    *("Eva Löw eva@example.de;e@example.de 0176/2345678 09/10/1992 frei Mainz f -",),
    *("Tom Fuß tom@example.de 0177/2345678 45/01/1993 frei Ulm g -",),
    *("Jörg Müller joerg@example.de 0171/2345678 03/04/1985 festangestellt Köln h blau",),
    *(f"Ida Klein{n} ida{n}@example.de 0178/2345678 02/03/1999 frei Trier i -" for n in range(4)),
)
CORRECTIONS = {
    "aenne(at)example.de": "aenne@example.de",
    "uwe": "uwe@example.de",
    "anrufen": "0175 2345678",
    "eva@example.de;e@example.de": "eva@example.de",
    "45/01/1993": "05/01/1993",
}
CREATED = 11


class RecruiterInBrowser:
    """Recruiter in a browser, with checks of each screen at two widths."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def assert_page_fits(self) -> None:
        """Assert that the page is not wider than both screens and has one main heading."""
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 900})
            wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert 0 == self.page.evaluate(wide), (self.page.url, width)
        assert 1 == self.page.get_by_role("heading", level=1).count()

    def check_and_press(self, name: str = "Continue") -> None:
        """Check the page, and press the button of this name."""
        self.assert_page_fits()
        self.page.get_by_role("button", name=name).click()

    def choose_field(self, heading: str, field: str) -> None:
        """Choose the field of the column with this heading."""
        row = self.page.locator("li", has=self.page.locator(f"b:text-is('{heading}')"))
        row.locator("select").first.select_option(field)


class ServerGate:
    """Blocks the server's responses as soon as it has `count` candidates, until `opened` is set."""

    def __init__(self, count: int) -> None:
        self.count, self.reached, self.opened = count, Event(), Event()

    def __call__(self, store: Any) -> None:
        """Wait if the server has enough candidates."""
        if not self.opened.is_set() and len(store.records("candidates")) >= self.count:
            self.reached.set()
            self.opened.wait(60)


def correct_cells(recruiter: RecruiterInBrowser) -> int:
    """Correct every cell in `CORRECTIONS`. Returns the number of corrected cells."""
    page, mended = recruiter.page, 0
    for kind in range(page.locator(".kinds a").count()):
        with page.expect_navigation():
            page.locator(".kinds a").nth(kind).click()
        ids = page.locator(".cell.wrong input").evaluate_all("all => all.map(each => each.id)")
        for id in ids:
            cell = page.locator(f"#{id}")
            right = CORRECTIONS.get(cell.input_value())
            if right is not None:
                cell.fill(right)
                cell.press("Tab")
                row = page.locator(".row", has=page.locator(f"#{id}"))
                expect(row.get_by_text("Fixed")).to_be_visible()
                # Tab has moved the focus to a cell, although the rows changed.
                assert page.evaluate("document.activeElement.id").startswith("o")
                mended += 1
        recruiter.assert_page_fits()
    return mended


def prepare_import(recruiter: RecruiterInBrowser, link: str, book: Path) -> None:
    """Upload the file and complete every screen up to the preview."""
    page = recruiter.page
    page.goto(link)
    page.set_input_files("#file", book)
    recruiter.check_and_press("Upload file")
    page.wait_for_url("**/columns")
    recruiter.choose_field("Merkfeld", "internal_notes")
    recruiter.choose_field("Farbe", "-")
    recruiter.check_and_press()
    page.wait_for_url("**/values")
    page.get_by_label("frei").select_option("contractor")
    page.get_by_label("Country of telephone numbers").select_option("DE")
    recruiter.check_and_press()
    page.wait_for_url("**/rows")
    assert 5 == correct_cells(recruiter)
    recruiter.check_and_press()
    page.wait_for_url("**/look")
    expect(page.locator(".tiles .create b")).to_have_text(str(CREATED))
    expect(page.locator(".tiles .duplicate b")).to_have_text("1")


def download_report_and_undo(recruiter: RecruiterInBrowser) -> None:
    """Download the report and undo the import."""
    page = recruiter.page
    with page.expect_download() as report:
        page.get_by_role("link", name="Download report").click()
    assert report.value.suggested_filename.endswith(".xlsx")
    recruiter.check_and_press("Undo import")
    page.wait_for_url("**/undo")
    recruiter.check_and_press("Undo import")
    expect(page.get_by_role("heading", level=1)).to_have_text("These changes were undone")


def test_a_messy_file_can_be_imported_corrected_and_undone(
    browser: Browser, tmp_path: Path
) -> None:
    book = write_german_workbook(tmp_path / "Bewerber.xlsx", [each.split() for each in ROWS])
    gate = ServerGate(4)
    with Sandbox() as sandbox:
        environ = make_environ(sandbox, tmp_path)
        with PageProcess(environ, tmp_path) as server:
            context = browser.new_context(locale="en-GB")
            recruiter = RecruiterInBrowser(context)
            prepare_import(recruiter, server.link, book)
            sandbox.between = gate
            recruiter.check_and_press(f"Create {CREATED}")
            recruiter.page.wait_for_url("**/progress")
            assert gate.reached.wait(60)
            state, progress = context.storage_state(), recruiter.page.url
            server.kill()
            gate.opened.set()
            context.close()
        with PageProcess(environ, tmp_path, server.port):
            recruiter = RecruiterInBrowser(browser.new_context(storage_state=state, locale="en-GB"))
            page = recruiter.page
            page.goto(progress)
            page.wait_for_url("**/result", timeout=60_000)
            expect(page.locator(".tiles .created b")).to_have_text(str(CREATED))
            expect(page.locator(".tiles .duplicate b")).to_have_text("1")
            people = sandbox.store.records("candidates").values()
            born = {each["email"]: each["date_of_birth"] for each in people}
            assert CREATED == len(people) == len(born)
            assert "1985-04-03" == born["joerg@example.de"]
            download_report_and_undo(recruiter)
            assert {} == sandbox.store.records("candidates")
            assert [] == recruiter.complaints


def test_an_import_works_without_javascript_and_by_keyboard(
    browser: Browser, tmp_path: Path
) -> None:
    with Sandbox() as sandbox, PageProcess(make_environ(sandbox, tmp_path), tmp_path) as server:
        context = browser.new_context(
            java_script_enabled=False, viewport={"width": 375, "height": 800}, locale="en-GB"
        )
        page = context.new_page()
        page.goto(server.link)
        page.get_by_text("Or paste cells").focus()
        page.keyboard.press("Enter")
        page.get_by_label("Pasted cells").focus()
        table = "First name\tLast name\tEmail\tEmployment type"
        page.keyboard.insert_text(
            f"{table}\nAnn\tLee\tann\tpermanent\nBo\tLi\tbo@example.com\tpermanent"
        )
        page.get_by_role("button", name="Upload file").press("Enter")
        page.wait_for_url("**/columns")
        page.get_by_role("button", name="Continue").press("Enter")
        page.wait_for_url("**/rows")
        page.locator(".cell.wrong input").focus()
        page.keyboard.press("Control+a")
        page.keyboard.type("ann@example.com")
        page.get_by_role("button", name="Recheck").press("Enter")
        expect(page.get_by_text("Fixed")).to_be_visible()
        page.get_by_role("button", name="Continue").press("Enter")
        page.wait_for_url("**/look")
        page.get_by_role("button", name="Create 2 candidates").press("Enter")
        page.wait_for_url("**/result", timeout=60_000)
        emails = {each["email"] for each in sandbox.store.records("candidates").values()}
        assert {"ann@example.com", "bo@example.com"} == emails
        context.close()

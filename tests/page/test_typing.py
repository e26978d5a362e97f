"""Cells are saved however fast a person types and leaves the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from connector.page.import_page import ImportPage
from connector.sandbox.server import Sandbox
from tests.page.serving import PageUser, csv_of, served, signed_in
from tests.page.test_ways import COLUMNS

ROWS = 30


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """An API with nobody in it."""
    with Sandbox() as opened:
        yield opened


def two_problems() -> bytes:
    """A file of which every row has a wrong email address and a wrong employment type."""
    return csv_of(*(f"Bo{n},Li,bo{n},permanent" for n in range(ROWS)))


def begun(ann: PageUser) -> str:
    """An import with its columns matched; its path."""
    path = ann.begin("people.csv", two_problems())
    ann.post(f"{path}/columns", COLUMNS)
    return path


def edits(page: ImportPage) -> dict[str, str]:
    """Every email that was typed, by its row."""
    (draft,) = page.drafts.all()
    return {row: edit["2"] for row, edit in draft.edits.items() if edit}


def test_forms_of_one_page_make_no_conflict(sandbox: Sandbox, tmp_path: Path) -> None:
    with signed_in(sandbox, tmp_path) as (page, ann):
        path = begun(ann)
        ann.see(f"{path}/rows")
        keys = ann.keys()
        for number in (2, 3, 4):
            fields = {**keys, f"e:{number}:2": f"bo{number}@example.com", "kind": "problem~x~"}
            answer = ann.post(f"{path}/rows", fields, headers={"X-Part": "rows"})
            assert 200 == answer.status_code
        assert ["2", "3", "4"] == [*edits(page)]


def test_a_conflict_names_the_person_and_links_to_the_latest_version(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with signed_in(sandbox, tmp_path) as (page, ann), PageUser(ann.address) as cy:
        path = begun(ann)
        cy.client.cookies.set("session", page.access.start_session("cy"))
        cy.see(f"{path}/rows")
        stale = cy.keys()
        ann.see(f"{path}/rows")
        ann.post(f"{path}/rows", {"e:2:2": "ann@example.com"})
        assert 409 == cy.post(f"{path}/rows", {**stale, "e:2:2": "cy@e.com"}).status_code
        assert "Ann changed this import while you had it open." in cy.shown.text
        assert f'href="{path}"' in cy.shown.text
        assert {"2": "ann@example.com"} == edits(page)
        cy.see(f"{path}/rows")
        cy.post(f"{path}/rows", {"e:2:2": "cy@example.com"})
        assert 409 == cy.post(f"{path}/rows", {**stale, "e:3:2": "x@e.com"}).status_code
        assert "You changed this import in another tab." in cy.shown.text
        assert {"2": "cy@example.com"} == edits(page)


Leave = tuple[Callable[[Page], object], str]

WAYS: tuple[Leave, ...] = (
    (lambda page: page.get_by_role("link", name="Next →").click(), "**/rows?*page=2"),
    (lambda page: page.get_by_role("link", name="Edit full row").nth(1).click(), "**/rows/*"),
    (lambda page: page.get_by_role("link", name="Columns").click(), "**/columns"),
    (lambda page: page.get_by_role("button", name="Continue").click(), "**/look"),
    (lambda page: page.go_back(), "**/history"),
    (lambda page: page.reload(), "**/rows"),
)
"""Ways to leave the screen, with the address of the next one."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "milliseconds"),
    [(0, 0), (0, 60), (0, 120), (0, 400), *product(range(1, len(WAYS)), (0, 120))],
)
def test_typing_and_leaving_saves_the_cell(
    browser: Browser, sandbox: Sandbox, tmp_path: Path, milliseconds: int, way: int
) -> None:
    leave, wanted = WAYS[way]
    with served(sandbox, tmp_path) as (served_page, address):
        with PageUser(address, served_page.access.new_link()) as ann:
            path = begun(ann)
        with browser.new_context() as context:
            page = context.new_page()
            page.goto(address + served_page.access.new_link())
            page.goto(f"{address}/history")
            page.goto(f"{address}{path}/rows")
            page.locator("#e3-2").fill("")
            page.locator("#e3-2").press_sequentially("bo3@example.com")
            page.wait_for_timeout(milliseconds)
            leave(page)
            page.wait_for_url(wanted)
            page.goto(f"{address}{path}/look")
            expect(page.locator(".tiles .create b")).to_have_text("1")


@pytest.mark.slow
def test_twenty_cells_are_typed_in_a_row(
    browser: Browser, sandbox: Sandbox, tmp_path: Path
) -> None:
    with served(sandbox, tmp_path) as (served_page, address):
        with PageUser(address, served_page.access.new_link()) as ann:
            path = begun(ann)
        page = browser.new_page()
        page.goto(address + served_page.access.new_link())
        page.goto(f"{address}{path}/rows")
        page.locator("#e2-2").focus()
        for number in range(2, 22):
            page.keyboard.press("Control+a")
            page.keyboard.type(f"bo{number}@example.com")
            page.keyboard.press("ArrowDown")
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url("**/look")
        expect(page.locator(".tiles .create b")).to_have_text("20")
        page.close()

"""Cells are saved however fast the user types and leaves the screen."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from connector.page.import_page import ImportPage
from connector.sandbox.server import Sandbox
from tests.page.serving import COLUMNS, PageUser, make_csv, serve_and_sign_in, serve_page

ROWS = 30


def start_import(user: PageUser) -> str:
    """Start an import with a wrong email address in each row up to its rows. Returns its path."""
    lines = (f"Bo{n},Li,bo{n},permanent" for n in range(ROWS))
    path = user.upload("people.csv", make_csv(*lines))
    user.post(f"{path}/columns", COLUMNS)
    return path


def read_edited_emails(page: ImportPage) -> dict[str, str]:
    """Return the edited emails by row."""
    (draft,) = page.drafts.load_all()
    return {row: edit["2"] for row, edit in draft.edits.items() if edit}


def test_several_forms_of_one_screen_cause_no_conflict(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        path = start_import(ann)
        ann.open(f"{path}/rows")
        keys = ann.read_hidden_fields()
        for number in (2, 3, 4):
            fields = {**keys, f"e:{number}:2": f"bo{number}@example.com", "kind": "problem~x~"}
            answer = ann.post(f"{path}/rows", fields, headers={"X-Part": "rows"})
            assert 200 == answer.status_code
        assert ["2", "3", "4"] == [*read_edited_emails(page)]


def test_a_conflict_names_the_person_and_links_to_the_latest_version(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann), PageUser(ann.address) as cy:
        path = start_import(ann)
        cy.client.cookies.set("session", page.access.start_session("cy"))
        cy.open(f"{path}/rows")
        stale = cy.read_hidden_fields()
        ann.open(f"{path}/rows")
        ann.post(f"{path}/rows", {"e:2:2": "ann@example.com"})
        assert 409 == cy.post(f"{path}/rows", {**stale, "e:2:2": "cy@e.com"}).status_code
        assert "Ann changed this import while you had it open." in cy.shown.text
        assert f'href="{path}"' in cy.shown.text
        assert {"2": "ann@example.com"} == read_edited_emails(page)
        cy.open(f"{path}/rows")
        cy.post(f"{path}/rows", {"e:2:2": "cy@example.com"})
        assert 409 == cy.post(f"{path}/rows", {**stale, "e:3:2": "x@e.com"}).status_code
        assert "You changed this import in another tab." in cy.shown.text
        assert {"2": "cy@example.com"} == read_edited_emails(page)


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
def test_a_typed_cell_is_saved_when_the_user_leaves_the_screen(
    browser: Browser, sandbox: Sandbox, tmp_path: Path, milliseconds: int, way: int
) -> None:
    leave, wanted = WAYS[way]
    with serve_page(sandbox, tmp_path) as (served_page, address):
        with PageUser(address, served_page.access.create_link()) as ann:
            path = start_import(ann)
        with browser.new_context() as context:
            page = context.new_page()
            page.goto(address + served_page.access.create_link())
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
def test_twenty_quickly_typed_cells_are_all_saved(
    browser: Browser, sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_page(sandbox, tmp_path) as (served_page, address):
        with PageUser(address, served_page.access.create_link()) as ann:
            path = start_import(ann)
        page = browser.new_page()
        page.goto(address + served_page.access.create_link())
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

"""Every screen at three widths and in both colour schemes."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Literal

import openpyxl
import pytest
from playwright.sync_api import Browser, BrowserContext

from connector.page.access import set_password
from connector.page.import_page import ImportPage
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.page.serving import COLUMNS, PageUser, make_csv, serve_page
from tests.pushes.pushing import create_lead
from tests.support.agency import settings_of

WIDTHS = {390: 844, 768: 1024, 1440: 900}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CHECKED = ((390, "dark"), (1440, "light"))
"""Widths and schemes in which axe checks every screen."""

WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
AXE = """() => axe.run({ resultTypes: ["violations"] }).then((results) => results.violations)"""
BUTTON = """() => {
  const button = document.querySelector("form .bar > button.go");
  if (!button) return true;
  const { top, bottom } = button.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}"""
SMALL = """() => [...document.querySelectorAll("input[type=checkbox], input[type=radio]")]
  .filter((each) => each.checkVisibility() && each.getBoundingClientRect().width < 24)
  .map((each) => each.name)"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def axe_script() -> str:
    """Source of the accessibility checker axe."""
    module = pytest.importorskip("axe_playwright_python")
    return (Path(module.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class PageWithImports:
    """Page, its address, and the path of each screen by a name."""

    page: ImportPage
    address: str
    screens: dict[str, str]


@pytest.fixture(scope="module")
def page_with_imports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageWithImports]:
    """Page with an import at each step."""
    folder = tmp_path_factory.mktemp("page")
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(counts={"candidates": 3}))
        create_lead(sandbox, "li")
        known = next(iter(sandbox.store.records("candidates").values()))
        body = {"first_name": "Twin", "last_name": "Li", "employment_type": "permanent"}
        for city in ("Bath", "York"):
            sandbox.store.create("candidates", {**body, "city": city, "email": "twin@example.com"})
        settings = settings_of(sandbox, folder)
        # The browser runs an event loop in this thread.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, pull(settings, ["candidates", "leads"])).result()
        inbox = folder / "data" / "inbox" / "candidates"
        inbox.mkdir(parents=True)
        (inbox / "push.toml").write_text('mode = "create"\n', encoding="utf-8")
        (inbox / "from-colleagues.csv").write_bytes(make_csv("Al,Ba,al@example.com,permanent"))
        flags: dict[str, Any] = {
            "record_url": "https://app.example/{resource}/{id}",
            "page_commands": "on",
        }
        page, address = stack.enter_context(
            serve_page(sandbox, folder, monthly_requests=20_000, **flags)
        )
        ann = stack.enter_context(PageUser(address, page.access.create_link()))
        yield PageWithImports(
            page, address, _prepare_screens(page, ann, folder, str(known["email"]))
        )


def _prepare_screens(
    page: ImportPage, user: PageUser, folder: Path, known_email: str
) -> dict[str, str]:
    """Create imports at each step. Returns the path of each screen by a name."""
    content = (
        make_csv(
            *("Bo,Li,bo(at)example.com,permanent", f"Cy,Lo,{known_email},permanent"),
            *(f"Ed{n},Wu,ed{n}@example.com,frei" for n in range(4)),
            *("Ed,Wu,ed0@example.com,permanent", "A very long name that goes on,Li,,permanent"),
            *(f"Fay{n},Lo,fay{n}@example,permanent" for n in range(30)),
        )
        .replace(b"\n", b",x\n")
        .replace(b"type,x", b"type,Available from", 1)
    )
    content = content.replace(b"permanent,x\nFay5", b"permanent,\nFay5")
    content = content.replace(b"fay3@example,permanent,x", b"fay3@example.com,permanent,02/03/2027")
    open_draft = user.upload("people with a rather long file name, 2026.csv", content)
    shown = {"home": "/", "table": f"{open_draft}/table", "columns": f"{open_draft}/columns"}
    user.post(f"{open_draft}/columns", {**COLUMNS, "c:4": "available_from"})
    shown |= {"values": f"{open_draft}/values", "rows": f"{open_draft}/rows"}
    user.open(f"{open_draft}/rows")
    kinds = re.findall(r'href="\?kind=([^"]+)"', user.shown.text)
    shown |= {f"rows-{n}": f"{open_draft}/rows?kind={kind}" for n, kind in enumerate(kinds)}
    shown |= {"row": f"{open_draft}/rows/2", "look": f"{open_draft}/look"}
    shown["look-invalid"] = f"{open_draft}/look?show=invalid"

    update = user.upload("update.csv", f"Email,City\n{known_email},Leeds\n".encode(), mode="update")
    shown["columns-update"] = f"{update}/columns"
    user.post(f"{update}/columns", {"c:0": "email", "c:1": "city", "match": "email"})
    shown["look-update"] = f"{update}/look"
    twins = user.upload("twins.csv", b"Email,City\ntwin@example.com,Leeds\n", mode="update")
    user.post(f"{twins}/columns", {"c:0": "email", "c:1": "city", "match": "email"})
    shown["rows-records"] = f"{twins}/rows"
    won = user.upload("won.csv", b"Email\nli@example.com\n", resource="leads", mode="convert")
    user.post(f"{won}/columns", {"c:0": "email"})
    shown["look-convert"] = f"{won}/look"

    book = openpyxl.Workbook()
    for sheet in (book.active, book.create_sheet("New people")):
        assert sheet is not None
        sheet.append(["First name", "Last name", "Email"])
        sheet.append(["Bo", "Li", "bo@example.com"])
    book.save(folder / "two.xlsx")
    shown["table-sheets"] = f"{user.upload('two.xlsx', (folder / 'two.xlsx').read_bytes())}/table"
    letters = make_csv("Bo,Dvořák,bo@example.com,permanent").decode().encode("cp1250")
    shown["table-letters"] = f"{user.upload('letters.csv', letters)}/table"

    sent = user.upload("sent.csv", make_csv("Zo,Li,zo@example.com,permanent", "Yo,Li,yo,permanent"))
    user.post(f"{sent}/columns", COLUMNS)
    user.open(f"{sent}/look")
    user.post(f"{sent}/send")
    user.open(f"{sent}/progress")
    shown |= {"result": f"{sent}/result", "result-created": f"{sent}/result?show=created"}
    shown["undo-asked"] = f"{sent}/undo"
    user.open(f"{sent}/result")
    user.post(f"{sent}/undo")
    user.open(f"{sent}/undo")
    return shown | {"undo": f"{sent}/undo", "history": "/history", "lost": "/imports/none"}


def _block_reader(gate: Event) -> None:
    """Block the page's reader until the gate opens, for at most a minute."""
    gate.wait(60)


class ScreenAuditor:
    """Opens screens in every size and colour scheme, and adds their faults to `faults`."""

    def __init__(self, context: BrowserContext, axe: str) -> None:
        self.page, self.faults = context.new_page(), list[str]()
        self._axe = axe
        self._folder = os.environ.get("SCREENS_FOLDER")

    def audit_screen(self, name: str, address: str) -> None:
        """Open a screen and add its faults."""
        self.page.goto(address)
        self.page.wait_for_function("!document.querySelector('[data-poll]')")
        self.audit_current_screen(name)

    def _is_checked(self, width: int, scheme: str) -> bool:
        """Return True if axe checks the screen; with a folder for pictures, it always does."""
        return (width, scheme) in CHECKED or self._folder is not None

    def audit_current_screen(self, name: str) -> None:
        """Add the faults of the current screen in every size and colour scheme."""
        shown = self.page
        shown.evaluate(self._axe)
        for width, height in WIDTHS.items():
            shown.set_viewport_size({"width": width, "height": height})
            where = f"{name} {width}"
            if shown.evaluate(WIDE):
                self.faults.append(f"{where}: wider than the screen")
            if not shown.evaluate(BUTTON):
                self.faults.append(f"{where}: the main button is not visible")
            self.faults += [f"{where}: {box} is small" for box in shown.evaluate(SMALL)]
            for scheme in SCHEMES:
                if not self._is_checked(width, scheme):
                    continue
                shown.emulate_media(color_scheme=scheme)
                for each in shown.evaluate(AXE):
                    nodes = "; ".join(node["html"][:90] for node in each["nodes"][:2])
                    self.faults.append(f"{where} {scheme}: {each['id']} {nodes}")
                if self._folder:
                    path = Path(self._folder) / f"{width}-{scheme}-{name}.png"
                    shown.screenshot(path=path, full_page=True)


def test_every_screen_is_accessible_and_fits_its_width(
    browser: Browser, axe_script: str, page_with_imports: PageWithImports
) -> None:
    page, address, screens = (
        page_with_imports.page,
        page_with_imports.address,
        page_with_imports.screens,
    )
    # The audit is a script of the test's own, which the page would not let run.
    context = browser.new_context(locale="en-GB", bypass_csp=True)
    auditor = ScreenAuditor(context, axe_script)
    auditor.page.goto(address + page.access.create_link())
    for name, path in screens.items():
        auditor.audit_screen(name, address + path)
    auditor.page.goto(address)
    auditor.page.evaluate("document.querySelector('form.begin').noValidate = true")
    auditor.page.evaluate("document.querySelector('#file').setCustomValidity('')")
    auditor.page.locator("form.begin button.go").click()
    auditor.page.wait_for_selector("#wrong")
    auditor.audit_current_screen("home-error")
    # A reading that waits for another one shows how far it is.
    gate, id = Event(), screens["rows"].split("/")[2]
    page.reader.discard_results(id)
    page.reader._queue.put(partial(_block_reader, gate))
    auditor.page.goto(address + screens["rows"])
    auditor.page.wait_for_selector("[data-poll]")
    auditor.audit_current_screen("reading")
    gate.set()
    context.close()
    assert not auditor.faults, "\n".join(auditor.faults)


def test_the_sign_in_screen_is_accessible_and_fits_its_width(
    browser: Browser, axe_script: str, tmp_path: Path
) -> None:
    people = tmp_path / "people.txt"
    set_password(people, "Ann", "a long enough word")
    with Sandbox() as sandbox, serve_page(sandbox, tmp_path, {"passwords": people}) as (_, address):
        context = browser.new_context(locale="en-GB", bypass_csp=True)
        auditor = ScreenAuditor(context, axe_script)
        auditor.audit_screen("login", f"{address}/login")
        context.close()
        assert not auditor.faults, "\n".join(auditor.faults)

"""Odd values on the page: swapped dates, words for nothing that are meant, wrong quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from connector.page.words import language
from connector.sandbox.server import Sandbox
from tests.page.serving import csv_of, signed_in
from tests.tiers import first_fast

HEADINGS = "First name,Last name,Email,Employment type"
COLUMNS = {
    f"c:{index}": name
    for index, name in enumerate(("first_name", "last_name", "email", "employment_type"))
}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """An API with nobody in it."""
    with Sandbox() as opened:
        yield opened


def people(sandbox: Sandbox) -> list[tuple[str, str, str | None]]:
    """Everybody's names and first day."""
    return sorted(
        (each["first_name"], each["last_name"], each.get("available_from"))
        for each in sandbox.store.records("candidates").values()
    )


def text_of(page: str) -> str:
    """The text of a page, without its tags."""
    return " ".join(unescape(re.sub("<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("code", first_fast(["en", "de", "fr"]))
def test_dates_that_may_be_swapped_are_sent_once_you_agree(
    sandbox: Sandbox, tmp_path: Path, code: str
) -> None:
    lines = (
        f"{HEADINGS},Available from",
        "Bo,Li,bo@example.com,permanent,2026-04-03",
        "Cy,Lo,cy@example.com,permanent,25/12/2026",
    )
    told = language(code).gettext(
        "A spreadsheet program may have swapped day and month of the dates in this column:"
    )
    headers: dict[str, Any] = {"Accept-Language": code}
    with signed_in(sandbox, tmp_path, **headers) as (page, ann):
        ann.client.get(page.access.new_link())
        path = ann.begin("dates.csv", "\n".join(lines).encode())
        ann.post(f"{path}/columns", {**COLUMNS, "c:4": "available_from"})
        assert f"{told} Available from" in text_of(ann.see(f"{path}/look").text)
        assert 400 == ann.post(f"{path}/send").status_code
        ann.see(f"{path}/look")
        ann.post(f"{path}/send", {"accept": "yes"})
        ann.see(f"{path}/progress")

    assert [("Bo", "Li", "2026-04-03"), ("Cy", "Lo", "2026-12-25")] == people(sandbox)


def test_a_word_for_nothing_that_is_meant_is_kept(sandbox: Sandbox, tmp_path: Path) -> None:
    with signed_in(sandbox, tmp_path) as (_, ann):
        path = ann.begin("people.csv", csv_of("Bo,Null,bo@example.com,permanent"))
        ann.post(f"{path}/columns", COLUMNS)
        assert "Null" in text_of(ann.see(f"{path}/values").text)
        assert "Keep this text" in ann.shown.text
        ann.post(f"{path}/values", {"value:1:0": "Null"})
        ann.see(f"{path}/look")
        ann.post(f"{path}/send")
        ann.see(f"{path}/progress")

    assert [("Bo", "Null", None)] == people(sandbox)


def test_a_row_with_a_wrong_quote_is_corrected_on_the_page(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    lines = (
        *("Bo,Li,bo@example.com,permanent", 'Cy,"L"o,cy@example.com,permanent'),
        "Di,My,di@example.com,permanent",
    )
    with signed_in(sandbox, tmp_path) as (_, ann):
        path = ann.begin("people.csv", csv_of(*lines))
        ann.post(f"{path}/columns", COLUMNS)
        assert "is in the middle of a cell" in text_of(ann.see(f"{path}/rows").text)
        ann.post(f"{path}/rows", {"e:3:1": "Lo", "seen:3": "on", "go": "on"})
        ann.see(f"{path}/look")
        ann.post(f"{path}/send")
        ann.see(f"{path}/progress")

    names = [("Bo", "Li", None), ("Cy", "Lo", None), ("Di", "My", None)]
    assert names == people(sandbox)

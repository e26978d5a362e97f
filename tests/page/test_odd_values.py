"""Odd values on the page: ambiguous dates, placeholder words, wrong quotes."""

from __future__ import annotations

from pathlib import Path

from connector.sandbox.server import Sandbox
from tests.page.serving import COLUMNS, make_csv, serve_and_sign_in, strip_tags

HEADINGS = "First name,Last name,Email,Employment type"


def read_people(sandbox: Sandbox) -> list[tuple[str, str, str | None]]:
    """Return first name, last name and first day of availability of all candidates."""
    return sorted(
        (each["first_name"], each["last_name"], each.get("available_from"))
        for each in sandbox.store.records("candidates").values()
    )


def test_ambiguous_dates_are_sent_after_confirmation(sandbox: Sandbox, tmp_path: Path) -> None:
    lines = (
        f"{HEADINGS},Available from",
        "Bo,Li,bo@example.com,permanent,2026-04-03",
        "Cy,Lo,cy@example.com,permanent,25/12/2026",
    )
    text = "A spreadsheet program may have swapped day and month of the dates in this column:"
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("dates.csv", "\n".join(lines).encode())
        ann.post(f"{path}/columns", {**COLUMNS, "c:4": "available_from"})
        assert f"{text} Available from" in strip_tags(ann.open(f"{path}/look").text)
        assert 400 == ann.post(f"{path}/send").status_code
        ann.open(f"{path}/look")
        ann.post(f"{path}/send", {"accept": "yes"})
        ann.open(f"{path}/progress")

    assert [("Bo", "Li", "2026-04-03"), ("Cy", "Lo", "2026-12-25")] == read_people(sandbox)


def test_a_confirmed_placeholder_word_is_kept_as_text(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("people.csv", make_csv("Bo,Null,bo@example.com,permanent"))
        ann.post(f"{path}/columns", COLUMNS)
        assert "Null" in strip_tags(ann.open(f"{path}/values").text)
        assert "Keep this text" in ann.shown.text
        ann.post(f"{path}/values", {"value:1:0": "Null"})
        ann.open(f"{path}/look")
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")

    assert [("Bo", "Null", None)] == read_people(sandbox)


def test_a_row_with_a_wrong_quote_can_be_corrected_on_the_page(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    lines = (
        *("Bo,Li,bo@example.com,permanent", 'Cy,"L"o,cy@example.com,permanent'),
        "Di,My,di@example.com,permanent",
    )
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("people.csv", make_csv(*lines))
        ann.post(f"{path}/columns", COLUMNS)
        assert "is in the middle of a cell" in strip_tags(ann.open(f"{path}/rows").text)
        ann.post(f"{path}/rows", {"e:3:1": "Lo", "seen:3": "on", "go": "on"})
        ann.open(f"{path}/look")
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")

    names = [("Bo", "Li", None), ("Cy", "Lo", None), ("Di", "My", None)]
    assert names == read_people(sandbox)

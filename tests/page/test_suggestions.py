"""Suggestions of the page: columns to confirm, and country codes of phone numbers."""

from __future__ import annotations

import re
from pathlib import Path

from connector.sandbox.server import Sandbox
from tests.page.serving import serve_and_sign_in


def test_a_column_with_words_of_a_label_is_preselected_and_needs_confirmation(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        content = (
            "First name,Last name,Email,Employment type,Period\nBo,Li,bo@example.com,permanent,30\n"
        )
        path = ann.upload("people.csv", content.encode())
        shown = ann.open(f"{path}/columns").text
        assert 1 == shown.count("Please confirm")
        assert '<option value="notice_period_days" selected>' in shown


def test_a_country_that_does_not_fit_the_phone_numbers_is_not_preselected(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        ann.client.headers["Accept-Language"] = "fr-FR,fr;q=0.9"
        content = (
            "Vorname,Nachname,E-Mail,Beschäftigungsart,Mobil\n"
            "Cy,Li,cy@example.com,permanent,0171/12345678\n"
        )
        path = ann.upload("liste.csv", content.encode())
        ann.open(f"{path}/columns")
        ann.post(f"{path}/columns")
        shown = ann.open(f"{path}/values").text

    assert '<option value="FR">' in shown
    assert "selected" not in shown.partition('name="region"')[2].partition("</select>")[0]


def test_phone_numbers_get_the_chosen_country_code(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        ann.client.headers["Accept-Language"] = "de-DE,de;q=0.9"
        content = (
            "Vorname,Nachname,E-Mail,Beschäftigungsart,Mobil\n"
            "Bo,Li,bo@example.com,permanent,0049 171 1234567\n"
            "Cy,Li,cy@example.com,permanent,0171/1234568\n"
            "Di,Li,di@example.com,permanent,+49 (0) 171 1234569\n"
        )
        path = ann.upload("liste.csv", content.encode())
        ann.open(f"{path}/columns")
        ann.post(f"{path}/columns")
        shown = ann.open(f"{path}/values").text
        assert '<option value="DE" selected>' in shown
        assert re.search("<q>0171/1234568</q> → <b>[+]491711234568</b>", shown)
        ann.post(f"{path}/values", {"region": "DE"})
        ann.open(f"{path}/look")
        ann.post(f"{path}/send", {"accept": "yes"})
        while "/progress" in str(ann.open(f"{path}/progress").url):
            pass
        numbers = {each["mobile"] for each in sandbox.store.records("candidates").values()}
        assert {"+491711234567", "+491711234568", "+491711234569"} == numbers

"""Other imports: two users, the inbox, the command, updates, odd files."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from connector.ledger.journal import Journal
from connector.ledger.ledger import Ledger
from connector.page import draft_sender
from connector.pulls.run import pull
from connector.pushes import batch
from connector.pushes.push import push
from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from connector.settings.model import Settings
from connector.warehouse.warehouse import Warehouse
from tests.page.serving import (
    COLUMNS,
    PageUser,
    make_csv,
    make_environ,
    serve_and_sign_in,
    serve_page,
)
from tests.pushes.pushing import create_lead
from tests.support.agency import settings_of

SETTLE_SECONDS = 0.2


def read_emails(sandbox: Sandbox) -> list[str]:
    """Return the email addresses of all candidates."""
    return sorted(each["email"] for each in sandbox.store.records("candidates").values())


def prepare_import(user: PageUser, *lines: str) -> str:
    """Prepare an import of these rows up to the preview. Returns its path."""
    path = user.upload("people.csv", make_csv(*lines))
    user.post(f"{path}/columns", COLUMNS)
    user.open(f"{path}/look")
    return path


@pytest.mark.slow
def test_the_history_names_the_user_who_sent_an_import(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_page(sandbox, tmp_path) as (page, address):
        with PageUser(address, page.access.create_link()) as ann, PageUser(address) as cy:
            path = prepare_import(ann, "Bo,Li,bo@example.com,permanent")
            cy.client.cookies.set("session", page.access.start_session("Cy"))
            cy.open(f"{path}/look")
            cy.post(f"{path}/send")
            assert "Imported by Cy" in cy.open(f"{path}/progress").text
            assert "sent by Cy" in ann.open("/history").text
        assert ["bo@example.com"] == read_emails(sandbox)
        folder = page.drafts.folder.parent
        with Ledger(folder) as ledger:
            (batch,) = Journal(ledger).batches()
        assert "Cy" == batch.sent_by
        with Warehouse(folder).open_connection() as connection:
            published = connection.execute("SELECT sent_by FROM push.batches").fetchall()
        assert [("Cy",)] == published


def test_a_file_in_the_inbox_can_be_opened_as_an_import(sandbox: Sandbox, tmp_path: Path) -> None:
    inbox = tmp_path / "data" / "inbox" / "candidates"
    inbox.mkdir(parents=True)
    (inbox / "push.toml").write_text('mode = "upsert"\nmatch = ["email"]\n', encoding="utf-8")
    (inbox / "new.csv").write_bytes(make_csv("Bo,Li,bo@example.com,permanent"))
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        ann.open("/")
        (shown,) = re.findall(r'name="digest" value="(\w+)"', ann.shown.text)
        ann.post("/inbox", {"resource": "candidates", "name": "new.csv", "digest": shown})
        (draft,) = page.drafts.load_all()
        assert ("upsert", ["email"]) == (draft.mode, draft.options["match"])
        assert not (inbox / "new.csv").exists()
        assert "new.csv" in ann.shown.text


@pytest.mark.slow
def test_an_import_started_on_the_page_can_be_sent_by_the_command(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_and_sign_in(sandbox, tmp_path, page_commands="on") as (_, ann):
        path = ann.upload(
            "people.csv", make_csv("Bo,Li,bo@example.com,permanent", "Cy,Lo,cy,permanent")
        )
        ann.post(f"{path}/columns", COLUMNS)
        ann.open(f"{path}/rows")
        ann.post(f"{path}/rows", {"e:3:2": "cy@example.com", "seen:3": "on", "go": "on"})
        (command,) = re.findall(r"<code>(.*?)</code>", ann.open(f"{path}/look").text)
        words = shlex.split(command.replace("&#39;", "'"))
        code = "from connector.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *words[1:]],
            env=make_environ(sandbox, tmp_path),
            check=False,
            capture_output=True,
            text=True,
            cwd=os.getcwd(),
        )
        assert 0 == done.returncode, done.stderr
        assert ["bo@example.com", "cy@example.com"] == read_emails(sandbox)
        ann.open(f"{path}/look")
        assert "No changes to send" in ann.shown.text
        assert 2 == len(read_emails(sandbox))


@pytest.mark.slow
def test_the_user_can_resolve_unconfirmed_rows(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def push_without_waits(settings: Settings, file: Any, manner: Any, **more: Any) -> Any:
        terms = replace(manner.policy, settle_seconds=SETTLE_SECONDS)
        return await push(settings, file, replace(manner, policy=terms), **more)

    monkeypatch.setattr(draft_sender, "push", push_without_waits)
    monkeypatch.setattr(batch, "settle_seconds_min", lambda _: SETTLE_SECONDS)
    with serve_and_sign_in(sandbox, tmp_path, connections=1) as (_, ann):
        lines = [f"{name},Li,{name.lower()}@example.com,permanent" for name in ("Al", "Bo", "Cy")]
        path = prepare_import(ann, *lines)
        for _ in lines:
            sandbox.faults.add(Drop("later"), method="POST", path="/api/v1/candidates")
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")
        assert "some rows need checking" in ann.open(f"{path}/result").text
        assert [] == read_emails(sandbox)
        body = {"first_name": "Al", "last_name": "Li", "email": "al@example.com"}
        made = sandbox.store.create("candidates", {**body, "employment_type": "permanent"})
        assert 400 == ann.post(f"{path}/resolve", {"row": "2", "decision": "record"}).status_code
        ann.open(f"{path}/result")
        named = {"row": "2", "decision": "record", "record": str(made.record["id"])}
        others = {"row": "3", "decision": "resend"}, {"row": "4", "decision": "drop"}
        for decided in (named, *others):
            ann.post(f"{path}/resolve", decided)
            assert 200 == ann.shown.status_code
        assert "Unconfirmed" not in ann.shown.text
        assert ["al@example.com", "bo@example.com"] == read_emails(sandbox)


@pytest.mark.slow
def test_updates_are_shown_with_old_and_new_values_and_can_be_undone(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    body = {"first_name": "Bo", "last_name": "Li", "email": "bo@example.com"}
    sandbox.store.create("candidates", {**body, "employment_type": "permanent"})
    settings = settings_of(sandbox, tmp_path)
    asyncio.run(pull(settings, ["candidates"]))
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("changes.csv", b"Email,Last name\nbo@example.com,Lee\n", mode="update")
        ann.post(f"{path}/columns", {"c:0": "email", "c:1": "last_name", "match": "email"})
        assert "<del>Li</del>" in ann.open(f"{path}/look").text
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")
        assert ["Lee"] == [e["last_name"] for e in sandbox.store.records("candidates").values()]
        ann.open(f"{path}/result")
        ann.post(f"{path}/undo")
        assert "<del>Lee</del>" in ann.open(f"{path}/undo").text
        ann.post(f"{path}/undo", {"go": "on"})
        ann.open(f"{path}/undo")
        assert ["Li"] == [e["last_name"] for e in sandbox.store.records("candidates").values()]


def test_the_user_chooses_one_of_several_matching_records(sandbox: Sandbox, tmp_path: Path) -> None:
    body = {"last_name": "Li", "email": "li@example.com", "employment_type": "permanent"}
    made = [
        sandbox.store.create("candidates", {**body, "first_name": name, "city": city}).record
        for name, city in (("Bo", "Bath"), ("Cy", "York"))
    ]
    asyncio.run(pull(settings_of(sandbox, tmp_path), ["candidates"]))
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("changes.csv", b"Email,City\nli@example.com,Leeds\n", mode="update")
        ann.post(f"{path}/columns", {"c:0": "email", "c:1": "city", "match": "email"})
        shown = ann.open(f"{path}/rows").text
        for each in made:
            assert f'name="pick:2" value="{each["id"]}"' in shown
        assert "Bo Li" in shown
        assert "York" in shown
        ann.post(f"{path}/rows", {"pick:2": str(made[1]["id"]), "seen:2": "on", "go": "on"})
        assert "<del>York</del>" in ann.open(f"{path}/look").text
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")
    people = sandbox.store.records("candidates").values()
    assert {"Bo": "Bath", "Cy": "Leeds"} == {each["first_name"]: each["city"] for each in people}


@pytest.mark.slow
def test_the_choice_between_companies_of_one_name_applies_to_all_rows(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    made = [
        sandbox.store.create("companies", {"name": "Acme", "email": f"{name}@example.com"}).record
        for name in ("bath", "york")
    ]
    asyncio.run(pull(settings_of(sandbox, tmp_path), ["companies"]))
    row = "London,permanent,Sells things"
    content = "Title,Location,Employment type,Description,Client\n"
    content += f"Seller,{row},ACME\nBuyer,{row},Acme\nClerk,{row},ACME\n"
    names = ("title", "location", "employment_type", "description", "company_name")
    columns = {f"c:{index}": name for index, name in enumerate(names)}
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        path = ann.upload("jobs.csv", content.encode(), resource="jobs")
        ann.post(f"{path}/columns", columns)
        assert ann.shown.url.path.endswith("/values")
        for each in made:
            assert f'<option value="{each["id"]}"' in ann.shown.text
        answers = {f"value:4:{place}": str(made[1]["id"]) for place in range(2)}
        ann.post(f"{path}/values", answers)
        assert ann.shown.url.path.endswith("/look")
        assert "Create 3 jobs" in ann.shown.text
        (draft,) = page.drafts.load_all()
        meant = page.reader.values_to_send(
            page.checked_file(draft), [*page.checked_file(draft).rows.rows()]
        )
        assert {made[1]["id"]} == {each["company_id"] for each in meant.values()}
        assert f'<option value="{made[1]["id"]}" selected>' in ann.open(f"{path}/values").text


@pytest.mark.slow
def test_a_corrected_company_name_can_be_cleared_later(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.store.create("companies", {"name": "Acme", "email": "acme@example.com"})
    asyncio.run(pull(settings_of(sandbox, tmp_path), ["companies"]))
    row = "London,permanent,Sells things,Acmee"
    content = f"Title,Location,Employment type,Description,Client\nSeller,{row}\nBuyer,{row}\n"
    names = ("title", "location", "employment_type", "description", "company_name")
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        path = ann.upload("jobs.csv", content.encode(), resource="jobs")
        ann.post(f"{path}/columns", {f"c:{index}": name for index, name in enumerate(names)})
        for answer in ({"value:4:0": "Acme"}, {"value:4:0": "Acme", "empty:4:0": "on"}):
            ann.open(f"{path}/values")
            ann.post(f"{path}/values", answer)
            (draft,) = page.drafts.load_all()
            saved = page.drafts.saved_map(draft)
            assert saved is not None
            expected = "" if len(answer) > 1 else "Acme"
            assert {"Acmee": expected} == saved.columns["Client"][1].values


def test_a_conversion_needs_confirmation_and_offers_no_undo(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    create_lead(sandbox, "li")
    asyncio.run(pull(settings_of(sandbox, tmp_path), ["leads"]))
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        form = {"resource": "leads", "mode": "convert"}
        path = ann.upload("won.csv", b"Email\nli@example.com\n", **form)
        ann.post(f"{path}/columns", {"c:0": "email"})
        assert "A conversion cannot be undone." in ann.open(f"{path}/look").text
        assert 400 == ann.post(f"{path}/send").status_code
        ann.open(f"{path}/look")
        ann.post(f"{path}/send", {"final": "yes"})
        assert "Converted" in ann.open(f"{path}/progress").text
        (draft,) = page.drafts.load_all()
        with page.drafts.open_for_change(draft.id, "Ann") as draft:
            draft.sent_at = "2026-01-02T03:04:00+00:00"
        shown = ann.open(f"{path}/result").text
        assert "2 Jan 2026, 03:04" in shown
        assert "/undo" not in shown


@pytest.mark.slow
def test_rows_keep_their_numbers_after_corrections(sandbox: Sandbox, tmp_path: Path) -> None:
    rows = (
        "Bo,Li,bo,permanent",
        "Cy,Lo,cy@example.com,permanent",
        "Ed,Wu,ed@example.com,permanent",
    )
    content = b"A list\n\n" + make_csv(*rows, "Total,3,,")
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("list.csv", content)
        ann.post(f"{path}/columns", COLUMNS)
        ann.open(f"{path}/rows")
        assert "Row 4" in ann.shown.text
        form = {
            "e:4:2": "bo@example.com",
            "seen:4": "on",
            "seen:5": "on",
            "out:5": "on",
            "go": "on",
        }
        ann.post(f"{path}/rows", form)
        shown = re.findall(r'<span class="number">(\d+)</span>', ann.open(f"{path}/look").text)
        assert ["4", "6"] == shown
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")
        assert ["bo@example.com", "ed@example.com"] == read_emails(sandbox)


def test_the_user_chooses_one_of_several_sheets(sandbox: Sandbox, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for number, sheet in enumerate((book.active, book.create_sheet("New people"))):
        assert sheet is not None
        sheet.append(["First name", "Last name", "Email"])
        sheet.append(["Bo", "Li", f"bo{number}@example.com"])
    book.save(tmp_path / "two.xlsx")
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("two.xlsx", (tmp_path / "two.xlsx").read_bytes())
        assert ann.shown.url.path.endswith("/table")
        assert "2 sheets" in ann.shown.text
        assert 'name="sheet" value="New people"' in ann.shown.text
        assert "<td>bo1@example.com</td>" in ann.shown.text
        ann.post(f"{path}/table", {"sheet": "new people"})
        assert ann.shown.url.path.endswith("/columns")
        assert "bo1@example.com" in ann.shown.text


@pytest.mark.slow
def test_skipped_rows_can_be_corrected_and_sent_later(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        lines = "Bo,Li,bo@example.com,permanent", "Cy,Lo,cy,permanent"
        path = prepare_import(ann, *lines)
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")
        assert ["bo@example.com"] == read_emails(sandbox)
        ann.open(f"{path}/result")
        ann.post(f"{path}/rest")
        rest = ann.shown.url.path.removesuffix("/rows")
        assert rest != path
        ann.post(f"{rest}/rows", {"e:3:2": "cy@example.com", "seen:3": "on", "go": "on"})
        assert "Create 1 candidate<" in ann.open(f"{rest}/look").text
        ann.post(f"{rest}/send")
        ann.open(f"{rest}/progress")
        assert ["bo@example.com", "cy@example.com"] == read_emails(sandbox)


@pytest.mark.slow
def test_hidden_columns_are_sent_only_after_confirmation(sandbox: Sandbox, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["First name", "Last name", "Email", "Employment type"])
    sheet.append(["Bo", "Li", "bo@example.com", "permanent"])
    sheet.column_dimensions["C"].hidden = True
    book.save(tmp_path / "hidden.xlsx")
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("hidden.xlsx", (tmp_path / "hidden.xlsx").read_bytes())
        ann.post(f"{path}/columns", COLUMNS)
        assert "Hidden columns will be imported: Email" in ann.open(f"{path}/look").text
        assert 400 == ann.post(f"{path}/send").status_code
        ann.open(f"{path}/look")
        ann.post(f"{path}/send", {"accept": "yes"})
        ann.open(f"{path}/progress")
        assert ["bo@example.com"] == read_emails(sandbox)


def test_an_ambiguous_encoding_is_shown_in_both_readings(sandbox: Sandbox, tmp_path: Path) -> None:
    content = make_csv("João,Li,bo@example.com,permanent").decode().encode("cp1252")
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("letters.csv", content)
        assert ann.shown.url.path.endswith("/table")
        assert "João" in ann.shown.text
        assert "Joăo" in ann.shown.text
        ann.post(f"{path}/table", {"encoding": "cp1252", "header_row": "1"})
        assert ann.shown.url.path.endswith("/columns")
        assert "João" in ann.shown.text
        assert "Joăo" not in ann.shown.text


def test_the_review_says_how_the_file_and_its_cells_were_read(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    old = make_csv("Zoë,Müller,zoe@example.com,permanent").decode().encode("cp1252")
    copied = make_csv("Zo\u200be,Miller,zoe@example.com,permanent")
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        for content, said in (
            (old, "is read as cp1252: Zoë"),
            (copied, "The cell contains invisible characters, which are removed."),
        ):
            ann.open(f"{ann.upload('letters.csv', content)}/look")
            assert ann.shown.url.path.endswith("/look")
            assert said in ann.shown.text


def test_unknown_columns_can_be_skipped_together(sandbox: Sandbox, tmp_path: Path) -> None:
    content = b"First name,Last name,Email,Kind,A,B\nBo,Li,bo@example.com,permanent,1,2\n"
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("odd.csv", content)
        assert "Suggested: Employment type" in " ".join(ann.shown.text.split())
        chosen = {name: field for name, field in COLUMNS.items() if field != "employment_type"}
        ann.post(f"{path}/columns", {**chosen, "c:3": "employment_type", "rest": "-"})
        assert ann.shown.url.path.endswith("/look")
        assert "<dt>Employment type</dt> <dd>permanent</dd>" in ann.shown.text

"""The first and last screen of an import, and the limits that they show."""

from __future__ import annotations

import io
import re
from pathlib import Path

import openpyxl
import pytest
from playwright.sync_api import Browser, expect

from connector.page.draft_sender import DraftRun
from connector.pulls.outcome import Progress
from connector.sandbox.server import Sandbox
from tests.page.serving import PageProcess, make_csv, make_environ, serve_and_sign_in, serve_page
from tests.page.test_ways import prepare_import

ROW = "Bo,Li,bo@example.com,permanent"


def test_a_rejected_start_form_keeps_its_answers(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        ann.open("/")
        form = {"resource": "jobs", "mode": "convert", "pasted": "Title\nCook"}
        assert 422 == ann.post("/imports", form).status_code
        assert "Only leads can be converted." in ann.shown.text
        assert 'value="jobs" required checked' in ann.shown.text
        assert "Title\nCook</textarea>" in ann.shown.text
        ann.post("/imports", {"resource": "jobs", "mode": "create", "pasted": " "})
        assert 'role="alert" id="wrong">Choose a file, or paste cells.' in ann.shown.text
        assert [] == page.drafts.load_all()


def test_an_unreadable_file_creates_no_import(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        for name in ("Brief.pdf", "list.xlsx", "old.xls"):
            assert "" == ann.upload(name, b"%PDF-1.7 \x00\x01")
            assert 422 == ann.shown.status_code
            assert 'id="wrong"' in ann.shown.text
        assert [] == page.drafts.load_all()
        assert "" != ann.upload("headings.csv", b"First name,Last name\n")
        assert 1 == len(page.drafts.load_all())


def test_the_size_limit_is_shown_on_the_first_screen_and_in_the_error(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_and_sign_in(sandbox, tmp_path, import_file_mb=1) as (_, ann):
        assert "(1 MB maximum)" in ann.open("/").text
        ann.upload("large.csv", b"x" * 4_000_000)
        assert 413 == ann.shown.status_code
        assert "The file is larger than 1 MB." in ann.shown.text
        assert 'href="/"' in ann.shown.text


def test_planned_requests_and_the_remaining_quota_are_shown_before_sending(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_and_sign_in(sandbox, tmp_path, monthly_requests=5_000) as (_, ann):
        prepare_import(ann, ROW)
        shown = " ".join(ann.shown.text.split())
        assert re.search(r"About 2 requests\. (4,9\d\d|5,000) are left this month\.", shown)
        ann.open("/")
    with serve_and_sign_in(sandbox, tmp_path, monthly_requests=1) as (_, ann):
        prepare_import(ann, ROW)
        assert "Only 1 requests are left this month." in ann.shown.text


def test_the_template_can_be_downloaded(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        ann.open("/")
        response = ann.post("/template", {"resource": "leads", "mode": "upsert"})
        assert "leads.xlsx" in response.headers["content-disposition"]
        book = openpyxl.load_workbook(io.BytesIO(response.content))
        assert "email" in [each.value for each in book.worksheets[0][1]]


def test_a_completed_import_shows_links_to_the_records(sandbox: Sandbox, tmp_path: Path) -> None:
    address = "https://app.example/{resource}/{id}"
    with serve_and_sign_in(sandbox, tmp_path, record_url=address) as (_, ann):
        path = prepare_import(ann, ROW)
        assert "connector push" not in ann.shown.text
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")
        shown = ann.open(f"{path}/result").text
        (id,) = sandbox.store.records("candidates")
        assert f'href="https://app.example/candidates/{id}"' in shown
        assert re.search(r'href="/">\s*Import another file', shown)


def test_the_progress_bar_only_moves_forward() -> None:
    run, shown = DraftRun("send"), list[int]()
    events = [
        Progress("candidates"),
        *(Progress("candidates", n, 9 - n, batch="b") for n in (0, 9)),
    ]
    for event in (*events, Progress("candidates", 1, 2)):
        run.update(event)
        shown.append(run.percent)
    assert sorted(shown) == shown
    assert "end" == run.phase


@pytest.mark.slow
def test_a_file_can_be_dropped_anywhere_on_the_page(
    browser: Browser, sandbox: Sandbox, tmp_path: Path
) -> None:
    drop = """name => {
      const data = new DataTransfer();
      data.items.add(new File(["First name\\nBo"], name));
      document.querySelector("h1").dispatchEvent(
        new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
      return document.querySelector("#file").files[0]?.name;
    }"""
    with serve_page(sandbox, tmp_path, import_file_mb=1) as (page, address):
        shown = browser.new_page()
        shown.goto(address + page.access.create_link())
        wrong = "document.querySelector('#file').validationMessage"
        assert "Choose a file, or paste cells." == shown.evaluate(wrong)
        assert "Brief.csv" == shown.evaluate(drop, "Brief.csv")
        assert "" == shown.evaluate(wrong)
        large = tmp_path / "large.csv"
        large.write_bytes(b"x" * 2_000_000)
        shown.set_input_files("#file", large)
        assert "The file is larger than 1 MB." == shown.evaluate(wrong)
        # A choice that the resource does not have is not kept.
        shown.locator("input[value=leads]").check()
        shown.locator("input[value=convert]").check()
        shown.locator("input[value=candidates]").check()
        expect(shown.locator("input[value=create]")).to_be_checked()
        shown.close()


@pytest.mark.slow
def test_a_waiting_screen_continues_after_a_server_restart(
    browser: Browser, sandbox: Sandbox, tmp_path: Path
) -> None:
    environ = make_environ(sandbox, tmp_path)
    with PageProcess(environ, tmp_path) as server:
        context = browser.new_context(locale="en-GB", permissions=["notifications"])
        page = context.new_page()
        page.add_init_script(
            "window.told = []; window.Notification = class {"
            " constructor(title, options) { localStorage.told = title + ': ' + options.body; }"
            " static requestPermission() { return Promise.resolve('granted'); } };"
        )
        page.goto(server.link)
        people = "\n".join(f"P{n},Li,p{n}@example.com,permanent" for n in range(200))
        page.set_input_files(
            "#file", {"name": "p.csv", "mimeType": "text/csv", "buffer": make_csv(people)}
        )
        page.get_by_role("button", name="Upload file").click()
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url("**/look")
        page.get_by_role("button", name="Create 200").click()
        page.wait_for_url("**/progress")
        page.get_by_label("Notify me when the import ends").check()
        server.kill()
        expect(page.get_by_role("status")).to_contain_text("cannot be reached", timeout=10_000)
        with PageProcess(environ, tmp_path, server.port):
            page.wait_for_url("**/result", timeout=60_000)
            expect(page.locator(".tiles .created b")).to_have_text("200")
            assert "p.csv: Import completed" == page.evaluate("localStorage.told")
        context.close()

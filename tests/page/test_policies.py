"""Fields that already have values: long texts are kept, and text can be appended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.page.serving import PageUser, serve_and_sign_in, serve_page
from tests.support.agency import settings_of

CONTENT = b"Email,City,Comment,Rest\nbo@example.com,York,Met.,x\n"
BODY = {"first_name": "Bo", "last_name": "Li", "employment_type": "permanent"}
FIELDS = {"c:0": "email", "c:1": "city", "c:2": "notes", "c:3": "-", "match": "email"}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """Sandbox with one candidate who has notes."""
    with Sandbox() as opened:
        bo = {**BODY, "email": "bo@example.com", "city": "Bath", "notes": "Called."}
        opened.store.create("candidates", bo)
        yield opened


def read_notes(sandbox: Sandbox) -> str:
    """Return the candidate's notes."""
    (found,) = sandbox.store.records("candidates").values()
    return str(found["notes"])


def start_import(user: PageUser, **fields: str) -> str:
    """Start an import up to its preview; `fields` are answers of the columns screen. Returns its
    path.
    """
    path = user.upload("changes.csv", CONTENT, mode="update")
    user.post(f"{path}/columns", {**FIELDS, **fields})
    user.open(f"{path}/look")
    return path


def test_long_texts_fill_only_empty_fields_by_default(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        path = ann.upload("changes.csv", CONTENT, mode="update")
        ann.post(f"{path}/columns", FIELDS)
        (draft,) = page.drafts.load_all()
        saved = page.drafts.saved_map(draft)
        assert saved is not None
        policies = {name: options.policy for name, options in saved.columns.values()}
        assert {"email": "overwrite", "city": "overwrite", "notes": "fill"} == policies


@pytest.mark.slow
def test_a_long_text_is_overwritten_only_if_chosen(sandbox: Sandbox, tmp_path: Path) -> None:
    asyncio.run(pull(settings_of(sandbox, tmp_path), ["candidates"]))
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = start_import(ann)
        assert "<del>Bath</del>" in ann.shown.text
        assert "<del>Called.</del>" not in ann.shown.text
        ann.open(f"{path}/columns")
        ann.post(f"{path}/columns", {**FIELDS, "p:2": "overwrite"})
        assert "<del>Called.</del>" in ann.open(f"{path}/look").text


@pytest.mark.slow
def test_appended_text_is_added_once_and_can_be_undone(sandbox: Sandbox, tmp_path: Path) -> None:
    asyncio.run(pull(settings_of(sandbox, tmp_path), ["candidates"]))
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = start_import(ann, **{"p:2": "append"})
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")
        assert "Called.\n\nMet." == read_notes(sandbox)
        start_import(ann, **{"p:2": "append"})
        assert "No changes" in ann.shown.text
        ann.open(f"{path}/result")
        ann.post(f"{path}/undo")
        ann.open(f"{path}/undo")
        ann.post(f"{path}/undo", {"go": "on"})
        ann.open(f"{path}/undo")
        assert "Called." == read_notes(sandbox)


@pytest.mark.slow
def test_text_is_not_appended_to_a_field_that_changed_since_the_preview(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    asyncio.run(pull(settings_of(sandbox, tmp_path), ["candidates"]))
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = start_import(ann, **{"p:2": "append"})
        (id,) = sandbox.store.records("candidates")
        sandbox.store.update("candidates", id, {"notes": "Placed."})
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")
        assert re.search(r'class="conflict"', ann.open(f"{path}/result").text)
    assert "Placed." == read_notes(sandbox)


@pytest.mark.slow
def test_the_policy_is_shown_as_soon_as_a_field_is_chosen(
    browser: Browser, sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_page(sandbox, tmp_path) as (served_page, address):
        page = browser.new_page(locale="en-GB")
        page.goto(address + served_page.access.create_link())
        page.locator("input[name=mode][value=update]").click()
        page.set_input_files(
            "#file", {"name": "changes.csv", "mimeType": "text/csv", "buffer": CONTENT}
        )
        page.locator("button.go").click()
        page.wait_for_url("**/columns")
        field, policy = page.locator("select[name='c:3']"), page.locator("select[name='p:3']")
        expect(page.locator("select[name='p:1']")).to_have_value("overwrite")
        expect(policy).to_be_hidden()
        field.select_option("notes")
        expect(policy).to_have_value("fill")
        expect(policy.locator("[value=append]")).to_be_enabled()
        field.select_option("source")
        expect(policy).to_have_value("overwrite")
        expect(policy.locator("[value=append]")).to_be_disabled()
        page.close()

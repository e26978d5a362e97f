"""The result of an import: the outcome of each row, and the next correction."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.page.serving import COLUMNS, make_csv, serve_and_sign_in, strip_tags
from tests.support.agency import settings_of

pytestmark = pytest.mark.slow


def test_a_correction_import_after_an_undo_contains_only_kept_and_invalid_rows(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    body = {"last_name": "Li", "employment_type": "permanent"}
    names = ("al", "bo", "cy")
    made = [
        sandbox.store.create(
            "candidates", {**body, "first_name": name, "email": f"{name}@example.com"}
        ).record
        for name in names
    ]
    asyncio.run(pull(settings_of(sandbox, tmp_path), ["candidates"]))
    lines = [
        "A list",
        "",
        "Email,City,Phone,Notes",
        *(f"{name}@example.com,York,," for name in names),
    ]
    lines += ["di,York,,", "nobody@example.com,York,,", "al@example.com,Bath,,", "Total,6,,"]
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        path = ann.upload("changes.csv", "\n".join(lines).encode(), mode="update")
        ann.post(f"{path}/columns", {"c:0": "email", "c:1": "city", "rest": "-", "match": "email"})
        invalid = strip_tags(ann.open(f"{path}/look?show=invalid").text)
        assert "10 Total" not in invalid
        sandbox.store.update("candidates", made[1]["id"], {"city": "Ely"})
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")
        ann.open(f"{path}/result")
        ann.post(f"{path}/undo")
        ann.open(f"{path}/undo")
        ann.post(f"{path}/undo", {"go": "on"})
        ann.open(f"{path}/undo")
        shown = strip_tags(ann.open(f"{path}/result").text)
        assert "2 Undone" in shown
        assert "Updated" not in shown
        assert "Undo import" not in shown
        ann.post(f"{path}/rest")
        rest = re.search(r"/imports/\w+", ann.shown.url.path)
        assert rest is not None
        assert path != rest[0]
        shown = strip_tags(ann.open(f"{rest[0]}/look").text)
        assert "5 bo@example.com" in shown
        assert "City Ely becomes York" in shown.replace("→", "becomes")
        assert "al@example.com" not in shown
        assert "7 di" in strip_tags(ann.open(f"{rest[0]}/look?show=invalid").text)
        draft = page.drafts.load(rest[0].rpartition("/")[2])
        assert {"invalid": 2, "update": 1} == dict(page.checked_file(draft).preview.summary.counts)


def test_a_completed_import_cannot_be_sent_again(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        path = ann.upload("people.csv", make_csv("Bo,Li,bo@example.com,permanent"))
        ann.post(f"{path}/columns", COLUMNS)
        ann.open(f"{path}/look")
        ann.post(f"{path}/send")
        ann.open(f"{path}/progress")
        (draft,) = page.drafts.load_all()
        # As a request that loaded the draft before its import ended.
        page.sender.send(draft)
        run = page.sender.latest_run(draft.id)
        assert run is not None
        assert run.ended.wait(30)
        shown = strip_tags(ann.open(f"{path}/result").text)
        (after,) = page.drafts.load_all()

    assert draft.batch == after.batch
    assert "1 Created" in shown

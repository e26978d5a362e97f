"""Files of the inbox are pushed once and archived with their reports."""

from __future__ import annotations

import asyncio
import hashlib
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connector.errors import SpreadsheetError, WarehouseError
from connector.pushes import inbox as inboxes
from connector.pushes.inbox import ArchivedFiles, DeliveryResult, WaitingFile, deliver
from connector.pushes.report import PushReport, PushRunOptions, push
from connector.sandbox.server import Sandbox
from tests.pushes.inboxes import BAD, GOOD, list_names, scan_twice
from tests.spreadsheet.corpus.cases import HEAD, person_cells
from tests.spreadsheet.corpus.files import make_ods, make_old_workbook
from tests.support.agency import settings_of
from tests.support.errors import has_code

MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox without candidates."""
    with Sandbox(counts={}) as made:
        yield made


def push_inbox_file(
    sandbox: Sandbox, folder: Path, file: WaitingFile, key: str | None = None
) -> DeliveryResult:
    """Push and apply a waiting file of the inbox, as the push job does."""
    file_to_push = file.instructions.options.push_file(file.resource, Path(file.name))
    manner = PushRunOptions(applies=True, pulls=False)
    settings = settings_of(sandbox, folder, key)
    return asyncio.run(deliver(settings, file_to_push, manner, digest=file.digest, now=MOMENT))


def archive_file(
    monkeypatch: pytest.MonkeyPatch,
    sandbox: Sandbox,
    folder: Path,
    after_push: Callable[[], object] = lambda: None,
) -> ArchivedFiles:
    """Push the only waiting file, call `after_push`, and archive the file with its report."""

    async def push_and_act(*arguments: Any, **options: Any) -> PushReport:
        report = await push(*arguments, **options)
        after_push()
        return report

    (found,) = scan_twice(folder).waiting
    with monkeypatch.context() as patch:
        patch.setattr(inboxes, "push", push_and_act)
        archived = push_inbox_file(sandbox, folder, found).archived
    assert archived is not None
    return archived


def test_a_pushed_file_is_archived_with_its_report(
    tmp_path: Path, inbox: Path, sandbox: Sandbox
) -> None:
    (inbox / "good.csv").write_text(GOOD, encoding="utf-8")
    (inbox / "more.csv").write_text(BAD.replace("ann@", "eve@"), encoding="utf-8")
    done = [push_inbox_file(sandbox, tmp_path, each) for each in scan_twice(tmp_path).waiting]

    assert [0, 3] == [each.report.exit_status for each in done]
    assert ["done", "rejected"] == list_names(inbox)
    for place, stem in (("done", "good"), ("rejected", "more")):
        moved = [f"{stem}.20260304T050607Z{kind}.csv" for kind in ("", ".report")]
        assert sorted(moved) == list_names(inbox / place)
        assert 0o700 == stat.S_IMODE((inbox / place).stat().st_mode)
        assert 0o600 == stat.S_IMODE((inbox / place / moved[1]).stat().st_mode)
        assert "_outcome" in (inbox / place / moved[1]).read_text(encoding="utf-8-sig")
    assert GOOD == (inbox / "done" / "good.20260304T050607Z.csv").read_text(encoding="utf-8")
    assert 2 == len(sandbox.store.records("candidates"))


def test_ods_and_xls_workbooks_in_the_inbox_are_pushed(
    tmp_path: Path, inbox: Path, sandbox: Sandbox
) -> None:
    (inbox / "people.ods").write_bytes(make_ods([HEAD, person_cells(0)]))
    firms = inbox.parent / "companies"
    firms.mkdir()
    (firms / "old.xls").write_bytes(make_old_workbook())
    done = [push_inbox_file(sandbox, tmp_path, each) for each in scan_twice(tmp_path).waiting]

    assert [2, 1] == [each.report.counts["created"] for each in done]
    stem = "20260304T050607Z"
    assert [f"old.{stem}.report.xlsx", f"old.{stem}.xls"] == list_names(firms / "done")
    assert [f"people.{stem}.ods", f"people.{stem}.report.xlsx"] == list_names(inbox / "done")


def test_archived_files_are_not_overwritten(
    tmp_path: Path, inbox: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    stem, texts = "people.20260304T050607Z", [GOOD.replace("ann@", f"{n}@") for n in "abc"]
    for text in texts:
        (inbox / "people.csv").write_text(text, encoding="utf-8")
        archive_file(monkeypatch, sandbox, tmp_path)
        (inbox / "done" / f"{stem}-2.csv").unlink(missing_ok=True)

    kept = [f"{stem}.csv", f"{stem}.report.csv", f"{stem}-2.report.csv"]
    kept += [f"{stem}-3.csv", f"{stem}-3.report.csv"]
    assert sorted(kept) == list_names(inbox / "done")
    files = [(inbox / "done" / f"{stem}{number}.csv").read_text() for number in ("", "-3")]
    assert [texts[0], texts[2]] == files


def test_a_push_that_died_before_archiving_is_continued(
    tmp_path: Path, inbox: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")
    (found,) = scan_twice(tmp_path).waiting

    def die() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        archive_file(monkeypatch, sandbox, tmp_path, die)
    spent = len(sandbox.log)

    look = scan_twice(tmp_path)
    done = push_inbox_file(sandbox, tmp_path, look.waiting[0])

    assert {"unchanged": 1} == done.report.counts
    assert (found,) == look.waiting
    assert (spent, 1) == (len(sandbox.log), len(sandbox.store.records("candidates")))
    assert ["done"] == list_names(inbox)
    report = done.report.file
    assert report is not None
    assert next(iter(sandbox.store.records("candidates"))) in report.read_text(encoding="utf-8-sig")


def test_a_file_that_is_no_spreadsheet_is_rejected_with_a_reason(
    tmp_path: Path, inbox: Path, sandbox: Sandbox
) -> None:
    (inbox / "people.csv").write_bytes(b"%PDF-1.7\n")
    (found,) = scan_twice(tmp_path).waiting

    with pytest.raises(SpreadsheetError, check=has_code("not_a_spreadsheet")) as refused:
        push_inbox_file(sandbox, tmp_path, found)

    stem = "people.20260304T050607Z"
    assert [f"{stem}.csv", f"{stem}.reason.txt"] == list_names(inbox / "rejected")
    reason_text = (inbox / "rejected" / f"{stem}.reason.txt").read_text(encoding="utf-8")
    assert str(refused.value)[:40] in reason_text
    assert (["rejected"], []) == (list_names(inbox), sandbox.log)


def test_a_failed_push_leaves_the_file_in_the_inbox(
    tmp_path: Path, inbox: Path, sandbox: Sandbox
) -> None:
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")
    (found,) = scan_twice(tmp_path).waiting
    refused = push_inbox_file(sandbox, tmp_path, found, "another-key")
    left = list_names(inbox)
    done = push_inbox_file(sandbox, tmp_path, found)

    assert "failed" == refused.report.outcome
    assert (None, None) == (refused.archived, refused.report.file)
    assert ["people.csv"] == left
    assert {"created": 1} == done.report.counts


def test_a_file_that_changes_during_its_push_stays_in_the_inbox(
    tmp_path: Path, inbox: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, more = inbox / "people.csv", GOOD.replace("ann@", "eve@")
    file.write_text(GOOD, encoding="utf-8")
    run = partial(archive_file, monkeypatch, sandbox, tmp_path)
    kept = run(lambda: file.write_text(more, encoding="utf-8"))
    (again,) = scan_twice(tmp_path).waiting
    gone = run(file.unlink)

    assert [None, None] == [kept.file, gone.file]
    assert [kept.report.name, gone.report.name] == [
        "people.20260304T050607Z.report.csv",
        "people.20260304T050607Z-2.report.csv",
    ]
    assert sorted((kept.report.name, gone.report.name)) == list_names(inbox / "done")
    assert hashlib.sha256(more.encode()).hexdigest() == again.digest


def test_a_linked_done_folder_is_rejected_and_the_file_stays(
    tmp_path: Path, inbox: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")

    with pytest.raises(WarehouseError, match="is not a folder"):
        archive_file(monkeypatch, sandbox, tmp_path, lambda: (inbox / "done").symlink_to(elsewhere))

    assert ([], GOOD) == (list_names(elsewhere), (inbox / "people.csv").read_text(encoding="utf-8"))

"""Files of the inbox are pushed once, and put away with their reports; none is ever lost."""

from __future__ import annotations

import asyncio
import hashlib
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connector.errors import SpreadsheetError, WarehouseError
from connector.pushes.dry_run import PushFile
from connector.pushes.inbox import ArchivedFiles, DeliveryResult, Inbox, WaitingFile, deliver
from connector.pushes.push import PushRunOptions, push
from connector.sandbox.server import Sandbox
from tests.pushes.inboxes import BAD, GOOD, names, settled
from tests.spreadsheet.corpus.cases import HEAD, person
from tests.spreadsheet.corpus.files import ods, old_book
from tests.support.agency import settings_of
from tests.support.errors import has_code

MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """The folder of candidates in the inbox, empty."""
    folder = tmp_path / "data" / "inbox" / "candidates"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """An agency without candidates."""
    with Sandbox(counts={}) as made:
        yield made


def send(
    sandbox: Sandbox, folder: Path, file: WaitingFile, key: str | None = None
) -> DeliveryResult:
    """Push a file that a look found, as the job does, applying it."""
    asked = file.orders.options.push_file(file.resource, Path(file.name))
    manner = PushRunOptions(applies=True, pulls=False)
    settings = settings_of(sandbox, folder, key)
    return asyncio.run(deliver(settings, asked, manner, digest=file.digest, now=MOMENT))


def put_away(folder: Path, meanwhile: Callable[[], object] = lambda: None) -> ArchivedFiles:
    """Put the file that has settled into `done`, with a report; `meanwhile` comes before that."""
    (found,) = settled(folder).waiting
    inbox = Inbox(folder / "data")
    taken = inbox.claim(found.resource, found.name, found.digest)
    taken.report_draft.write_text("the report", encoding="utf-8")
    meanwhile()
    return inbox.archive(taken, "done", ".report.csv", MOMENT)


def test_a_file_is_put_away_with_its_report(tmp_path: Path, inbox: Path, sandbox: Sandbox) -> None:
    (inbox / "good.csv").write_text(GOOD, encoding="utf-8")
    (inbox / "more.csv").write_text(BAD.replace("ann@", "eve@"), encoding="utf-8")
    done = [send(sandbox, tmp_path, each) for each in settled(tmp_path).waiting]

    assert [0, 3] == [each.report.exit_status for each in done]
    assert ["done", "rejected"] == names(inbox)
    for place, stem in (("done", "good"), ("rejected", "more")):
        moved = [f"{stem}.20260304T050607Z{kind}.csv" for kind in ("", ".report")]
        assert sorted(moved) == names(inbox / place)
        assert 0o700 == stat.S_IMODE((inbox / place).stat().st_mode)
        assert 0o600 == stat.S_IMODE((inbox / place / moved[1]).stat().st_mode)
        assert "_outcome" in (inbox / place / moved[1]).read_text(encoding="utf-8-sig")
    assert GOOD == (inbox / "done" / "good.20260304T050607Z.csv").read_text(encoding="utf-8")
    assert 2 == len(sandbox.store.records("candidates"))


def test_workbooks_of_other_programs_are_taken(
    tmp_path: Path, inbox: Path, sandbox: Sandbox
) -> None:
    (inbox / "people.ods").write_bytes(ods([HEAD, person(0)]))
    firms = inbox.parent / "companies"
    firms.mkdir()
    (firms / "old.xls").write_bytes(old_book())
    done = [send(sandbox, tmp_path, each) for each in settled(tmp_path).waiting]

    assert [2, 1] == [each.report.counts["created"] for each in done]
    stem = "20260304T050607Z"
    assert [f"old.{stem}.report.xlsx", f"old.{stem}.xls"] == names(firms / "done")
    assert [f"people.{stem}.ods", f"people.{stem}.report.xlsx"] == names(inbox / "done")


def test_no_file_that_was_put_away_is_written_over(tmp_path: Path, inbox: Path) -> None:
    stem = "people.20260304T050607Z"
    for text in ("a", "b", "c"):
        (inbox / "people.csv").write_text(text, encoding="utf-8")
        put_away(tmp_path)
        (inbox / "done" / f"{stem}-2.csv").unlink(missing_ok=True)

    kept = [f"{stem}.csv", f"{stem}.report.csv", f"{stem}-2.report.csv"]
    kept += [f"{stem}-3.csv", f"{stem}-3.report.csv"]
    assert sorted(kept) == names(inbox / "done")
    files = [(inbox / "done" / f"{stem}{number}.csv").read_text() for number in ("", "-3")]
    assert ["a", "c"] == files


def test_a_push_that_died_before_the_move_is_gone_on_with(
    tmp_path: Path, inbox: Path, sandbox: Sandbox
) -> None:
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")
    (found,) = settled(tmp_path).waiting
    taken = Inbox(tmp_path / "data").claim("candidates", "people.csv", found.digest)
    asked = PushFile("candidates", taken.path, "create")
    manner = PushRunOptions(applies=True, pulls=False, output=taken.report_draft)
    (died,) = asyncio.run(push(settings_of(sandbox, tmp_path), [asked], manner))
    spent = len(sandbox.log)

    look = settled(tmp_path)
    done = send(sandbox, tmp_path, look.waiting[0])

    assert ({"created": 1}, {"unchanged": 1}) == (died.counts, done.report.counts)
    assert (found,) == look.waiting
    assert (spent, 1) == (len(sandbox.log), len(sandbox.store.records("candidates")))
    assert ["done"] == names(inbox)
    report = done.report.file
    assert report is not None
    assert next(iter(sandbox.store.records("candidates"))) in report.read_text(encoding="utf-8-sig")


def test_a_file_that_is_none_is_rejected_with_the_reason(
    tmp_path: Path, inbox: Path, sandbox: Sandbox
) -> None:
    (inbox / "people.csv").write_bytes(b"%PDF-1.7\n")
    (found,) = settled(tmp_path).waiting

    with pytest.raises(SpreadsheetError, check=has_code("not_a_spreadsheet")) as refused:
        send(sandbox, tmp_path, found)

    stem = "people.20260304T050607Z"
    assert [f"{stem}.csv", f"{stem}.reason.txt"] == names(inbox / "rejected")
    told = (inbox / "rejected" / f"{stem}.reason.txt").read_text(encoding="utf-8")
    assert str(refused.value)[:40] in told
    assert (["rejected"], []) == (names(inbox), sandbox.log)


def test_a_push_that_could_not_be_made_leaves_the_file(
    tmp_path: Path, inbox: Path, sandbox: Sandbox
) -> None:
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")
    (found,) = settled(tmp_path).waiting
    refused = send(sandbox, tmp_path, found, "another-key")
    left = names(inbox)
    done = send(sandbox, tmp_path, found)

    assert "failed" == refused.report.outcome
    assert (None, None) == (refused.put_away, refused.report.file)
    assert ["people.csv"] == left
    assert {"created": 1} == done.report.counts


def test_a_file_that_changes_while_it_is_pushed_stays(tmp_path: Path, inbox: Path) -> None:
    file = inbox / "people.csv"
    file.write_text(GOOD, encoding="utf-8")
    kept = put_away(tmp_path, meanwhile=lambda: file.write_text(BAD, encoding="utf-8"))
    (again,) = settled(tmp_path).waiting
    gone = put_away(tmp_path, meanwhile=file.unlink)

    assert [None, None] == [kept.file, gone.file]
    assert [kept.report.name, gone.report.name] == [
        "people.20260304T050607Z.report.csv",
        "people.20260304T050607Z-2.report.csv",
    ]
    assert sorted((kept.report.name, gone.report.name)) == names(inbox / "done")
    assert hashlib.sha256(BAD.encode()).hexdigest() == again.digest


def test_nothing_is_put_where_a_link_leads(tmp_path: Path, inbox: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")

    with pytest.raises(WarehouseError, match="is not a folder"):
        put_away(tmp_path, meanwhile=lambda: (inbox / "done").symlink_to(elsewhere))

    assert ([], GOOD) == (names(elsewhere), (inbox / "people.csv").read_text(encoding="utf-8"))

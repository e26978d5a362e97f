"""Files of the inbox are pushed once and archived; anything but a regular file stays unread."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connector.errors import Misused, SpreadsheetError
from connector.pushes import inbox as inboxes
from connector.pushes.inbox import (
    DeliveryResult,
    InboxScan,
    WaitingFile,
    deliver,
    read_instructions,
    scan_inbox,
)
from connector.pushes.options import PUSH_OPTIONS, PushOptions
from connector.pushes.report import PushReport, push
from connector.sandbox.server import Sandbox
from tests.support.agency import settings_at, settings_of
from tests.support.errors import has_code

GOOD = "first_name,last_name,email,employment_type\nAnn,Lee,ann@example.com,permanent\n"
BAD = GOOD + "Bo,Ray,not an address,permanent\n"
MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def archived_name(text: str, ending: str = ".csv", stem: str = "people") -> str:
    """Return the name of a file in an archive, which has the time and a part of the hash."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{stem}.20260304T050607Z-{digest[:8]}{ending}"


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """Empty candidates folder of the inbox."""
    folder = tmp_path / "data" / "inbox" / "candidates"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox without candidates."""
    with Sandbox(counts={}) as made:
        yield made


def scan_twice(folder: Path) -> InboxScan:
    """Scan the inbox twice, so that its files count as unchanged. Returns the second scan."""
    return scan_inbox(folder / "data", scan_inbox(folder / "data", None).state)


def list_names(folder: Path) -> list[str]:
    """Return the names in a folder, sorted."""
    return sorted(os.listdir(folder))


def read_tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return mode, modification time and content of every file and link below the folder."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        held = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, held)
    return found


def preview_file(folder: Path, resource: str, name: str, digest: str) -> DeliveryResult:
    """Preview a file of the inbox without an API, and archive it."""
    settings = settings_at("http://127.0.0.1:9", folder, "nobody")
    file = PushOptions("create").push_file(resource, Path(name))
    return asyncio.run(deliver(settings, file, digest=digest))


def push_inbox_file(
    sandbox: Sandbox, folder: Path, file: WaitingFile, key: str | None = None
) -> DeliveryResult:
    """Push and apply a waiting file of the inbox, as the push job does."""
    options = PushOptions(**{**file.options, "apply": True, "pull": False})
    file_to_push = options.push_file(file.resource, Path(file.name))
    settings = settings_of(sandbox, folder, key)
    return asyncio.run(deliver(settings, file_to_push, digest=file.digest, now=MOMENT))


def push_and_act(
    monkeypatch: pytest.MonkeyPatch,
    sandbox: Sandbox,
    folder: Path,
    act: Callable[[], object] = lambda: None,
) -> DeliveryResult:
    """Push the only waiting file, act before it is archived, and return the result."""

    async def act_after_push(*arguments: Any, **options: Any) -> PushReport:
        report = await push(*arguments, **options)
        act()
        return report

    (found,) = scan_twice(folder).waiting
    with monkeypatch.context() as patch:
        patch.setattr(inboxes, "push", act_after_push)
        return push_inbox_file(sandbox, folder, found)


# -- Archive ---------------------------------------------------------------------------------------


def test_a_pushed_file_is_archived_with_its_report(
    tmp_path: Path, inbox: Path, sandbox: Sandbox
) -> None:
    (inbox / "good.csv").write_text(GOOD, encoding="utf-8")
    (inbox / "more.csv").write_text(BAD.replace("ann@", "eve@"), encoding="utf-8")
    done = [push_inbox_file(sandbox, tmp_path, each) for each in scan_twice(tmp_path).waiting]

    assert [0, 3] == [each.report.exit_status for each in done]
    assert ["done", "rejected"] == list_names(inbox)
    texts = {"good": GOOD, "more": BAD.replace("ann@", "eve@")}
    for place, stem in (("done", "good"), ("rejected", "more")):
        moved = [archived_name(texts[stem], each, stem) for each in (".csv", ".report.csv")]
        assert sorted(moved) == list_names(inbox / place)
        assert 0o700 == stat.S_IMODE((inbox / place).stat().st_mode)
        assert 0o600 == stat.S_IMODE((inbox / place / moved[1]).stat().st_mode)
        assert "_outcome" in (inbox / place / moved[1]).read_text(encoding="utf-8-sig")
    assert GOOD == (inbox / "done" / archived_name(GOOD, stem="good")).read_text(encoding="utf-8")
    assert 2 == len(sandbox.store.records("candidates"))


def test_archived_files_are_not_overwritten(
    tmp_path: Path, inbox: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [GOOD.replace("ann@", f"{n}@") for n in "ab"]
    for text in texts:
        (inbox / "people.csv").write_text(text, encoding="utf-8")
        push_and_act(monkeypatch, sandbox, tmp_path)

    done = inbox / "done"
    assert texts == [(done / archived_name(text)).read_text() for text in texts]
    assert 4 == len(list_names(done))


def test_a_push_that_died_before_archiving_is_continued(
    tmp_path: Path, inbox: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")

    def die() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        push_and_act(monkeypatch, sandbox, tmp_path, die)
    spent = len(sandbox.log)
    done = push_and_act(monkeypatch, sandbox, tmp_path)

    assert {"unchanged": 1} == done.report.counts
    assert (spent, 1) == (len(sandbox.log), len(sandbox.store.records("candidates")))
    assert ["done"] == list_names(inbox)
    assert done.report.file is not None
    (id,) = sandbox.store.records("candidates")
    assert id in done.report.file.read_text(encoding="utf-8-sig")


def test_a_file_that_is_no_spreadsheet_is_rejected_with_a_reason(
    tmp_path: Path, inbox: Path, sandbox: Sandbox
) -> None:
    (inbox / "people.csv").write_bytes(b"%PDF-1.7\n")
    (found,) = scan_twice(tmp_path).waiting

    with pytest.raises(SpreadsheetError, check=has_code("not_a_spreadsheet")) as refused:
        push_inbox_file(sandbox, tmp_path, found)

    names = [archived_name("%PDF-1.7\n", each) for each in (".csv", ".reason.txt")]
    assert names == list_names(inbox / "rejected")
    reason_text = (inbox / "rejected" / names[1]).read_text(encoding="utf-8")
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
    run = partial(push_and_act, monkeypatch, sandbox, tmp_path)
    kept = run(lambda: file.write_text(more, encoding="utf-8"))
    (again,) = scan_twice(tmp_path).waiting
    gone = run(file.unlink)

    assert [None] * 2 == [each.archived for each in (kept, gone)]
    reports = [archived_name(text, ".report.csv") for text in (GOOD, more)]
    assert sorted(reports) == list_names(inbox / "done")
    assert hashlib.sha256(more.encode()).hexdigest() == again.digest


# -- Entries that are not read ---------------------------------------------------------------------


def _write(path: Path, _: Path) -> None:
    path.write_text(GOOD, encoding="utf-8")


BAD_NAME = "has a name with characters that are not allowed. Rename it"
HOSTILE: dict[str, tuple[str, Callable[[Path, Path], None], str]] = {
    "symlink": ("a.csv", lambda path, outside: path.symlink_to(outside), "is not a regular file"),
    "pipe": ("a.csv", lambda path, _: os.mkfifo(path), "is not a regular file"),
    "folder": ("a.csv", lambda path, _: path.mkdir(), "is not a regular file"),
    "0 bytes": ("a.csv", lambda path, _: path.touch(), "is empty"),
    "newline": ("people\n2026.csv", _write, BAD_NAME),
    "backslash": ("a\\..\\people.csv", _write, BAD_NAME),
    "not Unicode": (os.fsdecode(b"people\xff.csv"), _write, BAD_NAME),
    "turned round": ("people\u202evsc.csv", _write, BAD_NAME),
    "partial": ("people.csv.part", _write, "has another file type than .csv"),
    "lock": ("~$people.xlsx", _write, ""),
    "hidden": (".people.csv", _write, ""),
}
"""Name of a file, how it is created, and why it is refused; files without a reason are ignored."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_anything_but_a_regular_file_is_refused_and_left_in_place(
    tmp_path: Path, inbox: Path, kind: str
) -> None:
    name, make, reason = HOSTILE[kind]
    outside = tmp_path / "outside.csv"
    outside.write_text(GOOD, encoding="utf-8")
    make(inbox / name, outside)
    (inbox / "zeal.csv").write_text(GOOD, encoding="utf-8")
    before = read_tree(tmp_path)

    look = scan_twice(tmp_path)
    with pytest.raises(Misused):
        preview_file(tmp_path, "candidates", name, hashlib.sha256(GOOD.encode()).hexdigest())

    assert ["zeal.csv"] == [each.name for each in look.waiting]
    assert [True] * bool(reason) == [reason in each for each in look.refused]
    assert all(each.isprintable() and each.isascii() for each in look.refused)
    assert before == read_tree(tmp_path)


@pytest.mark.parametrize("name", ["../outside.csv", "/outside.csv", "..", ""])
@pytest.mark.parametrize("resource", ["candidates", "../inbox/candidates", "done"])
def test_a_path_outside_the_inbox_is_not_claimed(
    tmp_path: Path, inbox: Path, name: str, resource: str
) -> None:
    for folder in (tmp_path, inbox.parent):
        (folder / "outside.csv").write_text(GOOD, encoding="utf-8")
    before = read_tree(tmp_path)

    with pytest.raises((Misused, SpreadsheetError)):
        preview_file(tmp_path, resource, name, hashlib.sha256(GOOD.encode()).hexdigest())

    assert before == read_tree(tmp_path)


def test_a_file_that_still_changes_waits(tmp_path: Path, inbox: Path) -> None:
    file, folder = inbox / "people.csv", tmp_path / "data"
    file.write_text(GOOD, encoding="utf-8")
    first = scan_inbox(folder, None)
    with file.open("a", encoding="utf-8") as more:
        more.write("Bo,Ray,bo@example.com,permanent\n")
    second = scan_inbox(folder, first.state)
    was = file.stat()
    file.write_bytes(file.read_bytes().replace(b"Bo", b"Al"))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    third = scan_inbox(folder, second.state)
    fourth = scan_inbox(folder, third.state)

    assert [[], [], []] == [first.waiting, second.waiting, third.waiting]
    (found,) = fourth.waiting
    assert hashlib.sha256(file.read_bytes()).hexdigest() == found.digest


# -- push.toml -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('mode = "delete"', "mode: "),
        ('match = "email"', "match: "),
        ("apply = 1", "apply: "),
        ("aply = true", "unknown option 'aply' of a push; allowed are mode, match"),
        ('output = "x.csv"', "output is not allowed"),
        ("max_requests = 0", "max_requests: "),
        ("clear = 7", "clear: "),
        ('date_format = "D/D"', "'D/D' is not a date order"),
        ('mapping = "../map.toml"', "a file in the same folder"),
        ('mapping = "gone.toml"', "a file in the same folder"),
        ("mode = ", "Invalid value"),
    ],
)
def test_an_invalid_push_toml_stops_the_files_of_its_folder(
    tmp_path: Path, inbox: Path, text: str, reason: str
) -> None:
    (inbox.parent / "map.toml").write_text('resource = "candidates"', encoding="utf-8")
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")
    (inbox / "push.toml").write_text(text, encoding="utf-8")

    look = scan_twice(tmp_path)

    assert [] == look.waiting
    assert reason in look.refused[-1]


def test_push_toml_accepts_every_push_option(inbox: Path) -> None:
    (inbox / "ours.toml").write_text('resource = "candidates"', encoding="utf-8")
    values = {
        "mode": '"update"',
        "match": '["email", "phone"]',
        "mapping": '"ours.toml"',
        "ignore": '["Notes"]',
        "content_type": '"news"',
        "sheet": '"Sheet 2"',
        "encoding": '"cp1252"',
        "delimiter": '"semicolon"',
        "header_row": "2",
        "date_format": '"dmy"',
        "decimal": '"comma"',
        "region": '"GB"',
        "day_hours": '"09:00-17:30"',
        "set_values": '["booking_type=contract"]',
        "clear": '"(none)"',
        "accept_warnings": "true",
        "accept": '["odd_phone"]',
        "overwrite": "true",
        "resend": "true",
        "apply": "true",
        "report": '"all"',
        "pull": "false",
        "max_requests": "500",
    }
    text = "\n".join(f"{key} = {value}" for key, value in values.items())
    (inbox / "push.toml").write_text(text, encoding="utf-8")

    orders = read_instructions(inbox)

    assert {*PUSH_OPTIONS, "pull", "max_requests"} - {"output"} == set(values)
    assert (True, False, 500) == (orders["apply"], orders["pull"], orders["max_requests"])
    assert ("(none)", ["Notes"]) == (orders["clear"], orders["ignore"])
    assert {*PUSH_OPTIONS} - {"output"} <= {*orders}
    assert [] == [n for n in orders if orders[n] == getattr(PushOptions("create"), n)]

"""Files of the inbox are pushed once and archived; anything but a regular file stays unread."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from connector.errors import Misused, SpreadsheetError
from connector.pushes import inbox as inboxes
from connector.pushes.inbox import DeliveryResult, InboxScan, deliver, read_instructions, scan_inbox
from connector.pushes.options import PUSH_OPTIONS, PushOptions
from connector.pushes.report import PushReport, push
from connector.sandbox.server import Sandbox
from tests.support.agency import settings_at, settings_of
from tests.support.errors import has_code

GOOD = "first_name,last_name,email,employment_type\nAnn,Lee,ann@example.com,permanent\n"
BAD = GOOD.replace("ann@", "eve@") + "Bo,Ray,not an address,permanent\n"
MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def archived_name(text: str, ending: str = ".csv", stem: str = "people") -> str:
    """Return the name of a file in an archive, which has the time and a part of the hash."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{stem}.20260304T050607Z-{digest[:8]}{ending}"


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


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """Empty candidates folder of the inbox."""
    folder = tmp_path / "data" / "inbox" / "candidates"
    folder.mkdir(parents=True)
    return folder


def scan_twice(folder: Path) -> InboxScan:
    """Scan the inbox twice, so that its files count as unchanged. Returns the second scan."""
    return scan_inbox(folder / "data", scan_inbox(folder / "data", None).state)


@dataclass
class Inbox:
    """The candidates folder of an inbox, whose files are pushed to a sandbox as by the push job."""

    sandbox: Sandbox
    root: Path
    folder: Path

    def write(self, text: str, name: str = "people.csv") -> Path:
        """Write a file of the inbox."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def push(
        self, act: Callable[[], object] | None = None, key: str | None = None
    ) -> DeliveryResult:
        """Push the first waiting file, act before it is archived, and return the result."""

        async def act_after_push(*arguments: Any, **options: Any) -> PushReport:
            report = await push(*arguments, **options)
            if act is not None:
                act()
            return report

        found = scan_twice(self.root).waiting[0]
        options = PushOptions(**{**found.options, "apply": True, "pull": False})
        file = options.push_file(found.resource, Path(found.name))
        settings = settings_of(self.sandbox, self.root, key)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(inboxes, "push", act_after_push)
            return asyncio.run(deliver(settings, file, digest=found.digest, now=MOMENT))


@pytest.fixture
def box(tmp_path: Path, inbox: Path) -> Iterator[Inbox]:
    """Inbox of an account without candidates."""
    with Sandbox(counts={}) as sandbox:
        yield Inbox(sandbox, tmp_path, inbox)


# -- Archive ---------------------------------------------------------------------------------------


def test_a_pushed_file_is_archived_with_its_report(box: Inbox) -> None:
    """A later file of the same name does not replace it."""
    statuses = []
    texts = {"done": [GOOD, GOOD.replace("ann@", "al@")], "rejected": [BAD]}
    for text in (each for some in texts.values() for each in some):
        box.write(text)
        statuses.append(box.push().report.exit_status)

    assert [0, 0, 3] == statuses
    assert ["done", "rejected"] == list_names(box.folder)
    for place, some in texts.items():
        archive = box.folder / place
        moved = [archived_name(each, end) for each in some for end in (".csv", ".report.csv")]
        assert sorted(moved) == list_names(archive)
        assert 0o700 == stat.S_IMODE(archive.stat().st_mode)
        for name in moved[1::2]:
            assert 0o600 == stat.S_IMODE((archive / name).stat().st_mode)
            assert "_outcome" in (archive / name).read_text(encoding="utf-8-sig")
        assert some == [(archive / name).read_text(encoding="utf-8") for name in moved[::2]]
    assert 3 == len(box.sandbox.store.records("candidates"))


def test_a_push_that_died_before_archiving_is_continued(box: Inbox) -> None:
    box.write(GOOD)

    def die() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        box.push(die)
    spent = len(box.sandbox.log)
    done = box.push()
    (id,) = box.sandbox.store.records("candidates")

    assert ({"unchanged": 1}, spent) == (done.report.counts, len(box.sandbox.log))
    assert ["done"] == list_names(box.folder)
    assert done.report.file is not None
    assert id in done.report.file.read_text(encoding="utf-8-sig")


def test_a_file_that_is_no_spreadsheet_is_rejected_with_a_reason(box: Inbox) -> None:
    box.write("%PDF-1.7\n")

    with pytest.raises(SpreadsheetError, check=has_code("not_a_spreadsheet")) as refused:
        box.push()

    names = [archived_name("%PDF-1.7\n", each) for each in (".csv", ".reason.txt")]
    assert names == list_names(box.folder / "rejected")
    reason_text = (box.folder / "rejected" / names[1]).read_text(encoding="utf-8")
    assert str(refused.value)[:40] in reason_text
    assert (["rejected"], []) == (list_names(box.folder), box.sandbox.log)


def test_a_failed_push_leaves_the_file_in_the_inbox(box: Inbox) -> None:
    box.write(GOOD)
    refused = box.push(key="another-key")
    left = list_names(box.folder)

    assert ("failed", None, None) == (
        *(refused.report.outcome, refused.archived, refused.report.file),
    )
    assert ["people.csv"] == left
    assert {"created": 1} == box.push().report.counts


def test_a_file_that_changes_during_its_push_stays_in_the_inbox(box: Inbox) -> None:
    more = GOOD.replace("ann@", "eve@")
    file = box.write(GOOD)
    kept = box.push(lambda: box.write(more))
    (again,) = scan_twice(box.root).waiting
    gone = box.push(file.unlink)

    assert [None] * 2 == [each.archived for each in (kept, gone)]
    reports = [archived_name(text, ".report.csv") for text in (GOOD, more)]
    assert sorted(reports) == list_names(box.folder / "done")
    assert hashlib.sha256(more.encode()).hexdigest() == again.digest


# -- Entries that are not read ---------------------------------------------------------------------


def claim(folder: Path, resource: str, name: str) -> None:
    """Preview a file of the inbox without an API."""
    settings = settings_at("http://127.0.0.1:9", folder, "nobody")
    file = PushOptions("create").push_file(resource, Path(name))
    digest = hashlib.sha256(GOOD.encode()).hexdigest()
    asyncio.run(deliver(settings, file, digest=digest))


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
        claim(tmp_path, "candidates", name)

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

    with pytest.raises((Misused, SpreadsheetError)) as caught:
        claim(tmp_path, resource, name)

    assert caught.value.code in ("misused", "spreadsheet_changed")
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

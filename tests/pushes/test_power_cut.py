"""Power cuts while a push writes its ledger.

A child process records and acknowledges one attempt after another. Each write, truncation and
synchronisation of its ledger is traced. The test replays the trace and leaves the disk as a power
cut at any time may leave it: synchronised data is whole, other data is whole, lost or partial.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from connector.ledger.journal import Journal
from connector.ledger.ledger import Ledger
from connector.ledger.sqlite_file import connect_to_ledger
from tests.repository import ROOT
from tests.seeds import SEED

ROWS = 4
CUTS = 16
"""Moments that are tried besides those at which a row was acknowledged."""

_CALL = re.compile(
    r"\d+ +(?P<name>\w+)\((?:AT_FDCWD<[^>]*>, )?(?:(?P<fd>\d+)<(?P<path>[^>]*)>)?"
    r"(?:, )?(?:\"(?P<text>[^\"]*)\")?(?P<rest>.*)\) += (?P<result>-?\d+)"
)
_CHILD = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from connector.catalog import CATALOG
from connector.ledger.push_plan import PushPlan, PushPolicy
from connector.ledger.push_states import Task
from connector.ledger.ledger import Ledger; from connector.ledger.ledger import LeaseOwner
from connector.ledger.journal_writer import PUSH_LEASE, JournalWriter
from connector.ledger.journal import Journal
from connector.client.request import build_create_request

folder, rows = Path(sys.argv[1]), int(sys.argv[2])
said = os.open(folder / "said", os.O_CREAT | os.O_WRONLY)
values = [{"email": f"p{n}@people.example", "notes": "long " * 900} for n in range(rows)]
tasks = tuple(Task(n, "create", "candidates", each) for n, each in enumerate(values, 2))
with Ledger(folder) as ledger:
    owner = LeaseOwner.of_this_process("run", "push")
    ledger.take_lease(PUSH_LEASE, owner, datetime.now(UTC))
    journal = JournalWriter(ledger, "run")
    plan = PushPlan("candidates", "create", "people.csv", "0" * 64, tasks)
    batch = journal.create_batch(plan, PushPolicy())
    for task in tasks:
        request = build_create_request(CATALOG["candidates"], task.fields)
        key, now = (batch, task.number), datetime.now(UTC)
        journal.record_attempt(key, request, before=None, sent_after=now)
        os.write(said, b"%d" % task.number)
    os.kill(os.getpid(), 9)
"""


@dataclass
class Disk:
    """Simulated disk: files as the kernel shows them, and as a power cut would leave them.

    A new file survives only after its folder was synchronised.
    """

    safe: dict[str, bytes] = field(default_factory=dict)
    waiting: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)

    def sync(self, path: str) -> None:
        """Make the file's content permanent; for a folder, the names in it."""
        if path in self.waiting:
            for at, data in self.waiting[path]:
                self.safe[path] = apply_write(self.safe.get(path, b""), at, data)
            self.waiting[path] = []
        else:
            self.named |= self.waiting.keys()

    def cut(self, folder: Path, keeps: random.Random | None) -> None:
        """Write the files as a power cut leaves them, with random parts of unsynchronised data."""
        for path in self.named:
            content = self.safe.get(path, b"")
            for at, data in self.waiting[path] if keeps is not None else ():
                assert keeps is not None
                kept = None if data is None else data[: keeps.choice((0, len(data) // 2, None))]
                content = apply_write(content, at, kept) if keeps.random() < 0.7 else content
            (folder / Path(path).name).write_bytes(content)


def apply_write(content: bytes, at: int, data: bytes | None) -> bytes:
    """Return the content after a write at a place, or after a truncation to that length."""
    padded = content.ljust(at, b"\0")
    return padded[:at] if data is None else padded[:at] + data + padded[at + len(data) :]


@dataclass(frozen=True)
class Call:
    """A system call: its name, the file's path, its data and its place in the file."""

    name: str
    path: str
    data: bytes = b""
    at: int = 0


def parse_calls(record: Path) -> Iterator[Call]:
    """Return the successful calls of a trace, in order."""
    for line in record.read_text(encoding="ascii").splitlines():
        found = _CALL.match(line)
        if found is None or found["result"].startswith("-"):
            continue
        text = parse_bytes(found["text"] or "")
        numbers = re.findall(r"-?\d+", found["rest"])
        match found["name"]:
            case "openat" if "O_CREAT" in found["rest"]:
                yield Call("make", text.decode())
            case "pwrite64":
                yield Call("write", parse_path(found["path"]), text, int(numbers[-1]))
            case "ftruncate":
                yield Call("truncate", parse_path(found["path"]), at=int(numbers[-1]))
            case "fsync" | "fdatasync":
                yield Call("sync", parse_path(found["path"]))
            case "unlink":
                yield Call("unlink", text.decode())
            case "write":
                yield Call("say", parse_path(found["path"]), text)


def parse_bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def parse_path(text: str) -> str:
    return parse_bytes(text).decode() if text.startswith("\\x") else text


def record_calls(folder: Path, record: Path) -> list[Call]:
    """Return the calls on the ledger in the folder until the process was killed."""
    names = ("", "ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-journal", "said")
    watched = [word for name in names for word in ("-P", str(folder / name))]
    kinds = "trace=openat,pwrite64,write,fsync,fdatasync,ftruncate,unlink"
    command = ["strace", "-f", "-y", "-xx", "-s", "1000000", "-e", kinds, *watched]
    child = [sys.executable, "-c", _CHILD, str(folder), str(ROWS)]
    ran = subprocess.run(
        [*command, "-o", str(record), *child], cwd=ROOT, capture_output=True, check=False
    )
    assert b"Traceback" not in ran.stderr, ran.stderr
    return list(parse_calls(record))


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace, which records, is not here")
def test_no_acknowledged_attempt_is_lost_by_a_power_cut(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    made = record_calls(tmp_path / "ledger", tmp_path / "record")
    acknowledged = [place for place, each in enumerate(made) if each.name == "say"]
    assert ROWS == len(acknowledged), made
    chance = random.Random(f"power {SEED}")
    moments = {*acknowledged, *chance.sample(range(acknowledged[0], len(made)), CUTS)}
    disk, acknowledged_rows, tried = Disk(), set[int](), 0
    for place, call in enumerate(made):
        replay_call(disk, call)
        if call.name == "say":
            acknowledged_rows.add(int(call.data))
        if place in moments:
            for keeps in (None, random.Random(place)):
                tried += 1
                folder = tmp_path / f"after-{tried}"
                folder.mkdir()
                disk.cut(folder, keeps)
                with Ledger(folder) as ledger:
                    attempts = Journal(ledger).attempts("run")
                found = {each.number: each.body for each in attempts}
                assert acknowledged_rows <= found.keys(), (place, call.name, sorted(found))
                assert all(f"p{n - 2}@" in (found[n] or "") for n in acknowledged_rows)
                with closing(connect_to_ledger(folder / "ledger.sqlite")) as connection:
                    assert [("ok",)] == connection.execute("PRAGMA integrity_check").fetchall()
    assert tried >= 2 * ROWS


def replay_call(disk: Disk, call: Call) -> None:
    """Apply one more call to the disk."""
    match call.name:
        case "make":
            disk.waiting.setdefault(call.path, [])
        case "write":
            disk.waiting[call.path].append((call.at, call.data))
        case "truncate":
            disk.waiting[call.path].append((call.at, None))
        case "unlink":
            disk.named.discard(call.path)
            disk.waiting.pop(call.path, None)
            disk.safe.pop(call.path, None)
        case "sync":
            disk.sync(call.path)


def test_every_ledger_connection_synchronises_each_commit(tmp_path: Path) -> None:
    for _ in range(2):
        with closing(connect_to_ledger(tmp_path / "ledger.sqlite")) as connection:
            # 2 is FULL.
            assert [(2,)] == connection.execute("PRAGMA synchronous").fetchall()
            assert [("wal",)] == connection.execute("PRAGMA journal_mode").fetchall()

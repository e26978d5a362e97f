"""Power cuts while a push writes the state.

A child process records and acknowledges one attempt after another. Each write, truncation and
synchronisation of its state is traced. The test replays the trace and leaves the disk as a power
cut at any time may leave it: synchronised data is whole, other data is whole, lost or partial.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connector.state.database import STATE_FILE, Database
from connector.state.journal import Journal
from tests.repository import ROOT
from tests.seeds import SEED

ROWS = 4
CUTS = 16
"""Number of power cuts besides those right after a row was acknowledged."""

_CALL = re.compile(
    r"\d+ +(?P<name>\w+)\((?:AT_FDCWD<[^>]*>, )?(?:(?P<fd>\d+)<(?P<path>[^>]*)>)?"
    r"(?:, )?(?:\"(?P<text>[^\"]*)\")?(?P<rest>.*)\) += (?P<result>-?\d+)"
)
_CHILD = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from connector.state.database import Database
from connector.state.journal import Journal, Plan
from connector.state.row import Attempt, Policy, Row

folder, count = Path(sys.argv[1]), int(sys.argv[2])
said = os.open(folder / "said", os.O_CREAT | os.O_WRONLY)
values = [{"email": f"p{n}@people.example", "notes": "long " * 900} for n in range(count)]
rows = [Row(n, "candidates", "create", None, each) for n, each in enumerate(values, 2)]
with Database(folder) as database:
    journal = Journal(database)
    journal.begin(Plan("candidates", "create", "people.csv", "0" * 64, rows), Policy(), "run")
    for row in rows:
        now = datetime.now(UTC)
        body = row.fields["email"]
        row.attempts.append(Attempt(False, "POST", "/api/v1/candidates", body, now, now))
        row.state = "sent"
        journal.save(row)
        os.write(said, b"%d" % row.number)
    os.kill(os.getpid(), 9)
"""


@dataclass
class SimulatedDisk:
    """Files after a power cut: their synchronised content, the later writes that may be lost, and
    the paths whose names were synchronised with their folder.
    """

    synchronised: dict[str, bytes] = field(default_factory=dict)
    unsynchronised: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    durable_names: set[str] = field(default_factory=set)

    def sync(self, path: str) -> None:
        """Synchronise a file's content; for a folder, the names in it."""
        if path in self.unsynchronised:
            for at, data in self.unsynchronised[path]:
                self.synchronised[path] = apply_write(self.synchronised.get(path, b""), at, data)
            self.unsynchronised[path] = []
        else:
            self.durable_names |= self.unsynchronised.keys()

    def write_after_power_cut(self, folder: Path, chance: random.Random | None) -> None:
        """Write the files to the folder as a power cut leaves them. Unsynchronised writes are lost,
        or with `chance` randomly lost, shortened or kept.
        """
        for path in self.durable_names:
            content = self.synchronised.get(path, b"")
            for at, data in self.unsynchronised[path] if chance is not None else ():
                assert chance is not None
                kept = None if data is None else data[: chance.choice((0, len(data) // 2, None))]
                content = apply_write(content, at, kept) if chance.random() < 0.7 else content
            (folder / Path(path).name).write_bytes(content)


def apply_write(content: bytes, offset: int, data: bytes | None) -> bytes:
    """Return the content after a write at an offset, or after a truncation if `data` is None."""
    padded = content.ljust(offset, b"\0")
    return (
        padded[:offset] if data is None else padded[:offset] + data + padded[offset + len(data) :]
    )


@dataclass(frozen=True)
class SystemCall:
    """System call on a file; `offset` is the length for a truncation."""

    name: str
    path: str
    data: bytes = b""
    offset: int = 0


def parse_calls(trace: Path) -> Iterator[SystemCall]:
    """Yield the successful system calls in a trace of strace."""
    for line in trace.read_text(encoding="ascii").splitlines():
        found = _CALL.match(line)
        if found is None or found["result"].startswith("-"):
            continue
        text = parse_bytes(found["text"] or "")
        numbers = re.findall(r"-?\d+", found["rest"])
        match found["name"]:
            case "openat" if "O_CREAT" in found["rest"]:
                yield SystemCall("make", text.decode())
            case "pwrite64":
                yield SystemCall("write", parse_path(found["path"]), text, int(numbers[-1]))
            case "ftruncate":
                yield SystemCall("truncate", parse_path(found["path"]), offset=int(numbers[-1]))
            case "fsync" | "fdatasync":
                yield SystemCall("sync", parse_path(found["path"]))
            case "unlink":
                yield SystemCall("unlink", text.decode())
            case "write":
                yield SystemCall("say", parse_path(found["path"]), text)


def parse_bytes(escaped: str) -> bytes:
    """Decode a text that strace prints as hexadecimal escapes."""
    return bytes.fromhex(escaped.replace("\\x", ""))


def parse_path(text: str) -> str:
    """Decode a path that strace may print as hexadecimal escapes."""
    return parse_bytes(text).decode() if text.startswith("\\x") else text


def trace_child(folder: Path, trace: Path) -> list[SystemCall]:
    """Run the child process until it is killed. Returns its system calls on the state."""
    names = ("", STATE_FILE, f"{STATE_FILE}-wal", f"{STATE_FILE}-journal", "said")
    watched = [word for name in names for word in ("-P", str(folder / name))]
    kinds = "trace=openat,pwrite64,write,fsync,fdatasync,ftruncate,unlink"
    command = ["strace", "-f", "-y", "-xx", "-s", "1000000", "-e", kinds, *watched]
    child = [sys.executable, "-c", _CHILD, str(folder), str(ROWS)]
    ran = subprocess.run(
        [*command, "-o", str(trace), *child], cwd=ROOT, capture_output=True, check=False
    )
    assert b"Traceback" not in ran.stderr, ran.stderr
    return list(parse_calls(trace))


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace, which records, is not here")
def test_no_acknowledged_attempt_is_lost_by_a_power_cut(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    made = trace_child(tmp_path / "state", tmp_path / "record")
    acknowledged = [place for place, each in enumerate(made) if each.name == "say"]
    assert ROWS == len(acknowledged), made
    chance = random.Random(f"power {SEED}")
    moments = {*acknowledged, *chance.sample(range(acknowledged[0], len(made)), CUTS)}
    disk, acknowledged_rows, tried = SimulatedDisk(), set[int](), 0
    for place, call in enumerate(made):
        replay_call(disk, call)
        if call.name == "say":
            acknowledged_rows.add(int(call.data))
        if place in moments:
            for keeps in (None, random.Random(place)):
                tried += 1
                folder = tmp_path / f"after-{tried}"
                folder.mkdir()
                disk.write_after_power_cut(folder, keeps)
                with Database(folder) as database:
                    found = {
                        row.number: [each.body for each in row.attempts]
                        for row in Journal(database).rows("run")
                    }
                    assert [("ok",)] == [*map(tuple, database.rows("PRAGMA integrity_check"))]
                assert all([f"p{n - 2}@people.example"] == found[n] for n in acknowledged_rows), (
                    place, call.name, found,
                )  # fmt: skip
    assert tried >= 2 * ROWS


def replay_call(disk: SimulatedDisk, call: SystemCall) -> None:
    """Apply a system call to the simulated disk."""
    match call.name:
        case "make":
            disk.unsynchronised.setdefault(call.path, [])
        case "write":
            disk.unsynchronised[call.path].append((call.offset, call.data))
        case "truncate":
            disk.unsynchronised[call.path].append((call.offset, None))
        case "unlink":
            disk.durable_names.discard(call.path)
            disk.unsynchronised.pop(call.path, None)
            disk.synchronised.pop(call.path, None)
        case "sync":
            disk.sync(call.path)


def test_every_connection_synchronises_each_commit(tmp_path: Path) -> None:
    for _ in range(2):
        with Database(tmp_path) as database:
            database.put("previews", {"digest": "", "resource": "", "at": datetime.now(UTC)})
            # 2 is FULL.
            assert [(2,)] == [*map(tuple, database.rows("PRAGMA synchronous"))]
            assert [("wal",)] == [*map(tuple, database.rows("PRAGMA journal_mode"))]

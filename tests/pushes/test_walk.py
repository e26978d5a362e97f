"""The path of a created row, from the spreadsheet to the report, stays short enough to read."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from connector.pushes.options import PushOptions
from connector.pushes.report import push
from connector.sandbox.server import Sandbox
from tests.support.agency import settings_of

MODULES_MAX = 40

TOGETHER = frozenset(("spreadsheet/delimited.py", "warehouse/warehouse.py", "atomic_files.py"))
"""Modules that read, load or write all rows of a file in one call."""


def count_calls(folder: Path, rows: int) -> Mapping[str, int]:
    """Push a file that creates this many records, and return the number of calls by module."""
    calls = Counter[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        _, found, module = frame.f_code.co_filename.partition("/connector/")
        if event == "call" and found and not module.startswith("sandbox/"):
            calls[module] += 1

    folder.mkdir()
    path = folder / "people.csv"
    lines = [f"Ann,Lee,ann{number}@example.com,permanent" for number in range(rows)]
    head = "first_name,last_name,email,employment_type"
    path.write_text("\n".join([head, *lines, ""]), encoding="utf-8")
    file = PushOptions("create", apply=True, pull=False).push_file("candidates", path)
    with Sandbox() as sandbox:
        settings = settings_of(sandbox, folder)
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            report = asyncio.run(push(settings, file))
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert {"created": rows} == report.counts
    return calls


def test_a_created_row_passes_few_modules(tmp_path: Path) -> None:
    """A row passes `TOGETHER`, and the modules that are called more often for one row more.

    The others open the folder, the account and the connection, and publish, once for all rows.
    """
    count_calls(tmp_path / "first", 1)  # Fills caches.
    one, two = count_calls(tmp_path / "one", 1), count_calls(tmp_path / "two", 2)
    passed = TOGETHER | {module for module, calls in two.items() if calls > one[module]}

    assert {*two} >= TOGETHER
    assert {"spreadsheet/row_reader.py", "pushes/row.py", "state/journal.py"} <= passed
    assert len(passed) <= MODULES_MAX, sorted(passed)

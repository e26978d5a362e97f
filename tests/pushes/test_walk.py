"""The path of a created row, from the spreadsheet to the report, stays short enough to read."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import FrameType

from connector.pushes.options import PushOptions
from connector.pushes.report import push
from connector.sandbox.server import Sandbox
from tests.support.agency import settings_of

MODULES_MAX = 40


def test_a_created_row_passes_few_modules(tmp_path: Path) -> None:
    passed = set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        _, found, module = frame.f_code.co_filename.partition("/connector/")
        if event == "call" and found and not module.startswith("sandbox/"):
            passed.add(module)

    path = tmp_path / "people.csv"
    path.write_text(
        "first_name,last_name,email,employment_type\nAnn,Lee,ann@example.com,permanent\n",
        encoding="utf-8",
    )
    file = PushOptions("create", apply=True).push_file("candidates", path)
    with Sandbox() as sandbox:
        settings = settings_of(sandbox, tmp_path)
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            report = asyncio.run(push(settings, file))
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    assert {"created": 1} == report.counts
    print(len(passed), sorted(passed))
    assert len(passed) <= MODULES_MAX, sorted(passed)

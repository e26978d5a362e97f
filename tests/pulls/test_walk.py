"""The path of a changed record through the code stays short enough to read."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import FrameType

from connector.pulls.report import PullReport
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.support.agency import settings_of

MODULES_MAX = 25


def test_a_pull_of_a_changed_record_passes_few_modules(tmp_path: Path) -> None:
    passed = set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        _, found, module = frame.f_code.co_filename.partition("/connector/")
        if event == "call" and found and not module.startswith("sandbox/"):
            passed.add(module)

    def pull_candidates() -> PullReport:
        return asyncio.run(pull(settings, ("candidates",), publishes=False))

    with Sandbox(counts={"candidates": 4}) as sandbox:
        settings = settings_of(sandbox, tmp_path)
        pull_candidates()
        id = min(sandbox.store.records("candidates"))
        sandbox.store.update("candidates", id, {"city": "Bath"})
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            report = pull_candidates()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    assert 1 == report.resources["candidates"].changed
    assert len(passed) <= MODULES_MAX, sorted(passed)

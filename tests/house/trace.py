"""Files of ours that a pull of one changed record and one created row pass through.

A file counts where one of its functions is called between the call of `pull` or `push` and its
return; that it is imported does not count. The sandbox is the other side, and does not count.
`python -m tests.house` lists them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType

from connector.pulls.run import pull
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushRunOptions, push
from connector.sandbox.server import Sandbox
from tests.house.tree import ROOT
from tests.pulls.landed import settings_of

_PACKAGE = f"{ROOT / 'connector'}/"


def files_passed(work: Callable[[], Awaitable[object]]) -> set[str]:
    """The files below `connector`, the sandbox's left out, whose functions the work calls."""
    passed: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(_PACKAGE) and frame.f_code.co_name != "<module>":
            passed.add(name.removeprefix(_PACKAGE))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        asyncio.run(_awaited(work))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {name for name in passed if not name.startswith("sandbox/")}


async def _awaited(work: Callable[[], Awaitable[object]]) -> None:
    await work()


def passed_by_a_pull(folder: Path) -> set[str]:
    """What a pull of one changed candidate passes, once everything else is landed."""
    with Sandbox(counts={"candidates": 30}) as sandbox:
        settings = settings_of(sandbox, folder)
        asyncio.run(pull(settings, ["candidates"]))
        id = min(sandbox.store.records("candidates"))
        sandbox.store.update("candidates", id, {"city": "Zürich"})
        return files_passed(lambda: pull(settings, ["candidates"]))


def passed_by_a_push(folder: Path) -> set[str]:
    """What one created row passes, from the spreadsheet to the report."""
    file = folder / "people.csv"
    file.write_text(
        "first_name,last_name,email,employment_type\nZoë,Lee,zoe@people.example,permanent\n",
        encoding="utf-8",
    )
    with Sandbox(counts={"candidates": 3}) as sandbox:
        settings = settings_of(sandbox, folder)
        asyncio.run(pull(settings, ["candidates"]))
        asked = [PushFile("candidates", file, "create")]
        return files_passed(lambda: push(settings, asked, PushRunOptions(applies=True)))

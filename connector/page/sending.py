"""Pushes and undos of imports, which run in the background, one after another."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock, Thread
from typing import Literal

from pydantic import BaseModel

from connector.page.errors import PageError, describe
from connector.page.imports import Import, Imports, check_version
from connector.pulls.report import Progress
from connector.pushes.report import push
from connector.pushes.undo import undo
from connector.state.database import Database
from connector.state.journal import Journal
from connector.state.lock import Holder


class Order(BaseModel):
    """Order to send the version that the user sees.

    Attributes:
        checked_at: Time of the check that the user sees. Later changes by others are conflicts.
        accepted: Codes of the questions, warnings and consequences that the user accepts.
    """

    version: int
    checked_at: datetime
    accepted: list[str]


@dataclass(slots=True)
class Run:
    """Push or undo in progress. `phase` is "waits", "pull", "rows", "lookup" or "end".

    Attributes:
        until: Time in ISO 8601 until which the run waits for the API.
        undone: Number, outcome and problems of each row of an undo.
    """

    action: Literal["send", "preview_undo", "undo"]
    phase: str = "waits"
    waits_for: str = ""
    done: int = 0
    total: int = 0
    until: str | None = None
    batch: str | None = None
    is_over: bool = False
    error: list[str] | None = None
    undone: list[tuple[int, str, str]] = field(default_factory=list)

    def tell(self, holder: Holder | None) -> None:
        """Show for whom the run waits."""
        self.waits_for = str(holder or "another process")

    def update(self, progress: Progress) -> None:
        """Take over the progress of a pull, a push or an undo."""
        until = progress.waits_until or progress.until
        self.until = until.isoformat() if until else None
        if progress.waits_until is not None:
            return
        if progress.batch is None:
            self.phase = self.phase if self.total else "pull"
            return
        self.batch, self.done = progress.batch, progress.read
        self.total = progress.read + progress.pending
        self.phase = "lookup" if progress.until else "rows" if progress.pending else "end"


class Sending:
    """Runs of the imports of one account. Pushes that a former server began are continued."""

    def __init__(self, imports: Imports) -> None:
        self._imports, self._settings = imports, imports.settings
        self._turn = Lock()
        self.runs: dict[str, Run] = {}
        for each in imports.load_all():
            if each.stage == "sending":
                self._start(each.id, Run("send"))

    def send(self, each: Import, order: Order) -> None:
        """Start to send the rows that the user has seen. Raises `PageError`."""
        check_version(each, order.version)
        if each.mode == "convert" and "convert" not in order.accepted:
            raise PageError("A conversion cannot be undone.", "Confirm the conversion first.")
        with Database(self._settings.folder) as database:
            digest = self._imports.table(each).digest
            Journal(database).note_preview(digest, each.resource, order.checked_at)
        each.stage, each.error, each.accepted = "sending", None, order.accepted
        self._imports.replace(each, order.version)
        self._start(each.id, Run("send"))

    def undo(self, each: Import, *, applies: bool) -> None:
        """Start the preview of an undo, or the undo. Raises `PageError`."""
        if not each.batches or each.stage == "sending":
            raise PageError("There is nothing to undo.", status=409)
        self._start(each.id, Run("undo" if applies else "preview_undo"))

    def _start(self, id: str, run: Run) -> None:
        """Start a run in a thread, unless the import has one already."""
        with self._imports.lock:
            if id in self.runs and not self.runs[id].is_over:
                return
            self.runs[id] = run
        Thread(target=self._run, args=(id, run), daemon=True).start()

    def _run(self, id: str, run: Run) -> None:
        # Only one run waits for the account's lock.
        with self._turn:
            try:
                work = self._push if run.action == "send" else self._undo
                asyncio.run(work(self._imports.load(id), run))
            except Exception as error:
                run.error = describe(error)
                if run.action == "send":
                    self._end(id, run.batch, run.error)
            finally:
                run.is_over = True

    async def _push(self, each: Import, run: Run) -> None:
        """Push an import whose stage is "sending", and save the result."""
        report = await push(
            self._settings,
            self._imports.push_file(each),
            table=await asyncio.to_thread(self._imports.table, each),
            sent_by=each.made_by,
            wait_seconds=None,
            watch=run.update,
            on_wait=run.tell,
        )
        error = describe(report.error) if report.error is not None else None
        if report.is_held_back:
            error = ["Nothing was sent because a question is open.", "Check the table again."]
        self._end(each.id, report.batch or None, error, report.file)

    async def _undo(self, each: Import, run: Run) -> None:
        """Undo the pushes of an import, the last one first, or preview that."""
        run.phase, applies = "rows", run.action == "undo"
        for batch in reversed(each.batches):
            made = await undo(
                self._settings, batch, applies=applies, person=each.made_by, watch=run.update
            )
            run.undone += [
                (row.number, row.outcome, "; ".join(problem.text for problem in row.problems))
                for row in made.rows
                if row.outcome != "nothing"
            ]
        if applies:
            self._end(each.id, None, None)

    def _end(
        self, id: str, batch: str | None, error: list[str] | None, report: Path | None = None
    ) -> None:
        """Save the end of a push or an undo."""
        with self._imports.lock:
            each = self._imports.load(id)
            if batch is not None and batch not in each.batches:
                each.batches.append(batch)
            each.report = report.name if report is not None else each.report
            each.stage, each.error = "sent" if each.batches else "open", error
            each.version += 1
            self._imports.save(each)

"""Pushes and undos of imports, which run in the background, one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock, Thread
from typing import Literal

from connector.page.errors import PageError, describe
from connector.page.imports import Imports, check_version
from connector.pulls.report import Progress
from connector.pushes.report import note_preview, push
from connector.pushes.undo import undo
from connector.state.lock import Holder

CONSENTS = frozenset(("mixed_dates", "merged_cells", "headings"))
"""Questions about the file that the user answers by accepting them when sending."""

Action = Literal["send", "preview_undo", "undo"]


@dataclass(slots=True)
class Run:
    """Push or undo in progress. `phase` is "waits", "pull", "rows", "lookup" or "end".

    Attributes:
        until: Time in ISO 8601 until which the run waits for the API.
        undone: Number, outcome and problems of each row of an undo.
    """

    action: Action
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
                self._start(each.id, "send", self._push)

    def send(self, id: str, user: str, version: int, accepted: Iterable[str]) -> None:
        """Start to send the rows that the user has seen.

        Raises `PageError` if a question is open or a warning about the whole file is not accepted.
        """
        each, accepts = self._imports.load(id, user), {*accepted}
        check_version(each, version)
        found, seen_at = self._imports.check(each)
        blocking = {question.code for question in found.blocking_questions}
        if blocking - CONSENTS or not blocking <= accepts:
            raise PageError("Some questions are open.", "Answer them above the table first.")
        if each.mode == "convert" and "convert" not in accepts:
            raise PageError("A conversion cannot be undone.", "Confirm the conversion first.")
        each.stage, each.error = "sending", None
        # Consents other than "warnings" are about the file, not about its rows.
        each.accepted = sorted(accepts & (CONSENTS | {"warnings"}))
        asked = replace(found, push_file=self._imports.push_file(each))
        if not asked.to_send:
            raise PageError("There is no row to send.", "Correct a row, or accept the warnings.")
        # Later changes by others are conflicts: the user has not seen them.
        note_preview(self._settings.folder, found, seen_at)
        self._imports.replace(each, version)
        self._start(id, "send", self._push)

    def undo(self, id: str, user: str, *, applies: bool) -> None:
        """Start the preview of an undo, or the undo."""
        each = self._imports.load(id, user)
        if not each.batches or each.stage == "sending":
            raise PageError("There is nothing to undo.", status=409)

        async def work(id: str, run: Run) -> None:
            run.phase = "rows"
            for batch in reversed(each.batches):
                made = await undo(
                    self._settings, batch, applies=applies, person=user, watch=run.update
                )
                run.undone += [
                    (row.number, row.outcome, "; ".join(problem.text for problem in row.problems))
                    for row in made.rows
                    if row.outcome != "nothing"
                ]
            if applies:
                self._end(id, None, None)

        self._start(id, "undo" if applies else "preview_undo", work)

    def _start(self, id: str, action: Action, work: Callable[[str, Run], Awaitable[None]]) -> None:
        """Start work in a thread, unless the import is at work already."""
        run = Run(action)

        async def go() -> None:
            try:
                await work(id, run)
            except Exception as error:
                run.error = describe(error)
                if action == "send":
                    self._end(id, run.batch, run.error)
            finally:
                run.is_over = True

        def wait_and_go() -> None:
            # The account's lock is waited for by one run only.
            with self._turn:
                asyncio.run(go())

        with self._imports.lock:
            if id in self.runs and not self.runs[id].is_over:
                return
            self.runs[id] = run
        Thread(target=wait_and_go, name=f"{action} {id}", daemon=True).start()

    async def _push(self, id: str, run: Run) -> None:
        """Push an import whose stage is "sending", and save the result."""
        each = self._imports.load(id)
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
        self._end(id, report.batch or None, error, report.file)

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

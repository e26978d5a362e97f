"""Sending of drafts in the background: one at a time, continued after a crash.

Sending and undoing call `push` and `undo`, each in a thread with its own event loop. The journal
stores the progress. A draft that was being sent when the server ended is sent again by the next
server, which continues it like the command does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from connector.errors import ConnectorError
from connector.errors_api import LeaseHeld
from connector.ledger.journal_records import BatchAction
from connector.page.draft_reader import DraftReader
from connector.page.drafts import DraftFolder, ImportDraft
from connector.page.words import PageError, error_note
from connector.pulls.outcome import Progress
from connector.pushes.batch import Decision, resolve
from connector.pushes.push import PushRunOptions, push
from connector.pushes.undo import undo
from connector.pushes.undo_report import UndoReport
from connector.settings.model import Settings

_LOGGER = logging.getLogger(__name__)

_BEFORE_ROWS, _AFTER_ROWS = 5, 5
"""Percentages of a run before its first row and after its last row."""

LEASE_LOOK_SECONDS = 2.0
"""Seconds between two checks whether another push of the account has ended."""


@dataclass(slots=True)
class DraftRun:
    """Push, preview of an undo, or undo of a draft, with its progress.

    `operation` is "send", "look" (preview of an undo) or "undo". `phase` is "waits", "pull",
    "rows", "doubt" (unconfirmed rows) or "end". `done` of `total` rows have ended.
    """

    operation: str
    phase: str = "waits"
    done: int = 0
    total: int = 0
    until: datetime | None = None
    ended: Event = field(default_factory=Event)
    error: ConnectorError | None = None
    undone: UndoReport | None = None

    def update(self, progress: Progress) -> None:
        """Update phase and counts from the progress of a pull or a push."""
        if progress.waits_until is not None:
            self.until = progress.waits_until
            return
        self.until = progress.until
        if progress.batch is None:
            # The sent records are also pulled, after the last row.
            self.phase = "end" if self.total else "pull"
        else:
            self.phase = "doubt" if progress.until is not None else "rows"
            if progress.until is None:
                self.done, self.total = progress.read, progress.read + progress.pending
                if self.done == self.total:
                    self.phase = "end"

    @property
    def percent(self) -> int:
        """Progress from 0 to 100; the pull before the rows and the end have fixed shares."""
        if not self.total:
            return _BEFORE_ROWS if self.phase == "pull" else 0
        rows = 100 - _BEFORE_ROWS - _AFTER_ROWS
        return _BEFORE_ROWS + rows * self.done // self.total


class DraftSender:
    """Sends and undoes one account's drafts in threads, one at a time."""

    def __init__(self, settings: Settings, drafts: DraftFolder, reader: DraftReader) -> None:
        self._settings, self._drafts, self._reader = settings, drafts, reader
        self._lock, self._turn = Lock(), Lock()
        self._runs: dict[str, DraftRun] = {}

    def resume(self) -> list[str]:
        """Continue runs that a previous server did not finish; return the ids of their drafts."""
        found = [each.id for each in self._drafts.load_all() if each.stage == "sending"]
        for id in found:
            self._start_run(id, "send", self._push_draft)
        return found

    def send(self, draft: ImportDraft) -> None:
        """Start to send a draft whose stage is "sending"."""
        self._start_run(draft.id, "send", self._push_draft)

    def preview_undo(self, draft: ImportDraft) -> None:
        """Start the preview of an undo, which reads each record."""
        self._start_run(draft.id, "look", partial(self._undo_draft, applies=False))

    def undo(self, draft: ImportDraft) -> None:
        """Start to undo a sent draft."""
        self._start_run(draft.id, "undo", partial(self._undo_draft, applies=True))

    def resolve(self, draft: ImportDraft, number: int, decision: Decision) -> None:
        """Resolve an unconfirmed row like `connector resolve`, and wait for the result."""
        assert draft.batch is not None
        asyncio.run(resolve(self._settings, draft.batch, number, decision))

    def latest_run(self, id: str) -> DraftRun | None:
        """Return the latest run of the draft on this server, or None."""
        return self._runs.get(id)

    def _start_run(
        self, id: str, operation: str, work: Callable[[str, DraftRun], Coroutine[Any, Any, None]]
    ) -> None:
        """Start the work in a thread, unless another run of the draft is in progress."""
        with self._lock:
            before = self._runs.get(id)
            if before is not None and not before.ended.is_set():
                return
            run = self._runs[id] = DraftRun(operation)
        Thread(
            target=self._run_in_turn, args=(id, run, work), name=f"{operation} {id}", daemon=True
        ).start()

    def _run_in_turn(
        self, id: str, run: DraftRun, work: Callable[[str, DraftRun], Coroutine[Any, Any, None]]
    ) -> None:
        """Do the work after earlier runs have ended, and store its error in the run."""
        try:
            with self._turn:
                asyncio.run(work(id, run))
        except ConnectorError as error:
            run.error = error
        except Exception as error:
            _LOGGER.debug(
                "sending an import failed", exc_info=True, extra={"event": "import_failed"}
            )
            run.error = ConnectorError(f"an unexpected error: {type(error).__name__}")
        finally:
            if run.error is not None and run.operation == "send":
                self._save_result(id, error=error_note(run.error))
            run.ended.set()

    async def _push_draft(self, id: str, run: DraftRun) -> None:
        """Push a draft whose stage is "sending", and save the result in the draft."""
        draft = self._drafts.load(id)
        if draft.stage != "sending":
            # Two requests started it, and the first run has ended since.
            return
        options = draft.push_options(self._drafts.folder_of(id))
        users: dict[BatchAction, str] = {"sent": draft.sent_by} if draft.sent_by else {}
        run_options = PushRunOptions(applies=True, policy=options.policy(), people=users)
        push_file = self._reader.push_file(draft)
        while True:
            try:
                report = await push(
                    self._settings, push_file, run_options, watch=run.update, on_wait=lambda _: None
                )
                break
            except LeaseHeld:
                # Another user's push, or this one before the server was killed.
                await asyncio.sleep(LEASE_LOOK_SECONDS)
        error = report.error or (report.batch.error if report.batch is not None else None)
        if report.is_held_back:
            error = PageError("Nothing was imported because a question has no answer yet.")
        note = error_note(error) if error is not None else None
        batch = report.batch.batch if report.batch is not None else None
        self._save_result(id, error=note, batch=batch, report=report.file)

    def _save_result(
        self,
        id: str,
        *,
        error: list[str] | None,
        batch: str | None = None,
        report: Path | None = None,
    ) -> None:
        """Save batch, report and error of a push; without a batch, the draft is open again."""
        with self._drafts.open_for_change(id, self._drafts.load(id).changed_by) as draft:
            draft.batch = batch or draft.batch
            draft.report = report.name if report is not None else draft.report
            draft.error, draft.stage = error, "sent" if draft.batch else "open"

    async def _undo_draft(self, id: str, run: DraftRun, *, applies: bool) -> None:
        """Undo a draft, or preview the undo unless `applies`; store the report in the run."""
        draft = self._drafts.load(id)
        assert draft.batch is not None
        run.undone = await undo(
            self._settings, draft.batch, applies=applies, person=draft.changed_by, watch=run.update
        )
        if applies:
            # The outcomes of the rows have changed.
            with self._drafts.open_for_change(id, draft.changed_by):
                pass

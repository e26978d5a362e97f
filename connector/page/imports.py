"""One import: its file, the user's answers and edits, and a version that counts the changes.

An import is a folder with the uploaded file, which never changes, and a JSON file with everything
that the user decided. Edits are texts by row number and column. Rows that an earlier push of the
import applied are left out of the next one, so that no edit can send them a second time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import traceback
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from connector.atomic_files import create_private_file, write_atomically
from connector.errors import ConnectorError, convert_file_errors
from connector.pulls.report import Progress
from connector.pushes.options import PushFile, PushOptions
from connector.pushes.preview import Preview, load_remembered, preview
from connector.pushes.report import push
from connector.pushes.undo import undo
from connector.settings import Settings
from connector.settings.folders import IMPORTS_FOLDER, KEEP_DAYS
from connector.spreadsheet.mapping import ColumnMap, map_headings
from connector.spreadsheet.mapping_file import SavedMap, parse_map, to_document
from connector.spreadsheet.problems import SheetRow, text_of
from connector.spreadsheet.table import Spreadsheet, open_table
from connector.spreadsheet.targets import PushTarget, comparison_text
from connector.state.database import Database
from connector.state.journal import Journal
from connector.state.lock import Holder
from connector.state.row import Mode, Row
from connector.warehouse.file import make_folder
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.warehouse import Warehouse

SENT = frozenset(("created", "updated", "converted", "not_applied", "held"))
"""Outcomes of rows that were sent, which no later push of the import may send."""

RowEdit = Literal["record", "out"]
"""Edit of a whole row: the id of the record that the user chose, or any text to leave it out."""

_LOGGER = logging.getLogger(__name__)
_STATE_FILE, _TABLES_KEPT = "import.json", 4
_ID = re.compile(r"[0-9a-f]{16}\Z")
_FOLDER = re.compile(rf"\S*/{IMPORTS_FOLDER}/[0-9a-f]{{16}}/")


class PageError(Exception):
    """A request that the page refuses, with a sentence for the user and a next step."""

    def __init__(self, message: str, action: str = "", status: int = 422) -> None:
        super().__init__(message)
        self.action, self.status = action, status


def describe(error: BaseException) -> list[str]:
    """Return the sentence and the next step for an error. An unexpected one is logged.

    The log has the places in the code but not the message, which may contain personal data.
    """
    if isinstance(error, PageError | ConnectorError):
        return [_FOLDER.sub("", str(error)), error.action]
    frames = traceback.extract_tb(error.__traceback__)
    places = " > ".join(f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in frames)
    text, event = "the import page failed: %s at %s", {"event": "page_request_failed"}
    _LOGGER.error(text, type(error).__name__, places, extra=event)
    return ["An unexpected error occurred.", "Try again. If it stays, ask your administrator."]


# -- stored and received ---------------------------------------------------------------------------


class Reading(BaseModel):
    """How a file is read. None means that it is detected."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sheet: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header_row: int | None = Field(default=None, ge=1)


class Import(BaseModel):
    """An import as stored. `version` counts its changes.

    Attributes:
        match: Field by which rows find their records.
        mapping: Document of a mapping file.
        is_remembered: True if the mapping is that of the last file with the same headings.
        edits: Changed texts by row number, and by column index or `RowEdit`.
        sent: Rows that earlier pushes applied and that were not undone, as of the last change.
        accepted: Warnings and questions that the user accepted for the last push.
        batches: Pushes of the import, the first one first.
        report: Name of the file with the outcome of every row of the last push.
        save_key: Key of the last save, so that its repetition after a lost answer changes nothing.
    """

    id: str = Field(default_factory=lambda: secrets.token_hex(8))
    resource: str
    mode: Mode
    name: str
    made_by: str
    content_type: str | None = None
    reading: Reading = Reading()
    match: str = "id"
    mapping: dict[str, Any] = {}
    is_remembered: bool = False
    edits: dict[int, dict[str, str]] = {}
    sent: list[int] = []
    accepted: list[str] = []
    stage: Literal["open", "sending", "sent"] = "open"
    batches: list[str] = []
    report: str = ""
    error: list[str] | None = None
    version: int = 1
    save_key: str = ""
    changed_at: datetime = datetime.min.replace(tzinfo=UTC)

    @property
    def saved(self) -> SavedMap:
        """The column mapping. Raises `Misused` if it is not valid."""
        return parse_map({**self.mapping, "resource": self.resource}, "the column mapping")


class Change(BaseModel):
    """A save of the page: what the user decided, for the version that the page shows.

    Attributes:
        key: Random key of the save.
        cells: Row number, column index or `RowEdit`, and text of each edit.
        mapping: The new column mapping.
        reading: Another way to read the file. All edits are dropped.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    version: int
    key: str = ""
    cells: list[tuple[int, int | RowEdit, str]] = []
    mapping: dict[Any, Any] | None = None
    match: str | None = None
    reading: Reading | None = None


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


class Imports:
    """Imports of one account: stored, changed, checked, sent and undone."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.folder = settings, settings.folder / IMPORTS_FOLDER
        self.runs: dict[str, Run] = {}
        self._lock, self._turn = Lock(), Lock()
        # Reading a large file takes seconds, and every change needs its table.
        self._open_table = lru_cache(_TABLES_KEPT)(open_table)
        make_folder(settings.folder)
        make_folder(self.folder)

    # -- stored imports ------------------------------------------------------------------------

    def create(self, user: str, content: bytes, *, name: str, **answers: Any) -> Import:
        """Store a file as a new import. Raises `PageError`, or the error of reading the file."""
        each = Import(name=_safe_name(name), made_by=user, **answers)
        make_folder(self.folder / each.id)
        try:
            with convert_file_errors(self.folder), create_private_file(self.path_of(each)) as file:
                file.write(content)
            self._use_remembered(each)
            self.save(each)
        except Exception:
            shutil.rmtree(self.folder / each.id, ignore_errors=True)
            raise
        return each

    def _use_remembered(self, each: Import) -> None:
        """Use the column mapping of the last file with the same headings."""
        headings, nothing = self.uploaded(each).headings, SavedMap(each.resource)
        saved, notice = load_remembered(self.settings.folder, each.resource, headings, nothing)
        each.is_remembered, each.mapping = notice is not None, to_document(saved)

    def load(self, id: str, user: str | None = None) -> Import:
        """Return a stored import. `PageError` if it does not exist, or is another user's."""
        path = self.folder / id / _STATE_FILE
        each = None
        if _ID.match(id) and path.exists():
            with convert_file_errors(path):
                each = Import.model_validate_json(path.read_bytes())
        if each is None or user not in (None, each.made_by):
            raise PageError("This import no longer exists.", "Start a new import.", 404)
        return each

    def load_all(self) -> list[Import]:
        """Return all imports that can be read, the latest first. Deletes those that are too old."""
        found, oldest = [], datetime.now(UTC) - timedelta(days=KEEP_DAYS)
        for id in os.listdir(self.folder):
            with suppress(PageError, ValidationError):
                each = self.load(id)
                if each.changed_at < oldest and each.stage != "sending":
                    self.delete(each)
                else:
                    found.append(each)
        return sorted(found, key=lambda each: each.changed_at, reverse=True)

    def save(self, each: Import) -> None:
        """Write an import to its folder."""
        each.changed_at = datetime.now(UTC)
        path = self.folder / each.id / _STATE_FILE
        with convert_file_errors(path), write_atomically(path) as file:
            file.write(each.model_dump_json().encode())

    def replace(self, after: Import, version: int) -> None:
        """Save the next version of an import. `PageError` if it changed since this version."""
        with self._lock:
            check_version(self.load(after.id), version)
            after.version = version + 1
            self.save(after)

    def delete(self, each: Import) -> None:
        """Delete an import with its file."""
        check_version(each, each.version)
        shutil.rmtree(self.folder / each.id, ignore_errors=True)

    def path_of(self, each: Import) -> Path:
        """Return the path of the uploaded file."""
        return self.folder / each.id / each.name

    # -- table ---------------------------------------------------------------------------------

    def push_file(self, each: Import) -> PushFile:
        """Return the file to push, with the user's answers."""
        has_match = each.match not in ("", "id") and each.mode != "create"
        options = PushOptions(
            each.mode,
            match=(each.match,) if has_match else (),
            apply=True,
            content_type=each.content_type,
            accept_warnings="warnings" in each.accepted,
            accept=tuple(each.accepted),
            **each.reading.model_dump(),
        )
        return PushFile(each.resource, self.path_of(each), options, each.saved, remembers=False)

    def uploaded(self, each: Import) -> Spreadsheet:
        """Return the table as uploaded. Raises `SpreadsheetError` if it cannot be read."""
        return self._open_table(self.path_of(each), **each.reading.model_dump())

    @contextmanager
    def lookups(self) -> Iterator[WarehouseLookups]:
        """Open the local copy for queries."""
        warehouse = Warehouse(self.settings.folder)
        warehouse.prepare()
        with WarehouseLookups(warehouse, comparison_text) as lookups:
            yield lookups

    def columns(self, each: Import) -> tuple[PushTarget, ColumnMap]:
        """Return the fields that columns can fill, and the field of each column, or `Misused`."""
        file, headings = self.push_file(each), self.uploaded(each).headings
        with self.lookups() as lookups:
            target = file.target(lookups)
            return target, map_headings(headings, target, saved=file.saved)

    def table(self, each: Import) -> Spreadsheet:
        """Return the table to push: with the edits, without rows that are sent or left out."""
        table, sent = self.uploaded(each), {*each.sent}
        if not each.edits and not sent:
            return table
        rows = []
        for row in table.rows():
            edit = each.edits.get(row.number, {})
            if row.number in sent or "out" in edit:
                # A row outside of the table keeps its cells, also in the report.
                rows.append(replace(row, is_outside=True, problems=(), flaws={}))
            else:
                rows.append(_with_edit(row, edit, table.headings) if edit else row)
        # Another table has another name in the journal.
        text = json.dumps([table.digest, sorted(each.edits.items()), each.sent])
        return replace(table, all_rows=rows, digest=hashlib.sha256(text.encode()).hexdigest())

    def rows_of(self, batches: Iterable[str]) -> dict[int, Row]:
        """Return the rows of pushes by number, as the journal has them; the last push counts."""
        with Database(self.settings.folder) as database:
            journal = Journal(database)
            return {row.number: row for batch in batches for row in journal.rows(batch)}

    def check(self, each: Import, numbers: Set[int] | None = None) -> Preview:
        """Return what a push would do with all rows, or with some, without their duplicates."""
        table, only = self.table(each), None
        if numbers is not None:
            only = [row for row in table.rows() if row.number in numbers]
        return preview(self.settings, self.push_file(each), table=table, only_rows=only)

    # -- changes -------------------------------------------------------------------------------

    def change(self, each: Import, said: Change) -> Import:
        """Apply a change to the version that the user sees, and return the import.

        Nothing is saved if a part of the change is not allowed. Raises `PageError`, or `Misused`
        and `SpreadsheetError` for columns and ways to read the file.
        """
        if said.key and said.key == each.save_key and said.version == each.version - 1:
            return each
        check_version(each, said.version)
        new = each.model_copy(deep=True)
        new.stage, new.error, new.save_key, new.accepted = "open", None, said.key, []
        # A row counts as sent until its undo.
        new.sent = sorted(
            number
            for number, row in self.rows_of(each.batches).items()
            if row.outcome in SENT and row.undone_at is None
        )
        if said.reading is not None:
            if new.sent:
                message, action = "Rows of this file were already imported.", "Upload it again."
                raise PageError(message, action, 409)
            new.reading, new.edits = said.reading, {}
            self._use_remembered(new)
        new.match = said.match or new.match
        new.mapping = new.mapping if said.mapping is None else said.mapping
        self._edit(new, said)
        self.columns(new)
        self.replace(new, each.version)
        return new

    def _edit(self, new: Import, said: Change) -> None:
        """Apply edits. Raises `PageError` for a row that was sent, or that the file has not."""
        edited = {number for number, *_ in said.cells}
        rows = {row.number: row for row in self.uploaded(new).rows() if row.number in edited}
        if sent := edited & {*new.sent}:
            message = f"Row {min(sent)} was already imported."
            raise PageError(message, "Change the record on the platform.", 409)
        for number, key, text in said.cells:
            cells = rows[number].cells if number in rows else ()
            if key not in (*range(len(cells)), *get_args(RowEdit)) or not cells:
                raise PageError("The file has no such cell.", status=400)
            edit = new.edits.setdefault(number, {})
            edit[str(key)] = text
            if text == (text_of(cells[key]) if isinstance(key, int) else ""):
                # The cell is as in the file again, with its type.
                del edit[str(key)]
        new.edits = {number: edit for number, edit in new.edits.items() if edit}

    # -- sending and undo ----------------------------------------------------------------------

    def continue_sending(self) -> None:
        """Continue the pushes that a former server began."""
        for each in self.load_all():
            if each.stage == "sending":
                self._start(each.id, Run("send"))

    def send(self, each: Import, order: Order) -> None:
        """Start to send the rows that the user has seen. Raises `PageError`."""
        check_version(each, order.version)
        if each.mode == "convert" and "convert" not in order.accepted:
            raise PageError("A conversion cannot be undone.", "Confirm the conversion first.")
        with Database(self.settings.folder) as database:
            digest = self.table(each).digest
            Journal(database).note_preview(digest, each.resource, order.checked_at)
        each.stage, each.error, each.accepted = "sending", None, order.accepted
        self.replace(each, order.version)
        self._start(each.id, Run("send"))

    def undo(self, each: Import, *, applies: bool) -> None:
        """Start the preview of an undo, or the undo. Raises `PageError`."""
        if not each.batches or each.stage == "sending":
            raise PageError("There is nothing to undo.", status=409)
        self._start(each.id, Run("undo" if applies else "preview_undo"))

    def _start(self, id: str, run: Run) -> None:
        """Start a run in a thread, unless the import has one already."""
        with self._lock:
            if id in self.runs and not self.runs[id].is_over:
                return
            self.runs[id] = run
        Thread(target=self._run, args=(id, run), daemon=True).start()

    def _run(self, id: str, run: Run) -> None:
        # Only one run waits for the account's lock.
        with self._turn:
            try:
                work = self._push if run.action == "send" else self._undo
                asyncio.run(work(self.load(id), run))
            except Exception as error:
                run.error = describe(error)
                if run.action == "send":
                    self._end(id, run.batch, run.error)
            finally:
                run.is_over = True

    async def _push(self, each: Import, run: Run) -> None:
        """Push an import whose stage is "sending", and save the result."""
        report = await push(
            self.settings,
            self.push_file(each),
            table=await asyncio.to_thread(self.table, each),
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
                self.settings, batch, applies=applies, person=each.made_by, watch=run.update
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
        with self._lock:
            each = self.load(id)
            if batch is not None and batch not in each.batches:
                each.batches.append(batch)
            each.report = report.name if report is not None else each.report
            each.stage, each.error = "sent" if each.batches else "open", error
            each.version += 1
            self.save(each)


def check_version(each: Import, version: int) -> None:
    """Raise `PageError` if the import is being sent, or has another version."""
    if each.stage == "sending":
        raise PageError("This import is being sent.", "Wait until it has ended.", 409)
    if version != each.version:
        action = "Load the latest version, then repeat your change."
        raise PageError("You changed this import in another tab.", action, 409)


def _safe_name(name: str) -> str:
    """Return the last part of a file name without special characters. Raises `PageError`."""
    last = re.sub(r"[^\w .,()&+'-]", "_", re.split(r"[/\\]", name)[-1])
    # A file system allows 255 bytes.
    found = re.search(r"[^ .-].{0,50}\.\w{1,5}\Z", last)
    if found is None:
        action = "Choose a CSV, XLSX, XLS or ODS file."
        raise PageError("The file name has no known ending.", action)
    return found[0]


def _with_edit(row: SheetRow, edit: Mapping[str, str], headings: tuple[str, ...]) -> SheetRow:
    """Return the row with new texts by column index, without the problems of replaced cells."""
    changed = {int(key): text for key, text in edit.items() if key.isdecimal()}
    solved = {headings[index] for index in changed if index < len(headings)}
    return replace(
        row,
        cells=tuple(changed.get(index, cell) for index, cell in enumerate(row.cells)),
        problems=tuple(each for each in row.problems if each.column not in solved),
        flaws={index: flaw for index, flaw in row.flaws.items() if index not in changed},
        record_id=edit.get("record", row.record_id),
    )

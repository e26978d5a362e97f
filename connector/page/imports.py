"""One import: its file, the user's answers and edits, and a version that counts the changes.

An import is a folder with the uploaded file, which never changes, and a JSON file with everything
that the user decided. Edits are texts by row number and column. Rows that an earlier push of the
import applied are left out of the next one, so that no edit can send them a second time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from connector.atomic_files import create_private_file, write_atomically
from connector.errors import convert_file_errors
from connector.page.errors import PageError
from connector.pushes.options import PushFile, PushOptions
from connector.pushes.preview import Preview, load_remembered, preview
from connector.settings import Settings
from connector.settings.folders import IMPORTS_FOLDER, KEEP_DAYS
from connector.spreadsheet.mapping import ColumnMap, map_headings
from connector.spreadsheet.mapping_file import SavedMap, parse_map, to_document
from connector.spreadsheet.problems import SheetRow, text_of
from connector.spreadsheet.table import Spreadsheet, open_table
from connector.spreadsheet.targets import PushTarget, comparison_text
from connector.state.database import Database
from connector.state.journal import Journal
from connector.state.row import Mode, Row
from connector.warehouse.file import make_folder
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.warehouse import Warehouse

MODES: tuple[Mode, ...] = get_args(Mode)

SENT = frozenset(("created", "updated", "converted", "not_applied", "held"))
"""Outcomes of rows that were sent, which no later push of the import may send."""

NOT_IMPORTED = "-"
"""Field of a column that is not imported."""

RECORD = "record"
"""Key, beside the columns, of the id of the record that the user chose for an edited row."""

_STATE_FILE, _KEPT_MAX = "import.json", 4
_ID = re.compile(r"[0-9a-f]{16}\Z")


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
        mapping: Document of a mapping file. A column that is not imported has the field "-".
        is_remembered: True if the mapping is that of the last file with the same headings.
        edits: Changed cells by row number and column index.
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
    left_out: list[int] = []
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
        """The decisions about columns and values. Raises `Misused` for a wrong one."""
        saved = parse_map({**self.mapping, "resource": self.resource}, "the column mapping")
        filling = {h: each for h, each in saved.columns.items() if each[0] != NOT_IMPORTED}
        return replace(saved, columns=filling, ignored=(*saved.columns.keys() - filling.keys(),))


class Change(BaseModel):
    """A save of the page: what the user decided, for the version that the page shows.

    Attributes:
        key: Random key of the save.
        cells: Row number, column index and text of each changed cell.
        leave_out: Rows that are not imported; `bring_back` are imported again.
        records: Row number and id of the record that the user chose for the row.
        mapping: Change of the column mapping, as a JSON merge patch.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    version: int
    key: str = ""
    cells: list[tuple[int, int, str]] = []
    leave_out: list[int] = []
    bring_back: list[int] = []
    records: list[tuple[int, str]] = []
    mapping: dict[Any, Any] = {}
    match: str | None = None

    @property
    def rows(self) -> set[int]:
        """Numbers of the rows that the change names."""
        edited = [each[0] for each in self.cells] + [each[0] for each in self.records]
        return {*edited, *self.leave_out, *self.bring_back}


class Imports:
    """Imports of one account: stored, changed and checked."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.folder = settings, settings.folder / IMPORTS_FOLDER
        self.lock = Lock()
        self._checked: dict[str, tuple[int, Preview, datetime]] = {}
        # Reading a large file takes seconds, and every change needs its table.
        self._open_table = lru_cache(_KEPT_MAX)(open_table)
        make_folder(settings.folder)
        make_folder(self.folder)

    # -- stored imports ------------------------------------------------------------------------

    def create(self, user: str, name: str, content: bytes, **answers: Any) -> Import:
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
        each.is_remembered = notice is not None
        each.mapping = to_document(saved)
        ignored = each.mapping.pop("ignored")
        each.mapping["columns"] |= {heading: {"field": NOT_IMPORTED} for heading in ignored}

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
        """Return all imports, the latest change first. Damaged ones are omitted."""
        found = []
        for each in os.listdir(self.folder):
            with suppress(PageError, ValidationError):
                found.append(self.load(each))
        return sorted(found, key=lambda each: each.changed_at, reverse=True)

    def save(self, each: Import) -> None:
        """Write an import to its folder."""
        each.changed_at = datetime.now(UTC)
        path = self.folder / each.id / _STATE_FILE
        with convert_file_errors(path), write_atomically(path) as file:
            file.write(each.model_dump_json().encode())

    def replace(self, after: Import, version: int) -> None:
        """Save the next version of an import. `PageError` if it changed since this version."""
        with self.lock:
            check_version(self.load(after.id), version)
            after.version = version + 1
            self.save(after)

    def delete(self, each: Import) -> None:
        """Delete an import with its file."""
        if each.stage == "sending":
            raise PageError("This import is being sent.", "Wait until it has ended.", 409)
        shutil.rmtree(self.folder / each.id, ignore_errors=True)

    def delete_old(self, now: datetime) -> None:
        """Delete imports that were not changed for the configured number of days."""
        for each in self.load_all():
            if each.stage != "sending" and now - each.changed_at > timedelta(days=KEEP_DAYS):
                self.delete(each)

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
        """Return the fields that columns can fill, and the field of each column.

        Raises `Misused` if an answer is not allowed.
        """
        file, headings = self.push_file(each), self.uploaded(each).headings
        with self.lookups() as lookups:
            target = file.target(lookups)
            return target, map_headings(headings, target, saved=file.saved)

    def table(self, each: Import) -> Spreadsheet:
        """Return the table to push: with the edits, without rows that are sent or left out."""
        table, left = self.uploaded(each), {*each.sent, *each.left_out}
        if not each.edits and not left:
            return table
        rows = []
        for row in table.rows():
            if row.number in left:
                # A row outside of the table keeps its cells, also in the report.
                rows.append(replace(row, is_outside=True, problems=(), flaws={}))
            else:
                rows.append(_with_edit(row, each.edits.get(row.number), table.headings))
        # Another table has another name in the journal.
        text = json.dumps([table.digest, sorted(each.edits.items()), sorted(left)])
        return replace(table, all_rows=rows, digest=hashlib.sha256(text.encode()).hexdigest())

    def rows_of(self, batches: Iterable[str]) -> dict[int, Row]:
        """Return the rows of pushes by number, as the journal has them; the last push counts."""
        with Database(self.settings.folder) as database:
            journal = Journal(database)
            return {row.number: row for batch in batches for row in journal.rows(batch)}

    # -- changes -------------------------------------------------------------------------------

    def change(self, id: str, user: str, said: Change) -> Import:
        """Apply a change to the version that the user sees, and return the import.

        Nothing is saved if a part of the change is not allowed.

        Raises:
            PageError: The import changed in another tab, or it is being sent.
            Misused: A value or a combination of fields is not allowed.
        """
        each = self.load(id, user)
        if said.key and said.key == each.save_key and said.version == each.version - 1:
            return each
        check_version(each, said.version)
        new = each.model_copy(deep=True)
        new.stage, new.error, new.save_key = "open", None, said.key
        # A row counts as sent until its undo.
        new.sent = sorted(
            number
            for number, row in self.rows_of(each.batches).items()
            if row.outcome in SENT and row.undone_at is None
        )
        if said.match is not None:
            new.match = said.match
        new.mapping = _merge(new.mapping, said.mapping)
        decided = new.saved.columns
        named = said.mapping.get("columns") or {}
        taken = {decided[heading][0] for heading in named if heading in decided}
        for heading in decided.keys() - named.keys():
            if decided[heading][0] in taken:
                # The user gave the field to another column.
                del new.mapping["columns"][heading]
        self._edit(new, said)
        self.columns(new)
        self.replace(new, each.version)
        return new

    def _edit(self, new: Import, said: Change) -> None:
        """Apply edits of cells and rows. Raises `PageError` for a row that was sent."""
        if not said.rows:
            return
        rows = {row.number: row for row in self.uploaded(new).rows() if row.number in said.rows}
        if not said.rows <= rows.keys():
            raise PageError("The file has no such row.", status=400)
        if sent := said.rows & {*new.sent}:
            message = f"Row {min(sent)} was already imported."
            raise PageError(message, "Change the record on the platform.", 409)
        for number, index, text in said.cells:
            if not 0 <= index < len(rows[number].cells):
                raise PageError("The file has no such column.", status=400)
            edit = new.edits.setdefault(number, {})
            edit[str(index)] = text
            if text == text_of(rows[number].cells[index]):
                # The cell is as in the file again, with its type.
                del edit[str(index)]
        for number, id in said.records:
            new.edits.setdefault(number, {})[RECORD] = id
        new.edits = {number: edit for number, edit in new.edits.items() if edit}
        new.left_out = sorted({*new.left_out, *said.leave_out} - {*said.bring_back})

    # -- check ---------------------------------------------------------------------------------

    def check(self, each: Import) -> tuple[Preview, datetime]:
        """Return what a push would do with the file, and the time at which the check began."""
        known = self._checked.get(each.id)
        if known is None or known[0] != each.version:
            at = datetime.now(UTC)
            found = preview(self.settings, self.push_file(each), table=self.table(each))
            known = each.version, found, at
            with self.lock:
                self._checked = {**self._checked, each.id: known}
                for id in [*self._checked][:-_KEPT_MAX]:
                    del self._checked[id]
        return known[1:]

    def check_rows(self, each: Import, numbers: Iterable[int]) -> Preview:
        """Return what a push would do with some rows. Duplicates in other rows are not found."""
        table, wanted = self.table(each), {*numbers}
        rows = [row for row in table.rows() if row.number in wanted]
        return preview(self.settings, self.push_file(each), table=table, only_rows=rows)


def check_version(each: Import, version: int) -> None:
    """Raise `PageError` if the import is being sent, or has another version."""
    if each.stage == "sending":
        raise PageError("This import is being sent.", "Wait until it has ended.", 409)
    if version != each.version:
        raise PageError(
            "You changed this import in another tab.",
            "Load the latest version, then repeat your change.",
            409,
        )


def _safe_name(name: str) -> str:
    """Return the last part of a file name without special characters. Raises `PageError`."""
    last = re.sub(r"[^\w .,()&+'-]", "_", re.split(r"[/\\]", name)[-1])
    stem, dot, suffix = last.strip(" .-").rpartition(".")
    if not dot or len(suffix) > 5:
        raise PageError(
            "The file name has no known ending.", "Choose a CSV, XLSX, XLS or ODS file."
        )
    # A file system limits the bytes of a name.
    return f"{stem.encode()[:80].decode(errors='ignore') or 'file'}.{suffix}"


def _merge(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with a JSON merge patch (RFC 7396): null removes a key."""
    merged = {name: value for name, value in document.items() if patch.get(name, "") is not None}
    for name, value in patch.items():
        if isinstance(value, dict):
            before = merged.get(name)
            merged[name] = _merge(before if isinstance(before, dict) else {}, value)
        elif value is not None:
            merged[name] = value
    return merged


def _with_edit(
    row: SheetRow, edit: Mapping[str, str] | None, headings: tuple[str, ...]
) -> SheetRow:
    """Return the row with new texts by column index, without the problems of replaced cells."""
    if not edit:
        return row
    cells = list(row.cells)
    changed = {int(i): text for i, text in edit.items() if i != RECORD and int(i) < len(cells)}
    for index, text in changed.items():
        cells[index] = text
    while len(cells) > len(headings) and cells[-1] == "":
        cells.pop()
    is_filled = any(index >= len(row.cells) - row.missing_cells for index in changed)
    missing = 0 if is_filled else row.missing_cells
    solved: set[str | None] = {headings[i] for i in changed if i < len(headings)}
    if changed and len(cells) == len(headings) and not missing:
        # The user has seen the row and given it its shape.
        solved.add(None)
    return replace(
        row,
        cells=tuple(cells),
        problems=tuple(each for each in row.problems if each.column not in solved),
        flaws={index: flaw for index, flaw in row.flaws.items() if index not in changed},
        missing_cells=missing,
        record_id=edit.get(RECORD, row.record_id),
    )

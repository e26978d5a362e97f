"""Drafts of imports: a folder each, with the file and the user's answers.

A draft is stored in the data folder, readable only by the owner, and erased after a configured
time. Two users or tabs may edit one draft: a form contains the version of the draft that it shows,
and an outdated form changes nothing.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Literal

from connector.atomic_files import create_private_file, write_atomically
from connector.errors import ConnectorError, convert_file_errors
from connector.page.row_index import IndexedRow
from connector.page.words import PageError
from connector.pushes.options import PushOptions
from connector.settings.layers import IMPORTS_FOLDER
from connector.spreadsheet.mapping_file import SavedMap, load_map, save_map
from connector.warehouse.duckdb_file import make_folder

Stage = Literal["open", "sending", "sent"]
"""Stage of a draft: being prepared, being sent, or finished."""

Edits = dict[str, dict[str, str] | None]
"""By row number, the new cells by column index; None skips the row."""

RECORD = "_id"
"""Key in a row's edits for the id of the chosen record."""

_STATE_FILE, _MAP_FILE = "draft.json", "map.toml"
_ID = re.compile(r"[0-9a-f]{16}\Z")
_NAME_CHARACTERS_MAX = 80
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|;`]')
_PIECE_BYTES = 256 * 1024
_DIGITS_MAX = 9


class DraftChanged(PageError):
    """The draft was changed since the form was shown."""

    action = "Open the latest version and repeat your change."
    status = 409


class DraftUnknown(PageError):
    """The draft does not exist. It may have been erased."""

    action = "Start a new import with the file."
    status = 404


@dataclass(frozen=True, slots=True)
class DraftVersion:
    """Version of a draft that a form shows, and the key of the page with the form.

    When the user leaves a page, the browser sends the last input (`is_late`), perhaps after the
    next page was shown. This creates no new version, so that the next page is not outdated.
    """

    version: int
    page: str = ""
    is_late: bool = False


@dataclass(slots=True)
class ImportDraft:
    """Import in preparation.

    Attributes:
        file: Name of the file to be pushed: the original, or a copy with changed cells.
        original: Name of the uploaded file.
        options: Options of the push, except mode and mapping.
        edits: Changed cells that are not written to the file yet.
        shift: Number of rows at the top of the original that the copy omits.
        confirmed: Names of the screens that the user has passed.
        batch: Batch of the push, once the draft is sent.
        report: Report of the push, once the draft is sent.
        error: Text, action and codes of the error, if sending failed.
        page: Key of the page that made the latest changes.
        page_began: Version before the first of these changes.
    """

    id: str
    resource: str
    mode: str
    file: str
    original: str
    made_by: str
    made_at: str
    options: dict[str, Any] = field(default_factory=dict)
    has_map: bool = False
    edits: Edits = field(default_factory=dict)
    shift: int = 0
    confirmed: list[str] = field(default_factory=list)
    stage: Stage = "open"
    version: int = 1
    changed_by: str = ""
    changed_at: str = ""
    sent_by: str | None = None
    sent_at: str | None = None
    batch: str | None = None
    report: str | None = None
    error: list[str] | None = None
    page: str = ""
    page_began: int = 0

    def is_current(self, seen: DraftVersion) -> bool:
        """Return True if only the form's page changed the draft since the form was shown.

        A page sends several forms: cells during typing, and the whole form at the end.
        """
        is_own = bool(seen.page) and seen.page == self.page and seen.version >= self.page_began
        return is_own or seen.version == self.version

    def push_options(self, folder: Path) -> PushOptions:
        """Return the draft's answers as options of the push command."""
        options: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in self.options.items()
        }
        return PushOptions(
            self.mode, mapping_file=folder / _MAP_FILE if self.has_map else None, **options
        )


class DraftFolder:
    """Stored drafts of one account. Methods raise `DraftUnknown` or `WarehouseError`."""

    def __init__(self, data_folder: Path, keep: timedelta) -> None:
        self.folder, self._keep = data_folder / IMPORTS_FOLDER, keep
        self._lock = Lock()
        make_folder(data_folder)
        make_folder(self.folder)

    def create(self, name: str, content: BinaryIO, **answers: Any) -> ImportDraft:
        """Create a draft with a copy of the content as its file.

        Special characters in the file's name are replaced. `answers` are other fields of the draft.
        """
        id, now = secrets.token_hex(8), datetime.now(UTC).isoformat()
        folder = self.folder / id
        name = _safe_name(name)
        draft = ImportDraft(id, file=name, original=name, made_at=now, changed_at=now, **answers)
        draft.changed_by = draft.made_by
        make_folder(folder)
        with convert_file_errors(folder), create_private_file(folder / name) as file:
            shutil.copyfileobj(content, file, _PIECE_BYTES)
        self._save(draft)
        return draft

    def load(self, id: str) -> ImportDraft:
        """Return the stored draft."""
        path = self.folder_of(id) / _STATE_FILE
        with convert_file_errors(path):
            try:
                state = json.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                raise DraftUnknown("This import no longer exists.") from None
        known = {each.name for each in fields(ImportDraft)}
        return ImportDraft(**{name: value for name, value in state.items() if name in known})

    def folder_of(self, id: str) -> Path:
        """Return the draft's folder. Raises `DraftUnknown` for an id with another format."""
        if not _ID.match(id):
            raise DraftUnknown("This import does not exist.")
        return self.folder / id

    @contextmanager
    def open_for_change(
        self, id: str, person: str, seen: DraftVersion | None = None
    ) -> Iterator[ImportDraft]:
        """Yield the draft, and save it with a new version unless the block raises an error.

        `seen` is the version in the form. Raises `DraftChanged` if the draft was changed since.
        """
        with self._lock:
            draft = self.load(id)
            if seen is not None and not draft.is_current(seen):
                link = f"/imports/{id}"
                if draft.changed_by == person:
                    raise DraftChanged("You changed this import in another tab.", link=link)
                raise DraftChanged(
                    "%(person)s changed this import while you had it open.",
                    link=link,
                    person=draft.changed_by,
                )
            yield draft
            if seen is None or not seen.is_late:
                page = seen.page if seen is not None else ""
                if page != draft.page:
                    draft.page, draft.page_began = page, draft.version
                draft.version += 1
            draft.changed_by, draft.changed_at = person, datetime.now(UTC).isoformat()
            self._save(draft)

    def load_all(self) -> list[ImportDraft]:
        """Return all drafts, the latest change first. Damaged drafts are omitted."""
        found = []
        for each in os.listdir(self.folder):
            with suppress(ConnectorError, ValueError, TypeError):
                found.append(self.load(each))
        return sorted(found, key=lambda each: each.changed_at, reverse=True)

    def erase(self, id: str) -> None:
        """Erase the draft with all its files."""
        shutil.rmtree(self.folder_of(id), ignore_errors=True)

    def erase_expired(self, now: datetime) -> int:
        """Erase drafts that are older than allowed, but none being sent; return their number."""
        erased = 0
        for each in self.load_all():
            is_over = now - datetime.fromisoformat(each.changed_at) > self._keep
            if is_over and each.stage != "sending":
                self.erase(each.id)
                erased += 1
        return erased

    # -- Answers as files -------------------------------------------------------------------------

    def file_path(self, draft: ImportDraft) -> Path:
        """Return the path of the file to be pushed."""
        return self.folder_of(draft.id) / draft.file

    def saved_map(self, draft: ImportDraft) -> SavedMap | None:
        """Return the user's column mapping, or None."""
        return load_map(self.folder_of(draft.id) / _MAP_FILE) if draft.has_map else None

    def save_map(self, draft: ImportDraft, saved: SavedMap) -> None:
        """Write the column mapping to the draft's folder. The caller must save the draft."""
        save_map(self.folder_of(draft.id) / _MAP_FILE, saved)
        draft.has_map = True

    def map_path(self, draft: ImportDraft) -> Path:
        """Return the path of the draft's mapping file."""
        return self.folder_of(draft.id) / _MAP_FILE

    def content_key(self, draft: ImportDraft) -> str:
        """Return a key of the draft's file, answers and edits; equal keys mean equal rows."""
        saved = self.map_path(draft)
        text = saved.read_text(encoding="utf-8") if draft.has_map else ""
        parts = [draft.file, draft.resource, draft.mode, draft.options, draft.edits, text]
        return json.dumps(parts, sort_keys=True)

    def _save(self, draft: ImportDraft) -> None:
        """Write the draft's state to its folder."""
        path = self.folder_of(draft.id) / _STATE_FILE
        with convert_file_errors(path), write_atomically(path) as file:
            file.write(json.dumps(asdict(draft)).encode())


def _safe_name(name: str) -> str:
    """Return the last part of a file name, with special characters replaced by "_".

    Raises `PageError` if the name has no file extension.
    """
    last = re.split(r"[/\\]", name)[-1]
    safe = "".join(c if c.isprintable() else "_" for c in _NOT_IN_NAMES.sub("_", last)).strip(" .-")
    stem, dot, suffix = safe.rpartition(".")
    if not dot or len(suffix) > 5:
        raise PageError(
            "The name %(name)s has no known file extension.",
            action="Choose a CSV, XLSX, XLS or ODS file.",
            name=last[:40],
        )
    return f"{stem[:_NAME_CHARACTERS_MAX] or 'file'}.{suffix}"


def parse_whole_number(text: str) -> int | None:
    """Return the number of a form field or an address; None if it is empty.

    Raises:
        PageError: The text is not a number, or has more than 9 digits.
    """
    if not text:
        return None
    if not text.isdecimal() or len(text) > _DIGITS_MAX:
        raise PageError("“%(text)s” is not a valid number.", text=text[:_DIGITS_MAX])
    return int(text)


def set_cell(edits: Edits, row: IndexedRow, index: int, text: str) -> None:
    """Set a cell of a row in the edits, unless the row is skipped."""
    edit = edits.get(str(row.number), {})
    if edit is not None and index < len(row.cells):
        edits[str(row.number)] = {**edit, str(index): text}


def skip_other_rows(edits: Edits, numbers: Iterable[int], kept: int | None) -> None:
    """Skip all rows in `numbers` except `kept`; None skips all."""
    for number in map(str, numbers):
        if number != str(kept):
            edits[number] = None
        elif edits.get(number, {}) is None:
            del edits[number]


def apply_form_edits(
    form: Mapping[str, str], edits: Edits, cells: Mapping[int, Mapping[int, str]]
) -> None:
    """Add a form's cells to the edits, and remove edits whose text equals that in the file.

    `cells` are the file's texts by row number and column index. The form has fields `e:ROW:COLUMN`
    for a cell, `pick:ROW` for the id of the row's record, `seen:ROW` for a row with a checkbox to
    skip it, and `out:ROW` for a checked one.
    """
    for name, value in form.items():
        action, _, place = name.partition(":")
        row, _, column = place.partition(":")
        if action != "e":
            continue
        number, index = parse_whole_number(row), parse_whole_number(column)
        if number is not None and number in cells and index is not None:
            changed = dict(edits.get(row) or {})
            if value.strip() == cells[number].get(index, "").strip():
                changed.pop(column, None)
            else:
                changed[column] = value
            if changed:
                edits[row] = changed
            else:
                edits.pop(row, None)
    for name, value in form.items():
        action, _, row = name.partition(":")
        if action == "pick" and parse_whole_number(row) in cells and edits.get(row, {}) is not None:
            edits[row] = {**(edits.get(row) or {}), RECORD: value}
        if action == "seen" and parse_whole_number(row) in cells:
            if f"out:{row}" in form:
                edits[row] = None
            elif edits.get(row, {}) is None:
                edits.pop(row)

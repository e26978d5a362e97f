"""One import: its file, the user's answers and edits with a version, and its push and undo.

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
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Literal, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from connector.atomic_files import create_private_file, write_atomically
from connector.errors import AccountBusy, ConnectorError, SpreadsheetError, convert_file_errors
from connector.page.access import PageError
from connector.pulls.report import Progress
from connector.pushes.mappings import load_remembered
from connector.pushes.options import PushFile, PushOptions
from connector.pushes.preview import Preview, preview
from connector.pushes.report import note_preview, push
from connector.pushes.run import Decision, resolve
from connector.pushes.undo import UndoReport, undo
from connector.settings import Settings
from connector.settings.folders import IMPORTS_FOLDER, KEEP_DAYS
from connector.spreadsheet.mapping import ColumnMap, map_headings
from connector.spreadsheet.mapping_file import SavedMap, with_options
from connector.spreadsheet.problems import SheetRow, text_of
from connector.spreadsheet.table import Spreadsheet
from connector.spreadsheet.targets import CellOptions, ColumnPolicy, PushTarget, comparison_text
from connector.state.database import Database
from connector.state.journal import Journal
from connector.state.lock import Holder
from connector.state.row import Mode, Row
from connector.warehouse.file import make_folder
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.warehouse import Warehouse

_LOGGER = logging.getLogger(__name__)

MODES: tuple[Mode, ...] = get_args(Mode)

CONSENTS = frozenset(("warnings", "mixed_dates", "merged_cells", "headings"))
"""Questions that the user answers by accepting them when sending."""

READING = ("sheet_unknown", "encoding_unknown", "delimiter_unknown", "headings_refused", "no_rows")
"""Errors that another way of reading the file may solve, so that the import is kept."""

SENT = frozenset(("created", "updated", "converted", "not_applied", "held"))
"""Outcomes of rows that were sent, which no later push of the import may send."""

NOT_IMPORTED = "-"
"""Field of a column that is not imported."""

_STATE_FILE = "import.json"
_ID = re.compile(r"[0-9a-f]{16}\Z")
_FOLDER = re.compile(rf"\S*/{IMPORTS_FOLDER}/[0-9a-f]{{16}}/")
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|;`]')
_NAME_CHARACTERS_MAX, _KEPT_MAX, _WAIT_SECONDS = 80, 6, 1.0
_COLUMN_OPTIONS: Mapping[str, Callable[[Any], bool]] = {
    "policy": lambda value: value in ("overwrite", "fill"),
    "whole_numbers": lambda value: value is True,
}
"""Options of a column that the command has no option for, and whether a value is allowed."""

Edit = dict[str, str] | None
"""Texts by column index, and the id of the chosen record as `_id`; None leaves the row out."""

T = TypeVar("T")


@dataclass(slots=True)
class Import:
    """An import as stored. `version` counts its changes.

    Attributes:
        reading: How the file is read: sheet, encoding, delimiter and header row, if chosen.
        match: Field by which rows find their records; empty for the id.
        mapping: Decisions about columns and values (`SavedMap`) as JSON.
        is_remembered: True if the mapping is that of the last file with the same headings.
        edits: Changed cells by row number.
        held_back: Rows whose warnings the user did not accept at the last push.
        batches: Pushes of the import, the first one first.
        is_changed: True if something changed since the last push began.
        save_key: Key of the last save, so that its repetition after a lost answer changes nothing.
    """

    id: str
    resource: str
    mode: Mode
    name: str
    made_by: str
    made_at: str
    content_type: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    match: str = ""
    mapping: dict[str, Any] = field(default_factory=dict)
    is_remembered: bool = False
    edits: dict[str, Edit] = field(default_factory=dict)
    held_back: list[int] = field(default_factory=list)
    stage: Literal["open", "sending", "sent"] = "open"
    batches: list[str] = field(default_factory=list)
    is_changed: bool = True
    error: list[str] | None = None
    version: int = 1
    save_key: str = ""
    changed_at: str = ""

    @property
    def saved(self) -> SavedMap:
        """The decisions about columns and values."""
        if not self.mapping:
            return SavedMap(self.resource)
        columns = {h: (name, CellOptions(**more)) for h, (name, more) in self._columns()}
        options = CellOptions(**self.mapping["options"])
        constants, ignored = self.mapping["constants"], tuple(self.mapping["ignored"])
        return SavedMap(self.resource, columns, constants, ignored, options)

    @saved.setter
    def saved(self, saved: SavedMap) -> None:
        self.mapping = asdict(saved)

    def _columns(self) -> Iterable[tuple[str, tuple[str, dict[str, Any]]]]:
        return cast("dict[str, Any]", self.mapping["columns"]).items()


class Change(BaseModel):
    """A save of the page: what the user decided, for the version that the page shows.

    Attributes:
        key: Random key of the save.
        cells: Row number, column index and text of each changed cell.
        leave_out: Rows that are not imported; `bring_back` are imported again.
        records: Row number and id of the record that the user chose for the row.
        fields: Field of each named column, or `NOT_IMPORTED`.
        options: Options of columns, by heading; `file_options` are those of all columns.
        values: Heading, text of a cell, and the text that it stands for.
        constants: Value of a field for all rows; empty to remove it.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    version: int
    key: str = ""
    cells: list[tuple[int, int, str]] = []
    leave_out: list[int] = []
    bring_back: list[int] = []
    records: list[tuple[int, str]] = []
    fields: dict[str, str] = {}
    options: dict[str, dict[str, str | int | bool]] = {}
    file_options: dict[str, str | int] = {}
    values: list[tuple[str, str, str]] = []
    constants: dict[str, str] = {}
    reading: dict[Literal["sheet", "encoding", "delimiter", "header_row"], str | int] = {}
    match: str | None = None

    @classmethod
    def parse(cls, body: bytes) -> Change:
        """Return the change in the body of a request. Raises `PageError`."""
        try:
            return cls.model_validate_json(body)
        except ValidationError:
            # The error would repeat the user's values.
            raise PageError("The page sent a change that cannot be read.", status=400) from None


@dataclass(slots=True)
class Run:
    """Push or undo in progress. `phase` is "waits", "pull", "rows", "lookup" or "end"."""

    action: Literal["send", "preview_undo", "undo"]
    phase: str = "waits"
    waits_for: str = ""
    done: int = 0
    total: int = 0
    until: datetime | None = None
    batch: str | None = None
    is_over: bool = False
    error: list[str] | None = None
    undone: list[UndoReport] = field(default_factory=list)

    def tell(self, holder: Holder | None) -> None:
        """Show for whom the run waits."""
        self.waits_for = str(holder or "another process")

    def update(self, progress: Progress) -> None:
        """Take over the progress of a pull, a push or an undo."""
        self.until = progress.waits_until or progress.until
        if progress.waits_until is None and progress.batch is not None:
            self.batch, self.done = progress.batch, progress.read
            self.total = progress.read + progress.pending
            self.phase = "lookup" if progress.until else "rows" if progress.pending else "end"
        elif progress.waits_until is None and not self.total:
            self.phase = "pull"


@dataclass(frozen=True, slots=True)
class Opened:
    """Table of a file, and the fields that its columns can fill."""

    table: Spreadsheet
    target: PushTarget


class Imports:
    """Imports of one account: stored, changed, checked, sent and undone."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.folder = settings, settings.folder / IMPORTS_FOLDER
        self._lock, self._turn = Lock(), Lock()
        self._tables: OrderedDict[str, Opened] = OrderedDict()
        self._checked: OrderedDict[str, tuple[int, Preview, datetime]] = OrderedDict()
        self.runs: dict[str, Run] = {}
        make_folder(settings.folder)
        make_folder(self.folder)

    # -- stored imports ------------------------------------------------------------------------

    def create(self, user: str, name: str, content: bytes, **answers: Any) -> Import:
        """Store a file as a new import. Raises `PageError`, or the error of reading the file."""
        now = datetime.now(UTC).isoformat()
        each = Import(secrets.token_hex(8), name=_safe_name(name), made_by=user, made_at=now,
                      changed_at=now, **answers)  # fmt: skip
        make_folder(self.folder / each.id)
        try:
            with convert_file_errors(self.folder), create_private_file(self.path_of(each)) as file:
                file.write(content)
            with suppress(Unread):
                self._start_mapping(each)
            self._save(each)
        except Exception:
            shutil.rmtree(self.folder / each.id, ignore_errors=True)
            raise
        return each

    def load(self, id: str, user: str | None = None) -> Import:
        """Return a stored import. `PageError` if it does not exist, or is another user's."""
        path = self.folder / id / _STATE_FILE
        if not _ID.match(id) or not path.exists():
            raise PageError("This import no longer exists.", "Start a new import.", 404)
        with convert_file_errors(path):
            stored = json.loads(path.read_text(encoding="utf-8"))
        each = Import(**{f.name: stored[f.name] for f in fields(Import) if f.name in stored})
        if user is not None and each.made_by != user:
            raise PageError("This import no longer exists.", "Start a new import.", 404)
        return each

    def load_all(self) -> list[Import]:
        """Return all imports, the latest change first. Damaged ones are omitted."""
        found = []
        for each in os.listdir(self.folder):
            with suppress(PageError, ConnectorError, ValueError, TypeError, KeyError):
                found.append(self.load(each))
        return sorted(found, key=lambda each: each.changed_at, reverse=True)

    def delete(self, each: Import) -> None:
        """Delete an import with its file."""
        if each.stage == "sending":
            raise PageError("This import is being sent.", "Wait until it has ended.", 409)
        shutil.rmtree(self.folder / each.id, ignore_errors=True)

    def delete_old(self, now: datetime) -> None:
        """Delete imports that were not changed for the configured number of days."""
        keep = timedelta(days=KEEP_DAYS)
        for each in self.load_all():
            if each.stage != "sending" and now - datetime.fromisoformat(each.changed_at) > keep:
                self.delete(each)

    def path_of(self, each: Import) -> Path:
        """Return the path of the uploaded file."""
        return self.folder / each.id / each.name

    def _save(self, each: Import) -> None:
        """Write an import to its folder."""
        each.changed_at = datetime.now(UTC).isoformat()
        path = self.folder / each.id / _STATE_FILE
        # Readable letters, so that a search for a person finds them.
        text = json.dumps(asdict(each), ensure_ascii=False)
        with convert_file_errors(path), write_atomically(path) as file:
            file.write(text.encode(errors="surrogatepass"))

    # -- table ---------------------------------------------------------------------------------

    def push_file(self, each: Import) -> PushFile:
        """Return the file to push, with the user's answers."""
        options = PushOptions(
            each.mode,
            match=(each.match,) if each.match else (),
            content_type=each.content_type,
            **each.reading,
        )
        made = options.push_file(each.resource, self.path_of(each))
        return replace(made, saved=each.saved, remembers=False)

    def opened(self, each: Import) -> Opened:
        """Return the table as uploaded. Raises `Unread` if it can be read in another way."""
        key = f"{each.id} {each.match} {json.dumps(each.reading, sort_keys=True)}"
        with self._lock:
            found = self._tables.get(key)
        if found is None:
            file = self.push_file(each)
            try:
                table = file.open()
            except SpreadsheetError as error:
                if error.code in READING:
                    raise Unread(error) from error
                raise
            with self.lookups() as lookups:
                found = Opened(table, file.target(lookups))
            with self._lock:
                self._tables[key] = found
                while len(self._tables) > _KEPT_MAX:
                    self._tables.popitem(last=False)
        return found

    @contextmanager
    def lookups(self) -> Iterator[WarehouseLookups]:
        """Open the local copy for queries."""
        warehouse = Warehouse(self.settings.folder)
        warehouse.prepare()
        with WarehouseLookups(warehouse, comparison_text) as lookups:
            yield lookups

    def columns(self, each: Import, opened: Opened) -> ColumnMap:
        """Return the field of each column. Raises `Misused` if an answer is not allowed."""
        return map_headings(opened.table.headings, opened.target, saved=each.saved)

    def table(self, each: Import, *, sends: bool = False) -> Spreadsheet:
        """Return the table with the user's edits, without rows that were sent or are left out.

        With `sends`, rows with warnings that were not accepted are left out as well.
        """
        table, left = self.opened(each).table, set(self.sent_rows(each))
        left |= {int(number) for number, edit in each.edits.items() if edit is None}
        left |= {*each.held_back} if sends else set()
        edits = {n: edit for n, edit in each.edits.items() if edit and int(n) not in left}
        if not edits and not left:
            return table
        rows = []
        for row in table.rows():
            if row.number in left:
                # A row outside of the table keeps its cells, also in the report.
                row = replace(row, is_outside=True, problems=(), flaws={})  # noqa: PLW2901
            elif str(row.number) in edits:
                row = _with_edit(row, edits[str(row.number)], table.headings)  # noqa: PLW2901
            rows.append(row)
        # Another table has another name in the journal.
        text = json.dumps([table.digest, edits, sorted(left)], sort_keys=True)
        return replace(table, all_rows=rows, digest=hashlib.sha256(text.encode()).hexdigest())

    def edited(self, each: Import) -> Spreadsheet:
        """Return the table with the user's edits and all of its rows, for the report."""
        table = self.opened(each).table
        rows = [
            _with_edit(row, edit, table.headings)
            if (edit := each.edits.get(str(row.number)))
            else row
            for row in table.rows()
        ]
        return replace(table, all_rows=rows)

    def rows_of(self, batches: Iterable[str]) -> dict[int, Row]:
        """Return the rows of pushes by number, as the journal has them; the last push counts."""
        with Database(self.settings.folder) as database:
            journal = Journal(database)
            return {row.number: row for batch in batches for row in journal.rows(batch)}

    def sent_rows(self, each: Import) -> Iterator[int]:
        """Yield the rows that earlier pushes applied and that were not undone."""
        # An unchanged import continues its last push, which needs the same rows.
        batches = each.batches if each.is_changed else each.batches[:-1]
        if batches:
            for number, row in self.rows_of(batches).items():
                if row.outcome in SENT and row.undone_at is None:
                    yield number

    # -- changes -------------------------------------------------------------------------------

    def change(self, id: str, user: str, said: Change) -> Import:
        """Apply a change to the version that the user sees, and return the import.

        Nothing is saved if a part of the change is not allowed.

        Raises:
            PageError: The import changed in another tab, or it is being sent.
            Misused: A value or a combination of fields is not allowed.
        """
        with self._lock:
            each = self.load(id, user)
        if said.key and said.key == each.save_key and said.version == each.version - 1:
            return each
        self._check_version(each, said.version)
        new = deepcopy(each)
        new.edits = {**each.edits}
        if said.match is not None:
            new.match = "" if said.match == "id" else said.match
        if said.reading:
            self._read_otherwise(new, said.reading)
        with suppress(Unread):
            opened = self.opened(new)
            self._decide(new, opened, said)
            self._edit(new, opened, said)
            self.columns(new, opened)
        new.version, new.save_key = each.version + 1, said.key
        new.is_changed, new.stage, new.error, new.held_back = True, "open", None, []
        self._replace(each, new)
        return new

    def _check_version(self, each: Import, version: int) -> None:
        """Raise `PageError` if the import is being sent, or has another version."""
        if each.stage == "sending":
            raise PageError("This import is being sent.", "Wait until it has ended.", 409)
        if version != each.version:
            raise PageError(
                "You changed this import in another tab.",
                "Load the latest version, then repeat your change.",
                409,
            )

    def _replace(self, before: Import, after: Import) -> None:
        """Save an import unless it was changed since it was loaded. Raises `PageError`."""
        with self._lock:
            self._check_version(self.load(before.id), before.version)
            self._save(after)

    def _read_otherwise(self, new: Import, reading: Mapping[Any, Any]) -> None:
        """Set how the file is read, and map its columns again. Raises `PageError`."""
        if new.edits or new.batches:
            raise PageError(
                "The file cannot be read in another way after cells were edited.",
                "Start a new import with the file.",
            )
        found = {**new.reading, **reading}
        new.reading = {name: value for name, value in found.items() if value != ""}
        with suppress(Unread):
            self._start_mapping(new)

    def _start_mapping(self, new: Import) -> None:
        """Use the mapping of the last file with the same headings, and protect long texts."""
        new.mapping = {}
        opened = self.opened(new)
        nothing = SavedMap(new.resource)
        new.saved, notice = load_remembered(
            self.settings.folder, new.resource, opened.table.headings, nothing
        )
        new.is_remembered = notice is not None
        if new.mode not in ("update", "upsert"):
            return
        for each in self.columns(new, opened).columns:
            # A long text is not overwritten, unless the user says so.
            policy: ColumnPolicy = "fill" if each.target.field.is_long_text else "overwrite"
            if each.match_kind != "given" and policy != each.options.policy:
                new.saved = _with_column(
                    new.saved, each.heading, each.target.name, replace(each.options, policy=policy)
                )

    def _decide(self, new: Import, opened: Opened, said: Change) -> None:
        """Apply decisions about columns and values. Raises `PageError` or `Misused`."""
        saved, headings = new.saved, opened.table.headings
        known = {each.name for each in fields(CellOptions)} & {*said.file_options}
        if known:
            made = PushOptions(new.mode, **cast("dict[str, Any]", said.file_options))
            given = made.push_file(new.resource, self.path_of(new)).saved
            saved = with_options(saved, given.options)
        for heading, name in said.fields.items():
            if heading not in headings:
                raise PageError("The file has no such column.")
            saved = _with_column(saved, heading, name, self._options_of(saved, opened, heading))
        for heading, given_options in said.options.items():
            saved = self._with_options(new, saved, opened, heading, given_options)
        for heading, text, value in said.values:
            options = self._options_of(saved, opened, heading)
            merged = {**options.values, text: value}
            column = self._column(saved, opened, heading)
            saved = _with_column(saved, heading, column, replace(options, values=merged))
        constants = {**saved.constants, **said.constants}
        constants = {name: text for name, text in constants.items() if text.strip()}
        new.saved = replace(saved, constants=constants)

    def _with_options(
        self, new: Import, saved: SavedMap, opened: Opened, heading: str, options: Mapping[str, Any]
    ) -> SavedMap:
        """Return the decisions with these options of a column. Raises `PageError` or `Misused`."""
        before = self._options_of(saved, opened, heading)
        own = {name: value for name, value in options.items() if name in _COLUMN_OPTIONS}
        if not all(_COLUMN_OPTIONS[name](value) for name, value in own.items()):
            raise PageError("This answer is not allowed.")
        shared = {name: value for name, value in options.items() if name not in own}
        if not {*shared} <= {"date_format", "decimal", "region", "day_hours"}:
            raise PageError("This answer is not allowed.")
        made = PushOptions(new.mode, **shared).push_file(new.resource, self.path_of(new)).saved
        for name in shared:
            own[name] = getattr(made.options, name)
        column = self._column(saved, opened, heading)
        return _with_column(saved, heading, column, replace(before, **own))

    def _column(self, saved: SavedMap, opened: Opened, heading: str) -> str:
        """Return the field that a column fills. Raises `PageError` if it fills none."""
        found = map_headings(opened.table.headings, opened.target, saved=saved).columns
        name = next((each.target.name for each in found if each.heading == heading), None)
        if name is None:
            raise PageError("The column has no field.", "Choose the field of the column first.")
        return name

    def _options_of(self, saved: SavedMap, opened: Opened, heading: str) -> CellOptions:
        """Return the options of a column."""
        found = map_headings(opened.table.headings, opened.target, saved=saved).columns
        return next((each.options for each in found if each.heading == heading), saved.options)

    def _edit(self, new: Import, opened: Opened, said: Change) -> None:
        """Apply edits of cells and rows. Raises `PageError` for a row that was sent."""
        numbers = {number for number, *_ in (*said.cells, *said.records)}
        numbers |= {*said.leave_out, *said.bring_back}
        if not numbers:
            return
        rows = {row.number: row for row in opened.table.rows() if row.number in numbers}
        # The user sees the outcome of the last push, so its rows count as well.
        sent = {*self.sent_rows(replace(new, is_changed=True))}
        if not numbers <= rows.keys():
            raise PageError("The file has no such row.", status=400)
        if sent & numbers:
            raise PageError(
                f"Row {min(sent & numbers)} was already imported.",
                "Change the record on the platform.",
                409,
            )
        for number in said.bring_back:
            if new.edits.get(str(number), {}) is None:
                del new.edits[str(number)]
        for number, index, text in said.cells:
            row, edit = rows[number], dict(new.edits.get(str(number)) or {})
            if not 0 <= index < len(row.cells):
                raise PageError("The file has no such column.", status=400)
            edit[str(index)] = text
            if text == text_of(row.cells[index]):
                # The cell is as in the file again, with its type.
                del edit[str(index)]
            new.edits[str(number)] = edit
        for number, id in said.records:
            new.edits[str(number)] = {**(new.edits.get(str(number)) or {}), "_id": id}
        new.edits = {number: edit for number, edit in new.edits.items() if edit != {}}
        new.edits |= {str(number): None for number in said.leave_out}

    # -- check ---------------------------------------------------------------------------------

    def check(self, each: Import, rows: Iterable[int] | None = None) -> Preview:
        """Return what a push would do with the file, or only with some of its rows.

        Duplicates in other rows are only found by a check of the whole file.
        """
        if rows is None:
            return self._check_whole(each)[0]
        table, numbers = self.table(each), {*rows}
        return self._preview(each, table, [row for row in table.rows() if row.number in numbers])

    def _check_whole(self, each: Import) -> tuple[Preview, datetime]:
        """Return the preview of the whole file, and the time at which it began."""
        known = self._checked.get(each.id)
        if known is not None and known[0] == each.version:
            return known[1:]
        at = datetime.now(UTC)
        found = self._preview(each, self.table(each), None)
        with self._lock:
            self._checked[each.id] = each.version, found, at
            while len(self._checked) > _KEPT_MAX:
                self._checked.popitem(last=False)
        return found, at

    def _preview(self, each: Import, table: Spreadsheet, rows: list[SheetRow] | None) -> Preview:
        return preview(self.settings, self.push_file(each), table=table, only_rows=rows)

    # -- push and undo -------------------------------------------------------------------------

    def resume(self) -> None:
        """Continue pushes that a former server did not finish."""
        for each in self.load_all():
            if each.stage == "sending":
                self._start(each.id, Run("send"), self._push)

    def send(self, id: str, user: str, version: int, accepted: Iterable[str]) -> None:
        """Start to send the rows that the user has seen, in the background.

        Raises `PageError` if a question is open or a warning about the whole file is not accepted.
        """
        each, accepts = self.load(id, user), {*accepted}
        self._check_version(each, version)
        found, seen_at = self._check_whole(each)
        blocking = {question.code for question in found.blocking_questions}
        if blocking - CONSENTS or not blocking - {"warnings"} <= accepts:
            raise PageError("Some questions are open.", "Answer them above the table first.")
        if each.mode == "convert" and "convert" not in accepts:
            raise PageError("A conversion cannot be undone.", "Confirm the conversion first.")
        sent = [row for row in found.rows if row.state == "planned"]
        held = [] if "warnings" in accepts else [row.number for row in sent if row.warnings]
        if len(sent) == len(held):
            raise PageError("There is no row to send.", "Correct a row, or accept the warnings.")
        new = replace(each, held_back=held, stage="sending", error=None, version=each.version + 1)
        table = self.table(new, sends=True)
        # Later changes by others are conflicts: the user has not seen them.
        note_preview(self.settings.folder, replace(found, table=table), seen_at)
        self._replace(each, new)
        self._start(id, Run("send"), self._push)

    def undo(self, id: str, user: str, *, applies: bool) -> None:
        """Start the preview of an undo, or the undo, in the background."""
        each = self.load(id, user)
        if not each.batches or each.stage == "sending":
            raise PageError("There is nothing to undo.", status=409)

        async def work(id: str, run: Run) -> None:
            run.phase = "rows"
            for batch in reversed(each.batches):
                made = await _when_free(run, lambda batch=batch: undo(  # type: ignore[misc]
                    self.settings, batch, applies=applies, person=user, watch=run.update
                ))  # fmt: skip
                run.undone.append(made)
            if applies:
                self._end(id, each.batches[-1], None)

        self._start(id, Run("undo" if applies else "preview_undo"), work)

    def resolve(self, id: str, user: str, number: int, decision: Decision) -> None:
        """Carry out the decision on an unconfirmed row, and wait for it."""
        row = self.rows_of(self.load(id, user).batches).get(number)
        if row is None or row.outcome != "held":
            raise PageError("This row is not unconfirmed.", status=409)
        asyncio.run(resolve(self.settings, row.batch, number, decision))

    def _start(self, id: str, run: Run, work: Callable[[str, Run], Awaitable[None]]) -> None:
        """Start work in a thread, unless the import is at work already."""

        def go() -> None:
            try:
                # One after another: the account's lock is waited for by one run only.
                with self._turn:
                    asyncio.run(cast("Any", work(id, run)))
            except Exception as error:
                run.error = describe(error)
                if run.action == "send":
                    self._end(id, run.batch, run.error)
            finally:
                run.is_over = True

        with self._lock:
            if id in self.runs and not self.runs[id].is_over:
                return
            self.runs[id] = run
        Thread(target=go, name=f"{run.action} {id}", daemon=True).start()

    async def _push(self, id: str, run: Run) -> None:
        """Push an import whose stage is "sending", and save the result."""
        each = self.load(id)
        file = self.push_file(each)
        options = replace(file.options, apply=True, accept_warnings=True)
        report = await push(
            self.settings,
            replace(file, options=options),
            table=await asyncio.to_thread(self.table, each, sends=True),
            writes_report=False,
            sent_by=each.made_by,
            wait_seconds=None,
            watch=run.update,
            on_wait=run.tell,
        )
        error = report.error
        noted = describe(error) if error is not None else None
        if report.is_held_back:
            noted = ["Nothing was sent because a question is open.", "Check the table again."]
        self._end(id, report.batch or None, noted)

    def _end(self, id: str, batch: str | None, error: list[str] | None) -> None:
        """Save the end of a push or an undo."""
        with self._lock:
            each = self.load(id)
            if batch is not None:
                each.batches = [*dict.fromkeys([*each.batches, batch])]
                each.is_changed = False
            each.stage, each.error = "sent" if each.batches else "open", error
            each.version += 1
            self._save(each)
            self._checked.pop(id, None)


async def _when_free(run: Run, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of work that needs the account's lock; wait while another has it."""
    while True:
        try:
            return await work()
        except AccountBusy as held:
            run.phase, run.waits_for = "waits", str(held)
            await asyncio.sleep(_WAIT_SECONDS)


class Unread(PageError):
    """The file cannot be read as it is; the user can say how to read it."""

    def __init__(self, error: SpreadsheetError) -> None:
        message, action = describe(error)
        super().__init__(message, action)
        self.code, self.names = error.code, list(getattr(error, "names", ()))


def describe(error: BaseException) -> list[str]:
    """Return the sentence and the next step for an error. An unexpected one is logged.

    The log has the places in the code but not the message, which may contain personal data.
    """
    if isinstance(error, PageError):
        return [str(error), error.action]
    if isinstance(error, ConnectorError):
        return [_FOLDER.sub("", str(error)), error.action]
    places, found = [], error.__traceback__
    while found is not None:
        code = found.tb_frame.f_code
        places.append(f"{Path(code.co_filename).name}:{found.tb_lineno} {code.co_name}")
        found = found.tb_next
    _LOGGER.error(
        "the import page failed: %s at %s",
        type(error).__name__,
        " > ".join(places),
        extra={"event": "page_request_failed"},
    )
    return ["An unexpected error occurred.", "Try again. If it stays, ask your administrator."]


def _safe_name(name: str) -> str:
    """Return the last part of a file name without special characters. Raises `PageError`."""
    last = re.split(r"[/\\]", name)[-1]
    safe = "".join(c if c.isprintable() else "_" for c in _NOT_IN_NAMES.sub("_", last)).strip(" .-")
    stem, dot, suffix = safe.rpartition(".")
    if not dot or len(suffix) > 5:
        raise PageError(
            "The file name has no known ending.", "Choose a CSV, XLSX, XLS or ODS file."
        )
    return f"{stem.encode()[:_NAME_CHARACTERS_MAX].decode(errors='ignore') or 'file'}.{suffix}"


def _with_column(saved: SavedMap, heading: str, name: str, options: CellOptions) -> SavedMap:
    """Return the decisions with this field of a column; another column loses the field."""
    columns = {h: each for h, each in saved.columns.items() if h != heading and each[0] != name}
    ignored = tuple(each for each in saved.ignored if each != heading)
    if name == NOT_IMPORTED:
        return replace(saved, columns=columns, ignored=(*ignored, heading))
    return replace(saved, columns={**columns, heading: (name, options)}, ignored=ignored)


def _with_edit(row: SheetRow, edit: Mapping[str, str], headings: tuple[str, ...]) -> SheetRow:
    """Return the row with new texts by column index, without the problems of replaced cells."""
    cells = list(row.cells)
    changed = {int(i): text for i, text in edit.items() if i != "_id" and int(i) < len(cells)}
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
        record_id=edit.get("_id", row.record_id),
    )

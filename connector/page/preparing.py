"""Screens that prepare an import, from its file to its rows.

Each screen shows a draft, and each form changes it and continues with the next screen. No rule
about rows is defined here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast
from urllib.parse import quote

from starlette.responses import FileResponse, Response

from connector.catalog import CATALOG
from connector.catalog.field import Field
from connector.errors import ConnectorError, SheetUnknown, SpreadsheetError
from connector.ledger.push_states import Mode
from connector.page import screens
from connector.page.draft_reader import CheckedFile, DraftReader, OpenedFile, ReadingJob
from connector.page.drafts import (
    DraftFolder,
    ImportDraft,
    apply_form_edits,
    parse_whole_number,
    set_cell,
    skip_other_rows,
)
from connector.page.row_index import IndexedRow, Kind
from connector.page.screens import ValueQuestion, count_pages, parse_kind, problem_kinds
from connector.page.site import PageCall, redirect
from connector.page.words import MODES, TEXTS, PageError, find_country, importable_resources
from connector.pushes.dry_run import create_template
from connector.pushes.file_warnings import (
    NAME_ALLOWED,
    list_named_mappings,
    load_named_mapping,
    save_named_mapping,
)
from connector.pushes.inbox import Inbox
from connector.pushes.options import NO_MAP
from connector.settings.model import Settings
from connector.spreadsheet.mapping import without_column
from connector.spreadsheet.mapping_file import load_map
from connector.warehouse.warehouse import Warehouse

T = TypeVar("T")

WAIT_SECONDS = 0.5
"""Seconds for which a screen waits for a reading before it shows the progress."""

_ROWS_FIELDS = ("e", "seen", "pick")


class ReadingInProgress(Exception):
    """A screen needs a file that is still being read by `job`."""

    def __init__(self, draft: ImportDraft, job: ReadingJob[Any]) -> None:
        super().__init__("not ready")
        self.draft, self.job = draft, job


class PreparingScreens:
    """Screens from the upload of a file to its corrected rows, for one account."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        keep = timedelta(days=settings.import_keep_days.value)
        self.drafts = DraftFolder(settings.folder, keep)
        self.reader = DraftReader(settings, self.drafts)
        self._inbox = Inbox(settings.folder)
        self._inbox_seen = self._inbox.scan(None).state

    # -- Drafts -----------------------------------------------------------------------------------

    def home(self, call: PageCall, message: str = "") -> Response:
        """Screen with the form for a new import, and a list of current imports.

        With a message, the form keeps its input.
        """
        found = self._inbox.scan(self._inbox_seen)
        self._inbox_seen = found.state
        return call.render(
            "home.html",
            status=422 if message else 200,
            message=message,
            said={"resource": "candidates", "mode": "create", "pasted": "", **call.form},
            file_mb=self._settings.import_file_mb.value,
            content_types=self._content_types(),
            drafts=self.drafts.load_all(),
            waiting=found.waiting,
            resources=importable_resources(),
            modes=MODES,
            account=self._settings.account.value,
            keep_days=self._settings.import_keep_days.value,
            zone=self._settings.time_zone.value,
        )

    def _content_types(self) -> list[tuple[str, str]]:
        """Return slug and name of the loaded content types."""
        query = "SELECT slug, name FROM landing.content_types WHERE _deleted_at IS NULL ORDER BY 2"
        warehouse = Warehouse(self._settings.folder)
        warehouse.prepare()
        with suppress(ConnectorError), warehouse.open_connection() as connection:
            return connection.execute(query).fetchall()
        return []

    def create_import(self, call: PageCall) -> Response:
        """Create an import from an uploaded file or from pasted text.

        An invalid form shows the first screen again.
        """
        resource_and_mode = _resource_and_mode(call)
        if resource_and_mode is None:
            message = "Choose what is in the file and what you want to do."
            return self.home(call, message)
        resource, mode = resource_and_mode
        if mode == "convert" and "convert" not in CATALOG[resource].operations:
            return self.home(call, "Only leads can be converted.")
        pasted = call.form.get("pasted", "")
        if call.file is not None:
            name, content = call.file.filename or "", call.file.file
        elif pasted.strip():
            name, content = "pasted.txt", BytesIO(pasted.encode())
        else:
            return self.home(call, "Choose a file, or paste cells.")
        options: dict[str, Any] = {}
        if mode in ("update", "upsert"):
            options["match"] = list(CATALOG[resource].natural_keys[0])
        if resource == "content_items":
            options["content_type"] = call.form.get("content_type", "").strip() or None
        draft = self.drafts.create(
            *(name, content),
            resource=resource,
            mode=mode,
            made_by=call.session.person,
            options=options,
        )
        error = self.reader.read_file(draft).future.exception()
        if isinstance(error, SpreadsheetError) and error.code not in screens.TABLE_ERRORS:
            self._erase_draft(draft.id)
            return self.home(call, " ".join(TEXTS.describe_error(error)))
        return redirect(f"/imports/{draft.id}")

    def template(self, call: PageCall) -> Response:
        """Return an empty workbook with all columns of the resource."""
        resource_and_mode = _resource_and_mode(call)
        if resource_and_mode is None or resource_and_mode[1] == "convert":
            raise PageError("There is no template for a conversion.")
        resource, mode = resource_and_mode
        is_item = resource == "content_items"
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"{resource}.xlsx"
            create_template(
                *(self._settings, resource, path),
                mode=mode,
                match=CATALOG[resource].natural_keys[0] if mode in ("update", "upsert") else (),
                parent=call.form.get("content_type") if is_item else None,
            )
            return Response(path.read_bytes(), headers=_download_headers(path.name))

    def create_import_from_inbox(self, call: PageCall) -> Response:
        """Move a file of the inbox into a new import."""
        keys = [call.form.get(name, "") for name in ("resource", "name", "digest")]
        found = self._inbox.scan(self._inbox_seen).waiting
        waiting = next((w for w in found if [w.resource, w.name, w.digest] == keys), None)
        if waiting is None:
            raise PageError("The file is no longer in the inbox.")
        claimed, said = self._inbox.claim(*keys), waiting.instructions.options
        options = {n: v for n, v in asdict(said).items() if n not in ("mode", "mapping_file")}
        with claimed.path.open("rb") as content:
            draft = self.drafts.create(
                waiting.name,
                content,
                resource=waiting.resource,
                mode=said.mode,
                made_by=call.session.person,
                options=options,
            )
        if said.mapping_file is not None and said.mapping_file.name != NO_MAP:
            with self.drafts.open_for_change(draft.id, call.session.person) as draft:
                self.drafts.save_map(draft, load_map(said.mapping_file))
        claimed.path.unlink(missing_ok=True)
        return redirect(f"/imports/{draft.id}")

    def next_screen(self, call: PageCall) -> Response:
        """Redirect to the first screen that a draft has not passed."""
        return redirect(self.first_open_screen(self.drafts.load(call.id)))

    def first_open_screen(self, draft: ImportDraft) -> str:
        """Return the path of the first screen that the draft has not passed."""
        steps = {"sending": "progress", "sent": "result"}
        step = steps.get(draft.stage) or self._first_open_step(draft)
        return f"/imports/{draft.id}/{step}"

    def _first_open_step(self, draft: ImportDraft) -> str:
        """Return the name of the first screen that an open draft has not passed."""
        try:
            opened = self.opened_file(draft)
        except ConnectorError:
            return "table"
        if opened.table.questions and not draft.confirmed:
            return "table"
        if "columns" not in draft.confirmed:
            return "columns"
        checked = self.checked_file(draft)
        questions = screens.value_questions(checked)
        if any(each.is_open and each.key not in draft.confirmed for each in questions):
            return "values"
        has_wrong = bool(problem_kinds(checked.rows))
        return "rows" if has_wrong and "rows" not in draft.confirmed else "look"

    def erase(self, call: PageCall) -> Response:
        """Erase a draft. Raises `PageError` while it is being sent."""
        draft = self.drafts.load(call.id)
        if draft.stage == "sending":
            raise PageError("This import is being sent.", action="Wait until it ends.")
        self._erase_draft(draft.id)
        return redirect("/")

    def _erase_draft(self, id: str) -> None:
        """Delete the draft's files and cached results."""
        self.reader.discard_results(id)
        self.drafts.erase(id)

    def download(self, call: PageCall) -> Response:
        """Return the report, the mapping or the file of a draft as a download."""
        draft, folder = self.drafts.load(call.id), self.drafts.folder_of(call.id)
        names = {"report": draft.report, "file": draft.file, "original": draft.original}
        names["map"] = "map.toml" if draft.has_map else None
        name = names.get(call.request.path_params["what"])
        if name is None or not (folder / name).is_file():
            raise PageError("This file does not exist.")
        return FileResponse(folder / name, headers=_download_headers(name))

    # -- Table ------------------------------------------------------------------------------------

    def opened_file(self, draft: ImportDraft) -> OpenedFile:
        """Return the draft's opened file. Raises `ReadingInProgress`."""
        return wait_for_result(draft, self.reader.read_file(draft))

    def checked_file(self, draft: ImportDraft) -> CheckedFile:
        """Return the draft's checked rows. Raises `ReadingInProgress`."""
        return wait_for_result(draft, self.reader.check_rows(draft))

    def table(self, call: PageCall) -> Response:
        """Screen for the position of the table: heading row, sheet, encoding."""
        draft = self.drafts.load(call.id)
        opened, error = None, None
        try:
            opened = self.opened_file(draft)
        except ConnectorError as failed:
            error = failed
        return self.render_draft(
            call,
            "table.html",
            draft,
            opened=opened,
            error=error,
            told=TEXTS.describe_error(error) if error else (),
            table_errors=screens.TABLE_ERRORS,
            beginnings=self.reader.preview_sheets(draft, error.names)
            if isinstance(error, SheetUnknown)
            else {},
            readings=next((q.choices for q in opened.table.questions), ()) if opened else (),
            sheets=error.names if isinstance(error, SheetUnknown) else (),
            samples=getattr(error, "samples", ()),
            offered=getattr(error, "offered", None),
        )

    def save_table(self, call: PageCall) -> Response:
        """Save the position of the table."""
        with self.reopen_draft(call) as draft:
            for name in ("sheet", "encoding", "delimiter"):
                if name in call.form:
                    draft.options[name] = call.form[name].strip() or None
            if row := parse_whole_number(call.form.get("header_row", "")):
                draft.options["header_row"] = row
            draft.confirmed = ["table"]
        return redirect(f"/imports/{call.id}")

    # -- Columns ----------------------------------------------------------------------------------

    def columns(self, call: PageCall) -> Response:
        """Screen that matches columns with fields."""
        return self._columns_screen(call, self.drafts.load(call.id))

    def _columns_screen(self, call: PageCall, draft: ImportDraft, message: str = "") -> Response:
        """Return the screen of columns. With a message, the status is 422."""
        opened = self.opened_file(draft)
        found, is_remembered = self.reader.map_columns(draft, opened)
        labels = {each.name: TEXTS.field_label(each.name) for each in opened.target.columns}
        named = {each.name: each.field for each in opened.target.columns}
        return self.render_draft(
            call,
            "columns.html",
            draft,
            opened=opened,
            choices=screens.column_choices(opened, found, labels),
            fields=screens.mappable_fields(opened.target, found),
            long_texts={each.name for each in opened.target.columns if each.field.is_long_text},
            missing=screens.missing_fields(opened.target, found),
            constants={column.name: text for column, text, _ in found.constants},
            is_remembered=is_remembered and "columns" not in draft.confirmed,
            matchable=[n for n, each in named.items() if _can_match_by(draft, each)],
            message=message,
            left_out=screens.LEFT_OUT,
            named_maps=list_named_mappings(self._settings.folder, draft.resource),
            status=422 if message else 200,
        )

    def _use_named_map(self, call: PageCall) -> Response:
        """Replace the column mapping by the one that was saved under the chosen name."""
        chosen, name = self.drafts.load(call.id), call.form.get("named", "")
        headings = self.opened_file(chosen).table.headings
        saved = None
        if NAME_ALLOWED(name):
            saved = load_named_mapping(self._settings.folder, chosen.resource, name, headings)
        if saved is None:
            message = "These saved matches no longer exist."
            return self._columns_screen(call, chosen, message)
        with self.reopen_draft(call) as draft:
            self.drafts.save_map(draft, saved)
            draft.confirmed = ["table"]
        return redirect(f"/imports/{call.id}/columns")

    def save_columns(self, call: PageCall) -> Response:
        """Save the field of each column. A form with errors shows the screen again."""
        draft = self.drafts.load(call.id)
        if "use" in call.form:
            return self._use_named_map(call)
        opened = self.opened_file(draft)
        found, _ = self.reader.map_columns(draft, opened)
        saved, undecided, twins = screens.parse_mapping_form(call.form, opened, found)
        message = ""
        if twins:
            told = "Two columns use the same field: %s. Change one."
            message = told % "; ".join(f"{a} / {b}" for a, b in twins)
        elif undecided:
            told = "Choose a field or “Do not import” for: %s."
            message = told % ", ".join(undecided)
        elif (name := call.form.get("save_as", "").strip()) and not NAME_ALLOWED(name):
            message = "Use letters, digits, spaces and hyphens for the name."
        elif name:
            save_named_mapping(self._settings.folder, name, saved)
        with self.reopen_draft(call) as draft:
            self.drafts.save_map(draft, saved)
            if draft.mode in ("update", "upsert") and call.form.get("match"):
                draft.options["match"] = [call.form["match"]]
                if call.form["match"] == "id":
                    draft.options.pop("match")
            draft.confirmed = ["table"] if message else ["table", "columns"]
        if message:
            return self._columns_screen(call, draft, message)
        # Report an error of the mapping here, where the user can still correct it.
        try:
            self.reader.map_columns(draft, self.opened_file(draft))
        except ConnectorError as error:
            return self._columns_screen(call, draft, " ".join(TEXTS.describe_error(error)))
        return redirect(f"/imports/{call.id}")

    # -- Values -----------------------------------------------------------------------------------

    def values(self, call: PageCall, wrong: Sequence[ValueQuestion] = ()) -> Response:
        """Screen with questions about the values of whole columns.

        `wrong` are the questions with an invalid answer.
        """
        checked = self.checked_file(self.drafts.load(call.id))
        # The check may have written the edits to the file, which creates another version.
        draft, shown = self.drafts.load(call.id), {each.key: each for each in wrong}
        columns = checked.preview.columns
        has_phones, region = screens.find_phone_region(columns)
        opened = self.opened_file(draft)
        home = find_country(call.request.headers.get("accept-language", "")) if not region else ""
        # A file with another country's format would have numbers that cannot be imported.
        if home and not screens.is_region_plausible(opened, columns, home):
            home = ""
        questions = [shown.get(q.key, q) for q in screens.value_questions(checked)]
        return self.render_draft(
            call,
            "values.html",
            draft,
            questions=questions,
            referred=self._records_to_choose_from(questions),
            has_phones=has_phones,
            region=region,
            home=home,
            phones=screens.phone_examples(opened, columns, region or home),
            status=422 if wrong else 200,
        )

    def _records_to_choose_from(
        self, questions: Iterable[ValueQuestion]
    ) -> dict[str, Mapping[str, Any]]:
        """Return the records that are possible answers to these questions, by id."""
        found: dict[str, Mapping[str, Any]] = {}
        for each in questions:
            ids = {id for value in each.values for id in value.records}
            found |= self.reader.load_records(each.resource, ids)
        return found

    def save_values(self, call: PageCall) -> Response:
        """Save the answers about values. Invalid answers show the screen again."""
        draft = self.drafts.load(call.id)
        checked = self.checked_file(draft)
        kind = parse_kind(call.form.get("kind", ""))
        if kind is None:
            questions = screens.value_questions(checked)
        else:
            group = screens.group_question(checked, kind)
            questions = [group.values] if group is not None and group.values is not None else []
        saved, wrong = screens.parse_answers_form(
            call.form, questions, checked.preview.columns, checked.preview.push_file.mode
        )
        with self.reopen_draft(call) as draft:
            self.drafts.save_map(draft, saved)
            draft.confirmed = [*dict.fromkeys([*draft.confirmed, *(q.key for q in questions)])]
        if wrong:
            return self.values(call, wrong)
        return redirect(f"/imports/{call.id}{'' if kind is None else '/rows'}")

    # -- Rows -------------------------------------------------------------------------------------

    def rows(self, call: PageCall) -> Response:
        """Screen with the rows to correct for one kind of problem."""
        draft, checked = self._load_last_check(call)
        kinds = screens.all_kinds(checked.rows, draft.edits)
        left = (place for place, each in enumerate(kinds) if each.left)
        wanted = (place for place, each in enumerate(kinds) if each.key == call.query("kind"))
        place = next(wanted, next(left, 0))
        chosen = kinds[place] if kinds else None
        twins = checked.rows.duplicates.get(chosen.kind, {}) if chosen else {}
        found = checked.rows.page(chosen.kind, call.page()) if chosen and not twins else []
        group = screens.group_question(checked, chosen.kind) if chosen and not twins else None
        return self.render_draft(
            call,
            "rows.html",
            draft,
            kinds=kinds,
            chosen=chosen,
            group=group,
            referred=self._records_to_choose_from([group.values] if group and group.values else []),
            twins=screens.duplicate_groups(checked, chosen.kind, call.page()) if chosen else [],
            later=next((each for each in kinds[place + 1 :] if each.left), None),
            columns=checked.preview.columns.columns,
            replaced=parse_whole_number(call.query("replaced")),
            **self._shown_rows(draft, checked, found, chosen.kind if chosen else None),
            page=call.page(),
            pages=count_pages(len(twins) or chosen.count) if chosen else 1,
        )

    def _shown_rows(
        self,
        draft: ImportDraft,
        checked: CheckedFile,
        rows: Iterable[IndexedRow],
        kind: Kind | None,
    ) -> dict[str, Any]:
        """Return template values: the rows, and the records from which the user chooses."""
        shown = [screens.shown_row(row, checked, draft.edits, kind) for row in rows]
        ids = {id for row in shown for id in row.records}
        return {"rows": shown, "records": self.reader.load_records(draft.resource, ids)}

    def _load_last_check(self, call: PageCall) -> tuple[ImportDraft, CheckedFile]:
        """Return the draft and its last complete check. Raises `ReadingInProgress`."""
        draft = self.drafts.load(call.id)
        if (checked := self.reader.last_checked_file(draft)) is None:
            checked = self.checked_file(draft)
            # The check may have written the edits to the file, which creates another version.
            draft = self.drafts.load(call.id)
        return draft, checked

    def row(self, call: PageCall) -> Response:
        """Screen with all cells of one row."""
        draft, checked = self._load_last_check(call)
        found = checked.rows.row(parse_whole_number(call.request.path_params["row"]) or 0)
        if found is None:
            raise PageError("This row does not exist.")
        shown = screens.shown_row(found, checked, draft.edits, is_whole=True)
        return self.render_draft(
            call, "row.html", draft, row=shown, records={}, back=call.query("kind")
        )

    def save_cells(self, call: PageCall) -> Response:
        """Save the cells of a form, and check their rows immediately."""
        numbers = _submitted_row_numbers(call.form)
        _, checked = self._load_last_check(call)
        found = {number: checked.rows.row(number) for number in numbers}
        cells = {n: dict(enumerate(row.cells)) for n, row in found.items() if row is not None}
        with self.reopen_draft(call) as draft:
            apply_form_edits(call.form, draft.edits, cells)
            if call.form.get("go") == "on":
                draft.confirmed = [*dict.fromkeys([*draft.confirmed, "rows"])]
        self.reader.check_edited_rows(draft, numbers)
        if call.request.headers.get("x-part") == "rows":
            listed, some = parse_kind(call.form.get("kind", "")), filter(None, found.values())
            return call.render(
                "row_part.html",
                draft=draft,
                page=call.shown_version.page,
                kinds=screens.all_kinds(checked.rows, draft.edits),
                chosen=call.form.get("kind", ""),
                kind=listed,
                zone=self._settings.time_zone.value,
                **self._shown_rows(draft, checked, some, listed),
            )
        if call.form.get("go") == "on":
            return redirect(f"/imports/{call.id}/look")
        kind, page = call.form.get("kind", ""), call.form.get("page", "1")
        if later := call.form.get("later"):
            kind, page = later, "1"
        here = f"?kind={quote(kind)}&page={quote(page)}"
        return redirect(f"/imports/{call.id}/rows{here}")

    def save_group_answer(self, call: PageCall) -> Response:
        """Apply an answer to all rows with a kind of problem: a text, an empty cell, no column."""
        kind = parse_kind(call.form.get("kind", ""))
        _, checked = self._load_last_check(call)
        group = screens.group_question(checked, kind) if kind is not None else None
        if kind is None or group is None:
            raise PageError("This column does not exist.")
        with self.reopen_draft(call) as draft:
            if "without" in call.form:
                self.drafts.save_map(draft, without_column(checked.preview.columns, group.heading))
            elif "empty" in call.form or call.form.get("fill", "").strip():
                text = "" if "empty" in call.form else call.form["fill"].strip()
                for row in checked.rows.rows(kind):
                    set_cell(draft.edits, row, group.index, text)
        # The whole file is checked again with these cells.
        self.reader.discard_results(call.id)
        return redirect(f"/imports/{call.id}/rows")

    def replace_text(self, call: PageCall) -> Response:
        """Replace a text in all cells of a column."""
        find, replacement = call.form.get("find", ""), call.form.get("replacement", "")
        index, kind = parse_whole_number(call.form.get("column", "")), call.form.get("kind", "")
        if not find or index is None:
            raise PageError("Enter the text to find.", action="Go back.")
        _, checked = self._load_last_check(call)
        count = 0
        with self.reopen_draft(call) as draft:
            for row in checked.rows.rows():
                text = row.cells[index] if index < len(row.cells) else ""
                is_changed = find in text and draft.edits.get(str(row.number), {}) is not None
                if is_changed:
                    set_cell(draft.edits, row, index, text.replace(find, replacement))
                    count += 1
        self.reader.discard_results(call.id)
        return redirect(f"/imports/{call.id}/rows?kind={quote(kind)}&replaced={count}")

    def save_duplicates(self, call: PageCall) -> Response:
        """Save which row of each group of duplicates is imported; the others are skipped."""
        kind, every = parse_kind(call.form.get("kind", "")), call.form.get("every", "")
        _, checked = self._load_last_check(call)
        with self.reopen_draft(call) as draft:
            for first, others in checked.rows.duplicates.get(kind, {}).items() if kind else ():
                defaults = {"first": first, "last": others[-1], "none": None}
                kept_number = parse_whole_number(call.form.get(f"keep:{first}", ""))
                if every not in defaults and f"keep:{first}" not in call.form:
                    continue
                skip_other_rows(draft.edits, (first, *others), defaults.get(every, kept_number))
        self.reader.discard_results(call.id)
        return redirect(f"/imports/{call.id}/rows")

    # -- Frame ------------------------------------------------------------------------------------

    def render_draft(
        self, call: PageCall, name: str, draft: ImportDraft, *, status: int = 200, **values: Any
    ) -> Response:
        """Return a screen of a draft, with the draft and common values for its template."""
        return call.render(
            name,
            status=status,
            draft=draft,
            step=name.removesuffix(".html"),
            zone=self._settings.time_zone.value,
            modes=MODES,
            **values,
        )

    @contextmanager
    def reopen_draft(self, call: PageCall) -> Iterator[ImportDraft]:
        """Yield the draft for changes. Raises `PageError` if it was sent."""
        with self.open_for_change(call) as draft:
            if draft.stage in ("sending", "sent"):
                raise PageError(
                    "This import was already sent.", action="Go to the list of imports."
                )
            yield draft

    @contextmanager
    def open_for_change(self, call: PageCall) -> Iterator[ImportDraft]:
        """Yield the draft for changes. Raises `DraftChanged` if the form shows an older version."""
        with self.drafts.open_for_change(call.id, call.session.person, call.shown_version) as draft:
            yield draft


def _can_match_by(draft: ImportDraft, field: Field) -> bool:
    """Return True if the field can identify records: it is the id or part of a natural key."""
    keys = {name for some in CATALOG[draft.resource].natural_keys for name in some}
    return field.name in keys or field.name == "id"


def _download_headers(name: str) -> dict[str, str]:
    """Return headers that make a browser save the response as a file."""
    disposition = f"attachment; filename*=utf-8''{quote(name)}"
    return {"Content-Disposition": disposition, "Content-Type": "application/octet-stream"}


def _resource_and_mode(call: PageCall) -> tuple[str, Mode] | None:
    """Return the resource and the mode that a form names; None if one of them does not exist."""
    resource, mode = call.form.get("resource", ""), call.form.get("mode", "")
    if resource not in importable_resources() or mode not in MODES:
        return None
    return resource, cast("Mode", mode)


def _submitted_row_numbers(form: Mapping[str, str]) -> list[int]:
    """Return the numbers of the rows in a form."""
    parts = (name.split(":") for name in form)
    found = {each[1] for each in parts if each[0] in _ROWS_FIELDS and len(each) > 1}
    return sorted(number for each in found if (number := parse_whole_number(each)) is not None)


def wait_for_result(draft: ImportDraft, job: ReadingJob[T]) -> T:
    """Wait shortly for a reading; return its result. Raises its error, or `ReadingInProgress`."""
    if not wait([job.future], WAIT_SECONDS).done:
        raise ReadingInProgress(draft, job)
    return job.future.result()

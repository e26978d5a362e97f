"""Import page as an application: its routes, and the screens of a prepared file.

These screens check, send, resolve and undo an import; `preparing.py` has the earlier screens.
"""

from __future__ import annotations

from concurrent.futures import wait
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from connector.errors import ConnectorError
from connector.ledger.journal import Journal
from connector.ledger.ledger import Ledger
from connector.page import screens
from connector.page.access import AccessDenied, AccessRules, PageAccess
from connector.page.draft_reader import READ_OPTIONS, CheckedFile
from connector.page.draft_sender import DraftSender
from connector.page.drafts import ImportDraft, parse_whole_number
from connector.page.preparing import PreparingScreens, ReadingInProgress, wait_for_result
from connector.page.row_index import TAKEN_BACK, RowIndex
from connector.page.screens import count_pages, problem_kinds
from connector.page.site import (
    GuardedApplication,
    PageCall,
    PageEntrance,
    Screen,
    error_page,
    redirect,
    render,
)
from connector.page.words import ABOUT, MODES, OUTCOMES, QUESTIONS, TEXTS, UNDONE, PageError
from connector.pushes.batch import Decision, DeclaredRecord
from connector.pushes.dry_run import OPERATIONS
from connector.settings.model import Settings
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.mapping_file import SavedMap

ERASE_LOOK_SECONDS = 3_600

UNDONE_MAX = 200
"""Maximum number of rows of an undo that are shown individually."""

_HERE = Path(__file__).parent
_ENDED = (
    *("created", "updated", "converted", TAKEN_BACK, "held", "conflict", "rejected"),
    *("not_applied", "duplicate", "invalid", "unchanged", "not_sent"),
)
_FORESEEN = ("create", "update", "convert", "duplicate", "invalid", "unchanged", "conflict")
_CONVERTING = ("convert", "converted")
_MEGABYTE = 1024 * 1024
_FORM_BYTES = 2 * _MEGABYTE
_LOGIN_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class PageOptions:
    """Access rules, the name of the cookie, and the user of the link in the terminal."""

    rules: AccessRules
    cookie: str
    person: str


class ImportPage(PreparingScreens):
    """Import page of one account, with the application `app`."""

    def __init__(self, settings: Settings, options: PageOptions) -> None:
        super().__init__(settings)
        self.sender = DraftSender(settings, self.drafts, self.reader)
        self.access = PageAccess(options.rules, self.drafts.folder, options.person)
        self.door = PageEntrance(self.access, options.cookie)
        app = Starlette(
            routes=self._routes(), exception_handlers={HTTPException: self._http_error_page}
        )
        self.app = GuardedApplication(app, self._max_body_bytes)

    def _max_body_bytes(self, path: str) -> int:
        """Return the maximum size of a request body for a path."""
        if path == "/imports":
            return self._settings.import_file_mb.value * _MEGABYTE + _FORM_BYTES
        return _LOGIN_BYTES if path == "/login" else _FORM_BYTES

    def start(self) -> None:
        """Continue interrupted runs, and start a thread that erases expired drafts."""
        self.sender.resume()
        Thread(target=self._erase_expired_forever, name="erasing", daemon=True).start()

    def _erase_expired_forever(self) -> None:
        """Erase expired drafts every hour."""
        while True:
            self.drafts.erase_expired(datetime.now(UTC))
            sleep(ERASE_LOOK_SECONDS)

    def _routes(self) -> list[Route | Mount]:
        """Return the routes of all screens, with the checks of `PageEntrance`."""
        one = "/imports/{id}"
        shown: dict[str, Screen] = {
            "/": self.home,
            "/history": self.history,
            one: self.next_screen,
            f"{one}/table": self.table,
            f"{one}/columns": self.columns,
            f"{one}/values": self.values,
            f"{one}/rows": self.rows,
            f"{one}/rows/{{row}}": self.row,
            f"{one}/look": self.preview,
            f"{one}/progress": self.progress,
            f"{one}/result": self.result,
            f"{one}/undo": self.undo,
            f"{one}/get/{{what}}": self.download,
        }
        taken: dict[str, Screen] = {
            "/imports": self.create_import,
            "/template": self.template,
            "/inbox": self.create_import_from_inbox,
            f"{one}/table": self.save_table,
            f"{one}/columns": self.save_columns,
            f"{one}/values": self.save_values,
            f"{one}/rows": self.save_cells,
            f"{one}/group": self.save_group_answer,
            f"{one}/replace": self.replace_text,
            f"{one}/twins": self.save_duplicates,
            f"{one}/send": self.send,
            f"{one}/again": self.continue_import,
            f"{one}/undo": self.start_undo,
            f"{one}/resolve": self.resolve,
            f"{one}/rest": self.create_import_of_failed_rows,
            f"{one}/remove": self.erase,
            "/logout": self.logout,
        }
        routes: list[Route | Mount] = [
            Route("/enter/{token}", self._login_with_link, methods=["GET"]),
            Route("/login", self._login_with_password, methods=["GET", "POST"]),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        for methods, some in (("GET", shown), ("POST", taken)):
            for path, show in some.items():
                routes.append(
                    Route(
                        path,
                        self.door.protect(_show_progress_while_reading(show)),
                        methods=[methods],
                    )
                )
        return routes

    # -- Login -------------------------------------------------------------------------------------

    async def _login_with_link(self, request: Request) -> Response:
        """Log in with the link of the terminal. A HEAD request does not use the link."""
        try:
            self.access.check_origin(request.headers, changes=False)
            if request.method == "HEAD":
                # Chat programs and mail filters open a link before the user does.
                return Response()
            response = redirect("/")
            self.door.set_cookie(
                response, self.access.login_with_link(request.path_params["token"])
            )
        except ConnectorError as error:
            return error_page(error, None)
        return response

    async def _login_with_password(self, request: Request) -> Response:
        """Show the login form, or log in with it."""
        try:
            if self.access.rules.passwords is None:
                raise AccessDenied("This page has no sign-in with a password.")
            self.access.check_origin(request.headers, changes=request.method == "POST")
            if request.method == "GET":
                return HTMLResponse(render("login.html", session=None, message=""))
            async with request.form(max_files=0, max_fields=10) as form:
                name, password = str(form.get("name", "")), str(form.get("password", ""))
            response = redirect("/")
            self.door.set_cookie(response, self.access.login(name, password))
        except AccessDenied as error:
            message = " ".join(TEXTS.describe_error(error))
            shown = render("login.html", session=None, message=message)
            return HTMLResponse(shown, 403)
        except ConnectorError as error:
            return error_page(error, None)
        return response

    async def _http_error_page(self, request: Request, error: Exception) -> Response:
        """Return a page for an unknown address or a form that is too large."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        page_error = PageError("This page does not exist.")
        if status == 413 and request.url.path == "/imports":
            page_error = PageError(
                "The file is larger than %(size)s MB.",
                action="Choose a smaller file, or split it into several files.",
                size=TEXTS.format_number(self._settings.import_file_mb.value),
            )
        elif status in (400, 413):
            page_error = PageError("The form is too large.")
        return error_page(page_error, None, status)

    def logout(self, call: PageCall) -> Response:
        """End the session."""
        self.access.logout(call.request.cookies.get(self.door.cookie))
        shown = render("message.html", session=None, message="")
        return HTMLResponse(shown)

    # -- Check and send ----------------------------------------------------------------------------

    def preview(self, call: PageCall) -> Response:
        """Screen with the values to be sent, by outcome, and open questions."""
        draft = self.drafts.load(call.id)
        if draft.stage in ("sending", "sent"):
            return redirect(self.first_open_screen(draft))
        checked = self.checked_file(draft)
        # Writing edits to the file has created another version of the draft.
        draft = self.drafts.load(call.id)
        preview = checked.preview
        stopping = [each for each in preview.blocking_questions if each.code not in _BY_CONSENT]
        return self.render_draft(
            call,
            "look.html",
            draft,
            preview=preview,
            consents=[
                code
                for code in dict.fromkeys(each.code for each in preview.blocking_questions)
                if code in _BY_CONSENT
            ],
            stopping=stopping,
            settled_by=QUESTIONS,
            left=preview.month.requests_left(keeps_reserve=False)
            if preview.month is not None
            else None,
            shows_command=self._settings.page_commands.value == "on",
            warnings=problem_kinds(checked.rows, sort="warning"),
            path=self.drafts.file_path(draft),
            map_path=self.drafts.map_path(draft),
            **self._listed_rows(call, checked.rows, _FORESEEN, checked),
        )

    def send(self, call: PageCall) -> Response:
        """Start to send the draft.

        Raises `PageError` if a question is open or a warning is not confirmed.
        """
        draft = self.drafts.load(call.id)
        checked, person = self.checked_file(draft), call.session.person
        draft = self.drafts.load(call.id)
        stopping = {each.code for each in checked.preview.blocking_questions}
        if stopping - _BY_CONSENT or (stopping and call.form.get("accept") != "yes"):
            raise PageError(
                "Some questions or warnings need your answer.",
                action="Answer the open questions and confirm the warnings.",
            )
        if (
            checked.rows.count_rows(("outcome", "convert", None))
            and call.form.get("final") != "yes"
        ):
            raise PageError("A conversion cannot be undone.", action="Confirm the conversion.")
        with self.open_for_change(call) as draft:
            if draft.stage in ("sending", "sent"):
                raise PageError(
                    "This import was already sent.", action="Go to the list of imports."
                )
            if stopping:
                draft.options["accept_warnings"] = True
            draft.stage, draft.sent_by, draft.error = "sending", person, None
            draft.sent_at = datetime.now(UTC).isoformat()
        self.sender.send(draft)
        return redirect(f"/imports/{call.id}/progress")

    def continue_import(self, call: PageCall) -> Response:
        """Start to send a draft again. Rows that were applied are not sent again."""
        with self.open_for_change(call) as draft:
            if draft.stage != "sent":
                raise PageError(
                    "This import was not sent yet.", action="Go to the list of imports."
                )
            draft.stage, draft.error = "sending", None
        self.sender.send(draft)
        return redirect(f"/imports/{call.id}/progress")

    def progress(self, call: PageCall) -> Response:
        """Screen with the progress of the import, which runs in the background."""
        # The run first: a draft that was loaded before its run ended is still being sent.
        run = self.sender.latest_run(call.id)
        draft = self.drafts.load(call.id)
        if run is None or run.ended.is_set():
            if draft.stage == "sending":
                self.sender.send(draft)
            else:
                is_look = run is not None and run.operation != "send"
                return redirect(f"/imports/{call.id}/{'undo' if is_look else 'result'}")
        return self.render_draft(call, "progress.html", draft, run=self.sender.latest_run(call.id))

    # -- Result -----------------------------------------------------------------------------------

    def result(self, call: PageCall) -> Response:
        """Screen with the outcome of every row."""
        draft = self.drafts.load(call.id)
        if draft.batch is None:
            return redirect(f"/imports/{call.id}/look")
        ended, columns = self._sent_rows(draft)
        return self.render_draft(
            call, "result.html", draft, **self._listed_rows(call, ended, _ENDED, columns)
        )

    def _sent_rows(self, draft: ImportDraft) -> tuple[RowIndex, ColumnMap]:
        """Return the rows of a sent draft with their outcomes, and the column mapping."""
        ended = wait_for_result(draft, self.reader.read_outcomes(draft))
        return ended, self.reader.map_columns(draft, self.opened_file(draft))[0]

    def _listed_rows(
        self,
        call: PageCall,
        rows: RowIndex,
        order: tuple[str, ...],
        source: CheckedFile | ColumnMap,
    ) -> dict[str, Any]:
        """Return template values: counts by outcome, and a page of rows with one outcome.

        `order` has the outcomes. `source` is the checked file, or the mapping of a sent file.
        """
        columns = source.preview.columns if isinstance(source, CheckedFile) else source
        counts = {name: rows.count_rows(("outcome", name, None)) for name in order}
        counts = {name: count for name, count in counts.items() if count}
        show = call.query("show")
        urgent = (name for name in ("held", *counts) if name in counts)
        show = show if show in counts else next(urgent, "")
        found = rows.page(("outcome", show, None), call.page())
        values = (
            self.reader.values_to_send(source, found)
            if isinstance(source, CheckedFile) and show == "create"
            else {}
        )
        ids = {row.result.record_id or "" for row in found if show in _CONVERTING}
        return {
            "meant": values,
            "records": self.reader.load_records(columns.resource, ids),
            "counts": counts,
            "show": show,
            "rows": [(each, screens.row_title(each, columns)) for each in found],
            "page": call.page(),
            "pages": count_pages(counts.get(show, 0)),
            "sent": sum(counts.get(name, 0) for name in OPERATIONS),
            "outcomes": OUTCOMES,
            "about": ABOUT,
            "record_url": self._settings.record_url.value,
        }

    def create_import_of_failed_rows(self, call: PageCall) -> Response:
        """Create an import from the report of a sent draft, with only the rows to correct."""
        draft, person = self.drafts.load(call.id), call.session.person
        if draft.report is None:
            raise PageError("This import has no report.")
        values = {"resource": draft.resource, "mode": draft.mode, "made_by": person}
        options = {n: v for n, v in draft.options.items() if n not in _OF_ONE_FILE}
        shift = self.reader.count_rows_missing_in_report(draft)
        path = self.drafts.folder_of(draft.id) / draft.report
        with path.open("rb") as content:
            draft_of_rest = self.drafts.create(
                path.name, content, options=options, shift=draft.shift + shift, **values
            )
        with self.drafts.open_for_change(draft_of_rest.id, person) as draft_of_rest:
            self.drafts.save_map(
                draft_of_rest, self.drafts.saved_map(draft) or SavedMap(draft.resource)
            )
            draft_of_rest.confirmed = ["table", "columns"]
            draft_of_rest.edits = self.reader.edits_skipping_finished_rows(draft, draft_of_rest)
        return redirect(f"/imports/{draft_of_rest.id}")

    def resolve(self, call: PageCall) -> Response:
        """Resolve an unconfirmed row with the decision in the form."""
        words: dict[str, Decision] = {"look": "look", "resend": "resend", "drop": "drop"}
        said, row = call.form.get("decision", ""), parse_whole_number(call.form.get("row", ""))
        id = call.form.get("record", "").strip()
        decision = DeclaredRecord(id) if said == "record" and id else words.get(said)
        if decision is None or row is None:
            raise PageError("Choose an action for the row.", action="Go back and choose one.")
        self.sender.resolve(self.drafts.load(call.id), row, decision)
        with self.open_for_change(call):
            pass
        return redirect(f"/imports/{call.id}/result?show=held")

    def undo(self, call: PageCall) -> Response:
        """Screen with the preview or the result of an undo."""
        draft, run = self.drafts.load(call.id), self.sender.latest_run(call.id)
        if run is not None and not run.ended.is_set():
            return redirect(f"/imports/{call.id}/progress")
        if run is not None and run.error is not None:
            raise run.error
        report = run.undone if run is not None else None
        undo_rows = (
            [] if report is None else (each for each in report.rows if each.outcome != "nothing")
        )
        rows = [*islice(undo_rows, UNDONE_MAX)]
        row_titles: dict[int, tuple[str, str]] = {}
        if rows:
            ended, columns = self._sent_rows(draft)
            found = ((each.number, ended.row(each.number)) for each in rows)
            row_titles = {number: screens.row_title(row, columns) for number, row in found if row}
        return self.render_draft(
            call, "undo.html", draft, report=report, words=UNDONE, rows=rows, who=row_titles
        )

    def start_undo(self, call: PageCall) -> Response:
        """Preview the undo, or start it."""
        with self.open_for_change(call) as draft:
            if draft.batch is None:
                raise PageError("Nothing was imported.")
        if call.form.get("go") == "on":
            self.sender.undo(draft)
        else:
            self.sender.preview_undo(draft)
        return redirect(f"/imports/{call.id}/progress")

    def history(self, call: PageCall) -> Response:
        """Screen with the latest imports of the account, by the page or the command."""
        with Ledger(self._settings.folder) as ledger:
            journal = Journal(ledger)
            batches = journal.batches()[:200]
            unclear = journal.unconfirmed_rows()
        return call.render(
            "history.html",
            batches=batches,
            held={
                each.batch: sum(1 for row in unclear if row.batch == each.batch) for each in batches
            },
            drafts={each.batch: each for each in self.drafts.load_all() if each.batch},
            modes=MODES,
            zone=self._settings.time_zone.value,
        )


_OF_ONE_FILE = (*READ_OPTIONS, "accept_warnings")
_BY_CONSENT = frozenset(
    ("warnings", "mixed_dates", "second_table", "hidden_columns", "merged_cells", "headings")
)


def _show_progress_while_reading(show: Screen) -> Screen:
    """Wrap a screen, so that it shows a progress page while the file it needs is being read."""

    def answer(call: PageCall) -> Response:
        try:
            return show(call)
        except ReadingInProgress as waits:
            if call.request.method == "POST":
                # No input is lost: the form is sent again after the reading.
                wait([waits.job.future])
                return show(call)
            return call.render("reading.html", draft=waits.draft, job=waits.job)

    return answer

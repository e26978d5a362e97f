"""Agency in a data folder, with one person in every place that can contain personal data."""

from __future__ import annotations

import atexit
import csv
import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from copy import copy as copy_of
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from click.testing import CliRunner, Result
from openpyxl import Workbook

from connector.catalog import CATALOG
from connector.cli import main
from connector.client.messages import Request
from connector.ledger.journal_records import Transition
from connector.ledger.journal_writer import PUSH_LEASE, JournalWriter
from connector.ledger.ledger import LeaseOwner, Ledger
from connector.ledger.push_plan import Problem, PushPlan, PushPolicy, RowResult
from connector.ledger.push_states import Task
from connector.publishing.publication import publish
from connector.pushes.landed_writes import copy_journal
from connector.report.page import REPORT_FILE
from connector.settings.model import Settings, load_settings
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.stream import Commit, Event, FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse
from tests.publishing.demonstration import AT, load_generated_records

FEW = {"jobs": 6, "candidates": 14, "companies": 4, "bookings": 20, "leads": 6}

FIRST, LAST = "Olwen", "Zzyzxworth"
EMAIL = "Olwen.Zzyzxworth@Mail.example"
FORMER_EMAIL = "o.former@mail.example"
PHONE = "+44 20 7946 0958"
PROFILE = "https://people.example/olwen-zz"
TRACES = (EMAIL, FORMER_EMAIL, PHONE, LAST, PROFILE, "7946 0958")
"""Texts that must be nowhere once the person is erased, in whatever letter case."""

TABLE = "inbox/candidates/done/people.20260901T090000Z.report.csv"
WORKBOOK = "inbox/candidates/next.xlsx"

LATER = AT + timedelta(hours=1)
NOW = datetime(2026, 9, 2, 9, 0, tzinfo=UTC)


def load_folder_settings(folder: Path, **environ: str) -> Settings:
    """Return the settings of the account with the data folder `data` in this folder, without
    models by default.
    """
    given = {"CONNECTOR_DATA_DIR": str(folder / "data"), "CONNECTOR_MODELS": "off", **environ}
    return load_settings({}, given, folder)


@cache
def make_template_agency() -> PopulatedAgency:
    """Return an agency before any erasure, created once per process. Tests copy it."""
    folder = Path(mkdtemp(prefix="erasure-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return PopulatedAgency(folder)


def copy_populated_agency(folder: Path, *, models: str = "off") -> PopulatedAgency:
    """Copy the agency to the folder; later publications use `models`."""
    found = copy_of(make_template_agency())
    found.folder = folder / "data"
    found.settings = load_folder_settings(folder, CONNECTOR_MODELS=models)
    found.warehouse = Warehouse(found.folder)
    found.table = found.folder / TABLE
    found.workbook = found.folder / WORKBOOK
    shutil.copytree(make_template_agency().folder, found.folder)
    return found


class PopulatedAgency:
    """Data folder of an agency. One of its candidates (`id`) is the person, whose data is in every
    place that can contain personal data.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "data"
        self.settings = load_folder_settings(folder)
        self.warehouse = load_generated_records(self.folder, FEW)
        with self.warehouse.keep_open():
            self.id = self._find_candidate_with_booking()
            self._load_person()
        self._write_journal()
        self._write_files()
        publish(self.settings, now=lambda: AT)
        (self.folder / REPORT_FILE).write_text(f"<p>{FIRST} {LAST}</p>", encoding="utf-8")

    def query_work_file(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query of the work file."""
        with open_file(self.warehouse.work) as connection:
            return connection.execute(sql).fetchall()

    # -- the landing ------------------------------------------------------------------------------

    def read_record(self, resource: str, id: str) -> dict[str, Any]:
        """Return the last loaded version of a record."""
        sql = f"SELECT _record::VARCHAR FROM landing.{resource} WHERE id = '{id}'"
        ((text,),) = self.query_work_file(sql)
        found: dict[str, Any] = json.loads(text)
        return found

    def load(self, resource: str, record: Mapping[str, Any], at: datetime) -> None:
        """Load a record as a pull does."""
        load_record(self.warehouse, resource, record, at)

    def _find_candidate_with_booking(self) -> str:
        """Return the id of a candidate who has a booking."""
        ((id,),) = self.query_work_file(
            "SELECT candidate_id FROM landing.bookings WHERE candidate_id IN "
            "(SELECT id FROM landing.candidates) ORDER BY booking_type, id LIMIT 1"
        )
        assert isinstance(id, str)
        return id

    def _load_person(self) -> None:
        """Load the person twice, and records and an event that name the person."""
        person = {
            **self.read_record("candidates", self.id),
            "first_name": FIRST,
            "last_name": LAST,
            "email": FORMER_EMAIL,
            "phone": PHONE,
            "network_url": PROFILE,
            "notes": f"{FIRST} is keen",
            "updated_at": LATER.isoformat(),
            "nickname": f"{LAST} of old",
        }
        self.load("candidates", person, LATER)
        person |= {"email": EMAIL, "updated_at": (LATER + timedelta(hours=1)).isoformat()}
        self.load("candidates", person, LATER + timedelta(hours=1))
        for (id,) in self.query_work_file(
            f"SELECT id FROM landing.bookings WHERE candidate_id = '{self.id}'"
        ):
            booking = self.read_record("bookings", id)
            texts = {"title": f"{LAST} meets the client", "internal_notes": f"call {PHONE}"}
            self.load("bookings", {**booking, **texts}, LATER)
        ((other,),) = self.query_work_file(
            f"SELECT id FROM landing.candidates WHERE id <> '{self.id}' ORDER BY id LIMIT 1"
        )
        self.other = str(other)
        ((company,),) = self.query_work_file("SELECT id FROM landing.companies ORDER BY id LIMIT 1")
        self.company = str(company)
        contact = {"primary_contact_name": f"{FIRST} {LAST}", "primary_contact_email": EMAIL}
        firm = self.read_record("companies", self.company)
        self.load("companies", {**firm, **contact, "email": "office@firm.example"}, LATER)
        event = Commit(events=(Event("unknown_value", f"source {EMAIL!r} is not documented"),))
        stream = Stream(CATALOG["candidates"])
        self.warehouse.commit(stream, event, "the-run", LATER)

    def load_mention(self) -> str:
        """Load another candidate whose notes mention the person. Returns the notes."""
        notes = f"Was recommended by {FIRST} {LAST} <{EMAIL.lower()}>, tel {PHONE}."
        record = {**self.read_record("candidates", self.other), "notes": notes}
        with self.warehouse.keep_open():
            self.load("candidates", record, LATER)
        return notes

    # -- the journal ------------------------------------------------------------------------------

    def _write_journal(self) -> None:
        """Write a push to the journal, with applied, invalid and planned rows about the person."""
        made = {"first_name": FIRST, "last_name": LAST, "email": FORMER_EMAIL}
        fields = {**made, "employment_type": "permanent", "source": "fair"}
        update = Task(
            3,
            "update",
            "candidates",
            {"phone": PHONE, "source": "walk-in"},
            record_id=self.id,
            base={"phone": None, "source": "fair"},
            identity={"email": EMAIL},
        )
        create = Task(2, "create", "candidates", fields, identity={"email": FORMER_EMAIL})
        wrong = Problem("email_format", "It is no address.", "Email", EMAIL, field="email")
        verdict = RowResult(4, "invalid", (wrong,), "email_format")
        later = Task(5, "update", "candidates", {"mobile": PHONE}, record_id=self.id)
        plan = PushPlan(
            "candidates", "upsert", f"{FIRST} {LAST}.csv", "0" * 64, (create, update, later)
        )
        plan = PushPlan(plan.resource, plan.mode, plan.file, plan.digest, plan.tasks, (verdict,))
        with Ledger(self.folder) as ledger:
            ledger.take_lease(PUSH_LEASE, LeaseOwner.of_this_process("r1", "push"), AT)
            journal = JournalWriter(ledger, "r1", now=lambda: AT)
            self.batch = journal.create_batch(plan, PushPolicy())
            self._record_accepted_row(journal, create, None)
            self._record_accepted_row(journal, update, {**fields, "id": self.id, "phone": PHONE})
            journal.record_run_end(self.batch, "partial", requests=2, seconds=1.0)
            ledger.release_lease(PUSH_LEASE, "r1")
        copy_journal(self.settings)

    def _record_accepted_row(
        self, journal: JournalWriter, task: Task, before: Mapping[str, Any] | None
    ) -> None:
        """Record that a row was sent and accepted; `before` is the record before it."""
        body = json.dumps(dict(task.fields)).encode()
        path = f"/api/v1/candidates/{task.record_id or ''}"
        request = Request("candidates", task.operation, "PUT", path, "candidates.write", body=body)
        key = (self.batch, task.number)
        journal.record_attempt(key, request, before=before, sent_after=AT)
        journal.record_transition(
            key, Transition("accepted", "", record_id=self.id, fate="accepted")
        )

    # -- files ------------------------------------------------------------------------------------

    def _write_files(self) -> None:
        """Write a report, a workbook and temporary files with data of the person."""
        self.table, self.workbook = self.folder / TABLE, self.folder / WORKBOOK
        self.table.parent.mkdir(parents=True)
        rows = [
            ["Email", "Name", "_row", "_outcome", "_code", "_problem", "_fix", "_id"],
            ["bob@mail.example", "Bob Old", "2", "created", "", "", "", "b-1"],
            [EMAIL.upper(), LAST, "3", "created", "", "", "", self.id],
        ]
        with self.table.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows(rows)
        workbook = Workbook()
        sheet = workbook.active
        assert sheet is not None
        for row in (["Email", "Phone"], ["bob@mail.example", "1"], ["x@mail.example", PHONE]):
            sheet.append(row)
        workbook.save(self.workbook)
        (self.folder / "work.duckdb.damaged-20260901T090000Z-1.wal").write_bytes(
            b"\0\1" + EMAIL.encode() + b"\2"
        )
        (self.folder / "recruitment.duckdb.publishing").write_bytes(LAST.encode())


def load_record(
    warehouse: Warehouse, resource: str, record: Mapping[str, Any], at: datetime
) -> None:
    """Load a record as a pull at that time does."""
    declared = CATALOG[resource]
    found = FoundDetail(declared.record(dict(record)), at)
    warehouse.commit(Stream(declared), Commit(records=(found,)), "the-run", at)


def find_traces(folder: Path, *texts: str) -> Iterator[str]:
    """Yield FILE: TEXT for each file that contains one of the texts (default: `TRACES`), in any
    letter case. Workbooks are unpacked.
    """
    needles = [each.lower().encode() for each in texts or TRACES]
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        contents = [path.read_bytes()]
        if path.suffix == ".xlsx":
            with zipfile.ZipFile(path) as archive:
                contents = [archive.read(name) for name in archive.namelist()]
        for content in contents:
            for needle in needles:
                if needle in content.lower():
                    yield f"{path.relative_to(folder)}: {needle.decode()}"


def run_in_folder(folder: Path, *words: str) -> Result:
    """Run a command for the account with the data folder `data` in this folder."""
    environ = {"CONNECTOR_DATA_DIR": str(folder / "data"), "CONNECTOR_MODELS": "off"}
    return CliRunner().invoke(main, list(words), env=environ)

"""Small random agencies with ordinary texts, in which people have much in common."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from connector.catalog import CATALOG
from connector.client.messages import Request
from connector.ledger.journal_records import Transition
from connector.ledger.journal_writer import PUSH_LEASE, JournalWriter
from connector.ledger.ledger import LeaseOwner, Ledger
from connector.ledger.push_plan import Problem, PushPlan, PushPolicy, RowResult
from connector.ledger.push_states import Task
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import open_file, quoted
from connector.warehouse.runs import Run, begin_run
from connector.warehouse.stream import Commit, DeletionProof, Event, FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse
from tests.privacy.populated_agency import load_folder_settings

AT = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
RESOURCES = ("jobs", "candidates", "companies", "bookings", "leads")
JOURNAL = ("push_batches", "push_rows", "push_attempts", "push_problems", "push_before")

FIRSTS = ("Ann", "Joann", "Jordan", "Baker", "Mary Ann", "Zoë", "Tom", "Olu")
LASTS = ("Lee", "Leeds", "Tilly", "Smith", "Lee-Jones", "O'Brien", "Okafor")
TITLES = ("UX/UI Designer", "C/C++ Engineer", "Manager", "R&D / QA Lead", "Jordan Smith Lecturer")
EMPLOYERS = ("Ernst & Young / EY", "Baker Tilly", "Baker Tilly LLP", "A/S Nord", "Acme")
STREETS = ("Flat 2/1", "c/o 12/3", "1 High Street", "Unit 4/5")
CITIES = ("Leeds", "Jordan", "Glasgow / Edinburgh")
DESKS = ("+44 20 7946 0000", "020 7946 0000", "(020) 7946 0001")
PROFILES = ("https://people.example/ann", "https://people.example/ann-lee", "http://acme.example/")
MAILBOXES = ("jobs@acme.example", "ann@x.example")


class RandomAgency:
    """Random agency in a data folder, loaded twice and with a push. `records` are the records of
    the last load, by resource and id.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.settings: Settings = load_folder_settings(folder)
        self.folder = self.settings.folder
        self._random = random.Random(seed)
        self.records: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in RESOURCES}
        self.warehouse = Warehouse(self.folder)
        self.warehouse.prepare()
        self.warehouse.write(begin_run, Run("the-run", "pull", started_at=AT))
        self._make_records()
        with self.warehouse.keep_open():
            self._load_records(AT)
            self._change_people()
            self._load_records(AT + timedelta(hours=1))
            gone = {self._choose_record("candidates")["id"]: DeletionProof(AT + timedelta(hours=2))}
            events = (Event("unknown_value", f"source {self._make_mention()!r} is not documented"),)
            stream = Stream(CATALOG["candidates"])
            self.warehouse.commit(stream, Commit(gone=gone, events=events), "the-run", AT)
        self._write_journal()

    # -- records ----------------------------------------------------------------------------------

    def people(self) -> list[dict[str, Any]]:
        """Return the records of all candidates and leads."""
        return [*self.records["candidates"].values(), *self.records["leads"].values()]

    def _choose(self, *options: Any) -> Any:
        """Return one of the options at random."""
        return self._random.choice(options)

    def _choose_record(self, resource: str) -> dict[str, Any]:
        found: dict[str, Any] = self._choose(*self.records[resource].values())
        return found

    def _make_phone_number(self) -> str:
        """Return a new phone number or that of an office."""
        own = f"+44 7700 9{self._random.randrange(10_000, 99_999)}"
        return str(self._choose(own, own, own.replace("+44 ", "0"), *DESKS))

    def _add_record(self, resource: str, **fields: Any) -> None:
        """Add a record with the next free id."""
        id = f"{resource}-{len(self.records[resource]):08}"
        dates = {"created_at": AT.isoformat(), "updated_at": AT.isoformat()}
        self.records[resource][id] = {"id": id, **fields, **dates}

    def _make_person(self, resource: str, number: int) -> dict[str, Any]:
        """Return the personal fields of a candidate or lead; many values are shared by several
        people.
        """
        first, last = self._choose(*FIRSTS), self._choose(*LASTS)
        own = f"{first.split()[-1].lower()}.{number}@x.example"
        return {
            "first_name": first,
            "last_name": last,
            "email": self._choose(own, own, own, f"jo{own}", *MAILBOXES),
            "phone": self._choose(None, self._make_phone_number()),
            "mobile": self._choose(None, self._make_phone_number()),
            "network_url": self._choose(
                None, *PROFILES, f"https://people.example/{resource}/{number}"
            ),
            "city": self._choose(*CITIES),
            "source": self._choose("fair", "fair / stand 3", "Baker Tilly"),
        }

    def _make_records(self) -> None:
        """Add candidates, leads, companies, jobs and bookings that refer to each other."""
        for number in range(9):
            self._add_record(
                "candidates",
                **self._make_person("candidates", number),
                address_line1=self._choose(*STREETS),
                current_job_title=self._choose(*TITLES),
                current_company=self._choose(*EMPLOYERS),
                cv_file_path=self._choose("cv/shared.pdf", f"cv/{number}.pdf"),
                status="screening",
            )
        for number in range(5):
            person = self._make_person("leads", number + 100)
            self._add_record(
                "leads", **person, address=self._choose(*STREETS), company_name="A/S Nord"
            )
        for employer in EMPLOYERS:
            someone = self._choose(*self.people())
            self._add_record(
                "companies",
                name=employer,
                legal_name=f"{employer} Ltd",
                email=self._choose("office@acme.example", someone["email"]),
                phone=self._choose(*DESKS, someone["phone"]),
                website=self._choose(None, *PROFILES),
                **self._make_contact("primary_contact", someone),
            )
        for number in range(6):
            self._add_record(
                "jobs",
                title=self._choose(*TITLES),
                location=self._choose(*CITIES),
                reference_code=f"J/{number}",
            )
        for _ in range(9):
            self._add_record(
                "bookings",
                booking_type="interview",
                candidate_id=self._choose_record("candidates")["id"],
                lead_id=self._choose(None, self._choose_record("leads")["id"]),
                interview_panel=self._choose("Mr / Mrs Panel", *EMPLOYERS, "Ann Lee, Tom Smith"),
                **self._make_contact("contact", self._choose(*self.people())),
            )
        self._write_free_texts()

    def _make_contact(self, prefix: str, person: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a contact: a known person, an unknown one, or a mixture of both."""
        name = f"{person['first_name']} {person['last_name']}"
        stranger = f"{self._choose(*FIRSTS)} {self._choose(*LASTS)}"
        return {
            f"{prefix}_name": self._choose(name, stranger, None),
            f"{prefix}_email": self._choose(None, person["email"], "c@firm.example"),
            f"{prefix}_phone": self._choose(None, person["phone"], *DESKS),
        }

    def _make_mention(self) -> str:
        """Return a sentence that names a person, or only seems to."""
        someone = self._choose(*self.people())
        first, last, email = (someone[name] for name in ("first_name", "last_name", "email"))
        number = someone["phone"] or someone["mobile"] or DESKS[0]
        digits = "".join(filter(str.isdigit, number))
        return str(
            self._choose(
                f"Recommended by {first} {last} <{email}>, tel {number}.",
                f"See {last}, {first} / {someone['network_url']}.",
                f"Ask {first} {last}s or jo{first.lower()} {last}.",
                f"Account GB29NWBK{digits}, code R-{digits}, order 7712{digits}31.",
                f"Mail xx{email} or {email}.uk; profile {someone['network_url']}-old",
                f"The team / the {self._choose(*TITLES)} of {self._choose(*EMPLOYERS)}",
            )
        )

    def _write_free_texts(self) -> None:
        """Write a mention into every free-text field."""
        proses = {
            "jobs": ("description",),
            "candidates": ("notes", "internal_notes"),
            "companies": ("description",),
            "bookings": ("title", "internal_notes"),
            "leads": ("notes",),
        }
        for resource, names in proses.items():
            for record in self.records[resource].values():
                record.update({name: self._make_mention() for name in names})

    def _change_people(self) -> None:
        """Change phone numbers, names and notes of some people."""
        for record in self._random.sample(self.people(), 4):
            record |= {"phone": self._make_phone_number(), "notes": self._make_mention()}
            record["updated_at"] = (AT + timedelta(minutes=30)).isoformat()
        married = self._choose_record("candidates")
        married |= {"last_name": self._choose(*LASTS), "mobile": self._choose(*DESKS)}

    def _load_records(self, at: datetime) -> None:
        """Load all records as a pull at that time does."""
        for resource in RESOURCES:
            declared = CATALOG[resource]
            records = [declared.record(dict(each)) for each in self.records[resource].values()]
            what = Commit(records=tuple(FoundDetail(each, at) for each in records))
            self.warehouse.commit(Stream(declared), what, "the-run", at)

    # -- the journal ------------------------------------------------------------------------------

    def _write_journal(self) -> None:
        """Write a push to the journal, with rows about loaded people and about unknown people."""
        tasks = []
        for number in range(2, 6):
            someone = self._choose_record("candidates")
            fields = {"notes": self._make_mention(), "phone": self._make_phone_number()}
            base, identity = {"phone": someone["phone"]}, {"email": someone["email"]}
            tasks.append(
                Task(
                    number,
                    "update",
                    "candidates",
                    fields,
                    record_id=someone["id"],
                    base=base,
                    identity=identity,
                )
            )
        for number in range(6, 9):
            fields = {
                **self._make_person("candidates", number + 200),
                "notes": self._make_mention(),
            }
            identity = {"email": fields["email"]}
            tasks.append(Task(number, "create", "candidates", fields, identity=identity))
        problem = Problem(
            "email_format", "It is no address.", "Notes", self._make_mention(), field="notes"
        )
        verdict = RowResult(9, "invalid", (problem,), "email_format")
        plan = PushPlan("candidates", "upsert", "a/b.csv", "0" * 64, tuple(tasks), (verdict,))
        with Ledger(self.folder) as ledger:
            ledger.take_lease(PUSH_LEASE, LeaseOwner.of_this_process("r1", "push"), AT)
            journal = JournalWriter(ledger, "r1", now=lambda: AT)
            batch = journal.create_batch(plan, PushPolicy())
            for task in tasks[:6]:
                body = json.dumps(dict(task.fields)).encode()
                path = f"/api/v1/candidates/{task.record_id or ''}"
                before = self.records["candidates"].get(task.record_id or "")
                request = Request("candidates", task.operation, "PUT", path, "x", body=body)
                journal.record_attempt((batch, task.number), request, before=before, sent_after=AT)
                move = Transition("accepted", "", record_id=task.record_id, fate="accepted")
                if task.operation == "create":
                    move = Transition("refused", "validation_error", fate="refused")
                journal.record_transition((batch, task.number), move)
            journal.record_run_end(batch, "partial", requests=2, seconds=1.0)
            ledger.release_lease(PUSH_LEASE, "r1")


def read_all_rows(agency: RandomAgency) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return all versions of records, events and journal rows. A key is the schema, the table, the
    id of the row, and what distinguishes rows of one id.
    """
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    with open_file(agency.warehouse.work) as connection:
        for schema, key in (("landing", "1"), ("history", "_version")):
            for name in RESOURCES:
                sql = f"SELECT {key} AS key, * FROM {schema}.{quoted(name)}"
                for row in connection.execute(sql).to_arrow_table().to_pylist():
                    found[schema, name, row["id"], str(row["key"])] = row
        sql = "SELECT * FROM sync.events ORDER BY ALL"
        for number, row in enumerate(connection.execute(sql).to_arrow_table().to_pylist()):
            found["sync", "events", f"{row['run_id']}/{row['resource']}", str(number)] = row
    with closing(sqlite3.connect(agency.folder / "ledger.sqlite")) as ledger:
        ledger.row_factory = sqlite3.Row
        for name in JOURNAL:
            for each in ledger.execute(f"SELECT rowid AS place, * FROM {name}"):
                row = {k: each[k] for k in each.keys() if k != "change"}  # noqa: SIM118
                key = "/".join(str(row[k]) for k in ("batch", "number") if k in row)
                found["journal", name, key, str(row["place"])] = row
    return found

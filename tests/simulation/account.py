"""Simulated accounts: pulls, pushes, undo, purges, lost files and restores in random order.

Everything is real: the sandbox behind a socket, the data folder with its files, the functions that
the commands call. After each random step, the promises about people, rows and history are compared
with the platform's own records.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from connector.errors import ConnectorError, Misused, WarehouseError
from connector.operations.backup import make_backup, restore
from connector.privacy import purge
from connector.pulls.ports import FEWEST_REQUESTS, PullOptions
from connector.pulls.run import pull
from connector.pushes.preview import PushFile
from connector.pushes.undo import LAST, undo
from connector.sandbox.server import Sandbox
from tests.simulation.agency import RESOURCES, ErasablePerson, SimulatedAgency
from tests.simulation.harness import BrokenPromise, Trace
from tests.support.agency import SandboxAccount, open_read_only

STEPS = 12
STATE = "state.sqlite"
FILES = ("work.duckdb", STATE, "recruitment.duckdb")
HEADINGS = ("email", "first_name", "last_name", "phone", "employment_type", "notes")

Version = tuple[str, str, str]
"""A version of a record: resource, id, and the record as JSON."""


class AccountSimulation(SandboxAccount):
    """One account on which random steps are taken. `trace` receives a line for each step."""

    def __init__(self, seed: int, sandbox: Sandbox, folder: Path, trace: Trace | None) -> None:
        super().__init__(sandbox, folder)
        self.chance = random.Random(seed)
        self.agency = SimulatedAgency(sandbox, self.chance)
        self.purged: dict[str, ErasablePerson] = {}
        self.backups: list[Path] = []
        self.requests = 0
        self._trace = trace

    def run(self) -> None:
        """Take `STEPS` random steps and a last pull, and check the promises after each.

        Raises:
            BrokenPromise: A promise is broken.
            ConnectorError: A step failed unexpectedly.
        """
        self.agency.create_first_records()
        self.pull_all()
        shares: dict[Callable[[], None], float] = {
            self.change_platform: 6,
            self.pull_all: 4,
            self.push_new_candidates: 2,
            self.push_notes: 2,
            self.undo_last_push: 3,
            self.purge_person: 3,
            self.lose_work_file: 1,
            self.back_up: 1,
            self.restore_backup: 1,
        }
        for _ in range(STEPS):
            (step,) = self.chance.choices(list(shares), list(shares.values()))
            self._log(step.__name__)
            step()
            self._check_after_step()
        self._log("quiet pull")
        self.pull_all()
        self._check_after_step()
        self._check_published_file()

    def _log(self, message: str) -> None:
        """Pass a line to `trace`, if there is one."""
        if self._trace is not None:
            self._trace(message)

    # -- steps ------------------------------------------------------------------------------------

    def change_platform(self) -> None:
        """Make one to three random changes on the platform."""
        for _ in range(1 + self.chance.randrange(3)):
            self.agency.change_something()

    def pull_all(self, options: PullOptions = FEWEST_REQUESTS) -> None:
        """Pull and publish all resources."""
        report = asyncio.run(pull(self.settings, RESOURCES, options=options))
        self.requests += report.requests
        if report.outcome != "done":
            raise BrokenPromise("pull", f"a pull ended {report.outcome}: {report.as_json()}")

    def push_new_candidates(self) -> None:
        """Push two new candidates, perhaps twice."""
        rows = [self.agency.draw_person("candidates") for _ in range(2)]
        path = self._write_spreadsheet(rows, HEADINGS)
        for _ in range(1 + self.chance.randrange(2)):
            self._push_file(PushFile("candidates", path, mode="create"), len(rows))
        there = self.sandbox.store.records("candidates")
        ids = {record["email"]: id for id, record in there.items()}
        for row in rows:
            if row["email"] in ids:
                self.agency.remember_person("candidates", ids[row["email"]], row)

    def push_notes(self) -> None:
        """Push new notes for up to three existing candidates."""
        there = self.sandbox.store.records("candidates")
        ids = self.chance.sample(sorted(there), min(3, len(there)))
        rows = [{"email": there[id]["email"], "notes": self.agency.draw_note()} for id in ids]
        path = self._write_spreadsheet(rows, ("email", "notes"))
        self._push_file(PushFile("candidates", path, mode="update", match=("email",)), len(rows))

    def undo_last_push(self) -> None:
        """Undo the last push, or log why the undo was rejected."""
        try:
            asyncio.run(undo(self.settings, LAST, applies=True))
        except Misused as error:
            self._log(f"refused: {error}")

    def purge_person(self) -> None:
        """Delete a random person, pull and purge, and check the records of all others."""
        there = {each: self.sandbox.store.records(each) for each in ("candidates", "leads")}
        people = [e for e in self.agency.people.values() if e.id in there[e.resource]]
        if not people:
            return
        person = self.chance.choice(people)
        self._log(f"purge {person.resource} {person.id}")
        # A person who was never loaded cannot be purged.
        self.pull_all()
        self.sandbox.store.delete(person.resource, person.id)
        self.pull_all()
        before = self._read_versions("work.duckdb")
        asyncio.run(purge(self.settings, [person.id], applies=True))
        self.purged[person.id] = person
        self._check_other_records(before, person)

    def lose_work_file(self) -> None:
        """Delete the work file. Nothing may be pulled until a full pull is asked for."""
        for name in ("work.duckdb", "work.duckdb.wal"):
            (self.data / name).unlink(missing_ok=True)
        try:
            self.pull_all()
        except WarehouseError as error:
            self._log(f"refused: {error.code}")
            self.pull_all(PullOptions(is_full=True))
        else:
            raise BrokenPromise("history", "a pull without its work file began a new history")

    def back_up(self) -> None:
        """Make a backup in a new folder."""
        made = make_backup(self.settings, self.folder / f"backup-{len(self.backups)}")
        self.backups.append(made.file)

    def restore_backup(self) -> None:
        """Restore a random backup, if there is one, pull, and repeat later purges."""
        if self.backups:
            former = self.data.with_name(f"former-{self.requests}")
            self.data.rename(former)
            restore(self.settings, self.chance.choice(self.backups), former)
            report = asyncio.run(pull(self.settings, RESOURCES))
            self.requests += report.requests
            if report.error is not None and report.error.code != "purge_undone":
                raise BrokenPromise("pull", f"a pull ended {report.outcome}: {report.as_json()}")
            asyncio.run(purge(self.settings, [], applies=True))
            self.pull_all()

    # -- checks -----------------------------------------------------------------------------------

    def _check_after_step(self) -> None:
        """Check that no email is duplicated, and that no file contains a purged person."""
        if doubled := [each for each, count in Counter(self.emails()).items() if count > 1]:
            raise BrokenPromise("push", f"created twice: {doubled}")
        emails = {person.email for person in self.purged.values()}
        for file in FILES:
            for record in self._read_records_and_bodies(file) if emails else ():
                if found := emails & {str(value).lower() for value in record.values()}:
                    raise BrokenPromise(
                        "purge", f"{file} contains {found} of a purged person: {record}"
                    )

    def _check_other_records(self, before: set[Version], person: ErasablePerson) -> None:
        """Check that a purge changed only the person's records and their past bookings.

        `before` are the versions in the work file before the purge.
        """
        after = self._read_versions("work.duckdb")
        if {each[:2] for each in after} != {each[:2] for each in before}:
            raise BrokenPromise("purge", "records came or went with a purge")
        for resource, id, text in before - after:
            about = json.loads(text).get("candidate_id") if resource == "bookings" else id
            if about != person.id:
                raise BrokenPromise("purge", f"{person.id}: {resource} {id} changed: {text}")

    def _check_published_file(self) -> None:
        """Check that the published file equals the platform."""
        with open_read_only(self.data / "recruitment.duckdb") as connection:
            for resource in RESOURCES:
                rows = connection.execute(
                    f"SELECT id, _record::VARCHAR FROM landing.{resource} WHERE _deleted_at IS NULL"
                ).fetchall()
                landed = {id: json.loads(text) for id, text in rows}
                there = self.sandbox.store.records(resource)
                if landed.keys() != there.keys() or len(rows) != len(landed):
                    raise BrokenPromise(
                        "published file",
                        f"{resource} landed: {sorted(landed.keys() ^ there.keys())}",
                    )
                for id, record in there.items():
                    self._check_published_record(resource, id, record, landed[id])

    def _check_published_record(
        self, resource: str, id: str, record: Mapping[str, Any], landed: Mapping[str, Any]
    ) -> None:
        """Compare a published record with the platform's."""
        for name, value in record.items():
            if (found := landed.get(name)) != value:
                raise BrokenPromise(
                    "published file",
                    f"{resource} {id} {name} is {found!r}, the platform has {value!r}",
                )

    # -- files -------------------------------------------------------------------------------------

    def _read_versions(self, file: str) -> set[Version]:
        """Return every version of every record in a database file of the account."""
        path = self.data / file
        if not path.exists():
            return set()
        found: set[Version] = set()
        with open_read_only(path) as connection:
            for resource in RESOURCES:
                for schema in ("landing", "history"):
                    query = f"SELECT id, _record::VARCHAR FROM {schema}.{resource}"
                    rows = connection.execute(query).fetchall()
                    found |= {(resource, id, text) for id, text in rows}
        return found

    def _read_records_and_bodies(self, file: str) -> Iterator[Mapping[str, Any]]:
        """Yield every record of a database file, or every row of the state."""
        if file != STATE:
            yield from (json.loads(text) for _, _, text in self._read_versions(file))
        elif (self.data / file).exists():
            with closing(sqlite3.connect(self.data / file)) as connection:
                for texts in connection.execute("SELECT before, after, answer FROM rows"):
                    before, after, answer = (json.loads(text or "{}") for text in texts)
                    yield before
                    yield from (each for each in after.values() if isinstance(each, dict))
                    yield from (json.loads(e.get("body", "{}")) for e in answer["attempts"])

    def _write_spreadsheet(self, rows: list[dict[str, Any]], headings: tuple[str, ...]) -> Path:
        """Write the rows to a CSV file with these columns, and return its path."""
        name = f"people-{self.chance.randrange(10**9)}.csv"
        return self.write_csv(
            name, [{each: row.get(each, "") for each in headings} for row in rows]
        )

    def _push_file(self, file: PushFile, rows: int) -> None:
        """Push the file, and check that the report counts `rows` rows."""
        report = self.push(file)
        self.requests += report.requests
        if sum(report.counts.values()) != rows:
            raise BrokenPromise(
                "push", f"{rows} rows were pushed, and {report.counts} are accounted for"
            )
        if report.error is not None or not report.batch:
            raise BrokenPromise("push", f"a push ended with {report.as_json()}")
        self._log(f"pushed: {report.counts}")


def simulate_account(seed: int, trace: Trace | None = None) -> tuple[str | None, int]:
    """Simulate one account. Return the broken promise or error, or None, and the requests."""
    with TemporaryDirectory(prefix="life-") as folder, Sandbox(rate_limit=10**6) as sandbox:
        account = AccountSimulation(seed, sandbox, Path(folder), trace)
        try:
            account.run()
        except BrokenPromise as broken:
            return str(broken), account.requests
        except ConnectorError as error:
            return f"{type(error).__name__}: {error}", account.requests
        return None, account.requests

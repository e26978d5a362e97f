"""Lives of an account: pulls, pushes, undo, erasures, lost files and restores in any order.

Everything is real: the sandbox over a socket, the data folder with its files, the functions that
the commands call. Chance decides what happens next, and after each step the promises about people,
rows and history are checked against the platform's own records.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from connector.errors import ConnectorError, Misused
from connector.operations.backup import make_backup
from connector.operations.folder_identity import replace_ledger
from connector.operations.restore import RestoreOptions, restore
from connector.privacy.erase import erase, remove_suppression
from connector.pushes.dry_run import PushFile
from connector.pushes.undo import LAST, undo
from connector.sandbox.server import Sandbox
from tests.simulation.agency import MARK, PERSONAL, RESOURCES, ErasablePerson, SimulatedAgency
from tests.simulation.harness import Trace
from tests.support.agency import SandboxAccount, reading

STEPS = 12
LEDGER = "ledger.sqlite"
FILES = ("work.duckdb", LEDGER, "recruitment.duckdb")
HEADINGS = ("email", "first_name", "last_name", "phone", "employment_type", "notes")

Version = tuple[str, str, str]
"""A version of a record: resource, id, and the record as JSON."""


class Wrong(Exception):
    """A promise was broken."""


class AccountLife(SandboxAccount):
    """One account's life. `told` receives a line for each step."""

    def __init__(self, seed: int, sandbox: Sandbox, folder: Path, told: Trace | None) -> None:
        super().__init__(sandbox, folder)
        self.chance = random.Random(seed)
        self.agency = SimulatedAgency(sandbox, self.chance)
        self.erased: dict[str, ErasablePerson] = {}
        self.released: dict[str, ErasablePerson] = {}
        self.notes: dict[str, set[str | None]] = {}
        self.backups: list[Path] = []
        self.requests = 0
        self._told = told

    def live(self) -> None:
        """Take steps by chance, then one quiet pull. Raises `Wrong`."""
        self.agency.open()
        self.pull_all()
        shares: dict[Callable[[], None], float] = {
            self.churn: 6,
            self.pull_all: 4,
            self.create: 2,
            self.update: 2,
            self.undo_last: 3,
            self.erase_one: 3,
            self.release: 0.5,
            self.lose_work: 1,
            self.lose_ledger: 1,
            self.empty_ledger: 0.5,
            self.back_up: 1,
            self.restore: 1,
        }
        for _ in range(STEPS):
            (step,) = self.chance.choices(list(shares), list(shares.values()))
            self._say(step.__name__)
            step()
            self._check()
        self._say("quiet pull")
        self.pull_all()
        self._check()
        self._check_landing()

    def _say(self, what: str) -> None:
        if self._told is not None:
            self._told(what)

    # -- steps ------------------------------------------------------------------------------------

    def churn(self) -> None:
        """Change the platform as users do."""
        for _ in range(1 + self.chance.randrange(3)):
            self.agency.churn()

    def pull_all(self) -> None:
        """Pull and publish all resources."""
        report = self.pull(*RESOURCES)
        self.requests += report.requests
        if report.outcome != "done":
            raise Wrong(f"a pull ended {report.outcome}: {report.as_json()}")

    def create(self) -> None:
        """Push a file of new people, and perhaps of one who was erased; perhaps twice."""
        rows = [self.agency.body("candidates") for _ in range(2)]
        refused = self.chance.choice([*self.erased.values(), None])
        if refused is not None:
            rows.append({**self.agency.body("candidates"), "email": refused.email})
        path = self._write_rows(rows, HEADINGS)
        before = self.emails().count(refused.email) if refused is not None else 0
        for _ in range(1 + self.chance.randrange(2)):
            self._push(PushFile("candidates", path, mode="create"), len(rows))
        if refused is not None and self.emails().count(refused.email) > before:
            raise Wrong("a row about somebody who was erased was created")
        there = self.sandbox.store.records("candidates")
        ids = {record["email"]: id for id, record in there.items()}
        for row in rows:
            if row["email"] in ids and (refused is None or row["email"] != refused.email):
                self.agency.know("candidates", ids[row["email"]], row)

    def update(self) -> None:
        """Push new notes on people who are there."""
        there = self.sandbox.store.records("candidates")
        ids = self.chance.sample(sorted(there), min(3, len(there)))
        rows = [{"email": there[id]["email"], "notes": self.agency.note()} for id in ids]
        for id, row in zip(ids, rows, strict=True):
            self.notes.setdefault(id, set()).add(row["notes"])
        path = self._write_rows(rows, ("email", "notes"))
        self._push(PushFile("candidates", path, mode="update", match=("email",)), len(rows))

    def undo_last(self) -> None:
        try:
            asyncio.run(undo(self.settings, LAST, applies=True))
        except Misused as error:
            self._say(f"refused: {error}")

    def erase_one(self) -> None:
        """Erase a person, and check the rows of all others."""
        people = [e for id, e in self.agency.people.items() if id not in self.agency.stayers]
        who = self.chance.choice(people)
        before = self._versions("work.duckdb")
        known = any(id == who.id for _, id, _ in before)
        asked = self.chance.choice((who.email, who.id)) if known else who.email
        self._say(f"erase {who.resource} {who.id} by {asked}")
        if erase(self.settings, asked, applies=True).receipts:
            # Somebody who is nowhere here is not erased, and may land with the next pull.
            self.erased[who.id] = who
            self.released.pop(who.id, None)
        self._check_others(before, who)

    def release(self) -> None:
        """Let somebody in again."""
        if self.erased:
            who = self.chance.choice(sorted(self.erased.values(), key=lambda each: each.id))
            remove_suppression(self.settings, who.email)
            self.released[who.id] = self.erased.pop(who.id)

    def lose_work(self) -> None:
        """Lose the work file, and pull: nothing that analysts saw of the past is lost."""
        seen = self._versions("recruitment.duckdb")
        for name in ("work.duckdb", "work.duckdb.wal"):
            (self.data / name).unlink(missing_ok=True)
        self.pull_all()
        if lost := seen - self._versions("recruitment.duckdb"):
            raise Wrong(f"history lost {len(lost)} versions of {len(seen)} with the work file")

    def lose_ledger(self) -> None:
        """Lose the ledger, replace it as the error advises, and pull."""
        for each in self.data.glob("ledger.sqlite*"):
            each.unlink()
        self._replace_ledger()
        self.pull_all()

    def empty_ledger(self) -> None:
        """A ledger of no bytes, as a full disk leaves one, and pull."""
        for each in self.data.glob("ledger.sqlite*"):
            each.unlink()
        (self.data / "ledger.sqlite").touch()
        self._replace_ledger()
        self.pull_all()

    def _replace_ledger(self) -> None:
        if (
            replace_ledger(self.settings, datetime.now(UTC)) is None
            and (self.data / "work.duckdb").exists()
        ):
            raise Wrong("a lost ledger was not noticed")

    def back_up(self) -> None:
        """Make a backup, elsewhere."""
        made = make_backup(self.settings, self.folder / f"backup-{len(self.backups)}")
        self.backups.append(made.file)

    def restore(self) -> None:
        if self.backups:
            source = self.chance.choice(self.backups)
            done = restore(self.settings, source, RestoreOptions(replaces=True))
            if done.error is not None:
                raise Wrong(f"a restore ended with {done.error}")

    # -- checks -----------------------------------------------------------------------------------

    def _check(self) -> None:
        """Check the promises that hold after every step."""
        for resource, id, name, text in self.agency.texts():
            if MARK in text:
                raise Wrong(f"the platform has {text!r} in {resource} {id} {name}")
        if doubled := [each for each, count in Counter(self.emails()).items() if count > 1]:
            raise Wrong(f"created twice: {doubled}")
        emails = {who.email for who in self.erased.values()}
        for file in FILES:
            for record in self._contents(file) if emails else ():
                if found := emails & {str(value).lower() for value in record.values()}:
                    raise Wrong(f"{file} holds {found} of somebody who was erased: {record}")

    def _check_others(self, before: set[Version], who: ErasablePerson) -> None:
        """Erasing one changed nothing of others but their bookings."""
        after = self._versions("work.duckdb")
        if {each[:2] for each in after} != {each[:2] for each in before}:
            raise Wrong("records came or went with an erasure")
        for resource, id, text in before - after:
            record = json.loads(text)
            if id != who.id and not any(
                self._is_left(resource, record, json.loads(each), who)
                for there, other, each in after
                if (there, other) == (resource, id)
            ):
                raise Wrong(f"erasing {who.id} changed {resource} {id}: {text}")

    def _is_left(
        self, resource: str, record: Mapping[str, Any], left: Mapping[str, Any], who: ErasablePerson
    ) -> bool:
        """Return True if an erasure may leave `left` of another person's record."""
        is_theirs = resource == "bookings" and record.get("candidate_id") == who.id
        return all(
            left.get(name) == value or (is_theirs and name in ("title", "internal_notes"))
            for name, value in record.items()
        )

    def _check_landing(self) -> None:
        """After a quiet pull the published landing is the platform, without who was erased."""
        with reading(self.data / "recruitment.duckdb") as connection:
            for resource in RESOURCES:
                rows = connection.execute(
                    f"SELECT id, _record::VARCHAR FROM landing.{resource} WHERE _deleted_at IS NULL"
                ).fetchall()
                landed = {id: json.loads(text) for id, text in rows}
                there = self.sandbox.store.records(resource)
                if landed.keys() != there.keys() or len(rows) != len(landed):
                    raise Wrong(f"{resource} landed: {sorted(landed.keys() ^ there.keys())}")
                for id, record in there.items():
                    self._check_record(resource, id, record, landed[id])

    def _check_record(
        self, resource: str, id: str, record: Mapping[str, Any], landed: Mapping[str, Any]
    ) -> None:
        for name, value in record.items():
            found = landed.get(name)
            if id in self.erased and name in PERSONAL[resource]:
                if found is not None:
                    raise Wrong(f"{resource} {id} {name} of somebody who was erased: {found!r}")
                continue
            about = record.get("candidate_id") if resource == "bookings" else id
            is_excused = about in self.erased or about in self.released
            if found != value and not (is_excused and found is None):
                raise Wrong(f"{resource} {id} {name} is {found!r}, the platform has {value!r}")

    # -- what is there ----------------------------------------------------------------------------

    def _versions(self, file: str) -> set[Version]:
        """Every version of every record in a file of the account."""
        path = self.data / file
        if not path.exists():
            return set()
        found: set[Version] = set()
        with duckdb.connect(str(path), read_only=True) as connection:
            for resource in RESOURCES:
                for schema in ("landing", "history"):
                    query = f"SELECT id, _record::VARCHAR FROM {schema}.{resource}"
                    rows = connection.execute(query).fetchall()
                    found |= {(resource, id, text) for id, text in rows}
        return found

    def _contents(self, file: str) -> Iterator[Mapping[str, Any]]:
        """Every record and body in a file of the account."""
        if file != LEDGER:
            yield from (json.loads(text) for _, _, text in self._versions(file))
        elif (self.data / file).exists():
            with closing(sqlite3.connect(self.data / file)) as connection:
                for (text,) in connection.execute("SELECT task FROM push_rows WHERE task NOT NULL"):
                    task = json.loads(text)
                    yield from (each for each in task.values() if isinstance(each, dict))
                for (text,) in connection.execute(
                    "SELECT body FROM push_attempts WHERE body IS NOT NULL"
                    " UNION ALL SELECT record FROM push_before"
                ):
                    yield json.loads(text)

    def _write_rows(self, rows: list[dict[str, Any]], headings: tuple[str, ...]) -> Path:
        """Write a spreadsheet with these columns."""
        name = f"people-{self.chance.randrange(10**9)}.csv"
        return self.write_csv(
            name, [{each: row.get(each, "") for each in headings} for row in rows]
        )

    def _push(self, file: PushFile, rows: int) -> None:
        report = self.push(file)
        self.requests += report.requests
        if sum(report.counts.values()) != rows:
            raise Wrong(f"{rows} rows were pushed, and {report.counts} are accounted for")
        if report.error is not None or report.batch is None or report.batch.error is not None:
            raise Wrong(f"a push ended with {report.as_json()}")
        self._say(f"pushed: {report.counts}")


def life(seed: int, told: Trace | None = None) -> tuple[str | None, int]:
    """One life: what was wrong in it, if anything was, and the requests that it took."""
    with TemporaryDirectory(prefix="life-") as folder, Sandbox(rate_limit=10**6) as sandbox:
        account = AccountLife(seed, sandbox, Path(folder), told)
        try:
            account.live()
        except (Wrong, ConnectorError) as wrong:
            return f"{type(wrong).__name__}: {wrong}", account.requests
        return None, account.requests

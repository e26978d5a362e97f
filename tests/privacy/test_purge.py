"""Purges in random worlds: no byte of the people is left, and nothing else changes.

People are pushed, edited, booked and deleted on the server. Their data is then in the records and
their history, the journal, the published file, imported files and messages.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from openpyxl import Workbook

from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.seeds import SEED
from tests.support.agency import SandboxAccount, differences, rows
from tests.support.command import CommandResult
from tests.support.killable_command import CommandForkServer

COUNTS = {
    "jobs": 3,
    "candidates": 30,
    "companies": 2,
    "bookings": 4,
    "leads": 12,
    "content_types": 1,
    "content_items": 2,
}
KILLS = 3
"""Number of instants at which a purge is killed, beside one of its last steps."""

MARGIN = 10
"""Steps by which two equal purges may differ."""

SURNAMES = ("Zzyzxworth", "Ó Quabble-Xyloid", "Fnørdström", "Wibblethwaite", "Жуковъ", "O'Plugh")
FIRST_NAMES = ("Olwen", "Jörg", "Anne Marie", "Xiu")


class World:
    """A pulled account with people (`gone`) whom the server has deleted since, and others."""

    def __init__(self, account: SandboxAccount, random: Random) -> None:
        self.account, self.random, self.data = account, random, account.data
        self.gone: dict[str, dict[str, str]] = {}
        self.texts: set[str] = set()
        account.pull()
        names = random.sample(SURNAMES, 3)
        self._push_people([self._person(each) for each in names[:2]])
        self._add_lead(names[2])
        account.pull()
        self._edit_and_book()
        account.pull()
        for id in list(self.gone):
            for resource in ("bookings", "candidates", "leads"):
                for key, record in list(self.store.records(resource).items()):
                    if key == id or (resource == "bookings" and record.get("candidate_id") == id):
                        self.store.delete(resource, key)
        account.pull()
        self._write_files()

    @property
    def store(self) -> Store:
        """Records of the server."""
        return self.account.sandbox.store

    def _person(self, surname: str) -> dict[str, str]:
        """Return a new person; its identifying texts are added to `texts`."""
        random = self.random
        first, number = random.choice(FIRST_NAMES), "".join(random.choices("23456789", k=9))
        word = "".join(each for each in surname if each.isascii() and each.isalpha()) or "zh"
        made = {
            "first_name": first,
            "last_name": surname,
            "email": f"{word}.{number}@Mail.example",
            "phone": f"+44 {number[:3]} {number[3:6]} {number[6:]}",
            "network_url": f"https://people.example/{word}-{number}",
            "notes": f"{first} {surname} is keen",
        }
        self._remember(made)
        return made

    def _remember(self, person: dict[str, str]) -> None:
        """Add the texts that must be nowhere after the purge."""
        self.texts |= {person[each] for each in ("email", "phone", "network_url", "last_name")}

    def _push_people(self, people: list[dict[str, str]]) -> None:
        """Push the people with another row in between, and a rejected row about one of them."""
        other = {"first_name": "Bob", "last_name": "Old", "email": "bob@other.example"}
        wrong = {"first_name": "", "last_name": "", "email": people[0]["email"]}
        made = [{**each, "employment_type": "permanent"} for each in (*people, other, wrong)]
        self.random.shuffle(made)
        name = f"{people[0]['first_name']} {people[0]['last_name']}.csv"
        self.file = self.account.write_csv(name, made)
        done = self.push_file()
        assert "created\t3" in done.out, (done.err, done.out)
        for each in people:
            ((id, _),) = (
                (key, record)
                for key, record in self.store.records("candidates").items()
                if record["email"].lower() == each["email"].lower()
            )
            self.gone[id] = each

    def push_file(self) -> CommandResult:
        """Push the file with the people."""
        options = ("--mode", "create", "--apply", "--accept-warnings")
        return self.account.call("push", "candidates", str(self.file), *options)

    def _add_lead(self, surname: str) -> None:
        """Add a lead on the server, who was never pushed."""
        person = self._person(surname)
        status = next(iter(self.store.records("leads").values()))["lead_status_id"]
        answer = self.store.create("leads", {**person, "lead_status_id": status})
        self.gone[str(answer.record["id"])] = person

    def _edit_and_book(self) -> None:
        """Change addresses and names, and book people with texts about them."""
        for id, person in self.gone.items():
            resource = "candidates" if id in self.store.records("candidates") else "leads"
            changed = {"email": f"new.{person['email']}", "phone": f"0{person['phone'][4:]}"}
            self._remember({**person, **changed})
            self.store.update(resource, id, changed)
            if resource == "candidates":
                self.store.create(
                    "bookings",
                    {
                        "booking_type": "interview",
                        "title": f"Interview {person['first_name']} {person['last_name']}",
                        "start_datetime": "2026-11-03T10:00:00Z",
                        "end_datetime": "2026-11-03T11:00:00Z",
                        "candidate_id": id,
                        "job_id": next(iter(self.store.records("jobs"))),
                        "company_id": next(iter(self.store.records("companies"))),
                        "internal_notes": f"call {person['phone']}",
                    },
                )

    def _write_files(self) -> None:
        """Write imported files: two that only hold people."""
        inbox = self.data / "inbox" / "candidates" / "done"
        inbox.mkdir(parents=True)
        lines = ["First name,Email,Telephone"]
        lines += [f"{e['first_name']},{e['email'].upper()},x" for e in self.gone.values()]
        (inbox / "only.csv").write_text("\n".join(lines), encoding="utf-16")
        book = Workbook()
        assert book.active is not None
        for cells in (
            ["Name", "Phone"],
            *([e["last_name"], e["phone"]] for e in self.gone.values()),
        ):
            book.active.append(cells)
        (self.data / "imports" / "0123456789abcdef").mkdir(parents=True)
        book.save(self.data / "imports" / "0123456789abcdef" / "people.xlsx")

    def purge(self, *options: str) -> CommandResult:
        """Purge all people by the command."""
        return self.account.call("person", "purge", *self.gone, *options)

    def traces(self) -> list[str]:
        """Return FILE: TEXT for each file that has a text of the people, in any letter case."""
        found = []
        for path in sorted(each for each in self.data.rglob("*") if each.is_file()):
            content = path.read_bytes()
            for encoding in ("utf-8", "utf-16-le"):
                decoded = content.decode(encoding, "replace").casefold()
                found += [f"{path.name}: {e}" for e in self.texts if e.casefold() in decoded]
        return found

    def others(self) -> dict[str, list[str]]:
        """Return all rows that are not about the people, by table."""
        ids = {*self.gone}
        bookings = rows(self.data / "work.duckdb", "SELECT id, candidate_id FROM landing.bookings")
        ids |= {each["id"] for each in bookings if each["candidate_id"] in self.gone}
        found = {}
        for file in ("work.duckdb", "recruitment.duckdb"):
            for table in ("landing.*", "history.*", "push.rows"):
                schema, _, name = table.partition(".")
                names = rows(
                    self.data / file,
                    f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{schema}'"
                    f" AND table_name LIKE '{name.replace('*', '%')}'",
                )
                for each in names:
                    full = f'{schema}."{each["table_name"]}"'
                    kept = [
                        json.dumps(row, default=str, sort_keys=True)
                        for row in rows(self.data / file, f"SELECT * FROM {full}")
                        if not ids & {row.get("id"), row.get("record_id")}
                        and (schema != "push" or row["record_id"] is not None)
                    ]
                    found[f"{file} {full}"] = sorted(kept)
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A random world."""
    with Sandbox(counts=COUNTS, seed=SEED) as sandbox:
        yield World(SandboxAccount(sandbox, tmp_path), Random(SEED))


@pytest.mark.slow
def test_a_purge_leaves_no_byte_of_the_people_and_changes_nothing_else(world: World) -> None:
    before, traces = world.others(), world.traces()
    assert {"work.duckdb", "recruitment.duckdb", "state.sqlite"} <= {
        each.partition(":")[0] for each in traces
    }

    preview = world.purge()
    assert (0, before, traces) == (preview.status, world.others(), world.traces()), preview.err
    assert "Nothing was changed" in preview.err
    done = world.purge("--apply", "--json")
    assert "places" in done.object, done.err

    assert (0, []) == (done.status, done.object["places"]), done.err
    assert [] == world.traces()
    after = world.others()
    assert [] == [each for each in before if before[each] != after[each]]
    assert {"inbox/candidates/done/only.csv", "imports/0123456789abcdef"} <= {*done.object["files"]}
    world.account.pull()
    assert [] == differences(world.account.sandbox, world.account.published)
    assert 0 == world.account.call("verify").status
    assert [] == world.traces()
    assert 0 == world.purge("--apply").status
    people = {*world.store.records("candidates")}
    again, undone = world.push_file(), world.account.call("undo", "last")
    assert people == {*world.store.records("candidates")}, again.out
    assert 1 != undone.status, undone.err


@pytest.mark.slow
def test_a_killed_purge_is_completed_by_the_next(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, seed=SEED) as sandbox, CommandForkServer() as server:
        world = World(SandboxAccount(sandbox, tmp_path), Random(SEED))
        before, kept = world.others(), tmp_path / "kept"
        arguments, environ = ("person", "purge", *world.gone, "--apply"), world.account.environ
        world.data.rename(kept)
        shutil.copytree(kept, world.data)
        status, steps = server.call(arguments, environ)
        assert 0 == status
        assert [] == world.traces()
        for step in (*sorted(Random(SEED).sample(range(1, steps), KILLS)), steps - MARGIN):
            shutil.rmtree(world.data)
            shutil.copytree(kept, world.data)
            status, _ = server.call(arguments, environ, step)
            assert -signal.SIGKILL == status, (step, steps)
            done = world.purge("--apply")
            assert 0 == done.status, (step, done.err)
            assert [] == world.traces(), f"killed at step {step} of {steps}"
            after = world.others()
            assert [] == [each for each in before if before[each] != after[each]], step
        world.account.pull()
        assert [] == differences(sandbox, world.account.published)


@pytest.mark.slow
def test_a_work_file_from_before_a_purge_is_not_published(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 4}) as sandbox:
        account = SandboxAccount(sandbox, tmp_path)
        account.pull()
        gone = sorted(sandbox.store.records("candidates"))[0]
        email = sandbox.store.records("candidates")[gone]["email"]
        kept = tmp_path / "kept.duckdb"
        shutil.copy(account.data / "work.duckdb", kept)
        sandbox.store.delete("candidates", gone)
        account.pull()
        assert 0 == account.call("person", "purge", gone, "--apply").status

        shutil.copy(kept, account.data / "work.duckdb")
        before = account.published.read_bytes()
        for command in ("publish", "pull"):
            refused = account.call(command)
            assert 1 == refused.status, refused.err
            assert "1 purged person again, so nothing was published" in refused.err
        assert before == account.published.read_bytes()

        assert 0 == account.call("person", "purge", "--apply").status
        account.pull()
        assert [] == differences(sandbox, account.published)
        found = account.call("person", "find", email, "--json")
    assert [] == found.object["places"], found.out

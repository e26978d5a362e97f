"""Two data folders that share a journal push one file at once: with a real PostgreSQL, in processes
of their own.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connector.engine.push_plan import PushPolicy
from connector.engine.push_states import Task
from connector.errors import PushJournalUnreached
from connector.sandbox.exchange import HttpExchange
from connector.sandbox.server import Sandbox
from connector.settings.model import load_settings
from tests.cli.calling import call
from tests.lakehouse.server import Server
from tests.pushes.killable_push import Child, PushForkServer, ended_at
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    codes,
    create,
    creates,
    emails,
    file_of,
    listed,
    outcomes,
    writes,
)
from tests.pushes.test_killed import WallTime

pytestmark = pytest.mark.slow

ROWS = 12
CLAIMS = "SELECT * FROM connector_push.claims ORDER BY claimed_at"


class Together:
    """A list that is answered once two have asked for it: neither sees the other's records."""

    def __init__(self) -> None:
        self._asked, self._both = 0, asyncio.Event()

    async def perform(self, exchange: HttpExchange) -> None:
        """Wait for the other, and serve."""
        reply = await exchange.serve()
        self._asked += 1
        if self._asked == 2:
            self._both.set()
        await asyncio.wait_for(self._both.wait(), 60)
        await exchange.send(reply)


class Behind:
    """A list that shows nothing yet, so that the claims alone tell what others have created."""

    async def perform(self, exchange: HttpExchange) -> None:
        """Serve an empty list."""
        reply = await exchange.serve()
        shown = json.loads(reply.body)
        shown["data"], shown["pagination"]["total"] = [], 0
        await exchange.send(replace(reply, body=json.dumps(shown).encode()))


class Folders:
    """Data folders on one sandbox that share a journal, unless `journal` is another one."""

    def __init__(self, sandbox: Sandbox, server: Server, folder: Path, time: WallTime) -> None:
        self.sandbox, self.server, self.folder, self.time = sandbox, server, folder, time
        self.database = server.new_database()
        self.journal, self.connections = "lakehouse", 4

    def environ(self, name: str) -> dict[str, str]:
        """The settings of one of them."""
        return {
            **Child.of(self.sandbox, self.folder / name, 0, connections=self.connections).environ,
            "CONNECTOR_LAKEHOUSE": self.server.address(self.database),
            "CONNECTOR_LAKEHOUSE_DATA": str(self.folder / "lake"),
            "CONNECTOR_PUSH_JOURNAL": self.journal,
        }

    def pusher(self, name: str) -> Pusher:
        """Pushes from one of them, in this process."""
        pusher = Pusher(self.sandbox, self.folder / name, self.time)
        pusher.settings = load_settings({}, self.environ(name), self.folder)
        return pusher

    def child(self, name: str, dies_at: int | None = None) -> Child:
        """A push from one of them, in a process of its own."""
        self.pusher(name)  # Its files are prepared.
        return Child(self.environ(name), ROWS, dies_at)

    def claims(self) -> list[tuple[Any, ...]]:
        """The claims, with all that the table has of them."""
        return self.server.ask(self.database, CLAIMS)


@contextmanager
def folders_of(server: Server, folder: Path) -> Iterator[Folders]:
    """Folders, on a sandbox of their own."""
    time = WallTime()
    with Sandbox(clock=time.servers) as sandbox:
        yield Folders(sandbox, server, folder, time)


@pytest.fixture(scope="module")
def fork_servers() -> Iterator[tuple[PushForkServer, PushForkServer]]:
    """Two processes that fork pushes, since each waits for one at a time."""
    with PushForkServer() as one, PushForkServer() as two:
        yield one, two


@pytest.mark.parametrize(("journal", "times"), [("lakehouse", 1), ("folder", 2)])
def test_two_folders_at_once(
    server: Server,
    fork_servers: tuple[PushForkServer, PushForkServer],
    tmp_path: Path,
    journal: str,
    times: int,
) -> None:
    with folders_of(server, tmp_path) as folders:
        folders.journal = journal
        sandbox, together = folders.sandbox, Together()
        sandbox.faults.add(together, method="GET", path=CANDIDATES, times=2)
        for fork_server, name in zip(fork_servers, ("one", "two"), strict=True):
            child: Any = folders.child(name)
            fork_server.start(child)
        ended = [fork_server.wait() for fork_server in fork_servers]
        made = emails(sandbox)
        found: dict[int, list[tuple[str, str]]] = {}
        for name in ("one", "two"):
            with folders.pusher(name).journal() as book:
                (batch,) = book.batches()
                for row in book.rows(batch.batch):
                    found.setdefault(row.number, []).append((row.outcome, row.code))

    assert sorted([task.fields["email"] for task in creates(ROWS)] * times) == made
    assert [*range(2, ROWS + 2)] == [*found]
    other = ("duplicate", "claimed_elsewhere") if times == 1 else ("created", "")
    assert {(("created", ""), other)} == {tuple(sorted(each)) for each in found.values()}
    assert {0, 3} >= {each.status for each in ended}, ended
    assert times == 2 or 3 in {each.status for each in ended}


@pytest.mark.parametrize("kind", ["journal", "request_headers_sent", "answer_read"])
def test_one_of_two_is_killed(
    server: Server, fork_servers: tuple[PushForkServer, PushForkServer], tmp_path: Path, kind: str
) -> None:
    with folders_of(server, tmp_path) as folders:
        folders.connections = 1  # The points are the same each time.
        points = ended_at(fork_servers[0].run(folders.child("counted")))
        for id in folders.sandbox.store.records("candidates"):
            folders.sandbox.store.remove("candidates", id)
        folders.server.ask(folders.database, "TRUNCATE connector_push.claims")
        at = next(each for each in points if kind in each.kind and each.writes == ROWS // 2)
        killed = fork_servers[0].run(folders.child("one", at.number))
        claimed = len(folders.claims())
        folders.sandbox.faults.add(Behind(), method="GET", path=CANDIDATES)
        second = folders.pusher("two").push(creates(ROWS))
        first = folders.pusher("one").push(creates(ROWS))
        made = emails(folders.sandbox)

    assert killed.is_killed
    assert 0 < claimed < ROWS
    assert len({*made}) == len(made)
    assert {"created": ROWS - claimed, "duplicate": claimed} == dict(second.counts)
    told = [row.problems[0].message for row in second.rows if row.code == "claimed_elsewhere"]
    assert claimed == len([each for each in told if f"{tmp_path / 'one' / 'data'} has" in each])
    for mine, theirs in zip(first.rows, second.rows, strict=True):
        outcomes_of_row = {mine.outcome, theirs.outcome}
        assert outcomes_of_row in ({"created", "duplicate"}, {"held", "duplicate"}), mine
    created = [row for row in (*first.rows, *second.rows) if row.outcome == "created"]
    assert len(made) == len(created)
    in_doubt = [row.number for row in first.rows if row.outcome == "held"]
    assert len(in_doubt) == (kind == "request_headers_sent"), in_doubt


def test_a_claim_ends_with_what_it_was_for(server: Server, tmp_path: Path) -> None:
    rows = [create(2), create(3, email="no email")]
    with folders_of(server, tmp_path) as folders:
        one, two = folders.pusher("one"), folders.pusher("two")
        first = one.push(rows)
        refused = two.push(file_of([rows[1]]))
        (claim,) = folders.claims()
        id = listed(first)[0].record_id
        folders.sandbox.store.remove("candidates", id or "")
        left = two.push(file_of([rows[0]]))
        again = two.push(file_of([rows[0]]), PushPolicy(again=True))
        # It is the second folder's claim now, and the first one is told so.
        back = one.push(file_of([rows[0]]), PushPolicy(again=True, overwrite=True))
        server.ask(
            folders.database,
            "UPDATE connector_push.claims SET claimed_at = now() - interval '31 days'",
        )
        one.push(file_of([create(4)]))
        kept = folders.claims()

    assert {2: "created", 3: "rejected"} == outcomes(first)
    assert {3: "rejected"} == outcomes(refused)
    assert id == claim[-1]
    assert ({2: "claimed_elsewhere"}, id) == (codes(left), listed(left)[0].problems[0].found)
    assert {2: "created"} == outcomes(again)
    assert {2: "already_there"} == codes(back)
    assert 1 == len(kept)


def test_the_shared_database_tells_nothing_of_people(server: Server, tmp_path: Path) -> None:
    tables = []
    for name in ("first", "second"):
        with folders_of(server, tmp_path / name) as folders:
            folders.pusher("one").push([create(2), Task(3, "create", "candidates", _nameless())])
            tables.append(folders.claims())

    shown = json.dumps(tables, default=str)
    values = {str(each) for task in (create(2),) for each in task.fields.values()} | {"Nobody"}
    assert [] == [each for each in values - {"permanent"} if each in shown]
    email = create(2).fields["email"]
    assert hashlib.sha256(email.encode()).hexdigest() not in shown
    keys = [[row[0] for row in table] for table in tables]
    assert [2, 2, 4] == [len(keys[0]), len(keys[1]), len({*keys[0], *keys[1]})]
    assert {64} == {len(key) for key in (*keys[0], *keys[1])}


def test_without_its_journal_a_push_sends_nothing(server: Server, tmp_path: Path) -> None:
    with folders_of(server, tmp_path) as folders:
        environ = folders.environ("one")
        path = tmp_path / "people.csv"
        path.write_text(
            "first_name,last_name,email,employment_type\nAnn,Lee,a@b.example,permanent\n",
            encoding="utf-8",
        )
        words = ["push", "candidates", str(path), "--mode", "create", "--apply"]
        wrong = server.address(folders.database, "another-word")
        refused = call(words, {**environ, "CONNECTOR_LAKEHOUSE": wrong})
        unset = {name: text for name, text in environ.items() if "LAKEHOUSE" not in name}
        missing = call(words, unset)
        foreseen = call(words[:-1], {**environ, "CONNECTOR_LAKEHOUSE": wrong})
        log = folders.sandbox.log

    assert (1, 2, 0, []) == (refused.status, missing.status, foreseen.status, log)
    assert "push_journal" in refused.err
    assert "another-word" not in refused.err + refused.out
    assert "CONNECTOR_LAKEHOUSE_FILE" in missing.err


def test_a_connection_that_is_lost_ends_the_push(server: Server, tmp_path: Path) -> None:
    with folders_of(server, tmp_path) as folders:
        pusher = folders.pusher("one")

        def cut(_: Any) -> None:
            if len(writes(folders.sandbox)) == 3:
                server.ask(
                    "postgres",
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    f" WHERE datname = '{folders.database}'",
                )

        folders.sandbox.between = cut
        first = pusher.push(creates(ROWS))
        folders.sandbox.between = None
        second = pusher.push(creates(ROWS))
        made = emails(folders.sandbox)

    assert isinstance(first.error, PushJournalUnreached)
    assert first.counts["not_sent"] > 0
    assert ({"created": ROWS}, first.batch) == (dict(second.counts), second.batch)
    assert len({*made}) == len(made) == ROWS


def _nameless() -> dict[str, Any]:
    return {**create(3).fields, "last_name": "Nobody"}

"""What the journal of pushes costs: a row's transitions, and writing a whole file down.

A create has two transitions, each a transaction that is on the disk when it returns: the intent
before its first byte leaves, and what came of it. The figures are of a file on this disk, beside
a bare commit of one row to the same kind of file, of which they are mostly made.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TypeVar

from connector.catalog import CATALOG
from connector.client.request import create_request
from connector.engine.push_commands import Move
from connector.engine.push_plan import Plan, PushPolicy
from connector.engine.push_states import Task
from connector.ledger.journal import PUSH_LEASE, Journal
from connector.ledger.lease import LeaseOwner
from connector.ledger.ledger import Ledger

ROWS = 300
PLANNED = 3_000
TRANSITION_MS_MAX = 5.0
PLANNED_SECONDS_MAX = 3.0

T = TypeVar("T")


def main() -> int:
    """Measure, print, and return 0 if the targets are met."""
    with tempfile.TemporaryDirectory() as folder:
        bare = _bare_commit(Path(folder) / "bare.sqlite")
        with Ledger(Path(folder)) as ledger:
            now = datetime.now(UTC)
            ledger.take_lease(PUSH_LEASE, LeaseOwner.of_this_process("bench", "bench"), now)
            journal = Journal(ledger, "bench")
            seconds, batch = _timed(lambda: journal.undertake(_plan(PLANNED), PushPolicy()))
            intents, ends = _transitions(journal, batch)
    figures = {"a bare commit": bare, "an intent": intents, "an outcome": ends}
    for name, each in figures.items():
        nth = sorted(each)[int(len(each) * 0.95)]
        print(f"{name:<16} {statistics.median(each):6.2f} ms in the median, {nth:6.2f} ms at 95 %")
    worst = max(statistics.median(intents), statistics.median(ends))
    row = statistics.median(intents) + statistics.median(ends)
    print(f"a create takes {row:.2f} ms of the journal; a transition at most {worst:.2f} ms")
    print(f"{PLANNED:,} rows are written down in {seconds:.2f} s, in one transaction")
    is_met = worst <= TRANSITION_MS_MAX and seconds <= PLANNED_SECONDS_MAX
    print(
        f"target: {TRANSITION_MS_MAX:g} ms a transition, {PLANNED_SECONDS_MAX:g} s a file:"
        f" {'met' if is_met else 'MISSED'}"
    )
    return 0 if is_met else 1


def _plan(rows: int) -> Plan:
    tasks = tuple(
        Task(
            number=number,
            operation="create",
            resource="candidates",
            fields={
                "first_name": "Ann",
                "last_name": f"Lee {number}",
                "email": f"ann{number}@example.com",
                "employment_type": "permanent",
                "notes": "Met at the fair; call back in spring. " * 5,
            },
            identity={"email": f"ann{number}@example.com"},
        )
        for number in range(2, rows + 2)
    )
    return Plan("candidates", "create", "bench.csv", "0" * 64, tasks)


def _transitions(journal: Journal, batch: str) -> tuple[list[float], list[float]]:
    """Milliseconds of each intent and of each outcome."""
    intents, ends = [], []
    for row in islice(journal.work(batch), ROWS):
        request = create_request(CATALOG["candidates"], row.task.fields)
        began = time.perf_counter()
        journal.intend(row.key, request, before=None, sent_after=datetime.now(UTC))
        intents.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        journal.move(row.key, Move("accepted", record_id=f"id-{row.key[1]}", fate="accepted"))
        ends.append((time.perf_counter() - began) * 1000)
    return intents, ends


def _bare_commit(path: Path) -> list[float]:
    """Milliseconds of a durable commit that writes one small row."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (n INTEGER)")
    times = [
        _timed(lambda: connection.execute("INSERT INTO t VALUES (1)"))[0] * 1000
        for _ in range(ROWS)
    ]
    connection.close()
    return times


def _timed(act: Callable[[], T]) -> tuple[float, T]:
    began = time.perf_counter()
    result = act()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    sys.exit(main())

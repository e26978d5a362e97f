"""What history costs: landing with and without it, in one run: `python -m benchmarks.history_cost`.

Each case lands the same answers twice, in files of their own, in commits of 100 records as a pull
makes them: once as it is, once with a history that remembers nothing. The ratio of the two is
what counts; the seconds are the processor's, so that another program does not count as ours.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa

from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.catalog.page import PER_PAGE_MAX
from connector.engine.bookmark import Stream
from connector.engine.commands import Commit, Found
from connector.warehouse import landing
from connector.warehouse.history import History
from connector.warehouse.versions import Edits, Version
from connector.warehouse.warehouse import Warehouse

RECORDS = 10_000
REREAD = 5_000
STREAM = Stream(CATALOG["candidates"])
START = datetime(2026, 1, 1, tzinfo=UTC)

FIRST_MAX = 2.2
"""Times as long as without history, at most: each row is written twice."""
UNCHANGED_MAX = 1.6
CHANGED_MAX = 2.4
NOTHING = Version(1, START, None, START, START)


class Forgetful(History):
    """A history that remembers nothing and costs nothing."""

    def listed(self, items, held, at):  # type: ignore[no-untyped-def]
        """Nothing but the rows to land."""
        begun = {id: (NOTHING, item) for id, item in items.items() if id not in held}
        return Edits(STREAM.resource, begun=begun)

    def read(self, found, held, same):  # type: ignore[no-untyped-def]
        """Nothing."""
        return Edits(STREAM.resource)

    def gone(self, gone):  # type: ignore[no-untyped-def]
        """Nothing."""
        return Edits(STREAM.resource)

    def confirm(self) -> None:
        """Nothing."""

    def write(self, edits: Edits, landed: pa.Table | None, run_id: str) -> None:
        """Nothing."""


def _raw(number: int, notes: str, at: datetime) -> dict[str, object]:
    return {
        **dict.fromkeys(CATALOG["candidates"].fields),
        "id": f"00000000-0000-4000-8000-{number:012d}",
        "created_at": START.isoformat(),
        "updated_at": at.isoformat(),
        "first_name": "Ada",
        "last_name": f"N{number}",
        "email": f"p{number}@people.example",
        "employment_type": "permanent",
        "status": "screening",
        "skills": "SQL, Python, negotiation, a driving licence",
        "notes": notes,
    }


def _details(count: int, notes: str, at: datetime) -> Iterator[Commit]:
    for begin in range(0, count, PER_PAGE_MAX):
        numbers = range(begin, min(begin + PER_PAGE_MAX, count))
        yield Commit(records=tuple(Found(Candidate(_raw(n, notes, START)), at) for n in numbers))


def _pages(count: int, at: datetime) -> Iterator[Commit]:
    listed = [field.name for field in CATALOG["candidates"].item_fields]
    for begin in range(0, count, PER_PAGE_MAX):
        raws = [_raw(n, "", START) for n in range(begin, min(begin + PER_PAGE_MAX, count))]
        items = ({name: raw[name] for name in listed} for raw in raws)
        yield Commit(items=tuple(Candidate(i, is_item=True, served_at=at) for i in items))


def _seconds(warehouse: Warehouse, commits: Iterator[Commit], at: datetime) -> float:
    batches = list(commits)
    began = time.process_time()
    with warehouse.keeping():
        for each in batches:
            warehouse.commit(STREAM, each, "run", at)
    return time.process_time() - began


@contextmanager
def _warehouse(history: type[History]) -> Iterator[Warehouse]:
    with tempfile.TemporaryDirectory() as folder, patch.object(landing, "History", history):
        made = Warehouse(Path(folder))
        made.prepare()
        yield made


def _measure(history: type[History]) -> dict[str, float]:
    hours = [START + timedelta(hours=n) for n in range(5)]
    steps: dict[str, Callable[[], Iterator[Commit]]] = {
        "list items of a first load": lambda: _pages(RECORDS, hours[0]),
        "details of a first load": lambda: _details(RECORDS, "", hours[1]),
        "details that read as before": lambda: _details(REREAD, "", hours[2]),
        "list items that show nothing new": lambda: _pages(REREAD, hours[3]),
        "details that changed": lambda: _details(REREAD, "changed", hours[4]),
    }
    with _warehouse(history) as warehouse:
        return {
            name: _seconds(warehouse, commits(), hours[n])
            for n, (name, commits) in enumerate(steps.items())
        }


def main() -> int:
    """Print each case with and without history; 0 if every ratio is within its target."""
    without, with_history = _measure(Forgetful), _measure(History)
    targets = {
        "details that read as before": UNCHANGED_MAX,
        "list items that show nothing new": UNCHANGED_MAX,
        "details that changed": CHANGED_MAX,
    }
    missed = 0
    for name, seconds in with_history.items():
        ratio, most = seconds / without[name], targets.get(name, FIRST_MAX)
        missed += ratio > most
        verdict = "ok" if ratio <= most else "MISSED"
        print(
            f"{name:34} {without[name]:6.2f} s without, {seconds:6.2f} s with history: "
            f"{ratio:4.2f} times (at most {most}) {verdict}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

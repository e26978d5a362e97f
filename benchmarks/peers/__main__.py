"""Comparison with other tools, each in its own documents' form: `make peers`.

Each copies the same agency from a sandbox in a process of its own: on an ordinary day, while
records change under it, from a server whose ties stand in no order, and under a limit of 600
requests a minute. What was measured goes to `docs/figures/peers.json`, of which `make generate`
makes the tables and the pictures of README and `docs/BENCHMARKS.md`.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.peers.agency import RemoteAgency, RequestCounts, serve_agency
from benchmarks.peers.copiers import COPIERS, ENVIRONMENTS, Copier, read_copy, run_copier

MEASURED = Path(__file__).parents[2] / "docs" / "figures" / "peers.json"
RECORDS = 2_000
ROUNDS = 2
LIMIT, LIMITED_RECORDS = 600, 900
_MEDIANS = ("processor_seconds", "memory_mb", "wall_seconds")

Row = dict[str, Any]
"""One run: who, in what, what it cost, and how its copy compares with the truth after it."""


def _run_and_compare(copier: Copier, name: str, folder: Path, agency: RemoteAgency) -> Row:
    """Run a copier once, and compare its copy with the records of the server."""
    cost = run_copier(copier, folder, agency.call("address"))
    served: RequestCounts = agency.call("count_new_requests")
    truth, copy = agency.call("notes_by_id"), read_copy(copier, folder)
    return {
        "copier": copier.title,
        "run": name,
        **asdict(cost),
        **asdict(served),
        "missing": len(truth.keys() - copy.keys()),
        "ghosts": len(copy.keys() - truth.keys()),
        "stale": sum(copy[id] != truth[id] for id in truth.keys() & copy.keys()),
    }


def _ordinary_day(copier: Copier, folder: Path) -> Iterator[Row]:
    """Yield the runs of a first load, after 65 changes, and without changes."""
    with serve_agency(RECORDS) as agency:
        yield _run_and_compare(copier, "first load", folder, agency)
        agency.call("apply_daily_changes")
        agency.call("advance_one_hour")
        yield _run_and_compare(copier, "65 changes", folder, agency)
        agency.call("advance_one_hour")
        yield _run_and_compare(copier, "nothing changed", folder, agency)


def _changes_while_reading(copier: Copier, folder: Path) -> Iterator[Row]:
    """Yield the run of a first load while records change, and of a run without changes after it."""
    with serve_agency(RECORDS) as agency:
        agency.call("change_while_reading", True)
        yield _run_and_compare(copier, "churn while reading", folder, agency)
        agency.call("change_while_reading", False)
        agency.call("advance_one_hour")
        yield _run_and_compare(copier, "quiet after churn", folder, agency)


def _random_order_of_ties(copier: Copier, folder: Path) -> Iterator[Row]:
    """Yield a first load and a run after a bulk edit, if records with equal times change places.

    The server returns records with the same `updated_at` in a new order at each request.
    """
    with serve_agency(RECORDS, {"ties": "random"}) as agency:
        yield _run_and_compare(copier, "ties, first load", folder, agency)
        agency.call("apply_bulk_edit")
        agency.call("advance_one_hour")
        yield _run_and_compare(copier, "ties, after a bulk edit", folder, agency)


def _rate_limit(copier: Copier, folder: Path) -> Iterator[Row]:
    """Yield a first load that needs more requests than the rate limit allows in a minute."""
    with serve_agency(LIMITED_RECORDS, limit=LIMIT) as agency:
        yield _run_and_compare(copier, f"limit of {LIMIT} a minute", folder, agency)


def _run_scenario(scenario: Any, copier: Copier) -> list[Row]:
    """Run a scenario in a temporary folder; print and return a row for each run."""
    with tempfile.TemporaryDirectory() as folder:
        rows = list(scenario(copier, Path(folder)))
        for row in rows:
            print(_format_row(row), flush=True)
        if not all(row["has_succeeded"] for row in rows):
            print((Path(folder) / "errors.txt").read_text(encoding="utf-8")[-600:], flush=True)
        return rows


def _format_row(row: Row) -> str:
    """Return a row as a line for the terminal."""
    told = f"{row['requests']:6} requests, {row['refused']} refused, "
    told += f"{row['processor_seconds']:6.2f} s of processor, {row['memory_mb']:4.0f} MB, "
    told += f"{row['missing']} missing, {row['ghosts']} ghosts, {row['stale']} stale"
    failed = "" if row["has_succeeded"] else ", FAILED"
    return f"{row['copier']:<26} {row['run']:<26} {told}{failed}"


def _merge_rounds(rounds: list[list[Row]]) -> Iterator[Row]:
    """Yield one row for each run, with the medians and the spread of the costs of all rounds."""
    for rows in zip(*rounds, strict=True):
        merged = dict(rows[0])
        for name in _MEDIANS:
            values = sorted(row[name] for row in rows)
            merged[name] = round(statistics.median(values), 3)
            merged[f"{name}_spread"] = [round(values[0], 3), round(values[-1], 3)]
        yield merged


def run_all_scenarios() -> list[Row]:
    """Run every scenario with every copier; return a row for each run."""
    found: list[Row] = []
    rounds: dict[Copier, list[list[Row]]] = {copier: [] for copier in COPIERS}
    for _ in range(ROUNDS):
        for copier in COPIERS:
            rounds[copier].append(_run_scenario(_ordinary_day, copier))
    for copier in COPIERS:
        found += _merge_rounds(rounds[copier])
        for scenario in (_changes_while_reading, _random_order_of_ties):
            found += _run_scenario(scenario, copier)
    # Here each of them waits for the minute to end, so that they can wait together.
    with ThreadPoolExecutor(len(COPIERS)) as pool:
        for rows in pool.map(lambda copier: _run_scenario(_rate_limit, copier), COPIERS):
            found += rows
    return found


def main() -> int:
    """Measure everything and write `docs/figures/peers.json`. Return 2 without environments."""
    if not ENVIRONMENTS.is_dir():
        print("The peers have no environments yet: run make peers.")
        return 2
    figures = {"records": RECORDS, "rounds": ROUNDS, "limited_records": LIMITED_RECORDS}
    written = {**figures, "limit": LIMIT, "runs": run_all_scenarios()}
    MEASURED.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

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

from benchmarks.peers.agency import RemoteAgency, RequestCounts, served_agency
from benchmarks.peers.copiers import COPIERS, ENVIRONMENTS, Copier, read_copy, run_copier

MEASURED = Path(__file__).parents[2] / "docs" / "figures" / "peers.json"
RECORDS = 2_000
ROUNDS = 2
LIMIT, LIMITED_RECORDS = 600, 900
_MEDIANS = ("processor_seconds", "memory_mb", "wall_seconds")

Row = dict[str, Any]
"""One run: who, in what, what it cost, and how its copy compares with the truth after it."""


def _step(copier: Copier, name: str, folder: Path, agency: RemoteAgency) -> Row:
    """One run of a copier, with its copy compared afterwards."""
    cost = run_copier(copier, folder, agency.call("address"))
    served: RequestCounts = agency.call("served")
    truth, copy = agency.call("truth"), read_copy(copier, folder)
    return {
        "copier": copier.title,
        "run": name,
        **asdict(cost),
        **asdict(served),
        "missing": len(truth.keys() - copy.keys()),
        "ghosts": len(copy.keys() - truth.keys()),
        "stale": sum(copy[id] != truth[id] for id in truth.keys() & copy.keys()),
    }


def _day(copier: Copier, folder: Path) -> Iterator[Row]:
    """A first load, 65 changes, and nothing."""
    with served_agency(RECORDS) as agency:
        yield _step(copier, "first load", folder, agency)
        agency.call("a_day")
        agency.call("pass_an_hour")
        yield _step(copier, "65 changes", folder, agency)
        agency.call("pass_an_hour")
        yield _step(copier, "nothing changed", folder, agency)


def _churn(copier: Copier, folder: Path) -> Iterator[Row]:
    """A first load while records change, then a run when all is quiet."""
    with served_agency(RECORDS) as agency:
        agency.call("churn", True)
        yield _step(copier, "churn while reading", folder, agency)
        agency.call("churn", False)
        agency.call("pass_an_hour")
        yield _step(copier, "quiet after churn", folder, agency)


def _ties(copier: Copier, folder: Path) -> Iterator[Row]:
    """A server that orders ties anew at each request, and a bulk edit that makes many."""
    with served_agency(RECORDS, {"ties": "random"}) as agency:
        yield _step(copier, "ties, first load", folder, agency)
        agency.call("a_bulk_edit")
        agency.call("pass_an_hour")
        yield _step(copier, "ties, after a bulk edit", folder, agency)


def _limited(copier: Copier, folder: Path) -> Iterator[Row]:
    """A first load of which one minute's allowance is not enough."""
    with served_agency(LIMITED_RECORDS, limit=LIMIT) as agency:
        yield _step(copier, f"limit of {LIMIT} a minute", folder, agency)


def _played(scenario: Any, copier: Copier) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        rows = list(scenario(copier, Path(folder)))
        for row in rows:
            print(_line(row), flush=True)
        if not all(row["has_succeeded"] for row in rows):
            print((Path(folder) / "errors.txt").read_text(encoding="utf-8")[-600:], flush=True)
        return rows


def _line(row: Row) -> str:
    told = f"{row['requests']:6} requests, {row['refused']} refused, "
    told += f"{row['processor_seconds']:6.2f} s of processor, {row['memory_mb']:4.0f} MB, "
    told += f"{row['missing']} missing, {row['ghosts']} ghosts, {row['stale']} stale"
    failed = "" if row["has_succeeded"] else ", FAILED"
    return f"{row['copier']:<26} {row['run']:<26} {told}{failed}"


def _median(rounds: list[list[Row]]) -> Iterator[Row]:
    """One row for each run, its costs the medians of the rounds; their spread beside them."""
    for rows in zip(*rounds, strict=True):
        merged = dict(rows[0])
        for name in _MEDIANS:
            values = sorted(row[name] for row in rows)
            merged[name] = round(statistics.median(values), 3)
            merged[f"{name}_spread"] = [round(values[0], 3), round(values[-1], 3)]
        yield merged


def measure() -> list[Row]:
    """Every run of every copier."""
    found: list[Row] = []
    rounds: dict[Copier, list[list[Row]]] = {copier: [] for copier in COPIERS}
    for _ in range(ROUNDS):
        for copier in COPIERS:
            rounds[copier].append(_played(_day, copier))
    for copier in COPIERS:
        found += _median(rounds[copier])
        for scenario in (_churn, _ties):
            found += _played(scenario, copier)
    # Here each of them waits for the minute to end, so that they can wait together.
    with ThreadPoolExecutor(len(COPIERS)) as pool:
        for rows in pool.map(lambda copier: _played(_limited, copier), COPIERS):
            found += rows
    return found


def main() -> int:
    """Measure everything and write it down."""
    if not ENVIRONMENTS.is_dir():
        print("The peers have no environments yet: run make peers.")
        return 2
    figures = {"records": RECORDS, "rounds": ROUNDS, "limited_records": LIMITED_RECORDS}
    written = {**figures, "limit": LIMIT, "runs": measure()}
    MEASURED.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

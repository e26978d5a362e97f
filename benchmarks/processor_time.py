"""Processor time of whole pulls beside a naive script's: `python -m benchmarks processor_time`.

A sandbox serves 20,000 candidates and the resources of a small agency from a process of its own,
whose time is not counted. `naive.py` reads the candidates once; the connector loads them first,
and then pulls after nothing and after 65 records have changed, with models and without. Each figure
is the median of several whole processes, start of Python included, one kind after another in each
round, since these machines are noisy.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

CANDIDATES = 20_000
CHANGED = 65
ROUNDS = 3
FIRST_LOAD_MAX = 1.0
"""First load of the candidates, models off, as a multiple of the naive script's time."""

SECONDS_MAX: Mapping[str, float] = {
    "nothing changed, models on": 1.2,
    "65 changed, models off": 1.5,
    "65 changed, models on": 4.0,
}
_KEY = "sandbox-key"
_ROOT = Path(__file__).parents[1]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a sandbox in a process of its own."""
    command = ["sandbox", "--port", "0", "--data", str(folder / "sandbox.db")]
    command += ["--candidates", str(CANDIDATES)]
    with subprocess.Popen(  # noqa: S603  # our own
        _connector(*command), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def _connector(*arguments: str) -> list[str]:
    start = "from connector.cli import main; main(prog_name='connector')"
    return [sys.executable, "-c", start, *arguments]


def measured(command: list[str], environ: Mapping[str, str]) -> float:
    """Processor time of one process, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603  # our own
        command, env={**os.environ, **environ}, check=True, cwd=_ROOT, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def change(base_url: str, number: int) -> None:
    """Change so many candidates from all over the list."""
    headers = {"Authorization": f"Bearer {_KEY}"}
    with httpx.Client(base_url=f"{base_url}/api/v1", headers=headers, timeout=60) as client:
        for place in range(CHANGED):
            page = 1 + place * CANDIDATES // CHANGED
            listed = client.get("/candidates", params={"page": page, "per_page": 1}).json()
            id = listed["data"][0]["id"]
            client.put(f"/candidates/{id}", json={"city": f"City {number}"}).raise_for_status()


def round_of(folder: Path, base_url: str, number: int) -> dict[str, float]:
    """One round of all measurements."""
    data = folder / f"data {number}"
    environ = {
        "CONNECTOR_BASE_URL": base_url,
        "CONNECTOR_API_KEY": _KEY,
        "CONNECTOR_DATA_DIR": str(data),
        "CONNECTOR_MODELS": "off",
    }
    models = environ | {"CONNECTOR_MODELS": "on"}
    naive = [sys.executable, "-m", "benchmarks.naive", base_url, _KEY, str(folder / "naive.duckdb")]
    pull = _connector("pull")
    found = {
        "naive script": measured(naive, {}),
        "first load, models off": measured(_connector("pull", "candidates"), environ),
    }
    measured(pull, models)
    found["nothing changed, models on"] = measured(pull, models)
    change(base_url, 2 * number)
    found["65 changed, models on"] = measured(pull, models)
    change(base_url, 2 * number + 1)
    found["65 changed, models off"] = measured(pull, environ)
    return found


def main() -> int:
    """Print the figures; 0 if all targets are met."""
    rounds: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name, served(Path(name)) as base_url:
        for number in range(ROUNDS):
            for kind, seconds in round_of(Path(name), base_url, number).items():
                rounds[kind].append(seconds)
    medians = {kind: statistics.median(each) for kind, each in rounds.items()}
    for kind, seconds in medians.items():
        target = f" (at most {SECONDS_MAX[kind]})" if kind in SECONDS_MAX else ""
        shown = ", ".join(f"{each:.2f}" for each in rounds[kind])
        print(f"{kind:<28} {seconds:7.2f} s of processor time{target}, of {shown}")
    ratios = [
        load / naive
        for load, naive in zip(
            rounds["first load, models off"], rounds["naive script"], strict=True
        )
    ]
    ratio = statistics.median(ratios)
    print(f"first load {ratio:.2f} times the naive script (at most {FIRST_LOAD_MAX})")
    print(json.dumps({kind: round(seconds, 3) for kind, seconds in medians.items()}))
    is_met = all(medians[kind] <= most for kind, most in SECONDS_MAX.items())
    return 0 if is_met and ratio <= FIRST_LOAD_MAX else 1


if __name__ == "__main__":
    sys.exit(main())

"""Pushes of new candidates next to a script that keeps a journal too, at three sizes."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import (
    KEY,
    Bound,
    Line,
    account_environ,
    connector_command,
    measured_line,
    measured_rounds,
    module_command,
    run,
    serve_sandbox,
)

SIZES = (20, 200, 2_000)
_REASON = (
    "The connector also checks rows against the local copy, prevents duplicates after a crash, and "
    "writes a report."
)
HEADINGS = ("first_name", "last_name", "email", "phone", "current_company", "employment_type")


def measure(is_quick: bool) -> Iterator[Line]:
    """Yield the lines for pushes at each size, or only at the smallest."""
    sizes = SIZES[:1] if is_quick else SIZES
    for size in sizes:
        script, ours = [], []
        for number in measured_rounds(size, sizes):
            with (
                tempfile.TemporaryDirectory() as name,
                serve_sandbox(Path(name), "--candidates", 0, "--jobs", 1) as base_url,
            ):
                file = Path(name) / "people.csv"
                _write_candidates(file, size, "script")
                script.append(run(module_command("naive", "push", base_url, KEY, file)).processor)
                _write_candidates(file, size, f"connector{number}")
                push = connector_command("push", "candidates", file, "--mode", "create", "--apply")
                data = account_environ(Path(name) / "data", base_url)
                ours.append(run([*push, "--no-pull"], data).processor)
        yield measured_line(
            "push of new records",
            f"{size:,} candidates",
            ours,
            script,
            "script with a journal",
            bound=Bound(1.5, "ratio", _REASON) if size == max(SIZES) else None,
        )


def _write_candidates(file: Path, size: int, host: str) -> None:
    """Write a CSV file of new candidates, whose email addresses end with `HOST.example`."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(HEADINGS)
        for n in range(size):
            name = ("Zoë", f"N{n}", f"p{n}@{host}.example", f"+44 20 7946 {n:04d}")
            writer.writerow((*name, "Wren & Co", "permanent"))

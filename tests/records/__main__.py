"""Make the records again, and print each line that differs from the accepted one.

`python -m tests.records [RECORD ...]` compares all records, or the named ones, and ends with 1 if
one differs. `--accept` writes them: say in the commit why a line changed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.records import outcomes, program, simulations, tables
from tests.records.record import Record, find_differences, read_record, write_record


def _record_demo(folder: Path) -> Mapping[str, Record]:
    """Return the records that one run of the demo makes."""
    program.run_demo(folder / "demo")
    published = folder / "demo" / program.PUBLISHED
    return {"demo-tables": tables.record_published_file(published)}


RECORDS: Mapping[str, Callable[[Path, int], Mapping[str, Record]]] = {
    "pulls": lambda _, processes: {"pulls": simulations.record_pulls(processes)},
    "pushes": lambda _, processes: {"pushes": simulations.record_pushes(processes)},
    "demo": lambda folder, _: _record_demo(folder),
    "sandbox": lambda folder, _: {"sandbox-tables": tables.record_sandbox(folder)},
    "cells": lambda *_: {"cells": outcomes.record_cells()},
    "rows": lambda folder, _: {"rows": outcomes.record_rows(folder)},
    "nightly": lambda folder, _: {"nightly": outcomes.record_nightly(folder)},
    "removal": lambda folder, _: {"removal": outcomes.record_removal(folder)},
}
"""Functions that make records, each in an empty folder and with a number of processes."""


def main() -> int:
    """Make the selected records, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.records", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="RECORD", help=f"of: {', '.join(RECORDS)}")
    parser.add_argument("--accept", action="store_true", help="write the records")
    parser.add_argument("--processes", type=int, default=2, help="processes for simulations")
    options = parser.parse_args()
    if unknown := {*options.names} - RECORDS.keys():
        parser.error(f"unknown records: {', '.join(sorted(unknown))}")
    count = 0
    for name in options.names or RECORDS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="record-") as folder:
            made = RECORDS[name](Path(folder), options.processes)
        for file, record in made.items():
            lines = list(find_differences(read_record(file), record))
            count += len(lines)
            seconds = time.monotonic() - began
            _print(f"{file}: {len(record)} lines, {len(lines)} differences ({seconds:.0f} s)")
            for line in lines if read_record(file) else ():
                _print(f"  {line}")
            if options.accept:
                write_record(file, record)
    return int(count > 0 and not options.accept)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""What applying a long file keeps in memory: `python -m benchmarks push_apply`; `python -m
benchmarks.push_apply 200000` takes that many rows.

Three files are applied as `connector push --apply --no-pull` does it, each in a process of its own:
updates that change nothing, rows that are all wrong, and creates of which the budget lets one be
sent, so that all others are undertaken, looked at and reported as not sent. The whole way is
walked: the preview, the journal, the work, the report beside the file and the copy for analysts.
The peak of the resident set at the full number of rows stands beside that at a tenth of them: what
a row more takes must stay below the target. It is a digest of the check's, and what DuckDB keeps of
the one transaction that copies the journal for analysts.
"""

from __future__ import annotations

import asyncio
import csv
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.scale import peak_bytes
from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushRunOptions, push
from connector.sandbox.server import KEY_DEFAULT, Sandbox
from connector.settings.model import load_settings
from connector.warehouse.bookmark import Stream
from connector.warehouse.pull_commands import Commit, Found
from connector.warehouse.warehouse import Warehouse

ROWS = 50_000
PARTS = 10
BYTES_A_ROW_MAX = 2_500
HEADINGS = ("first_name", "last_name", "email", "phone", "current_company", "employment_type")
CASES = {"unchanged": "updates that change nothing", "invalid": "rows that are all wrong"} | {
    "not_sent": "creates, of which one is sent"
}
_ROOT = Path(__file__).parents[1]
_AT = datetime(2026, 1, 1, tzinfo=UTC)
_AT_ONCE = 5_000


def _values(number: int, kind: str) -> dict[str, str]:
    values = ("Zoë", f"N{number}", f"p{number}@people.example", f"+44 7700 {number:06d}")
    return dict(zip(HEADINGS, (*values, "Wren & Co", kind), strict=True))


def write(path: Path, count: int, case: str) -> None:
    """A file of so many candidates."""
    with path.open("w", encoding="utf-8", newline="") as file:
        made = csv.DictWriter(file, HEADINGS)
        made.writeheader()
        for number in range(count):
            made.writerow(_values(number, "sometimes" if case == "invalid" else "permanent"))


def land(folder: Path, count: int) -> None:
    """A warehouse with the candidates that the updates are about."""
    warehouse = Warehouse(folder)
    warehouse.prepare()
    stream = Stream(CATALOG["candidates"])
    with warehouse.keep_open():
        for begin in range(0, count, _AT_ONCE):
            numbers = range(begin, min(begin + _AT_ONCE, count))
            records = tuple(Found(Candidate(_raw(number)), _AT) for number in numbers)
            warehouse.commit(stream, Commit(records=records), "run", _AT)


def _raw(number: int) -> dict[str, object]:
    at = _AT.isoformat()
    id = f"00000000-0000-4000-8000-{number:012d}"
    empty: dict[str, object] = dict.fromkeys(CATALOG["candidates"].fields)
    own = {"id": id, "created_at": at, "updated_at": at}
    return {**empty, **own, **_values(number, "permanent")}


def measure_here(count: int, case: str, folder: Path, base_url: str) -> dict[str, float]:
    """Apply so many rows in this process."""
    environ = {
        "CONNECTOR_BASE_URL": base_url,
        "CONNECTOR_API_KEY": KEY_DEFAULT,
        "CONNECTOR_DATA_DIR": str(folder),
        "CONNECTOR_MODELS": "off",
    }
    settings = load_settings({}, environ, folder)
    path = folder / "people.csv"
    asked = PushFile("candidates", path, "create")
    if case == "unchanged":
        asked = PushFile("candidates", path, "update", match=("email",))
    began, wall = time.process_time(), time.monotonic()
    manner = PushRunOptions(applies=True, pulls=False)
    # One request looks at the newest records, and one creates.
    (report,) = asyncio.run(push(settings, [asked], manner, budget=2))
    seconds, waited = time.process_time() - began, time.monotonic() - wall
    wanted = {"created": 1, "not_sent": count - 1} if case == "not_sent" else {case: count}
    assert wanted == report.counts, report.counts
    assert report.unpublished is None, report.unpublished
    assert report.file is not None
    with report.file.open("rb") as file:
        assert count + 1 == sum(1 for _ in file)
    return {"bytes": peak_bytes(), "seconds": seconds, "wall": waited}


def measure(count: int, case: str) -> dict[str, float]:
    """Apply so many rows in a process of its own."""
    with tempfile.TemporaryDirectory() as name, Sandbox(counts={"jobs": 1}) as sandbox:
        folder = Path(name)
        land(folder, count if case == "unchanged" else 0)
        write(folder / "people.csv", count, case)
        here = ["--here", str(count), case, name, sandbox.base_url]
        command = [sys.executable, "-m", "benchmarks.push_apply", *here]
        printed = subprocess.check_output(command, cwd=_ROOT, text=True)  # noqa: S603 # our own
    measured: dict[str, float] = json.loads(printed)
    return measured


def compare(count: int) -> int:
    """Print the figures of each case; 0 if a row more takes less than the target in each."""
    is_met = True
    for case, told in CASES.items():
        peaks = []
        for rows in (count // PARTS, count):
            measured = measure(rows, case)
            peaks.append(measured["bytes"])
            rate = rows / measured["seconds"]
            print(
                f"{told:<30} {rows:>9,} rows {rate:>7,.0f} rows/s of the processor"
                f" ({measured['wall']:.1f} s in all) {peaks[-1] / 1e6:>7.1f} MB",
                flush=True,
            )
        more = (peaks[-1] - peaks[0]) / (count - count // PARTS)
        is_met &= more < BYTES_A_ROW_MAX
        print(f"{told:<30} {more:,.0f} bytes for a row more (below {BYTES_A_ROW_MAX:,})")
    return 0 if is_met else 1


def main() -> int:
    """Apply files of the default size."""
    return compare(ROWS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        count, case, folder, base_url = sys.argv[2:]
        print(json.dumps(measure_here(int(count), case, Path(folder), base_url)))
    else:
        sys.exit(compare(int(sys.argv[1]) if sys.argv[1:] else ROWS))

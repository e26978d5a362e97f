"""Wall time of a push beside the least that the minute's limit allows: `python -m benchmarks
push_wall`.

1,199 creates from a csv, as `connector push --apply --no-pull` sends them, against a sandbox that
allows 600 requests a minute, in windows that begin with a request. It takes about a minute. With
the look at the newest records before the first create they are 1,200 requests: two windows.

The least that the limit implies is made of two parts. All windows but the last must go by whole.
The requests of the last one can begin no earlier, and then take the time that they need where
nothing holds them back: that is measured in the same run, at the requests of the first window, of
which the limit stops none (their spacing is that of the journal's commits and of the answers). The
time taken is from the first request's arrival to the last one's.
"""

from __future__ import annotations

import asyncio
import csv
import sys
import tempfile
from pathlib import Path

from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushRunOptions, push
from connector.sandbox.server import Sandbox
from connector.settings.model import load_settings

ROWS = 1_199
LIMIT = 600
WINDOW_SECONDS = 60.0
SHARE_MIN = 0.97


def written(path: Path) -> Path:
    """A csv of so many candidates."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("first_name", "last_name", "email", "employment_type"))
        for number in range(ROWS):
            writer.writerow(("Ann", f"Lee {number}", f"ann.{number}@people.example", "permanent"))
    return path


def implied(moments: list[float]) -> tuple[float, float]:
    """The spacing of the first window's requests, and the least time that all of them take, both
    in seconds.
    """
    free = moments[:LIMIT]
    spacing = (free[-1] - free[0]) / (len(free) - 1)
    assert free[-1] - free[0] < WINDOW_SECONDS, "the limit held none of them back"
    whole, last = divmod(len(moments) - 1, LIMIT)
    return spacing, whole * WINDOW_SECONDS + last * spacing


def windows(moments: list[float]) -> list[tuple[int, float, float]]:
    """The requests of each window, with the moments of its first and its last one after the first
    of all.
    """
    begin, found = moments[0], []
    while moments:
        mine = [each for each in moments if each < moments[0] + WINDOW_SECONDS]
        found.append((len(mine), mine[0] - begin, mine[-1] - begin))
        moments = moments[len(mine) :]
    return found


def main() -> int:
    """Print the figures; 0 if all rows were created, nothing was refused, and the least is 97 %
    of the time taken.
    """
    behaviours = {"rate_window": "first_request"}
    with (
        tempfile.TemporaryDirectory() as name,
        Sandbox(counts={"jobs": 1}, rate_limit=LIMIT, behaviours=behaviours) as sandbox,
    ):
        environ = {
            "CONNECTOR_BASE_URL": sandbox.base_url,
            "CONNECTOR_API_KEY": sandbox.key,
            "CONNECTOR_DATA_DIR": name,
            "CONNECTOR_MODELS": "off",
        }
        settings = load_settings({}, environ, Path(name))
        asked = PushFile("candidates", written(Path(name) / "people.csv"), "create")
        (report,) = asyncio.run(push(settings, [asked], PushRunOptions(applies=True, pulls=False)))
        log = sandbox.log
    moments = [served.monotonic_seconds for served in log]
    refused = sum(served.status == 429 for served in log)
    taken = moments[-1] - moments[0]
    spacing, least = implied(moments)
    share = least / taken
    print(f"created {report.counts.get('created', 0)} of {ROWS}, requests {len(log)}")
    print(f"the first window's requests came at intervals of {spacing * 1000:.1f} ms")
    print(f"requests took {taken:.1f} s, least {least:.1f} s: {share:.3f} (at least {SHARE_MIN})")
    for number, (count, began, ended) in enumerate(windows(moments), 1):
        print(f"window {number}: {count} requests from {began:.1f} s to {ended:.1f} s")
    print(f"refused {refused}; the whole push took {report.seconds:.1f} s")
    is_met = report.counts.get("created") == ROWS and not refused and share >= SHARE_MIN
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())

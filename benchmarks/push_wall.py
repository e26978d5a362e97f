"""Wall time of a push beside the least that the minute's limit allows: `python -m benchmarks
push_wall`.

1,200 creates from a csv, as `connector push --apply --no-pull` sends them, against a sandbox that
allows 600 requests a minute. The least is one whole window and the answers of the second. It
takes about a minute.
"""

from __future__ import annotations

import asyncio
import csv
import math
import sys
import tempfile
from pathlib import Path

from connector.preview import Asked
from connector.push import Manner, push
from connector.sandbox import Sandbox
from connector.settings import load_settings

ROWS = 1_200
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
        asked = Asked("candidates", written(Path(name) / "people.csv"), "create")
        (report,) = asyncio.run(push(settings, [asked], Manner(applies=True, pulls=False)))
        log = sandbox.log
    moments = [served.monotonic_seconds for served in log]
    refused = sum(served.status == 429 for served in log)
    taken = moments[-1] - moments[0]
    least = (math.ceil(len(log) / LIMIT) - 1) * WINDOW_SECONDS
    share = least / taken
    print(f"created {report.counts.get('created', 0)} of {ROWS}, requests {len(log)}")
    print(f"requests took {taken:.1f} s, least {least:.1f} s: {share:.3f} (at least {SHARE_MIN})")
    print(f"refused {refused}; the whole push took {report.seconds:.1f} s")
    is_met = report.counts.get("created") == ROWS and not refused and share >= SHARE_MIN
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())

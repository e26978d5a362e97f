"""Wall time of a whole pull beside the least that the minute's limit allows: `python -m benchmarks
pull_wall`.

A first load of 1,900 candidates, by a client that has its key to itself, against a sandbox that
allows 600 requests a minute. Printed are the refusals, the most requests in any of the server's
windows, and the time from the first request to the last answer beside the least: all windows but
the last, whole, and one answer. It takes about three minutes.
"""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
from collections import Counter
from pathlib import Path

from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from connector.settings.model import load_settings

CANDIDATES = 1_900
LIMIT = 600
WINDOW_SECONDS = 60.0
SHARE_MIN = 0.97


def main() -> int:
    """Print the figures; 0 if nothing was refused and the least is 97 % of the time taken."""
    counts, behaviours = {"candidates": CANDIDATES}, {"rate_window": "first_request"}
    with (
        tempfile.TemporaryDirectory() as name,
        Sandbox(counts=counts, rate_limit=LIMIT, behaviours=behaviours) as sandbox,
    ):
        environ = {
            "CONNECTOR_BASE_URL": sandbox.base_url,
            "CONNECTOR_API_KEY": sandbox.key,
            "CONNECTOR_DATA_DIR": name,
            "CONNECTOR_MODELS": "off",
        }
        settings = load_settings({}, environ, Path(name))
        report = asyncio.run(pull(settings, ("candidates",)))
        log = sandbox.log
    assert report.outcome == "done", report.as_json()
    moments = [served.monotonic_seconds for served in log]
    refused = sum(served.status == 429 for served in log)
    windows = Counter(int((moment - moments[0]) // WINDOW_SECONDS) for moment in moments)
    taken = moments[-1] - moments[0]
    least = (math.ceil(len(log) / LIMIT) - 1) * WINDOW_SECONDS
    share = least / taken
    print(f"requests {len(log)}, refused {refused}, most in a window {max(windows.values())}")
    print(f"the run took {report.seconds:.1f} s, of which it waited {report.waited_seconds:.1f} s")
    print(f"requests took {taken:.1f} s, least {least:.1f} s: {share:.3f} (at least {SHARE_MIN})")
    return 0 if not refused and share >= SHARE_MIN else 1


if __name__ == "__main__":
    sys.exit(main())

"""How much of the minute's limit is used, and never more: `python -m benchmarks pace`.

600 details through the real client, against a sandbox that allows 300 a minute: printed are the
refusals, the most requests in any of the server's windows, and the time taken beside the least
that the windows allow, from the first request on, with which the server's window begins. It takes
a minute.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import Counter

from connector import Client
from connector.sandbox import Sandbox

REQUESTS = 600
LIMIT = 300
WINDOW_SECONDS = 60.0
OVERHEAD_MAX = 0.03


async def read_all(sandbox: Sandbox, ids: list[str]) -> float:
    """Read details until as many requests as asked for have left; the seconds it took."""
    async with Client(sandbox.base_url, sandbox.key) as client:
        waiting = iter(range(REQUESTS))

        async def work() -> None:
            for number in waiting:
                await client.candidates.get(ids[number % len(ids)])

        started = time.monotonic()
        await asyncio.gather(*(work() for _ in range(4)))
        return time.monotonic() - started


def main() -> int:
    """Print the figures; 0 if there was no refusal and the time is within 3 %."""
    counts, behaviours = {"candidates": 50}, {"rate_window": "first_request"}
    with Sandbox(counts=counts, rate_limit=LIMIT, behaviours=behaviours) as sandbox:
        taken = asyncio.run(read_all(sandbox, sorted(sandbox.store.records("candidates"))))
        log = sandbox.log
    refused = sum(served.status == 429 for served in log)
    first = log[0].monotonic_seconds
    windows = Counter(int((served.monotonic_seconds - first) // WINDOW_SECONDS) for served in log)
    least = (math.ceil(REQUESTS / LIMIT) - 1) * WINDOW_SECONDS
    overhead = taken / least - 1
    print(f"requests {len(log)}, refused {refused}, most in a window {max(windows.values())}")
    print(f"seconds {taken:.1f}, least {least:.1f}, over by {overhead:.1%} (at most 3.0%)")
    return 0 if not refused and overhead <= OVERHEAD_MAX else 1


if __name__ == "__main__":
    sys.exit(main())

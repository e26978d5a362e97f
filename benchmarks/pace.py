"""How much of the minute's limit is used, and never more: `python -m benchmarks pace`.

Details through the real client. Alone, against a sandbox that allows 300 a minute: printed are the
refusals, the most requests in any of the server's windows, and the time taken beside the least
that the windows allow, from the first request on, with which the server's window begins. Beside
another client that asks for half of 600 a minute, steadily or in bursts: printed are our refusals,
and ours beside what the other leaves. All run at the same time, each against a sandbox of its own,
and take a minute; so short a run bears no refusal. `python -m benchmarks.pace 60` takes an hour,
in which 10,000 requests bear two.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import httpx

from connector import Client
from connector.sandbox.server import Sandbox

REQUESTS = 600
LIMIT = 300
LIMIT_SHARED = 600
WINDOW_SECONDS = 60.0
OVERHEAD_MAX = 0.03
REFUSED_PER_10_000_MAX = 2
SHARE_MIN = 0.9
AT_ONCE = {"steady": 1, "six bursts a minute": LIMIT_SHARED // 12}
"""How many requests the other client sends at once."""

KINDS = ("aligned", "sliding")


async def read_details(sandbox: Sandbox, requests: float, ends_at: float = math.inf) -> float:
    """Read details until so many have left or the time is over; the seconds it took."""
    ids = sorted(sandbox.store.records("candidates"))
    async with Client(sandbox.base_url, sandbox.key) as client:
        left = 0

        async def work() -> None:
            nonlocal left
            while left < requests:
                left += 1
                await client.candidates.get(ids[left % len(ids)])

        started = time.monotonic()
        timeout = None if math.isinf(ends_at) else ends_at - started
        workers = [asyncio.ensure_future(work()) for _ in range(4)]
        done, waiting = await asyncio.wait(workers, timeout=timeout)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for each in done:
            each.result()
        return time.monotonic() - started


def alone() -> bool:
    """Print the figures of a sole client; whether there was no refusal, and little time lost."""
    counts, behaviours = {"candidates": 50}, {"rate_window": "first_request"}
    with Sandbox(counts=counts, rate_limit=LIMIT, behaviours=behaviours) as sandbox:
        taken = asyncio.run(read_details(sandbox, REQUESTS))
        log = sandbox.log
    refused = sum(served.status == 429 for served in log)
    first = log[0].monotonic_seconds
    windows = Counter(int((served.monotonic_seconds - first) // WINDOW_SECONDS) for served in log)
    least = (math.ceil(REQUESTS / LIMIT) - 1) * WINDOW_SECONDS
    overhead = taken / least - 1
    print(
        f"alone: requests {len(log)}, refused {refused} (none),"
        f" most in a window {max(windows.values())} (at most {LIMIT});"
        f" seconds {taken:.1f}, least {least:.1f}, over by {overhead:.1%} (at most 3.0%)"
    )
    return not refused and overhead <= OVERHEAD_MAX


async def ask_besides(sandbox: Sandbox, at_once: int, ends_at: float) -> None:
    """The other client: so many lists of jobs at once, at half of the limit, whatever comes."""
    headers = {"Authorization": f"Bearer {sandbox.key}"}
    async with httpx.AsyncClient(base_url=sandbox.base_url, headers=headers) as client:
        gap = at_once * WINDOW_SECONDS / (LIMIT_SHARED // 2)
        next_at = time.monotonic() + gap / 2
        while next_at < ends_at:
            await asyncio.sleep(max(0.0, next_at - time.monotonic()))
            await asyncio.gather(*(client.get("/api/v1/jobs") for _ in range(at_once)))
            next_at += gap


async def beside(other: str, kind: str, minutes: int) -> bool:
    """Print the figures beside another client; whether there were few refusals, and enough."""
    with Sandbox(
        counts={"candidates": 50, "jobs": 1},
        rate_limit=LIMIT_SHARED,
        behaviours={"rate_window": kind},
    ) as sandbox:
        started = time.monotonic()
        ends_at = started + minutes * WINDOW_SECONDS
        await asyncio.gather(
            read_details(sandbox, math.inf, ends_at), ask_besides(sandbox, AT_ONCE[other], ends_at)
        )
        log = sandbox.log
    ours = [served for served in log if "/candidates/" in served.path]
    theirs = [served for served in log if "/candidates/" not in served.path]
    refused = sum(served.status == 429 for served in ours)
    their_refused = sum(served.status == 429 for served in theirs)
    share = (len(ours) - refused) / ((LIMIT_SHARED - LIMIT_SHARED // 2) * minutes)
    print(
        f"beside another, {other}, {kind}: requests {len(ours)}, refused {refused}"
        f" (at most {REFUSED_PER_10_000_MAX} of 10,000); {share:.0%} of the half that is left"
        f" (at least {SHARE_MIN:.0%}); of the other's {len(theirs)} refused {their_refused}"
    )
    return refused <= REFUSED_PER_10_000_MAX * len(ours) / 10_000 and share >= SHARE_MIN


async def measure(minutes: int) -> bool:
    """All at the same time; whether all targets are met."""
    rows = (beside(other, kind, minutes) for other in AT_ONCE for kind in KINDS)
    # A process of its own: two seconds of somebody else's work would miss the target.
    with ProcessPoolExecutor(1) as processes:
        sole = asyncio.get_running_loop().run_in_executor(processes, alone)
        return all(await asyncio.gather(sole, *rows))


def main(minutes: int = 1) -> int:
    """Print the figures; 0 if all targets are met."""
    return 0 if asyncio.run(measure(minutes)) else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))

"""Measures how fast the sandbox answers, and compares it with two targets.

    .venv/bin/python benchmarks/sandbox_speed.py

It starts the sandbox with 100,000 candidates in a process of its own on one core, loads it from
this one over loopback, and prints details per second and the milliseconds that a page of 100
takes, sorted by `updated_at`, at the beginning, in the middle and near the end. The time of a page
is taken on the socket, so that the server's own share is less. It tests nothing and exits 1 where
a target is missed.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

DETAILS_PER_SECOND_MIN = 1000
PAGE_MILLISECONDS_MAX = 20.0
CANDIDATES = 100_000
CONNECTIONS = 8
DETAILS = 8000
PAGES = (1, 100, 500, 900, 1000)
REPEATS = 15
ROOT = Path(__file__).parents[1]
KEY = "benchmark"
COMMAND = "from connector.cli.sandbox import sandbox; sandbox()"


class Connection:
    """One connection kept alive, with as little of its own as can be: the server is measured."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def get(self, path: str) -> bytes:
        """The body of a GET that must succeed."""
        head = f"GET {path} HTTP/1.1\r\nHost: sandbox\r\nAuthorization: Bearer {KEY}\r\n\r\n"
        self._writer.write(head.encode())
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise SystemExit(f"{path} was answered {answer[:200]!r}")
        length = next(
            int(line[15:]) for line in answer.split(b"\r\n") if line.startswith(b"content-length:")
        )
        return await self._reader.readexactly(length)

    def close(self) -> None:
        """End the connection."""
        self._writer.close()


async def measure(host: str, port: int) -> tuple[float, dict[int, float]]:
    """Details per second, and the median milliseconds of each page."""
    connections = [
        Connection(*await asyncio.open_connection(host, port)) for _ in range(CONNECTIONS)
    ]
    first, ids = connections[0], []
    milliseconds = {}
    for page in PAGES:
        path = f"/api/v1/candidates?sort=updated_at&per_page=100&page={page}"
        taken = []
        for _ in range(REPEATS):
            begun = time.perf_counter()
            body = await first.get(path)
            taken.append((time.perf_counter() - begun) * 1000)
        milliseconds[page] = statistics.median(taken)
        ids += [each["id"] for each in json.loads(body)["data"]]

    async def load(connection: Connection, number: int) -> None:
        for step in range(number, DETAILS, CONNECTIONS):
            await connection.get(f"/api/v1/candidates/{ids[step % len(ids)]}")

    begun = time.perf_counter()
    await asyncio.gather(*(load(each, n) for n, each in enumerate(connections)))
    per_second = DETAILS / (time.perf_counter() - begun)
    for each in connections:
        each.close()
    return per_second, milliseconds


def main() -> int:
    """Start, measure, print; 0 where both targets are met."""
    arguments = ["--port", "0", "--candidates", str(CANDIDATES), "--api-key", KEY]
    begun = time.perf_counter()
    with subprocess.Popen(  # noqa: S603  # our own command
        [sys.executable, "-c", COMMAND, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
            assert process.stdout is not None
            ready = process.stdout.readline().strip()
            seeding_seconds = time.perf_counter() - begun
            host, port = ready.removeprefix("ready http://").split(":")
            per_second, milliseconds = asyncio.run(measure(host, int(port)))
        finally:
            process.terminate()
    slowest = max(milliseconds.values())
    pages = ", ".join(f"page {page}: {taken:.1f}" for page, taken in milliseconds.items())
    lines = (
        f"candidates made up and ready   {CANDIDATES:,} in {seeding_seconds:.1f} s",
        f"details per second, one core   {per_second:,.0f} (target: {DETAILS_PER_SECOND_MIN:,})",
        f"page of 100 by updated_at, ms  {slowest:.1f} (target: {PAGE_MILLISECONDS_MAX:.0f}) "
        f"[{pages}]",
    )
    sys.stdout.write("\n".join(lines) + "\n")
    is_met = per_second >= DETAILS_PER_SECOND_MIN and slowest <= PAGE_MILLISECONDS_MAX
    return 0 if is_met else 1


if __name__ == "__main__":
    raise SystemExit(main())

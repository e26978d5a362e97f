"""What publishing to the lakehouse costs: one large account; forty small ones by four processes.

The large account has the candidates of `benchmarks/models.py`, with their versions; it is brought
there for the first time, then again with one in a hundred changed, then again as it is. What counts
are the processor's seconds of the publisher, PostgreSQL's own apart. The small ones are published
all at once, and the lake must have the sum of their rows. It needs PostgreSQL's programs here.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import models as large
from connector.lakehouse.connect import LakehouseAccount, reading
from connector.lakehouse.lake_status import read_status
from connector.lakehouse.publish import LakePublication, publish_to_lakehouse
from connector.publishing.publication import publish
from connector.settings.model import Settings, load_settings
from connector.warehouse.duckdb_file import opened
from connector.warehouse.warehouse import Warehouse
from tests.lakehouse.publishers import Publishers
from tests.lakehouse.server import Server, binaries, serving

CANDIDATES = int(os.environ.get("LAKEHOUSE_CANDIDATES", "200000"))
ACCOUNTS, PROCESSES, SMALL = 40, 4, 50
SECONDS_MAX = {"first": 60.0, "one in a hundred changed": 30.0, "unchanged": 5.0}
"""Of processor time, for each publication of the large account."""

_CHANGES = (
    "UPDATE landing.candidates SET status = 'placed' WHERE hash(id) % 100 = 0",
    "UPDATE history.candidates SET status = 'placed' WHERE hash(id) % 100 = 0 AND _version = 1",
)


def main() -> int:
    """Measure, print, and return 0 if all targets are met."""
    programs = binaries()
    if programs is None:
        print("PostgreSQL is not installed: nothing was measured")
        return 0
    with tempfile.TemporaryDirectory() as name, serving(programs) as server:
        is_met = _large(Path(name), server) & _small(Path(name), server)
    return 0 if is_met else 1


def _large(folder: Path, server: Server) -> bool:
    settings = load_settings({}, _environ(folder / "large", server, "large"), folder)
    warehouse = Warehouse(settings.folder)
    warehouse.prepare()
    large.fill(warehouse.work, CANDIDATES)
    publish(settings, shares=False)
    is_met = _measure("first", lambda: publish_to_lakehouse(settings))
    with opened(warehouse.work) as connection:
        for each in _CHANGES:
            connection.execute(each)
    publish(settings, shares=False)
    is_met &= _measure("one in a hundred changed", lambda: publish_to_lakehouse(settings))
    is_met &= _measure("unchanged", lambda: publish_to_lakehouse(settings))
    found = read_status(settings)
    size = warehouse.published.stat().st_size
    print(
        f"{CANDIDATES:,} candidates: {size / 1e6:,.0f} MB published, {found.bytes / 1e6:,.0f} MB"
        f" in {found.files} files of the lake, {os.cpu_count()} cores"
    )
    return is_met


def _measure(name: str, act: Callable[[], LakePublication]) -> bool:
    began, worked = time.perf_counter(), time.process_time()
    sent = act()
    wall, work = time.perf_counter() - began, time.process_time() - worked
    most = SECONDS_MAX[name]
    print(
        f"{name:<28} {wall:6.1f} s, {work:6.1f} s of processor time (at most {most:.0f}),"
        f" {sent.inserted:>9,} rows in, {sent.removed:>7,} out"
        f" {'ok' if work <= most else 'MISSED'}"
    )
    return work <= most


def _small(folder: Path, server: Server) -> bool:
    environs = []
    base = _environ(folder / "small", server, "first")
    for number in range(ACCOUNTS):
        environ = {**base, "CONNECTOR_ACCOUNT": f"agency{number}"}
        work = Warehouse(_settings(environ, folder).folder)
        work.prepare()
        _fill(work.work, SMALL + number)
        environs.append(environ)
    with Publishers() as publishers:
        # The forty are known to nobody before: all of it is written.
        began = time.perf_counter()
        publishers.begin([environs[n::PROCESSES] for n in range(PROCESSES)])
        statuses = publishers.end()
    wall = time.perf_counter() - began
    expected = sum(SMALL + number for number in range(ACCOUNTS))
    with reading(LakehouseAccount.required(_settings(base, folder))) as lake:
        ((rows, keys),) = lake.execute(
            "SELECT count(*), count(DISTINCT (account, id)) FROM lake.landing.jobs"
        ).fetchall()
    is_met = set(statuses) == {0} and rows == keys == expected
    print(
        f"{ACCOUNTS} accounts by {PROCESSES} processes: {wall:.1f} s, local file and lake,"
        f" {wall / ACCOUNTS:.2f} s each; {rows:,} rows of {expected:,}"
        f" {'ok' if is_met else 'MISSED'}"
    )
    return is_met


def _environ(folder: Path, server: Server, account: str) -> dict[str, str]:
    return {
        "CONNECTOR_DATA_DIR": str(folder / "data"),
        "CONNECTOR_ACCOUNT": account,
        "CONNECTOR_MODELS": "off",
        "CONNECTOR_LAKEHOUSE": server.address(server.new_database()),
        "CONNECTOR_LAKEHOUSE_DATA": str(folder / "lake"),
    }


def _settings(environ: dict[str, str], folder: Path) -> Settings:
    return load_settings({}, environ, folder)


def _fill(work: Path, rows: int) -> None:
    values = f"SELECT n::VARCHAR AS id, 'Job ' || n AS title FROM range({rows}) AS t(n)"
    with opened(work) as connection:
        connection.execute(f"INSERT INTO landing.jobs BY NAME {values}")


if __name__ == "__main__":
    sys.exit(main())

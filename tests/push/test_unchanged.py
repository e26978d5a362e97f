"""Rows that change nothing cost nothing."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path

from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.engine.bookmark import Stream
from connector.engine.commands import Commit, Found
from connector.pushes.dry_run import Asked
from connector.pushes.push import Manner, push
from connector.sandbox.server import Sandbox
from connector.warehouse.warehouse import Warehouse
from tests.push.pushing import CANDIDATES, Pusher, writes

ROWS, CHANGED = 500, 50


def test_of_500_updates_450_change_nothing(tmp_path: Path) -> None:
    """A PUT for each row that differs from what is landed, and its read before; no request for the
    others, which are called unchanged.
    """
    with Sandbox(counts={"candidates": ROWS}) as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        landed = sandbox.store.records("candidates")
        at = pusher.time.ours()
        found = Commit(records=tuple(Found(Candidate(dict(each)), at) for each in landed.values()))
        Warehouse(pusher.settings.folder).commit(Stream(CATALOG["candidates"]), found, "run", at)
        path = tmp_path / "people.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("id", "last_name", "employment_type"))
            for place, (id, each) in enumerate(landed.items()):
                name = each["last_name"] + ("-Orr" if place % (ROWS // CHANGED) == 0 else "")
                writer.writerow((id, name, each["employment_type"]))
        asked = Asked("candidates", path, "update")
        manner = Manner(applies=True, pulls=False, reports=False)
        (report,) = asyncio.run(push(pusher.settings, [asked], manner))

        assert {"updated": CHANGED, "unchanged": ROWS - CHANGED} == report.counts
        put = {each.path.removeprefix(f"{CANDIDATES}/") for each in sandbox.log}
        assert (CHANGED, CHANGED) == (len(put), len(writes(sandbox)))
        assert {"GET": CHANGED, "PUT": CHANGED} == {
            method: sum(each.method == method for each in sandbox.log) for method in ("GET", "PUT")
        }
        assert 2 * CHANGED == len(sandbox.log) == report.preview.requests

"""Unchanged rows send no write, and each row is checked once."""

from __future__ import annotations

import asyncio
import csv
import unicodedata
from pathlib import Path

from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.catalog.field_comparison import is_same_value
from connector.pushes.preview import PushFile
from connector.pushes.report import PushRunOptions, push
from connector.sandbox.server import Sandbox
from connector.warehouse.stream import Commit, FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse
from tests.pushes.pushing import CANDIDATES, Pusher, list_writes

ROWS, CHANGED = 500, 50


def test_updates_without_a_difference_send_no_write(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": ROWS}) as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        landed = sandbox.store.records("candidates")
        at = pusher.time.local_now()
        found = Commit(
            records=tuple(FoundDetail(Candidate(dict(each)), at) for each in landed.values())
        )
        Warehouse(pusher.settings.folder).commit(Stream(CATALOG["candidates"]), found, "run", at)
        path = tmp_path / "people.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("id", "last_name", "employment_type"))
            for place, (id, each) in enumerate(landed.items()):
                name = each["last_name"] + ("-Orr" if place % (ROWS // CHANGED) == 0 else "")
                writer.writerow((id, name, each["employment_type"]))
        push_file = PushFile("candidates", path, "update")
        manner = PushRunOptions(applies=True, pulls=False, reports=False)
        report = asyncio.run(push(pusher.settings, push_file, manner))

        assert {"updated": CHANGED, "unchanged": ROWS - CHANGED} == report.counts
        put = {each.path.removeprefix(f"{CANDIDATES}/") for each in sandbox.log}
        assert (CHANGED, CHANGED) == (len(put), len(list_writes(sandbox)))
        assert {"GET": CHANGED, "PUT": CHANGED} == {
            method: sum(each.method == method for each in sandbox.log) for method in ("GET", "PUT")
        }
        assert 2 * CHANGED == len(sandbox.log) == report.preview.requests


def test_texts_in_different_unicode_normal_forms_are_equal() -> None:
    name = CATALOG["candidates"].field("last_name")
    decomposed = unicodedata.normalize("NFD", "Müller")

    assert decomposed != "Müller"
    assert is_same_value(name, "Müller", decomposed)
    assert is_same_value(name, decomposed, "Müller")
    assert not is_same_value(name, "Müller", "Muller")
    content = CATALOG["content_items"].field("fields")
    assert is_same_value(content, {"author": "Müller"}, {"author": decomposed})

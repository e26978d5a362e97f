"""Rows that change nothing cost nothing, and each row is checked once."""

from __future__ import annotations

import asyncio
import csv
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.catalog.field_comparison import is_same
from connector.pushes import dry_run
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushRunOptions, push
from connector.sandbox.server import Sandbox
from connector.spreadsheet import check
from connector.spreadsheet.check import CheckedRow
from connector.spreadsheet.problems import SheetRow
from connector.warehouse.bookmark import Stream
from connector.warehouse.pull_commands import Commit, FoundDetail
from connector.warehouse.warehouse import Warehouse
from tests.pushes.pushing import CANDIDATES, Pusher, create, writes

ROWS, CHANGED = 500, 50


def test_of_500_updates_450_change_nothing(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": ROWS}) as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        landed = sandbox.store.records("candidates")
        at = pusher.time.ours()
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
        asked = PushFile("candidates", path, "update")
        manner = PushRunOptions(applies=True, pulls=False, reports=False)
        (report,) = asyncio.run(push(pusher.settings, [asked], manner))

        assert {"updated": CHANGED, "unchanged": ROWS - CHANGED} == report.counts
        put = {each.path.removeprefix(f"{CANDIDATES}/") for each in sandbox.log}
        assert (CHANGED, CHANGED) == (len(put), len(writes(sandbox)))
        assert {"GET": CHANGED, "PUT": CHANGED} == {
            method: sum(each.method == method for each in sandbox.log) for method in ("GET", "PUT")
        }
        assert 2 * CHANGED == len(sandbox.log) == report.preview.requests


def test_each_row_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is new to the journal is checked once, after the pull, against what that landed;
    the same file again once as well, and since all of it is applied, no request is sent at all.
    """
    checked: list[int] = []
    check_rows = check.check

    def counted(rows: Iterable[SheetRow], *more: Any, **named: Any) -> Iterator[CheckedRow]:
        for row in check_rows(rows, *more, **named):
            checked.append(row.row.number)
            yield row

    monkeypatch.setattr(dry_run, "check", counted)
    path = tmp_path / "people.csv"
    people = [f"Ann,Lee,p{n}@people.example,permanent" for n in range(3)]
    path.write_text("\n".join(("first_name,last_name,email,employment_type", *people, "")))
    with Sandbox() as sandbox:
        sandbox.store.create("candidates", {**create(9).fields, "email": "p1@people.example"})
        settings, asked = Pusher(sandbox, tmp_path).settings, PushFile("candidates", path, "create")
        manner = PushRunOptions(applies=True, reports=False)
        (first,) = asyncio.run(push(settings, [asked], manner))
        assert ({"created": 2, "duplicate": 1}, [2, 3, 4]) == (first.counts, checked)
        path.write_text(path.read_text().replace(people[1] + "\n", ""))
        asyncio.run(push(settings, [asked], manner))
        checked.clear()
        (again,) = asyncio.run(push(settings, [asked], manner))

    assert ({"unchanged": 2}, [2, 3], 0) == (again.counts, checked, again.requests)


def test_the_same_letters_in_two_encodings_are_equal() -> None:
    name = CATALOG["candidates"].field("last_name")
    decomposed = unicodedata.normalize("NFD", "Müller")

    assert decomposed != "Müller"
    assert is_same(name, "Müller", decomposed)
    assert is_same(name, decomposed, "Müller")
    assert not is_same(name, "Müller", "Muller")
    content = CATALOG["content_items"].field("fields")
    assert is_same(content, {"author": "Müller"}, {"author": decomposed})

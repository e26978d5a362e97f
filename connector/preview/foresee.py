"""Foreseeing a file: read, mapped, checked, and held against what earlier pushes have applied."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice

from connector.engine.push_plan import fingerprint
from connector.errors import Misused
from connector.ledger import Ledger, terms_of
from connector.ledger.erasures import Erasures
from connector.ledger.journal import Journal
from connector.preview.asked import Asked
from connector.preview.foreseen import ADD_COLUMNS, Foreseen, Preview
from connector.preview.planned import Ahead, Planned
from connector.settings import Settings
from connector.spreadsheet.aim import Aim, aim
from connector.spreadsheet.check import BATCH_ROWS, Checked, check
from connector.spreadsheet.identity import folded
from connector.spreadsheet.mapping import ColumnMap, map_headings
from connector.spreadsheet.table import Table, open_table
from connector.suppression import Suppressed
from connector.warehouse import Warehouse
from connector.warehouse.file import make_folder
from connector.warehouse.lookups import Lookups

APPLIED = frozenset(("created", "updated", "converted"))
"""Outcomes of rows whose write was applied as it was meant."""


async def preview(
    settings: Settings,
    asked: Asked,
    *,
    again: bool = False,
    earlier: Sequence[Planned] = (),
    keeps_tasks: bool = False,
) -> Preview:
    """Read the file and foresee what pushing it would do. Sends nothing.

    `again` writes even what an earlier push has applied. `earlier` are the files that are pushed
    before it: what they would create is taken for landed. `keeps_tasks` keeps what would be sent,
    for `Preview.plan` and `Preview.planned`. Raises a `SpreadsheetError`, `Misused` or
    `UnknownName` for what cannot be meant, and `WarehouseError` where the files cannot be read.
    """
    return await asyncio.to_thread(_preview, settings, asked, again, earlier, keeps_tasks)


def _preview(
    settings: Settings, asked: Asked, again: bool, earlier: Sequence[Planned], keeps_tasks: bool
) -> Preview:
    table = open_table(
        asked.path, sheet=asked.sheet, encoding=asked.encoding, delimiter=asked.delimiter
    )
    make_folder(settings.folder)
    with Ledger(settings.folder) as ledger:
        # First of all: whoever was erased is known before anything of theirs is read.
        Erasures(ledger).list_receipted()
    warehouse = Warehouse(settings.folder)
    warehouse.prepare()
    foreseen = Foreseen(settings.folder, keeps_tasks=keeps_tasks)
    with Lookups(warehouse, folded) as landing, Ledger(settings.folder) as ledger:
        lookups = Ahead(landing, earlier) if earlier else landing
        target = aim(
            asked.resource,
            asked.mode,
            lookups,
            match=asked.match,
            clear=asked.clear,
            parent=asked.parent,
        )
        columns = map_headings(table.headings, target, saved=asked.saved, ignored=asked.ignored)
        _refuse_unmapped(columns, target, table)
        journal = Journal(ledger)
        # What was never pushed needs no fingerprints, which cost a quarter of the time.
        looks_back = not again and journal.knows(asked.resource)
        checked = check(table, columns, target, lookups, Suppressed.of(settings.folder))
        _foresee(foreseen, checked, journal if looks_back else None)
        month = ledger.month(terms_of(settings), datetime.now(UTC).date())
        limit = ledger.server().limit_per_minute
        proven_at = landing.proven_at(asked.resource)
    return Preview(
        asked=asked,
        table=table,
        columns=columns,
        rows=foreseen,
        pulled_at=proven_at.isoformat() if proven_at else None,
        month=month,
        limit_per_minute=limit,
    )


def _refuse_unmapped(columns: ColumnMap, target: Aim, table: Table) -> None:
    """Refuse once what would be wrong with every row: no column of the file is known, or one that
    every create needs is not there.
    """
    resource, found = target.resource.name, ", ".join(table.headings)
    if not columns.columns:
        allowed = ", ".join(slot.column for slot in target.slots)
        raise Misused(
            f"{table.path}: no heading is a field of {resource}: {found}",
            action=f"Name the fields with --map FILE, or head the columns: {allowed}.",
        )
    if columns.missing and target.mode == "create":
        raise Misused(
            f"{table.path}: creating {resource} needs {', '.join(columns.missing)}, and no heading"
            f" is that: {found}",
            action=ADD_COLUMNS,
        )


def _foresee(foreseen: Foreseen, checked: Iterable[Checked], journal: Journal | None) -> None:
    """Take in the rows, a batch at a time; `journal` knows what was pushed before."""
    rows = iter(checked)
    while batch := list(islice(rows, BATCH_ROWS)):
        prints = {}
        if journal is not None:
            prints = {each.row.number: fingerprint(each.task) for each in batch if each.task}
        pushed = journal.pushed(prints.values()) if journal is not None and prints else {}
        for each in batch:
            earlier = pushed.get(prints.get(each.row.number, ""))
            is_pushed = earlier is not None and earlier.outcome in APPLIED
            id = earlier.record_id if earlier is not None else None
            foreseen.add(each, id, is_pushed=is_pushed)

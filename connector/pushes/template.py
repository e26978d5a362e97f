"""An empty table for somebody to fill in: every column that pushing a resource takes."""

from __future__ import annotations

from pathlib import Path

from connector.engine.push_states import Mode
from connector.errors import Misused
from connector.settings.model import Settings
from connector.spreadsheet.target_columns import folded, push_target
from connector.spreadsheet.template_sheet import template_columns, write_template
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.warehouse import Warehouse


def template(
    settings: Settings,
    resource: str,
    path: Path,
    *,
    mode: Mode = "create",
    match: tuple[str, ...] = (),
    parent: str | None = None,
) -> int:
    """Write the template, csv or xlsx by its name, and return how many columns it has.

    `parent` is the content type of content items, which must have been pulled. Raises `Misused`
    for a file that is there, `UnknownName`, `SpreadsheetError`, `WarehouseError`.
    """
    if path.exists():
        raise Misused(
            f"{path} is there already, and may be filled in", action="Name another file with --out."
        )
    warehouse = Warehouse(settings.folder)
    if parent is not None:
        warehouse.prepare()
    with WarehouseLookups(warehouse, folded) as lookups:
        target = push_target(resource, mode, lookups, match=match, parent=parent)
    columns = template_columns(target)
    write_template(path, columns)
    return len(columns)

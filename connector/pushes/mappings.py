"""Column mappings that are remembered for the next file with the same headings.

A mapping is saved in the data folder if the user chose any of it. Names that the user gave to users
and lead statuses are added to the seeds of the models.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from connector.atomic_files import write_atomically
from connector.settings.folders import MAPS_FOLDER, SEEDS_FOLDER
from connector.spreadsheet.headings import normalized_heading
from connector.spreadsheet.mapping import ColumnMap, to_saved_map
from connector.spreadsheet.mapping_file import SavedMap, load_map, save_map, with_options
from connector.warehouse.file import make_folder

_SEEDS = {
    "people": (("assigned_to", "account_manager_id"), "team"),
    "lead_statuses": (("lead_status_id",), "outcome"),
}
"""By seed: the fields whose ids it names, and its third column."""


def load_remembered(
    folder: Path, resource: str, headings: Sequence[str], given: SavedMap | None
) -> tuple[SavedMap | None, str | None]:
    """Return the mapping for a file's columns: the given one, or that of the last file.

    The last file with the same headings counts if the given mapping maps no columns. Then the
    second value is a notice for users; otherwise it is None.
    """
    is_given = given is not None and (given.columns or given.ignored)
    path = _path(folder, resource, headings)
    if is_given or not path.exists():
        return given, None
    remembered = load_map(path)
    if given is not None:
        constants = {**remembered.constants, **given.constants}
        remembered = with_options(replace(remembered, constants=constants), given.options)
    return remembered, (
        f"The columns are matched as in the last file with the same headings (column mapping: "
        f"{path}). Use --mapping none to ignore this mapping."
    )


def remember(
    folder: Path, headings: Sequence[str], columns: ColumnMap, given: SavedMap | None
) -> None:
    """Save the column mapping for the next file with these headings, if the user chose any of it.

    Raises a `WarehouseError`.
    """
    is_decided = any(each.match_kind == "given" for each in columns.columns)
    if is_decided or columns.ignored or columns.constants:
        path = _path(folder, columns.resource, headings)
        make_folder(path.parent)
        kept = replace(to_saved_map(columns), remarks={}, missing=())
        save_map(path, kept if given is None else replace(kept, options=given.options))
    for seed, (fields, third) in _SEEDS.items():
        names = {
            id: text
            for each in columns.columns
            if each.target.key in fields
            for text, id in each.options.values.items()
            if id
        }
        if names:
            _add_to_seed(folder / SEEDS_FOLDER / f"{seed}.csv", names, third)


def _path(folder: Path, resource: str, headings: Sequence[str]) -> Path:
    """Return the file that remembers the mapping for a resource and these headings."""
    layout = "\n".join(map(normalized_heading, headings)).encode()
    return folder / MAPS_FOLDER / f"{resource}-{hashlib.sha256(layout).hexdigest()[:16]}.toml"


def _add_to_seed(path: Path, names: Mapping[str, str], third: str) -> None:
    """Add names by id to the user's seed; known names are kept."""
    rows: list[dict[str, str]] = []
    if path.exists():
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    headings = list(rows[0]) if rows else ["id", "name", third]
    for id, name in names.items():
        row = next((each for each in rows if each["id"] == id), None)
        if row is None:
            outcome = {"outcome": "open"} if "outcome" in headings else {}
            rows.append({**dict.fromkeys(headings, ""), **outcome, "id": id, "name": name})
        elif not row.get("name"):
            row["name"] = name
    make_folder(path.parent)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, headings)
    writer.writeheader()
    writer.writerows(rows)
    with write_atomically(path) as file:
        file.write(text.getvalue().encode())

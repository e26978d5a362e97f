"""Column mappings that are remembered for the next file with the same headings.

A mapping is saved in the data folder if the user chose any of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from connector.settings.folders import MAPS_FOLDER
from connector.spreadsheet.headings import normalized_heading
from connector.spreadsheet.mapping import ColumnMap, to_saved_map
from connector.spreadsheet.mapping_file import SavedMap, load_map, save_map, with_options
from connector.warehouse.file import make_folder


def load_remembered(
    folder: Path, resource: str, headings: Sequence[str], given: SavedMap
) -> tuple[SavedMap, str | None]:
    """Return the mapping for a file's columns: the given one, or that of the last file.

    The last file with the same headings counts if the given mapping maps no columns. Then the
    second value is a notice for users; otherwise it is None.
    """
    is_given = given.columns or given.ignored
    path = _path(folder, resource, headings)
    if is_given or not path.exists():
        return given, None
    remembered = load_map(path)
    constants = {**remembered.constants, **given.constants}
    return with_options(replace(remembered, constants=constants), given.options), (
        f"The columns are matched as in the last file with the same headings (column mapping: "
        f"{path}). Use --mapping none to ignore this mapping."
    )


def remember(folder: Path, headings: Sequence[str], columns: ColumnMap, given: SavedMap) -> None:
    """Save the column mapping for the next file with these headings, if the user chose any of it.

    Raises a `WarehouseError`.
    """
    is_decided = any(each.match_kind == "given" for each in columns.columns)
    if is_decided or columns.ignored or columns.constants:
        path = _path(folder, columns.resource, headings)
        make_folder(path.parent)
        save_map(path, replace(to_saved_map(columns), comments=(), options=given.options))


def _path(folder: Path, resource: str, headings: Sequence[str]) -> Path:
    """Return the file that remembers the mapping for a resource and these headings."""
    layout = "\n".join(map(normalized_heading, headings)).encode()
    return folder / MAPS_FOLDER / f"{resource}-{hashlib.sha256(layout).hexdigest()[:16]}.toml"

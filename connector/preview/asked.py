"""One file to be pushed, and how it is to be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from connector.engine.task import Mode
from connector.spreadsheet.mapping_file import SavedMap


@dataclass(frozen=True, slots=True)
class Asked:
    """One file to be pushed, and how it is to be read.

    `match` are the fields by which rows find their records; `saved` is what a person decided
    about the columns; `clear` is the text that empties a field; `parent` is the content type of
    content items. `sheet`, `encoding` and `delimiter` are as `open_table` takes them.
    """

    resource: str
    path: Path
    mode: Mode
    match: tuple[str, ...] = ()
    saved: SavedMap | None = None
    ignored: tuple[str, ...] = ()
    clear: str | None = None
    parent: str | None = None
    sheet: str | None = None
    encoding: str | None = None
    delimiter: str | None = None

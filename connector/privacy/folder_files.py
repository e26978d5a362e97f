"""Files of an account's folder: tables, pages and others that hold somebody.

What the connector wrote itself, databases apart, and what was put into its inbox are here. Other
accounts' folders, Dagster's own, and what is compressed are not searched, and are named.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from connector.errors import SpreadsheetError, naming_file_errors
from connector.ledger.ledger import LEDGER_FILE
from connector.privacy.receipt import PersonPlace
from connector.report.page import REPORT_FILE
from connector.settings.layers import SEEDS_FOLDER
from connector.spreadsheet.persons import empty_rows, rows_about
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX
from connector.suppression.identifiers import KEY_FILE
from connector.suppression.person import Person
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE

_TABLES = (*TEXT_SUFFIXES, WORKBOOK_SUFFIX)
_CLOSED = (".parquet", ".zip", ".gz", ".bz2", ".xz", ".zst", ".7z", ".pdf", ".doc", ".docx", ".xls")
_OWN = (WORK_FILE, PUBLISHED_FILE, LEDGER_FILE, KEY_FILE)
_DAMAGED = f"{WORK_FILE}.damaged-"
_PACKED = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x1f\x8b", b"%PDF", b"PAR1")
_ENCODINGS = ("utf-8", "cp1252", "utf-16-le", "utf-16-be")


@dataclass(slots=True)
class InFiles:
    """What the folder's files hold of somebody.

    `parts` are those of workbooks that only a spreadsheet program can correct, `pages` are made
    anew from the published file, `logs` are of use to no program, `by_hand` are left to a person.
    """

    tables: dict[Path, int] = field(default_factory=dict)
    parts: list[tuple[Path, str]] = field(default_factory=list)
    pages: list[Path] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)
    by_hand: list[Path] = field(default_factory=list)
    not_searched: list[Path] = field(default_factory=list)

    def places(self, folder: Path) -> Iterator[PersonPlace]:
        """What can be cleaned, and parts of workbooks that cannot, as places."""
        held: list[tuple[Path, str | None, int]]
        held = [(path, None, rows) for path, rows in self.tables.items()]
        held += [(path, part, 1) for path, part in self.parts]
        held += [(path, None, 1) for path in (*self.pages, *self.logs)]
        for path, part, rows in held:
            yield PersonPlace(str(path.relative_to(folder)), part, rows)


AROUND_BYTES = 512
"""How much of a file is read on each side of what may be a person's: more than any writing has."""


def search(folder: Path, person: Person) -> InFiles:
    """Search the folder's files for somebody. Raises a `WarehouseError`."""
    found = InFiles()
    for path in _walk(folder, folder, found.not_searched):
        suffix = path.suffix.lower()
        if path.parent == folder and path.name.startswith(_DAMAGED):
            if _is_in_log(path, person):
                found.logs.append(path)
        elif path.parent == folder and path.name == REPORT_FILE:
            if _is_in_bytes(path, person):
                found.pages.append(path)
        elif suffix in _CLOSED:
            found.not_searched.append(path)
        elif _is_table(path, folder):
            _search_table(path, person, found)
        else:
            _search_bytes(path, person, found)
        if person.without(path.name) != path.name:
            found.by_hand.append(path)
    return found


def tables_in(folder: Path) -> Iterator[Path]:
    """Every table of the folder that may hold somebody. Raises a `WarehouseError`."""
    for path in _walk(folder, folder, []):
        if _is_table(path, folder):
            yield path


def clean(found: InFiles, person: Person) -> None:
    """Empty the rows of the tables, and remove the logs, but no pages.

    Raises a `WarehouseError`.
    """
    for path in found.tables:
        empty_rows(path, person)
    for path in found.logs:
        with naming_file_errors(path):
            path.unlink(missing_ok=True)


def _is_table(path: Path, folder: Path) -> bool:
    is_seed = SEEDS_FOLDER in path.relative_to(folder).parts
    return path.suffix.lower() in _TABLES and not is_seed


def _search_table(path: Path, person: Person, found: InFiles) -> None:
    try:
        table = rows_about(path, person)
    except SpreadsheetError:
        # Not a table after all, or one that nobody can read for certain.
        _search_bytes(path, person, found)
        return
    if table.rows:
        found.tables[path] = table.rows
    found.parts += [(path, part) for part in table.stuck]


def _search_bytes(path: Path, person: Person, found: InFiles) -> None:
    if _is_in_bytes(path, person):
        found.by_hand.append(path)
    elif _is_packed(path):
        found.not_searched.append(path)


def _is_packed(path: Path) -> bool:
    """Whether the file begins as one whose texts are compressed."""
    with naming_file_errors(path), path.open("rb") as file:
        return file.read(4).startswith(_PACKED)


def _is_in_bytes(path: Path, person: Person) -> bool:
    """Whether the file names the person in any of the usual encodings."""
    content = _bytes(path)
    lowered = content.lower()
    return any(
        person.is_named_in(html.unescape(content[start:end].decode(encoding, "replace")))
        for encoding in _ENCODINGS
        for start, end in _around(
            lowered, [each.encode(encoding, "ignore") for each in (*person.needles, *person.ids)]
        )
    )


def _around(content: bytes, needles: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    """Parts of a content, which may be large, that are near a needle."""
    spots = sorted(
        found.start() for each in needles if each for found in re.finditer(re.escape(each), content)
    )
    start = end = -1
    for spot in spots:
        if spot >= end:
            if end >= 0:
                yield start, end
            # A text of two bytes a letter begins where its needle's letters do.
            start = max(spot % 2, spot - AROUND_BYTES)
        end = spot + AROUND_BYTES
    if end >= 0:
        yield start, end


def _is_in_log(path: Path, person: Person) -> bool:
    """Whether bytes of the person may be in a log that was set aside.

    No word begins or ends in it, so that what only looks like the person counts.
    """
    content = _bytes(path).lower()
    return any(each.encode() in content for each in (*person.needles, *person.ids))


def _bytes(path: Path) -> bytes:
    with naming_file_errors(path):
        return path.read_bytes()


def _walk(folder: Path, root: Path, not_searched: list[Path]) -> Iterator[Path]:
    """The regular files below the folder that may be looked into, following no link."""
    with naming_file_errors(folder):
        entries = sorted(folder.iterdir())
    for path in entries:
        if path.is_symlink():
            not_searched.append(path)
        elif path.is_dir():
            if _is_elsewhere(path):
                not_searched.append(path)
            else:
                yield from _walk(path, root, not_searched)
        elif path.is_file() and not _is_own(path, root):
            yield path


def _is_own(path: Path, root: Path) -> bool:
    """Whether it is a database, its log, a key or a lock; not a log set aside."""
    if path.parent != root or path.name.startswith(_DAMAGED):
        return False
    return path.name.startswith(_OWN) or path.suffix == ".lock"


def _is_elsewhere(folder: Path) -> bool:
    """Whether the folder is another account's, or Dagster's."""
    names = (WORK_FILE, LEDGER_FILE, "dagster.yaml")
    return "dagster" in folder.name.lower() or any((folder / each).exists() for each in names)

"""Files in an account's folder that contain a person: tables, pages and others.

This covers files that the connector wrote, except databases, and files in its inbox. Folders of
other accounts, Dagster's folder and compressed files are not searched, and are reported.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from connector.errors import SpreadsheetError, convert_file_errors
from connector.ledger.ledger import LEDGER_FILE
from connector.ledger.person import KEY_FILE, Mention, Person
from connector.privacy.receipt import PersonPlace
from connector.report.page import REPORT_FILE
from connector.settings.layers import SEEDS_FOLDER
from connector.spreadsheet.persons import remove_rows, search_table
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE

_SPREADSHEET_SUFFIXES = (*TEXT_SUFFIXES, WORKBOOK_SUFFIX)
_UNSEARCHABLE_SUFFIXES = (
    ".parquet",
    ".zip",
    ".gz",
    ".bz2",
    ".xz",
    ".zst",
    ".7z",
    ".pdf",
    ".doc",
    ".docx",
    ".xls",
)
_INTERNAL_FILES = (WORK_FILE, PUBLISHED_FILE, LEDGER_FILE, KEY_FILE)
_DAMAGED = f"{WORK_FILE}.damaged-"
_COMPRESSED_STARTS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x1f\x8b", b"%PDF", b"PAR1")
_ENCODINGS = ("utf-8", "cp1252", "utf-16-le", "utf-16-be")


@dataclass(slots=True)
class FileMatches:
    """Files in an account's folder that contain a person, by the way to correct them.

    Attributes:
        spreadsheets: Number of the person's rows, by text file or workbook.
        mentions: Texts in rows of other people that name the person.
        pages: Reports, which are written again from the published file.
        logs: Damaged logs that were moved aside and are no longer needed.
        by_hand: Files of other formats, or named after the person, which the user must correct.
        not_searched: Compressed files, links and folders of other accounts.
    """

    spreadsheets: dict[Path, int] = field(default_factory=dict)
    mentions: list[Mention] = field(default_factory=list)
    pages: list[Path] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)
    by_hand: list[Path] = field(default_factory=list)
    not_searched: list[Path] = field(default_factory=list)

    @property
    def workbooks(self) -> list[Path]:
        """Workbooks with rows of the person. An erasure deletes the whole file."""
        return [path for path in self.spreadsheets if path.suffix.lower() == WORKBOOK_SUFFIX]

    def changed_places(self, folder: Path) -> Iterator[PersonPlace]:
        """Yield each file that an erasure changes or deletes, with its number of rows."""
        for path, rows in self.spreadsheets.items():
            yield PersonPlace(relative_path(path, folder), None, rows)
        for path in (*self.pages, *self.logs):
            yield PersonPlace(relative_path(path, folder), None, 1)


def relative_path(path: Path, folder: Path) -> str:
    """Return the path within the folder."""
    return str(path.relative_to(folder))


def search_files(folder: Path, person: Person) -> FileMatches:
    """Search an account's files, except databases, for a person. Raises a `WarehouseError`."""
    found = FileMatches()
    for path in _searchable_files(folder, folder, found.not_searched):
        suffix = path.suffix.lower()
        if path.parent == folder and path.name.startswith(_DAMAGED):
            if _log_may_name_person(path, person):
                found.logs.append(path)
        elif path.parent == folder and path.name == REPORT_FILE:
            if _names_person(path, person):
                found.pages.append(path)
        elif suffix in _UNSEARCHABLE_SUFFIXES:
            found.not_searched.append(path)
        elif _is_spreadsheet(path, folder):
            _search_spreadsheet(path, folder, person, found)
        else:
            _search_other_file(path, person, found)
        if person.is_named_in(path.stem) and path not in found.workbooks:
            found.by_hand.append(path)
    return found


def find_spreadsheets(folder: Path) -> Iterator[Path]:
    """Yield every spreadsheet in the folder, except seeds. Raises a `WarehouseError`."""
    for path in _searchable_files(folder, folder, []):
        if _is_spreadsheet(path, folder):
            yield path


def remove_from_files(found: FileMatches, person: Person) -> None:
    """Remove the person's rows from text files, and delete workbooks and logs."""
    for path in found.spreadsheets:
        if path not in found.workbooks:
            remove_rows(path, person)
    for path in (*found.workbooks, *found.logs):
        with convert_file_errors(path):
            path.unlink(missing_ok=True)


def _is_spreadsheet(path: Path, folder: Path) -> bool:
    """Return True for a text table or workbook, by its suffix, outside of the folder of seeds."""
    is_seed = SEEDS_FOLDER in path.relative_to(folder).parts
    return path.suffix.lower() in _SPREADSHEET_SUFFIXES and not is_seed


def _search_spreadsheet(path: Path, folder: Path, person: Person, found: FileMatches) -> None:
    """Add the person's rows and mentions in a spreadsheet to `found`.

    A file that cannot be read as a spreadsheet is searched like any other file.
    """
    try:
        table = search_table(path, person)
    except SpreadsheetError:
        # Not a table, or one that cannot be read reliably.
        _search_other_file(path, person, found)
        return
    if table.rows:
        found.spreadsheets[path] = table.rows
    if not table.rows or path.suffix.lower() != WORKBOOK_SUFFIX:
        found.mentions += [Mention(relative_path(path, folder), *place) for place in table.mentions]


def _search_other_file(path: Path, person: Person, found: FileMatches) -> None:
    """Add the file to `found.by_hand` if it names the person, or to `not_searched`."""
    if _names_person(path, person):
        found.by_hand.append(path)
    elif _is_compressed(path):
        found.not_searched.append(path)


def _is_compressed(path: Path) -> bool:
    """Return True if the file begins like a compressed, PDF, Parquet or Office file."""
    with convert_file_errors(path), path.open("rb") as file:
        return file.read(4).startswith(_COMPRESSED_STARTS)


def _names_person(path: Path, person: Person) -> bool:
    """Return True if the file's text, in any of the usual encodings, contains the person."""
    content = _read_bytes(path)
    return any(
        person.is_named_in(html.unescape(content.decode(encoding, "replace")))
        for encoding in _ENCODINGS
    )


def _log_may_name_person(path: Path, person: Person) -> bool:
    """Return True if a binary log contains an id, an address, a profile or a name of the person."""
    content = _read_bytes(path).lower()
    known = (*person.ids, *person.emails, *person.profiles, *person.names)
    return any(each.encode() in content for each in known)


def _read_bytes(path: Path) -> bytes:
    with convert_file_errors(path):
        return path.read_bytes()


def _searchable_files(folder: Path, root: Path, not_searched: list[Path]) -> Iterator[Path]:
    """Yield the files below the folder, except databases; add others to `not_searched`."""
    with convert_file_errors(folder):
        entries = sorted(folder.iterdir())
    for path in entries:
        if path.is_symlink():
            not_searched.append(path)
        elif path.is_dir():
            if _is_separate_folder(path):
                not_searched.append(path)
            else:
                yield from _searchable_files(path, root, not_searched)
        elif path.is_file() and not _is_internal_file(path, root):
            yield path


def _is_internal_file(path: Path, root: Path) -> bool:
    """Return True if it is a database, its log, a key or a lock, but not a moved log."""
    if path.parent != root or path.name.startswith(_DAMAGED):
        return False
    return path.name.startswith(_INTERNAL_FILES) or path.suffix == ".lock"


def _is_separate_folder(folder: Path) -> bool:
    """Return True if the folder belongs to another account or to Dagster."""
    names = (WORK_FILE, LEDGER_FILE, "dagster.yaml")
    return "dagster" in folder.name.lower() or any((folder / each).exists() for each in names)

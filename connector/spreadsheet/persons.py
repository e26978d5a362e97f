"""People in tables: finding the rows that name somebody, and taking them out.

A row stays where it is, so that the numbers of the others stay right. The cells of a row about the
person are emptied, but for those in which a report says what became of it; of a row about somebody
else those cells are scrubbed that name the person.
"""

from __future__ import annotations

import csv
import html
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from openpyxl import load_workbook

from connector.catalog.value import MARK
from connector.errors import DamagedSpreadsheet, naming
from connector.spreadsheet.source_file import INFLATED_BYTES_MAX, find, measure
from connector.spreadsheet.table import WORKBOOK_SUFFIX, open_table
from connector.system.atomic_files import replacing


class Naming(Protocol):
    """Somebody whom a text may name."""

    @property
    def needles(self) -> tuple[str, ...]:
        """Lower-case texts that must be in no part, however it is written."""

    def without(self, text: str) -> str:
        """The text with `MARK` wherever it names them."""


class PersonSearch(Naming, Protocol):
    """Somebody whom a table may be about."""

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Whether a row of these cells is about them."""


_KEPT = frozenset(("_row", "_outcome", "_code", "_id"))
"""Columns in which a report says what became of a row: an id alone names nobody."""


@dataclass(frozen=True, slots=True)
class InTable:
    """A person in a table: how many rows are about them, with how many of its other
    parts can be corrected; and the names of the parts that cannot.
    """

    rows: int
    stuck: tuple[str, ...] = ()


def rows_about(path: Path, who: PersonSearch) -> InTable:
    """The person in the table. Raises a `SpreadsheetError` for another file."""
    if path.suffix.lower() == WORKBOOK_SUFFIX:
        return _in_workbook(path, who, writes=False)
    return InTable(_in_text(path, who, writes=False))


def empty_rows(path: Path, who: PersonSearch) -> int:
    """Take the person out of the table, and return how many rows named them.

    A workbook's other parts are corrected as well. The file keeps its place, encoding and
    permissions. Raises as `rows_about` does, and a `WarehouseError`.
    """
    if path.suffix.lower() == WORKBOOK_SUFFIX:
        return _in_workbook(path, who, writes=True).rows
    return _in_text(path, who, writes=True)


def _in_text(path: Path, who: PersonSearch, *, writes: bool) -> int:
    """Count the rows that name the person; write what remains, if that `writes`."""
    table = open_table(path)
    assert table.encoding is not None, path
    try:
        content = path.read_bytes()
        # The mark at the beginning stays, where there is one.
        has_mark = table.encoding == "utf-8" and content.startswith(b"\xef\xbb\xbf")
        encoding = "utf-8-sig" if has_mark else table.encoding
        text = io.StringIO(content.decode(encoding), newline="")
    except OSError as error:
        raise naming(path, error) from error
    lines = list(csv.reader(text, delimiter=table.delimiter or ","))
    kept = _report_places(lines)
    left = [_left(line, kept, who) for line in lines]
    emptied = sum(one != other for one, other in zip(left, lines, strict=True))
    if writes and emptied:
        made = io.StringIO(newline="")
        csv.writer(made, delimiter=table.delimiter or ",", lineterminator="\r\n").writerows(left)
        _put(path, made.getvalue().encode(encoding))
    return emptied


def _report_places(lines: Sequence[Sequence[str]]) -> list[int]:
    return [index for index, each in enumerate(lines[0] if lines else ()) if each in _KEPT]


def _left(line: Sequence[str], kept: Sequence[int], who: PersonSearch) -> list[str]:
    is_about = who.is_in_row(line)
    return [
        each if index in kept else "" if is_about else who.without(each)
        for index, each in enumerate(line)
    ]


def _put(path: Path, content: bytes) -> None:
    """Write the file anew in its place, with the permissions that it had."""
    try:
        with replacing(path, path.stat().st_mode & 0o777) as file:
            file.write(content)
    except OSError as error:
        raise naming(path, error) from error


# -- Rows of workbooks -----------------------------------------------------------------------------


def _in_workbook(path: Path, who: PersonSearch, *, writes: bool) -> InTable:
    """Count the rows and other parts that name the person, in every sheet."""
    source = find(path)
    measure(source)
    with source.open() as file:
        content = file.read()
    rows, left = _without_rows(content, who, writes=writes)
    # Sheets that are written anew have lost what their rows named.
    found = look(left, who, skips_cells=bool(rows) and not writes)
    if writes and (rows or found.cleaned):
        _put(path, replace_parts(left, found.cleaned))
    return InTable(rows + len(found.cleaned), found.stuck)


def _without_rows(content: bytes, who: PersonSearch, *, writes: bool) -> tuple[int, bytes]:
    """The number of rows about the person, and the workbook, changed if `writes`."""
    try:
        workbook = load_workbook(io.BytesIO(content), read_only=not writes)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # The library has no error of its own for a workbook that lacks a part.
        raise DamagedSpreadsheet(f"the workbook is damaged: {error}") from error
    emptied = 0
    try:
        for sheet in workbook.worksheets:
            if not writes:
                # What a sheet says of its size may leave cells out.
                sheet.reset_dimensions()
            kept: list[int] | None = None
            for row in sheet.iter_rows():
                texts = ["" if cell.value is None else str(cell.value) for cell in row]
                kept = _report_places([texts]) if kept is None else kept
                left = _left(texts, kept, who)
                if left != texts:
                    emptied += 1
                    if writes:
                        _empty_cells(row, kept if who.is_in_row(texts) else None, texts, left)
        if writes and emptied:
            made = io.BytesIO()
            workbook.save(made)
            content = made.getvalue()
    finally:
        workbook.close()
    return emptied, content


def _empty_cells(
    row: Sequence[Any], kept: Sequence[int] | None, texts: Sequence[str], left: Sequence[str]
) -> None:
    """Write what remains of a row; one about the person loses its notes as well."""
    for index, (cell, text, remains) in enumerate(zip(row, texts, left, strict=True)):
        if remains != text or (kept is not None and index not in kept):
            cell.value = remains or None
            cell.comment = None
            cell.hyperlink = None


# -- Parts of workbooks ----------------------------------------------------------------------------
# Properties, sheet names, comments, headers and shapes may name somebody as well. A workbook is a
# zip of XML. Each text and each attribute of it that names somebody gets a mark, and everything
# else stays byte for byte. A part that is no XML cannot be corrected here, and is named.


_BARE = MARK.strip("[]")
"""Mark in names and formulas, which take no brackets: a sheet keeps its name in every formula."""

_SHEET_NAME_CHARACTERS_MAX = 31

_XML = (".xml", ".rels", ".vml")
_CELLS = re.compile(r"xl/(?:worksheets/[^/]+|sharedStrings)\.xml", re.IGNORECASE)
_ENDS = ("Header", "Footer")
_WORKBOOK = "xl/workbook.xml"
_HEADERS = frozenset(f"{page}{end}" for page in ("odd", "even", "first") for end in _ENDS)
_CODE = re.compile(r"(&(?:\"[^\"]*\"|\d+|[A-Z]))")
_ESCAPED_CODE = re.compile(r"&amp;(?:&quot;.*?&quot;|\"[^\"]*\"|\d+|[A-Z])")
_FORMULAS = frozenset(("f", "definedName", "formula", "formula1", "formula2"))
_TOKEN = re.compile(
    r"<!\[CDATA\[.*?\]\]>|<!--.*?-->|<\?.*?\?>|<(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>|[^<]+", re.DOTALL
)
_TAG = re.compile(r"<(?:[\w.-]+:)?([\w.-]+)")
_ATTRIBUTE = re.compile(r"(=\s*)(?:\"([^\"]*)\"|'([^']*)')")
_SHEET = re.compile(r"<(?:[\w.-]+:)?sheet\s[^>]*?\bname=(?:\"([^\"]*)\"|'([^']*)')")
_LOOKS = re.compile(r"<(?P<name>(?:[\w.-]+:)?rPr)\b(?:[^>]*/>|.*?</(?P=name)>)", re.DOTALL)
_HAS_RUNS = re.compile(r"<(?:[\w.-]+:)?r[\s>]")
_RUN = re.compile(r"</?(?:[\w.-]+:)?(?:r|t)(?:\s[^>]*)?>")
_ANY_TAG = re.compile(r"<[^>]*>")
_ZIP = b"PK\x03\x04"
_DEPTH_MAX = 3


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a workbook that name somebody.

    `cleaned` has the new bytes of those that can be corrected, and `stuck` the names of those that
    name them even then.
    """

    cleaned: Mapping[str, bytes] = field(default_factory=dict)
    stuck: tuple[str, ...] = ()


def look(workbook: bytes, who: Naming, *, skips_cells: bool = False) -> Parts:
    """Look for somebody in every part of a workbook, which has been measured.

    The sheets and their texts are left out where that `skips_cells`. Raises `DamagedSpreadsheet`.
    """
    cleaned: dict[str, bytes] = {}
    stuck: list[str] = []
    with _opened(workbook) as archive:
        for name in archive.namelist():
            if skips_cells and _CELLS.fullmatch(name):
                continue
            content = archive.read(name)
            if _names(name, who):
                # Other parts refer to it by its name, so that it must keep that.
                stuck.append(name)
            elif not name.lower().endswith(_XML):
                stuck += [name] if _is_named_in(content, who) else []
            else:
                left, is_stuck = _corrected(content, who)
                cleaned |= {name: left} if left != content else {}
                stuck += [name] if is_stuck else []
    if not _are_sheets_apart(cleaned.get(_WORKBOOK, b"")):
        stuck, cleaned = sorted({*stuck, *cleaned}), {}
    return Parts(cleaned, tuple(map(who.without, stuck)))


def replace_parts(workbook: bytes, parts: Mapping[str, bytes]) -> bytes:
    """The workbook with these parts in place of its own. Raises `DamagedSpreadsheet`."""
    made = io.BytesIO()
    with _opened(workbook) as archive, zipfile.ZipFile(made, "w") as written:
        for member in archive.infolist():
            content = parts.get(member.filename)
            written.writestr(member, archive.read(member) if content is None else content)
    return made.getvalue()


def _opened(workbook: bytes) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(io.BytesIO(workbook))
    except zipfile.BadZipFile as error:
        raise DamagedSpreadsheet(f"the workbook is damaged: {error}") from error


def _names(text: str, who: Naming) -> bool:
    return who.without(text) != text


def _corrected(content: bytes, who: Naming) -> tuple[bytes, bool]:
    """The XML without the person, and whether it names them even then."""
    decoded = _decoded(content)
    if decoded is None:
        return content, _is_named_in(content, who)
    text, encoding = decoded
    # One look at all of it is fast, and most parts name nobody.
    if not _is_in_markup(text, who):
        return content, _is_in_runs(text, who)
    text = "".join(_tokens(text, who))
    return text.encode(encoding), _is_in_markup(text, who) or _is_in_runs(text, who)


def _decoded(content: bytes) -> tuple[str, str] | None:
    """The XML as text, with its encoding; None where it is neither UTF-8 nor UTF-16."""
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    try:
        return content.decode(encoding), encoding
    except UnicodeDecodeError:
        return None


def _tokens(text: str, who: Naming) -> Iterator[str]:
    """The XML's tokens, with a mark in those that name the person."""
    inside = ""
    for token in _TOKEN.findall(text):
        if token.startswith(("<!", "<?")):
            yield who.without(token)
        elif token.startswith("<"):
            found = _TAG.match(token)
            inside = "" if found is None else found[1]
            yield _ATTRIBUTE.sub(lambda each: _attribute(each, who), token)
        else:
            value = html.unescape(token)
            # Codes of a header's layout stand in its text and touch its words.
            words = _CODE.split(value) if inside in _HEADERS else [value]
            left = "".join(map(who.without, words))
            shown = left.replace(MARK, _BARE) if inside in _FORMULAS else left
            yield token if left == value else html.escape(shown, quote=False)


def _attribute(found: re.Match[str], who: Naming) -> str:
    value = html.unescape(found[2] if found[2] is not None else found[3])
    left = who.without(value)
    return found[0] if left == value else f'{found[1]}"{html.escape(left.replace(MARK, _BARE))}"'


def _is_in_runs(text: str, who: Naming) -> bool:
    """Whether several runs of one text name the person together."""
    if not _HAS_RUNS.search(text):
        return False
    return _is_in_text(_ANY_TAG.sub("\n", _RUN.sub("", _LOOKS.sub("", text))), who)


def _is_in_markup(text: str, who: Naming) -> bool:
    """Whether one text or one attribute of the XML names the person."""
    has_codes = any(each in text for each in _HEADERS)
    return _is_in_text(text, who) or (has_codes and _is_in_text(_ESCAPED_CODE.sub("\n", text), who))


def _is_in_text(text: str, who: Naming) -> bool:
    text = html.unescape(text)
    return _names(text, who) or any(each in text.lower() for each in who.needles)


def _are_sheets_apart(workbook: bytes) -> bool:
    """Whether a corrected workbook's sheets have names that a workbook can have."""
    found = _SHEET.findall(workbook.decode("utf-8", "replace"))
    names = [html.unescape(one or other).casefold() for one, other in found]
    is_long = any(len(each) > _SHEET_NAME_CHARACTERS_MAX for each in names)
    return len(set(names)) == len(names) and not is_long


def _is_named_in(content: bytes, who: Naming, depth: int = 0) -> bool:
    """Whether a part of another kind names the person, packed files among them.

    Parts that are packed beyond measure count as if they did.
    """
    if content.startswith(_ZIP):
        if depth == _DEPTH_MAX:
            return True
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                if sum(each.file_size for each in archive.infolist()) > INFLATED_BYTES_MAX:
                    return True
                inner = (archive.read(each) for each in archive.infolist())
                return any(_is_named_in(each, who, depth + 1) for each in inner)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError):
            return True
    return any(_is_in_text(text, who) for text in _texts(content))


def _texts(content: bytes) -> Iterable[str]:
    """The bytes as text in the usual encodings."""
    yield content.decode("utf-8", "ignore")
    yield content.decode("cp1252", "ignore")
    for start in (0, 1):
        yield content[start:].decode("utf-16-le", "ignore")

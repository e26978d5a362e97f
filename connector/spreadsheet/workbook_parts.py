"""Persons in the parts of a workbook: its properties, sheet names, comments, headers, shapes.

A workbook is a zip of XML. Each text and each attribute of it that names somebody gets a mark, and
everything else stays byte for byte. A part that is no XML cannot be corrected here, and is named.
"""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from connector.catalog.value import MARK
from connector.errors import DamagedSpreadsheet
from connector.spreadsheet.source_file import INFLATED_BYTES_MAX

BARE = MARK.strip("[]")
"""Mark in names and formulas, which take no brackets: a sheet keeps its name in every formula."""

SHEET_NAME_CHARACTERS_MAX = 31

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


class Naming(Protocol):
    """Somebody whom a text may name."""

    @property
    def needles(self) -> tuple[str, ...]:
        """Lower-case texts that must be in no part, however it is written."""

    def without(self, text: str) -> str:
        """The text with `MARK` wherever it names them."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a workbook that name somebody: `cleaned` has the new bytes of those that can be
    corrected, and `stuck` the names of those that name them even then.
    """

    cleaned: Mapping[str, bytes] = field(default_factory=dict)
    stuck: tuple[str, ...] = ()


def look(workbook: bytes, who: Naming, *, skips_cells: bool = False) -> Parts:
    """Look for somebody in every part of a workbook; the sheets and their texts are left out where
    that `skips_cells`. The workbook has been measured. Raises `DamagedSpreadsheet`.
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


# -- XML ------------------------------------------------------------------------------------------


def _corrected(content: bytes, who: Naming) -> tuple[bytes, bool]:
    """The XML without the person, the same bytes where it does not name them; and whether it names
    them even then.
    """
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
    """The XML as text, with its encoding; None where it is in neither of those that XML must be."""
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    try:
        return content.decode(encoding), encoding
    except UnicodeDecodeError:
        return None


def _tokens(text: str, who: Naming) -> Iterator[str]:
    """The XML's tokens, with a mark in those texts and attributes that name the person."""
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
            shown = left.replace(MARK, BARE) if inside in _FORMULAS else left
            yield token if left == value else html.escape(shown, quote=False)


def _attribute(found: re.Match[str], who: Naming) -> str:
    value = html.unescape(found[2] if found[2] is not None else found[3])
    left = who.without(value)
    return found[0] if left == value else f'{found[1]}"{html.escape(left.replace(MARK, BARE))}"'


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
    """Whether the sheets of a corrected workbook still have names that a workbook can have."""
    found = _SHEET.findall(workbook.decode("utf-8", "replace"))
    names = [html.unescape(one or other).casefold() for one, other in found]
    is_long = any(len(each) > SHEET_NAME_CHARACTERS_MAX for each in names)
    return len(set(names)) == len(names) and not is_long


# -- anything else --------------------------------------------------------------------------------


def _is_named_in(content: bytes, who: Naming, depth: int = 0) -> bool:
    """Whether a part of another kind names the person, packed files within it among them; what is
    packed beyond measure counts as if it did.
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

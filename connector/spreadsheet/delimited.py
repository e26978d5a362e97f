"""Delimited text (CSV and similar): its encoding, its delimiter and its rows.

Quoted cells may contain line breaks and delimiters; a quote in them is doubled. A row with a wrong
quote is refused, and reading goes on at the next line. Row numbers match the spreadsheet.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.errors import SpreadsheetError, UnknownName
from connector.spreadsheet.headings import (
    ROWS_SEARCHED,
    HeadingRows,
    QuoteDamage,
    Sheet,
    find_headings,
    has_report_headings,
    headings_of_one_line,
    normalized_heading,
)
from connector.spreadsheet.problems import FileQuestion

# -- Encoding --------------------------------------------------------------------------------------
# The encoding that the user gave; a byte order mark; UTF-8 if the whole file is valid UTF-8, which
# text in another encoding hardly ever is. Otherwise western letters of cp1252 are read, and for
# other letters the user chooses among three old encodings.

ENCODINGS = ("utf-8", "utf-16", "cp1252", "cp1250", "mac-roman")
"""Encodings that are detected or offered. The user can give any encoding that Python knows."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD_BYTES = 64 * 1024
_SAMPLES_MAX = 3
_BYTES_WORD = re.compile(rb"[0-9A-Za-z']*[\x80-\xff][0-9A-Za-z'\x80-\xff]*")
_SIGNS = "\u2018\u2019\u201a\u201c\u201d\u201e\u2013\u2014\u2026\u00a0·•™«»£€°§©®½¼¾²³"
_WESTERN = re.compile(
    rf"[\0-\x7f{_SIGNS}àáâäåæçèéêëìíîïñóôöøúüßœÀÁÂÄÅÆÇÈÉÊËÍÎÏÑÓÔÖØÚÜŒ]*"
).fullmatch
# A sign, a figure or a capital inside a word, or a word in another script.
_NO_WORD = re.compile(
    rf"[^\W\d_][{_SIGNS[0]}{_SIGNS[2:10]}{_SIGNS[11:]}][^\W\d_]|[£€][^\W\d_]|[^\W\d_][0-9]"
    r"|\u2018\Z|\A\u2019[a-z]|(?<![A-Za-z])[^\W\d_a-zA-Z]{4}|[a-z][À-Þ]"
).search


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text of a file, the name of its encoding, and what was assumed or must be asked."""

    text: str
    encoding: str | None
    notices: tuple[str, ...] = ()
    questions: tuple[FileQuestion, ...] = ()


def decode(path: Path, content: bytes, given: str | None) -> Decoded:
    """Return the text of the file.

    Raises `SpreadsheetError`, or `UnknownName` for an encoding that Python does not know.
    """
    codec = next((codec for mark, codec in _MARKS if content.startswith(mark)), "utf-8")
    if given is not None:
        try:
            name = codecs.lookup(given).name
            b"".decode(name)
        except (LookupError, ValueError):
            raise UnknownName("encoding", given, ENCODINGS) from None
        # A byte order mark is no letter of the first heading.
        codec = codec if name.startswith(codec.removesuffix("-sig")) else name
    elif _HAS_NULS(content[:_HEAD_BYTES]) and codec != "utf-16":
        message = f"{path} is no text, or UTF-16 without a byte order mark"
        raise SpreadsheetError(message, code="encoding_unknown")
    try:
        return Decoded(content.decode(codec), codec.removesuffix("-sig"))
    except UnicodeDecodeError as error:
        if given is None and codec == "utf-8":
            return _decode_old(content)
        line = content.count(b"\n", 0, error.start) + 1
        name = codec.removesuffix("-sig")
        reason = f"byte 0x{content[error.start]:02X} in line {line} is not valid {name}"
        raise SpreadsheetError(f"{path}: {reason}", code="encoding_unknown") from error


_HAS_NULS = re.compile(rb"(?s)(?:\0.){4}|(?:.\0){4}").search
"""Every second byte is NUL: ASCII text in UTF-16."""


def _decode_old(content: bytes) -> Decoded:
    """Return the text with western letters in cp1252, with a notice; else with a question."""
    words = list(dict.fromkeys(_BYTES_WORD.findall(content)))
    readings: dict[str, list[str]] = {}
    for codec in ENCODINGS[2:]:
        found = [each.decode(codec, "replace") for each in words]
        if not any("\ufffd" in each for each in found) and found not in readings.values():
            readings[codec] = found
    codec, first = next(iter(readings.items()))
    text = content.decode(codec)
    if codec == "cp1252" and all(_WESTERN(each) and not _NO_WORD(each) for each in first):
        shown = ", ".join(sorted(first, key=lambda each: not each.isalpha())[:_SAMPLES_MAX])
        notice = f"The file is not UTF-8 and is read as {codec}: {shown} (change with --encoding)."
        return Decoded(text, codec, (notice,))
    return Decoded(text, codec, (), (_encoding_question(readings),))


def _encoding_question(readings: Mapping[str, list[str]]) -> FileQuestion:
    columns = sorted(zip(*readings.values(), strict=True), key=lambda words: len({*words}) == 1)
    samples = zip(*columns[:_SAMPLES_MAX], strict=True)
    choices = tuple((codec, ", ".join(each)) for codec, each in zip(readings, samples, strict=True))
    shown = "; ".join(f"{words} (--encoding {codec})" for codec, words in choices)
    return FileQuestion(
        "encoding",
        f"the text is not UTF-8. It may be: {shown}",
        "Choose the correct one with --encoding, or name another encoding.",
        choices=choices,
    )


# -- Rows ------------------------------------------------------------------------------------------

_SPACED_QUOTE = re.compile(r'[,;\t|] +"').search
_WIDTH_CERTAIN = 4


def _read_rows(text: str, delimiter: str, headings: HeadingRows | None = None) -> Sheet:
    """Return all rows of the text, with other rows in cells below the `headings` refused."""
    found = Sheet(headings=headings or HeadingRows(()), delimiter=delimiter)
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text)
    if '"' not in text:
        found.rows = list(csv.reader(lines, delimiter=delimiter))
        return found
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    is_spaced = _SPACED_QUOTE(text[:_HEAD_BYTES]) is not None
    has_other_rows = _detect_other_rows(found.headings, delimiter)
    start = 0
    while start < len(lines):
        reader = csv.reader(
            lines[start:], delimiter=delimiter, strict=True, skipinitialspace=is_spaced
        )
        first, base = start, start
        try:
            for cells in reader:
                taken, first = lines[first : base + reader.line_num], base + reader.line_num
                is_below = headings is not None and len(found.rows) >= headings.first_row
                if len(taken) > 1 and is_below and has_other_rows(cells, taken):
                    row = len(found.rows) + 1
                    _refuse_lines(found, taken, ("quote_not_closed", row, row + len(taken) - 1))
                else:
                    found.rows.append(cells)
            return found
        except csv.Error as error:
            row = len(found.rows) + 1
            is_within = "expected after" in str(error)
            damage: QuoteDamage = ("quote_in_cell", row, row)
            if not is_within:
                damage = ("quote_not_closed", row, row)
            _refuse_lines(found, lines[first : first + 1], damage)
            start = first + 1
    return found


def _refuse_lines(found: Sheet, lines: Sequence[str], damage: QuoteDamage) -> None:
    """Add each line as a row, split at delimiters, in which quotes are ordinary characters."""
    for line in lines:
        found.damages[len(found.rows)] = damage
        found.rows.append(line.rstrip("\r\n").split(found.delimiter))


def _detect_other_rows(
    headings: HeadingRows, delimiter: str
) -> Callable[[Sequence[str], Sequence[str]], bool]:
    """Return a function that returns True if a wrong quote put other rows into a row's cells."""
    names, width = [*map(normalized_heading, headings.headings)], len(headings.filled)
    is_one_line = headings_of_one_line()
    one_line = [index for index, name in enumerate(names) if is_one_line.get(name)]
    email = next((index for index, name in enumerate(names) if "mail" in name), None)

    def has_other_rows(cells: Sequence[str], lines: Sequence[str]) -> bool:
        # A row that contains others has all its delimiters in its first line.
        if len(lines[0].split(delimiter)) < width:
            return False
        for cell in (cells[index] for index in one_line if index < len(cells)):
            if re.search("[\r\n]", cell) and ("@" in cell or delimiter in cell):
                return True
        if width < _WIDTH_CERTAIN or email is None:
            return False
        rows = (*csv.reader(lines[1:], delimiter=delimiter, quoting=csv.QUOTE_NONE),)
        quoted = (row for line in lines[1:] for row in csv.reader([line], delimiter=delimiter))
        return any(len(row) >= width and "@" in row[email] for row in (*rows, *quoted))

    return has_other_rows


# -- Delimiters ------------------------------------------------------------------------------------

DELIMITERS: Mapping[str, str] = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Delimiters that are tried and that the user can give, by name."""

_NAMES = {character: name for name, character in DELIMITERS.items()}
_SEPARATOR_LINE = re.compile(r"sep=(.?)\s*", re.IGNORECASE).fullmatch


def read_delimited(path: Path, text: str, delimiter: str | None, header_row: int | None) -> Sheet:
    """Return all rows of the text. What the user did not give is detected.

    Raises `SpreadsheetError` if no delimiter or several fit, or `UnknownName`.
    """
    if delimiter is None:
        character = _find_delimiter(path, text, header_row)
    else:
        character = DELIMITERS.get(delimiter.lower(), delimiter)
        if character not in _NAMES:
            raise UnknownName("delimiter", delimiter, DELIMITERS)
    return _read_rows(text, character, _headings_with(text, character, header_row))


def _find_delimiter(path: Path, text: str, header_row: int | None) -> str:
    """Return the delimiter with the most known headings, or the only one with several headings."""
    found = {each: _headings_with(text, each, header_row) for each in _NAMES}
    reports = [each for each, headings in found.items() if has_report_headings(headings.headings)]
    if reports:
        return reports[0]
    known = max(each.known_count for each in found.values())
    # Known headings do not result from chance.
    likely = [
        each
        for each, headings in found.items()
        if (headings.known_count == known if known > 1 else len(headings.headings) > 1)
    ]
    if len(likely) > 1:
        names = " and ".join(_NAMES[each] for each in likely)
        message = f"{path}: the headings can be separated by {names}"
        raise SpreadsheetError(message, code="delimiter_unknown")
    return likely[0] if likely else ","


def _headings_with(text: str, delimiter: str, header_row: int | None) -> HeadingRows:
    """Return the headings that result from this delimiter; a first line `sep=;` is skipped."""
    if header_row is not None:
        return find_headings(_read_rows(text, delimiter).rows, header_row)
    head = re.match(rf"(?:[^\r\n]*(?:\r\n|\r|\n|\Z)){{0,{ROWS_SEARCHED + 1}}}", text)
    assert head is not None
    # The head may end within a cell of several lines.
    rows = _read_rows(head[0], delimiter).rows
    if rows and _SEPARATOR_LINE(delimiter.join(rows[0])):
        found = find_headings(rows[1:])
        return HeadingRows(found.headings, found.index + 1, found.depth, found.known_count)
    return find_headings(rows)

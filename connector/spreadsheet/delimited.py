"""Delimited text (CSV and similar): its encoding, its delimiter and its rows.

Quoted cells may contain line breaks and delimiters; a quote in them is doubled. A row with a wrong
quote is refused, and reading goes on at the next line. Row numbers match the spreadsheet.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from connector.errors import EncodingUnknown, SpreadsheetError, UnknownName
from connector.spreadsheet.headings import (
    ROWS_SEARCHED,
    HeadingRows,
    find_headings,
    has_report_headings,
    headings_of_one_line,
    normalized_heading,
)
from connector.spreadsheet.problems import FileQuestion

# -- Encoding --------------------------------------------------------------------------------------
# The encoding that the user gave; a byte order mark; UTF-16 if every second byte is NUL; UTF-8 if
# the whole file is valid UTF-8, which text in another encoding hardly ever is. Otherwise it
# must make words of all letters beyond ASCII: a sign or a capital inside a word excludes it.


ENCODINGS = ("utf-8", "utf-16", "cp1252", "cp1250", "mac-roman")
"""Encodings that are detected or offered. The user can give any encoding that Python knows."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # Before UTF-16: the mark of UTF-32-LE begins with the mark of UTF-16-LE.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD_BYTES = 64 * 1024
_NULS_MIN_SHARE, _NULS_CERTAIN_SHARE, _NULS_MIN = 0.02, 0.4, 16
_SAMPLES_MAX = 3
_LETTERS_MIN = 4
_OLD_ENCODINGS = ("cp1252", "cp1250", "mac-roman")
_BYTES_WORD = re.compile(rb"[0-9A-Za-z']*[\x80-\xff][0-9A-Za-z'\x80-\xff]*")
_TYPOGRAPHY = (
    "'\u2018\u2019\u201a\u201c\u201d\u201e\u2013\u2014\u2026\u00a0\u00b7\u2022\u2122«»£€°§©®½¼¾²³"
)
_WESTERN = frozenset("àáâäåæçèéêëìíîïñóôöøúüßœÀÁÂÄÅÆÇÈÉÊËÍÎÏÑÓÔÖØÚÜŒ")
_LETTERS = _WESTERN | frozenset(
    "ãõòùûýÿąćęłńśźżčďěňřšťůžľĺŕőűășțşţđăōÃÕÒÙÛÝŸĄĆĘŁŃŚŹŻČĎĚŇŘŠŤŮŽĽĹŔŐŰĂȘȚŞŢĐ"
)
_SIGN_IN_WORD = re.compile(
    r"[^\W\d_][«»€£°§©®½²³\u2026\u201e\u201c\u2122\u2022\u2013\u2014][^\W\d_]|[£€][^\W\d_]|[^\W\d_][0-9]"
    r"|\u2018\Z|\A\u2019[a-z]"
).search
# At the end of a word it closes a German quotation, or is the letter ì of an old Mac.
_CLOSING_QUOTE = re.compile(r"\w\u201c").search


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text of a file, the name of its encoding, and what was assumed or must be asked."""

    text: str
    encoding: str
    notices: tuple[str, ...] = ()
    questions: tuple[FileQuestion, ...] = ()


def decode(path: Path, content: bytes, given: str | None) -> Decoded:
    """Return the text of the file.

    Raises `EncodingUnknown`, or `UnknownName` for an encoding that Python does not know.
    """
    marked = next((codec for mark, codec in _MARKS if content.startswith(mark)), None)
    if given is not None:
        codec = _codec_given(path, given, marked)
    else:
        codec = marked or _utf_16_by_nuls(content[:_HEAD_BYTES]) or "utf-8"
    try:
        return Decoded(content.decode(codec), codec.removesuffix("-sig"))
    except UnicodeDecodeError as error:
        found = None if given or marked or codec != "utf-8" else _decode_by_words(content)
        if found is not None:
            return found
        line = content.count(b"\n", 0, error.start) + 1
        reason = (
            f"byte 0x{content[error.start]:02X} in line {line} is not valid"
            f" {codec.removesuffix('-sig')}"
        )
        raise EncodingUnknown(path, reason) from error


def _codec_given(path: Path, given: str, marked: str | None) -> str:
    """Return the codec that the user named. Raises an error if the file's mark contradicts it."""
    try:
        name = codecs.lookup(given).name.removesuffix("-sig")
        b"".decode(name)
    except (LookupError, ValueError):
        raise UnknownName("encoding", given, ENCODINGS) from None
    if marked is None:
        return name
    if not name.startswith(marked.removesuffix("-sig")):
        mark = marked.removesuffix("-sig")
        raise EncodingUnknown(
            path, f"the file begins with the byte order mark of {mark}, but {given!r} was given"
        )
    return marked


def _utf_16_by_nuls(head: bytes) -> str | None:
    """Return the codec of UTF-16 without a mark, detected by its NUL bytes; None for other
    files.
    """
    pairs = len(head) // 2
    even, odd = head[: 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    nuls = max(even, odd)
    # Letters of other scripts contain no NUL, but blanks and line ends do.
    is_certain = nuls >= _NULS_CERTAIN_SHARE * pairs
    if (
        min(even, odd)
        or not nuls
        or not (is_certain or (nuls >= _NULS_MIN and nuls >= _NULS_MIN_SHARE * pairs))
    ):
        return None
    return "utf-16-le" if odd else "utf-16-be"


def _decode_by_words(content: bytes) -> Decoded | None:
    """Return the text in the old encoding in which it reads as words; None if there is none.

    Western letters in cp1252 are not asked for. Otherwise there is a question.
    """
    words = list(dict.fromkeys(_BYTES_WORD.findall(content)))
    readings: dict[str, list[str]] = {}
    for codec in _OLD_ENCODINGS:
        try:
            found = [each.decode(codec) for each in words]
        except UnicodeDecodeError:
            continue
        opening, closing = (content.count(each.encode(codec)) for each in "\u201e\u201c")
        has_pairs = opening == closing
        is_text = all(_is_word(each) and (has_pairs or not _CLOSING_QUOTE(each)) for each in found)
        if is_text and found not in readings.values():
            readings[codec] = found
    if not readings or b"\0" in content:
        return None
    codec, first = next(iter(readings.items()))
    text = content.decode(codec, "replace")
    is_western = codec == "cp1252" and {*"".join(first)} <= _WESTERN | {*_TYPOGRAPHY} | _ASCII
    if is_western:
        lettered = [each for each in first if not {*each} <= {*_TYPOGRAPHY} | _ASCII] or first
        shown = ", ".join(lettered[:_SAMPLES_MAX])
        return Decoded(
            text,
            codec,
            (f"The file is not UTF-8 and is read as {codec}: {shown} (change with --encoding).",),
        )
    return Decoded(text, codec, (), (_encoding_question(readings),))


_ASCII = frozenset(map(chr, range(128)))


def _is_word(text: str) -> bool:
    """Return True if the text can be a word: no sign and no capital inside, and usual letters."""
    if _SIGN_IN_WORD(text):
        return False
    for part in re.split(f"[{_TYPOGRAPHY}0-9]+", text):
        rest = part[1:].replace("ß", "")
        if len(part) >= _LETTERS_MIN and not any(map(str.isascii, part)):
            # It is a word in another script.
            return False
        if not all(each.isascii() or each in _LETTERS for each in part):
            return False
        if any(each.isupper() and not each.isascii() for each in rest) and not part.isupper():
            return False
        if part[:1].islower() and len(rest) > 1 and not rest.islower():
            return False
    return True


def _encoding_question(readings: Mapping[str, list[str]]) -> FileQuestion:
    """Return the question which encoding is right, with words that differ between the encodings."""
    places = [
        n for n, words in enumerate(zip(*readings.values(), strict=True)) if len({*words}) > 1
    ]
    places = places or [*range(len(next(iter(readings.values()))))]
    choices = tuple(
        (codec, ", ".join(words[n] for n in places[:_SAMPLES_MAX]))
        for codec, words in readings.items()
    )
    shown = "; ".join(f"{words} (--encoding {codec})" for codec, words in choices)
    return FileQuestion(
        "encoding",
        f"the text is not UTF-8. It may be: {shown}",
        "Choose the correct one with --encoding.",
        choices=choices,
    )


# -- Rows ------------------------------------------------------------------------------------------

QuoteCode = Literal["quote_not_closed", "quote_in_cell"]
QuoteDamage = tuple[QuoteCode, int, int]
"""Wrong quote: its code, and the numbers of the first and the last row that it affects."""

_SPACED_QUOTE = re.compile(r'[,;\t|] +"').search
# Quotes in an unquoted cell: around a word, or after a number of inches.
_PAIRED = re.compile(r'(?<![^\s(\[])"[^"]+"(?![^\s)\].,;:!?])|(?<=[0-9])"')
_BREAK = re.compile("[\r\n]").search
_WIDTH_CERTAIN = 4


@dataclass(frozen=True, slots=True)
class _RowShape:
    """Shape of a table's rows, to recognize a row that a wrong quote has put in a cell."""

    width: int
    one_line: frozenset[int]
    emails: frozenset[int]

    def contains_other_rows(
        self, cells: Sequence[str], lines: Sequence[str], delimiter: str
    ) -> bool:
        """Return True if the lines of one row contain other rows, because a quote is not closed."""
        # A row that contains others has all its delimiters in its first line.
        if len(_split(lines[0], delimiter)) < self.width:
            return False
        for index, cell in enumerate(cells):
            if index in self.one_line and _BREAK(cell) and ("@" in cell or delimiter in cell):
                return True
        if self.width < _WIDTH_CERTAIN or not self.emails:
            return False
        return any(
            len(each) >= self.width and all("@" in each[index] for index in self.emails)
            for line in lines[1:]
            for each in (line.split(delimiter), next(csv.reader([line], delimiter=delimiter), []))
        )


@dataclass(slots=True)
class DelimitedText:
    """Rows of a delimited text, including the headings; a blank line has no cells.

    Attributes:
        damages: Wrong quotes, by the index of the row that they make unreliable.
    """

    rows: list[list[str]] = field(default_factory=list)
    damages: dict[int, QuoteDamage] = field(default_factory=dict)


def read_rows(text: str, delimiter: str, headings: HeadingRows | None = None) -> DelimitedText:
    """Return all rows of the text; the cells of a row with a wrong quote are split at delimiters.

    Rows below the `headings` are checked for other rows in their cells.
    """
    found = DelimitedText()
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text)
    if '"' not in text:
        found.rows = list(csv.reader(lines, delimiter=delimiter))
        return found
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    shape = None if headings is None else _row_shape(headings)
    is_spaced = _SPACED_QUOTE(text[:_HEAD_BYTES]) is not None
    start = 0
    while start < len(lines):
        start += _read_until_damage(
            found, lines[start:], delimiter, shape, headings, is_spaced=is_spaced
        )
    return found


def _read_until_damage(
    found: DelimitedText,
    lines: Sequence[str],
    delimiter: str,
    shape: _RowShape | None,
    headings: HeadingRows | None,
    *,
    is_spaced: bool,
) -> int:
    """Add rows up to the first wrong quote, and the row with it; return the number of lines."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=is_spaced)
    first = 0
    while True:
        row = len(found.rows)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            is_closed = "expected after" in str(error)
            code: QuoteCode = "quote_in_cell" if is_closed else "quote_not_closed"
            found.damages[row] = code, row + 1, row + 1
            found.rows.append(_split(lines[first], delimiter))
            return first + 1
        if cells is None:
            return len(lines)
        taken = lines[first : reader.line_num]
        first = reader.line_num
        is_below = headings is not None and row >= headings.first_row
        if (
            shape
            and is_below
            and len(taken) > 1
            and shape.contains_other_rows(cells, taken, delimiter)
        ):
            for index, line in enumerate(taken):
                found.damages[row + index] = "quote_not_closed", row + 1, row + len(taken)
                found.rows.append(_split(line, delimiter))
            continue
        if len(taken) == 1 and '"' in taken[0] and _count_stray_quotes(taken[0], delimiter) > 1:
            found.damages[row] = "quote_in_cell", row + 1, row + 1
        found.rows.append(cells)


def _split(line: str, delimiter: str) -> list[str]:
    """Return the parts of a line between delimiters; quotes are ordinary characters."""
    return line.rstrip("\r\n").split(delimiter)


def _count_stray_quotes(line: str, delimiter: str) -> int:
    """Return the number of unquoted cells with a quote that is neither around words nor inches."""
    sign = re.escape(delimiter)
    if '"' not in re.sub(rf'(?:^|(?<={sign})) *"(?:[^"]|"")*"(?=[{sign}\r\n]|$)', "", line):
        # True for nearly every line.
        return 0
    cells = re.finditer(rf'(?:^|{sign}) *(?:"(?:[^"]|"")*"|([^{sign}\r\n]*))', line)
    return sum('"' in _PAIRED.sub("", each[1]) for each in cells if each[1])


def _row_shape(headings: HeadingRows) -> _RowShape:
    """Return the shape that rows below these headings have."""
    names = list(map(normalized_heading, headings.headings))
    known = headings_of_one_line()
    return _RowShape(
        len(headings.filled),
        frozenset(index for index, name in enumerate(names) if name in known),
        frozenset([index for index, name in enumerate(names) if "mail" in name][:1]),
    )


# -- Delimiters ------------------------------------------------------------------------------------


DELIMITERS: Mapping[str, str] = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Delimiters that are tried and that the user can give, by name."""

_NAMES = {character: name for name, character in DELIMITERS.items()}
_SAID = re.compile(r"sep=(.?)\s*", re.IGNORECASE).fullmatch


def find_delimiter(
    path: Path, text: str, given: str | None, header_row: int | None
) -> tuple[str, HeadingRows]:
    """Return the delimiter, as given or else as the headings and rows show it, and the headings.

    Raises `SpreadsheetError` if no delimiter or several fit, or `UnknownName`.
    """
    if given is not None:
        character = DELIMITERS.get(given.lower(), given)
        if character not in _NAMES:
            raise UnknownName("delimiter", given, DELIMITERS)
        return character, _headings_with(text, character, header_row)
    found = {each: _headings_with(text, each, header_row) for each in _NAMES}
    for each, headings in found.items():
        if has_report_headings(headings.headings):
            return each, headings
    known = max(each.known_count for each in found.values())
    if known > 1:
        # Known headings do not result from chance.
        found = {d: each for d, each in found.items() if each.known_count == known}
    else:
        found = {d: each for d, each in found.items() if len(each.headings) > 1}
    if not found:
        return ",", _headings_with(text, ",", header_row)
    if len(found) > 1 and path.suffix.lower() == ".tsv" and "\t" in found:
        found = {"\t": found["\t"]}
    if len(found) == 1 and known > 1:
        return next(iter(found.items()))
    fits = {d: _fitting_rows(text, d, each) for d, each in found.items()}
    best = max(fits.values())
    chosen = [d for d, fit in fits.items() if fit == best]
    if len(chosen) == 1 and (known > 1 or best > 0.5):
        return chosen[0], found[chosen[0]]
    shown = "; ".join(
        f"{_NAMES[d]} gives {len(found[d].headings)} columns and fits {fit:.0%} of the rows"
        for d, fit in fits.items()
    )
    reason = "more than one delimiter fits" if len(chosen) > 1 else "no delimiter fits"
    raise SpreadsheetError(f"{path}: {reason}: {shown}", code="delimiter_unknown")


def _headings_with(text: str, delimiter: str, header_row: int | None) -> HeadingRows:
    """Return the headings that result from this delimiter; a first line `sep=;` is skipped."""
    head = re.match(
        rf"(?:[^\r\n]*(?:\r\n|\r|\n|\Z)){{0,{(header_row or ROWS_SEARCHED) + 1}}}", text
    )
    assert head is not None
    # The head may end within a cell of several lines.
    rows = read_rows(head[0] if header_row is None else text, delimiter).rows
    first = rows[0] if rows else []
    if header_row is None and _SAID(delimiter.join(first)):
        found = find_headings(rows[1:])
        return HeadingRows(found.headings, found.index + 1, found.depth, found.known_count)
    return find_headings(rows[:ROWS_SEARCHED] if header_row is None else rows, header_row)


def _fitting_rows(text: str, delimiter: str, headings: HeadingRows) -> float:
    """Return the share of filled rows that are as wide as the headings; 1 without any rows."""
    rows = read_rows(text, delimiter, headings).rows[headings.first_row :]
    filled = [row for row in rows if any(map(str.strip, row))]
    widths = range(len(headings.filled), len(headings.headings) + 2)
    return sum(len(row) in widths for row in filled) / len(filled) if filled else 1.0


def read_table(
    path: Path, text: str, delimiter: str | None, header_row: int | None
) -> tuple[str, HeadingRows, DelimitedText, bool]:
    """Return the delimiter, the headings, all rows, and True if each row ends with a delimiter.

    Raises as `find_delimiter` does.
    """
    character, headings = find_delimiter(path, text, delimiter, header_row)
    found = read_rows(text, character, headings)
    width = len(headings.headings)
    below = (
        row
        for index, row in enumerate(found.rows)
        if index >= headings.first_row and index not in found.damages and any(map(str.strip, row))
    )
    ends = [len(row) == width + 1 and not row[-1] for row in below]
    return character, headings, found, bool(ends) and all(ends)


def iterate_from(
    found: DelimitedText, first: int
) -> Iterator[tuple[int, list[str], QuoteDamage | None]]:
    """Yield number, cells and wrong quote of each row from an index."""
    for index in range(first, len(found.rows)):
        yield index + 1, found.rows[index], found.damages.get(index)

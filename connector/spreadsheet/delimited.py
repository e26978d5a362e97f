"""Text with delimiters: csv and its kin, read row by row whatever the file's size.

The delimiter is not sniffed from a sample: each of four is tried on the whole file, and must give
the headings' width on every row. What stands between quotes may hold line breaks and delimiters,
and a quote in it is doubled. A row is numbered as a spreadsheet shows it; an error also names
the line, which differs behind a cell with line breaks.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass

from connector.errors import (
    DamagedSpreadsheet,
    DelimiterUnknown,
    EncodingUnknown,
    NoRows,
    UnknownName,
)
from connector.spreadsheet.columns import is_of_report
from connector.spreadsheet.source_file import SourceFile

# -- Encoding --------------------------------------------------------------------------------------
# An encoding is given, marked or proven, and otherwise asked for. In this order: the one that a
# person gave; a byte order mark; UTF-16 where every second byte of the start is NUL; UTF-8 where
# the whole file is valid UTF-8, which text in another encoding hardly ever is. What remains is an
# old one-byte encoding, and any of them would do without an error: many letters would be wrong and
# nobody would know. So the file is refused, with Windows' western encoding offered where every byte
# has a meaning in it, and with cells to judge it by.


_ENCODINGS = """
    utf-8 utf-16 utf-16-le utf-16-be utf-32
    cp1252 cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258
    iso8859-1 iso8859-2 iso8859-5 iso8859-7 iso8859-9 iso8859-15
    cp437 cp850 cp852 cp866 cp874 koi8-r koi8-u mac-roman
    cp932 shift_jis euc_jp cp949 euc_kr gb18030 big5 cp950
"""
ENCODINGS = tuple(_ENCODINGS.split())
"""The encodings that may be given; all names that Python knows them by are understood."""

LINE_CHARACTERS_MAX = 16 * 1024 * 1024
"""A line that is longer is not read: its length alone would fill the memory."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # Before UTF-16: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHUNK_BYTES = 1024 * 1024
_HEAD_BYTES = 64 * 1024
_SAMPLES_MAX = 3
_SAMPLES_TRIED_MAX = 1_000
_SAMPLE_CHARACTERS_MAX = 40
_CELL_REACH = 1_000
_LETTER = re.compile(r"[^\W\x00-\x7f]")
_UP_TO_EDGE = re.compile(r'[^,;\t|"\r\n]*')
# Five bytes mean nothing in it, and NUL is in no text of one byte a letter.
_NOT_IN_CP1252 = b"\x81\x8d\x8f\x90\x9d\0"
_NULS_CERTAIN, _NULS_LIKELY, _NULS_MIN = 0.4, 0.02, 16


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """A text file's encoding, proven to fit its every byte.

    `codec` is what Python decodes with, `name` what people call it. `is_guessed` says that it was
    neither given nor marked nor proven: UTF-16 known by its NUL bytes. `samples` are cells with
    letters beyond ASCII.
    """

    codec: str
    name: str
    is_guessed: bool
    samples: tuple[str, ...]


def recognise(source: SourceFile, given: str | None) -> TextEncoding:
    """The encoding of the file, whose every byte has been decoded once.

    Raises `EncodingUnknown`, `UnknownName` for an encoding that may not be given,
    `DamagedSpreadsheet` for a line without end.
    """
    with source.open() as file:
        head = file.read(_HEAD_BYTES)
    marked = next((codec for mark, codec in _MARKS if head.startswith(mark)), None)
    patterned = _utf_16_by_nuls(head, _NULS_CERTAIN)
    # Letters of other scripts have no NUL, but blanks and line ends have.
    perhaps = _utf_16_by_nuls(head, _NULS_LIKELY) if head.count(0) >= _NULS_MIN else None
    if given is marked is patterned is None and perhaps is not None:
        raise _offer(source, perhaps, "every NUL byte is where UTF-16 has them")
    codec = marked or patterned or "utf-8" if given is None else _codec_given(source, given, marked)
    decoding = _Decoding(source, codec)
    try:
        decoding.run()
    except UnicodeDecodeError as error:
        raise _misfit(source, codec, given or marked, decoding.place_of(error)) from error
    is_guessed = given is None and marked is None and patterned is not None
    return TextEncoding(codec, codec.removesuffix("-sig"), is_guessed, tuple(decoding.samples))


def _codec_given(source: SourceFile, given: str, marked: str | None) -> str:
    """The codec that a person named. Raises where the file's mark denies it."""
    known = {codecs.lookup(each).name: each for each in ENCODINGS}
    try:
        name = codecs.lookup(given).name.removesuffix("-sig")
    except (LookupError, ValueError):
        name = ""
    if name not in known:
        raise UnknownName("encoding", given, ENCODINGS)
    if marked is None:
        return known[name]
    if not known[name].startswith(marked.removesuffix("-sig")):
        raise EncodingUnknown(
            source.path,
            f"it begins with the mark of {marked.removesuffix('-sig')}, and {given!r} was given",
        )
    return marked


def _utf_16_by_nuls(head: bytes, share: float) -> str | None:
    """UTF-16 without a mark, known by its NUL bytes.

    At least this share of the pairs of bytes have one, and always in the same place.
    """
    pairs = len(head) // 2
    even, odd = head[: 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if even == 0 and odd and odd >= share * pairs:
        return "utf-16-le"
    if odd == 0 and even and even >= share * pairs:
        return "utf-16-be"
    return None


def _offer(source: SourceFile, offered: str, reason: str) -> EncodingUnknown:
    """The error that offers an encoding, if it fits the whole file."""
    decoding = _Decoding(source, offered)
    try:
        decoding.run()
    except UnicodeDecodeError:
        return EncodingUnknown(source.path, f"{reason}, and the file's encoding is not certain")
    return EncodingUnknown(
        source.path,
        f"{reason}; {offered} would fit",
        offered=offered,
        samples=tuple(decoding.samples),
    )


def _misfit(
    source: SourceFile, codec: str, known: str | None, place: tuple[int, int, int]
) -> EncodingUnknown:
    """The error for bytes that do not fit; offers an encoding where that is sound."""
    line, column, byte = place
    where = f"byte 0x{byte:02X} in line {line}, character {column}"
    if known is not None or codec != "utf-8":
        name = codec.removesuffix("-sig")
        return EncodingUnknown(source.path, f"{where}, is not {name}, which the file should be in")
    with source.open() as file:
        while chunk := file.read(_CHUNK_BYTES):
            if chunk.translate(None, _NOT_IN_CP1252) != chunk:
                return EncodingUnknown(
                    source.path, f"{where}, is not UTF-8, and the file's encoding is not certain"
                )
    return _offer(source, "cp1252", f"{where}, is not UTF-8")


class _Decoding:
    """One decoding of a whole file: samples of cells, and the place reached."""

    def __init__(self, source: SourceFile, codec: str) -> None:
        self.samples: list[str] = []
        self._source, self._codec = source, codec
        self._line = self._column = 1
        self._tried = 0
        self._newlines = io.IncrementalNewlineDecoder(None, translate=True)

    def run(self) -> None:
        """Raises `UnicodeDecodeError` at the first byte that does not fit."""
        decoder = codecs.getincrementaldecoder(self._codec)()
        with self._source.open() as file:
            while chunk := file.read(_CHUNK_BYTES):
                self._pass_over(decoder.decode(chunk))
            self._pass_over(decoder.decode(b"", True), is_last=True)

    def place_of(self, error: UnicodeDecodeError) -> tuple[int, int, int]:
        """The line, the character in it and the value of the byte that `error` stopped at."""
        good = codecs.getincrementaldecoder(self._codec)(errors="ignore")
        self._pass_over(good.decode(error.object[: error.start]), is_last=True)
        return self._line, self._column, error.object[error.start]

    def _pass_over(self, text: str, *, is_last: bool = False) -> None:
        if not text.isascii():
            self._collect(text)
        text = self._newlines.decode(text, is_last)
        breaks = text.count("\n")
        self._line += breaks
        self._column = len(text) - text.rfind("\n") if breaks else self._column + len(text)
        if self._column > LINE_CHARACTERS_MAX:
            raise DamagedSpreadsheet(
                f"{self._source.path}: line {self._line} is longer than"
                f" {LINE_CHARACTERS_MAX:,} characters"
            )

    def _collect(self, text: str) -> None:
        """Take cells with letters beyond ASCII, a few that differ."""
        at = 0
        while len(self.samples) < _SAMPLES_MAX and self._tried < _SAMPLES_TRIED_MAX:
            letter = _LETTER.search(text, at)
            if letter is None:
                return
            self._tried += 1
            place = letter.start()
            begin = max(0, place - _CELL_REACH)
            before = _UP_TO_EDGE.match(text[begin:place][::-1])
            within = _UP_TO_EDGE.match(text, place)
            assert before is not None
            assert within is not None
            at = within.end()
            cell = text[place - before.end() : at].strip()[:_SAMPLE_CHARACTERS_MAX]
            if cell not in self.samples:
                self.samples.append(cell)


# -- Rows ------------------------------------------------------------------------------------------


def records(
    source: SourceFile, encoded: TextEncoding, delimiter: str
) -> Generator[tuple[int, list[str]], None, None]:
    """Each row's first line and its cells, the headings' row included.

    A blank line has no cells.

    Raises `DamagedSpreadsheet` with the line for a quote that is never closed or is followed by
    other text, `SpreadsheetChanged`.
    """
    # The limit is the whole process's: it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LINE_CHARACTERS_MAX))
    line = 0
    with source.open() as file:
        text = io.TextIOWrapper(file, encoding=encoded.codec, errors="strict", newline="")
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                yield line + 1, cells
                line = reader.line_num
        except csv.Error as error:
            raise _damaged(source, line + 1, str(error)) from error
        except UnicodeDecodeError as error:
            raise source.changed() from error
    source.check()


def _damaged(source: SourceFile, line: int, error: str) -> DamagedSpreadsheet:
    what = f"the cells cannot be told apart: {error}"
    if "unexpected end" in error or "field larger" in error:
        what = 'a quote (") opens a cell that is not closed'
    elif "expected after" in error:
        what = 'a quote (") inside a cell is neither doubled nor the last character'
    return DamagedSpreadsheet(f"{source.path}: line {line}: {what}")


# -- Delimiters ------------------------------------------------------------------------------------


DELIMITERS: Mapping[str, str] = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Those that are tried and may be given, by name."""

_NAMES = {character: name for name, character in DELIMITERS.items()}


@dataclass(frozen=True, slots=True)
class DelimiterFit:
    """Fit of one delimiter to a file's rows.

    `first_row` has the cells of the first row, `rows` counts the others that are not blank, and
    `fitting` those of them that are as wide as the first, give or take empty cells at its end.
    `is_ended` says that every row has one delimiter more than the first, at its end.
    `first_misfit` is one row that does not fit: its number, its line and its width. `filled` counts
    the columns up to the last in which a row no wider than the first has a cell that is not empty.
    """

    delimiter: str
    first_row: tuple[str, ...]
    rows: int
    fitting: int
    is_ended: bool
    first_misfit: tuple[int, int, int] | None
    filled: int

    @property
    def full_width(self) -> int:
        """Width of a row that fits, an empty cell behind the last delimiter included."""
        return len(self.first_row) + self.is_ended

    def __str__(self) -> str:
        name, width = _NAMES[self.delimiter], len(self.first_row)
        text = f"{name} gives {width} columns and fits {self.fitting} of {self.rows} rows"
        if self.first_misfit is None:
            return text
        row, line, cells = self.first_misfit
        return f"{text} (row {row}, line {line}, has {cells})"


def settle(source: SourceFile, encoded: TextEncoding, given: str | None) -> DelimiterFit:
    """The delimiter of the file, and how its rows look under it; `given` by a person.

    Raises `DelimiterUnknown` where none fits or more than one, `UnknownName` for one that may
    not be given, `NoRows`, and as `records` does.
    """
    if given is None:
        fit = _only_one(source, _candidates(source, encoded))
    else:
        character = DELIMITERS.get(given.lower(), given)
        if character not in _NAMES:
            raise UnknownName("delimiter", given, DELIMITERS)
        fit = _fit(source, encoded, character)
    if not fit.rows and any(fit.first_row):
        raise NoRows(f"{source.path} has headings and no row below them")
    return fit


def _candidates(source: SourceFile, encoded: TextEncoding) -> list[DelimiterFit]:
    """The fits of those delimiters that part the headings, or of one that parts none."""
    headings = {each: _first_row(source, encoded, each) for each in _NAMES}
    for each, cells in headings.items():
        if is_of_report(cells):
            # Nothing else gives the headings of our reports, however wrong the rows still are.
            return [_fit(source, encoded, each)]
    parting = [each for each, cells in headings.items() if len(cells) > 1]
    fits: list[DelimiterFit] = []
    damage = None
    for each in parting or _NAMES:
        try:
            fit = _fit(source, encoded, each)
        except DamagedSpreadsheet as error:
            # Quotes need not fall into place under a delimiter that is not the file's.
            damage = damage or error
            continue
        fits.append(fit)
        # In one column, whichever delimiter is in no row reads the same cells.
        if not parting and fit.fitting == fit.rows:
            return [fit]
    if damage is not None and not fits:
        raise damage
    return fits


def _first_row(source: SourceFile, encoded: TextEncoding, delimiter: str) -> list[str]:
    """The headings' row; nothing where quotes in it do not fall into place."""
    with closing(records(source, encoded, delimiter)) as reading:
        try:
            return next(reading, (1, []))[1]
        except DamagedSpreadsheet:
            return []


def _only_one(source: SourceFile, fits: list[DelimiterFit]) -> DelimiterFit:
    """The fit that is without a misfit, else the only one for most rows."""
    first = fits[0]
    # Of blank headings, it is they that are wrong; a report is known by its own.
    if not any(first.first_row) or is_of_report(first.first_row):
        return first
    whole = [fit for fit in fits if fit.fitting == fit.rows]
    if len(whole) > 1 and source.path.suffix.lower() == ".tsv":
        whole = [fit for fit in whole if fit.delimiter == "\t"] or whole
    chosen = whole or [fit for fit in fits if fit.fitting * 2 > fit.rows]
    if len(chosen) == 1:
        return chosen[0]
    what = "more than one delimiter fits" if chosen else "no delimiter fits"
    counts = "; ".join(map(str, fits))
    raise DelimiterUnknown(f"{source.path}: {what} the rows: {counts}")


def _fit(source: SourceFile, encoded: TextEncoding, delimiter: str) -> DelimiterFit:
    """The fit of this delimiter, after reading the whole file once with it."""
    reading = records(source, encoded, delimiter)
    _, first = next(reading, (1, []))
    headed, rows, fitting, ended, filled = _last_filled(first), 0, 0, 0, 0
    misfit = None
    for number, (line, cells) in enumerate(reading, 2):
        if not any(map(str.strip, cells)):
            continue
        rows += 1
        width = len(cells)
        if headed <= width <= len(first):
            fitting += 1
        else:
            ended += width == len(first) + 1 and not cells[-1]
            misfit = misfit or (number, line, width)
        if filled < width <= len(first):
            filled = max(filled, _last_filled(cells))
    is_ended = bool(rows) and ended == rows
    return DelimiterFit(
        delimiter=delimiter,
        first_row=tuple(first),
        rows=rows,
        fitting=rows if is_ended else fitting,
        is_ended=is_ended,
        first_misfit=None if is_ended else misfit,
        filled=filled,
    )


def _last_filled(cells: list[str]) -> int:
    """The number of cells up to the last that is not empty."""
    width = len(cells)
    while width and not cells[width - 1]:
        width -= 1
    return width

"""Reading of delimited text (CSV and similar), row by row for files of any size.

The delimiter is not detected from a sample. Each of four delimiters is tried on the whole file and
must result in the width of the headings in every row. Quoted cells may contain line breaks and
delimiters; a quote in them is doubled. Row numbers match the spreadsheet. Errors also name the
line, which differs after a cell with line breaks.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from connector.errors import DamagedSpreadsheet, EncodingUnknown, SpreadsheetError, UnknownName
from connector.spreadsheet.columns import (
    LOOKED_AT,
    HeadingRows,
    email_headings,
    find_headings,
    has_report_headings,
    normalized_heading,
    one_line_headings,
)
from connector.spreadsheet.problems import FileQuestion
from connector.spreadsheet.source_file import SourceFile

# -- Encoding --------------------------------------------------------------------------------------
# Order of detection: the encoding that the user gave; a byte order mark; UTF-16 if every second
# byte at the start is NUL; UTF-8 if the whole file is valid UTF-8, which text in another encoding
# hardly ever is. The remaining one-byte encodings decode any file without an error. A few of them
# are tried on every word with a letter beyond ASCII. An encoding that puts a sign or a capital
# inside a word is excluded. If the others read the file in the same way, the first is used and
# reported. If they differ, the user chooses, with example cells in each encoding.


_ENCODINGS = """
    utf-8 utf-16 utf-16-le utf-16-be utf-32
    cp1252 cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258
    iso8859-1 iso8859-2 iso8859-5 iso8859-7 iso8859-9 iso8859-15
    cp437 cp850 cp852 cp866 cp874 koi8-r koi8-u mac-roman
    cp932 shift_jis euc_jp cp949 euc_kr gb18030 big5 cp950
"""
ENCODINGS = tuple(_ENCODINGS.split())
"""Encodings that the user can give. All names that Python knows for them are accepted."""

LINE_CHARACTERS_MAX = 16 * 1024 * 1024
"""Maximum length of a line, to limit the memory."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # Before UTF-16: the mark of UTF-32-LE begins with the mark of UTF-16-LE.
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
_NULS_CERTAIN, _NULS_LIKELY, _NULS_MIN = 0.4, 0.02, 16


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """Encoding of a text file, in which every byte was decoded.

    Attributes:
        codec: Name for Python, which also removes a byte order mark.
        name: Name for users.
        notices: Sentences on what was assumed.
        questions: Encodings that the user has to choose from.
    """

    codec: str
    name: str
    notices: tuple[str, ...] = ()
    questions: tuple[FileQuestion, ...] = ()


def detect_encoding(source: SourceFile, given: str | None) -> TextEncoding:
    """Return the encoding of the file, after decoding every byte once.

    Raises `EncodingUnknown`, `UnknownName` for an encoding that may not be given, and
    `DamagedSpreadsheet` for a line that is too long.
    """
    with source.open() as file:
        head = file.read(_HEAD_BYTES)
    marked = next((codec for mark, codec in _MARKS if head.startswith(mark)), None)
    patterned = _detect_utf_16(head, _NULS_CERTAIN)
    # Letters of other scripts contain no NUL, but blanks and line ends do.
    perhaps = _detect_utf_16(head, _NULS_LIKELY) if head.count(0) >= _NULS_MIN else None
    if given is marked is patterned is None and perhaps is not None:
        raise _suggest_encoding(source, perhaps, "its NUL bytes show that it is UTF-16")
    codec = marked or patterned or "utf-8" if given is None else _codec_given(source, given, marked)
    decoding = _FileDecoding(source, codec)
    try:
        decoding.decode_all()
    except UnicodeDecodeError as error:
        known = given or marked
        if known is None and codec == "utf-8" and (found := _encoding_by_words(source)) is not None:
            return found
        raise _decoding_error(source, codec, known, decoding.position_of(error)) from error
    return TextEncoding(codec, codec.removesuffix("-sig"))


def _codec_given(source: SourceFile, given: str, marked: str | None) -> str:
    """Return the codec that the user named. Raises an error if the file's mark contradicts it."""
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
            f"the file begins with the byte order mark of {marked.removesuffix('-sig')}, but "
            f"{given!r} was given",
        )
    return marked


def _detect_utf_16(head: bytes, min_share: float) -> str | None:
    """Return the codec of UTF-16 without a mark, detected by its NUL bytes; None for other files.

    At least this share of the pairs of bytes must have a NUL, always at the same position.
    """
    pairs = len(head) // 2
    even, odd = head[: 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if even == 0 and odd and odd >= min_share * pairs:
        return "utf-16-le"
    if odd == 0 and even and even >= min_share * pairs:
        return "utf-16-be"
    return None


def _suggest_encoding(source: SourceFile, offered: str, reason: str) -> EncodingUnknown:
    """Return an error that suggests the encoding `offered`, if it fits the whole file."""
    decoding = _FileDecoding(source, offered)
    try:
        decoding.decode_all()
    except UnicodeDecodeError:
        return EncodingUnknown(source.path, f"{reason}, and the file's encoding is not certain")
    return EncodingUnknown(
        source.path, f"{reason}. {offered} fits", offered=offered, samples=tuple(decoding.samples)
    )


def _decoding_error(
    source: SourceFile, codec: str, known: str | None, position: tuple[int, int, int]
) -> EncodingUnknown:
    """Return the error for the undecodable byte at `position` (line, character, byte).

    `known` is the encoding that was given or marked in the file.
    """
    line, column, byte = position
    where = f"byte 0x{byte:02X} in line {line}, character {column}"
    if known is not None or codec != "utf-8":
        name = codec.removesuffix("-sig")
        return EncodingUnknown(source.path, f"{where}, is not valid {name}")
    return EncodingUnknown(
        source.path, f"{where}, is not valid UTF-8, and no other encoding fits the text"
    )


_OLD = (
    *("cp1252", "cp1250", "mac-roman", "cp850", "cp852", "iso8859-2", "cp1254", "cp1257"),
    *("iso8859-15", "cp1251", "cp1253"),
)
_ASIAN = ("cp932", "gb18030", "euc_kr", "big5")
"""Old encodings that are tried, the likeliest first. The user can give others."""

_BYTES_WORD = re.compile(rb"[A-Za-z']*[\x80-\xff][A-Za-z'\x80-\xff]*")
_WORDS_TRIED_MAX = 20_000
_LETTERS = frozenset(
    "àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿœßąćęłńśźżčďěňřšťůžľĺŕőűășțşţđğıāēģīķļņū"
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝŸŒĄĆĘŁŃŚŹŻČĎĚŇŘŠŤŮŽĽĹŔŐŰĂȘȚŞŢĐĞİĀĒĢĪĶĻŅŪ"
)
_TYPOGRAPHY = re.compile("['\u2018-\u201e\u2013\u2014\u2026\u00a0\u00b7\u2022\u2122«»€£°§©®½²³]")


def _encoding_by_words(source: SourceFile) -> TextEncoding | None:
    """Return the old encoding in which the file reads as words; None if none does.

    If several do, the result has the first one and a question.
    """
    seen: dict[bytes, None] = {}
    rest = b""
    with source.open() as file:
        while (chunk := file.read(_CHUNK_BYTES)) and len(seen) < _WORDS_TRIED_MAX:
            if b"\0" in chunk:
                return None
            complete_lines, line_end, rest = (rest + chunk).rpartition(b"\n")
            seen |= dict.fromkeys(_BYTES_WORD.findall(complete_lines or rest))
            rest = rest if line_end else b""
        seen |= dict.fromkeys(_BYTES_WORD.findall(rest))
    words = list(seen)
    with source.open() as file:
        start = file.read(_HEAD_BYTES).rpartition(b"\n")[0]
    words_by_codec: dict[str, list[str]] = {}
    for codec in _OLD:
        try:
            decoded = [each.decode(codec) for each in words]
        except UnicodeDecodeError:
            continue
        if all(map(_is_word, decoded)) and decoded not in words_by_codec.values():
            words_by_codec[codec] = decoded
    for codec in _ASIAN:
        runs = _ASIAN_RUN.findall(start.decode(codec, "surrogateescape"))
        if runs and all(map(_IS_ASIAN, runs)):
            words_by_codec[codec] = list(dict.fromkeys(runs))
    if not words_by_codec:
        return None
    codec = next(iter(words_by_codec))
    decoding = _FileDecoding(source, codec)
    try:
        decoding.decode_all()
    except UnicodeDecodeError:
        return None
    if len(words_by_codec) == 1:
        shown = ", ".join(decoding.samples)
        notice = (
            f"The file is not UTF-8 and is read as {codec}: {shown} (change this with --encoding)."
        )
        return TextEncoding(codec, codec, (notice,))
    return TextEncoding(codec, codec, (), (_encoding_question(words_by_codec),))


_ASIAN_RUN = re.compile(r"[A-Za-z]*[^\x00-\x7f]+[A-Za-z]*")
_IS_ASIAN = re.compile("[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef]+").fullmatch
_IS_OTHER_SCRIPT = re.compile("[\u0400-\u045f]+|[\u0384-\u03ce]+").fullmatch
_SIGN_IN_WORD = re.compile(r"[^\W\d_][«»€£°§©®½²³\u2026\u201e\u2122\u2022][^\W\d_]").search


def _is_word(text: str) -> bool:
    """Return True if the text can be a word: no sign and no capital inside, and usual letters."""
    if _SIGN_IN_WORD(text):
        return False
    for part in _TYPOGRAPHY.sub(" ", text).split():
        letters = [each for each in part if not each.isascii()]
        if not all(each in _LETTERS for each in letters) and not _IS_OTHER_SCRIPT(part):
            return False
        rest = part[1:].replace("ß", "")
        if any(each.isupper() for each in rest if not each.isascii()) and rest != rest.upper():
            return False
        if part[:1].islower() and not rest.islower() and len(rest) > 1:
            return False
        if part[:1].isupper() and len(rest) > 1 and rest[0].isupper() and not rest.isupper():
            return False
    return True


def _encoding_question(words_by_codec: Mapping[str, list[str]]) -> FileQuestion:
    """Return the question which encoding is right, with words that differ between the encodings."""
    meanings = list(words_by_codec.values())
    # One-byte encodings find the same words; the words that differ are shown.
    differing = [n for n, words in enumerate(zip(*meanings, strict=False)) if len(set(words)) > 1]
    shown = "; ".join(
        f"{', '.join(words[n] for n in differing[:_SAMPLES_MAX])} (--encoding {codec})"
        for codec, words in words_by_codec.items()
    )
    return FileQuestion(
        "encoding",
        f"the text is not UTF-8 and can be read in {len(words_by_codec)} ways: {shown}",
        "Choose the correct one with --encoding.",
        choices=tuple(
            (codec, ", ".join(words[n] for n in differing[:_SAMPLES_MAX]))
            for codec, words in words_by_codec.items()
        ),
    )


class _FileDecoding:
    """Decoding of a whole file in one codec: collects sample cells and counts lines."""

    def __init__(self, source: SourceFile, codec: str) -> None:
        self.samples: list[str] = []
        self._source, self._codec = source, codec
        self._line = self._column = 1
        self._tried = 0
        self._newlines = io.IncrementalNewlineDecoder(None, translate=True)

    def decode_all(self) -> None:
        """Decode the file. Raises `UnicodeDecodeError` at the first byte that does not fit."""
        decoder = codecs.getincrementaldecoder(self._codec)()
        with self._source.open() as file:
            while chunk := file.read(_CHUNK_BYTES):
                self._add_decoded_text(decoder.decode(chunk))
            self._add_decoded_text(decoder.decode(b"", True), is_last=True)

    def position_of(self, error: UnicodeDecodeError) -> tuple[int, int, int]:
        """Return the line, the character in it and the value of the byte that caused `error`."""
        decoder = codecs.getincrementaldecoder(self._codec)(errors="ignore")
        self._add_decoded_text(decoder.decode(error.object[: error.start]), is_last=True)
        return self._line, self._column, error.object[error.start]

    def _add_decoded_text(self, text: str, *, is_last: bool = False) -> None:
        """Collect samples of the next decoded text, and move the position behind it.

        Raises `DamagedSpreadsheet` for a line that is too long.
        """
        if not text.isascii():
            self._collect_samples(text)
        text = self._newlines.decode(text, is_last)
        breaks = text.count("\n")
        self._line += breaks
        self._column = len(text) - text.rfind("\n") if breaks else self._column + len(text)
        if self._column > LINE_CHARACTERS_MAX:
            raise DamagedSpreadsheet(
                f"{self._source.path}: line {self._line} is longer than"
                f" {LINE_CHARACTERS_MAX:,} characters"
            )

    def _collect_samples(self, text: str) -> None:
        """Collect a few different cells with letters beyond ASCII."""
        position = 0
        while len(self.samples) < _SAMPLES_MAX and self._tried < _SAMPLES_TRIED_MAX:
            letter = _LETTER.search(text, position)
            if letter is None:
                return
            self._tried += 1
            place = letter.start()
            begin = max(0, place - _CELL_REACH)
            before = _UP_TO_EDGE.match(text[begin:place][::-1])
            within = _UP_TO_EDGE.match(text, place)
            assert before is not None
            assert within is not None
            position = within.end()
            cell = text[place - before.end() : position].strip()[:_SAMPLE_CHARACTERS_MAX]
            if cell not in self.samples:
                self.samples.append(cell)


# -- Rows ------------------------------------------------------------------------------------------
# A missing or extra quote would turn several rows into one cell. If quotes do not match, the row in
# which they start is refused, and reading continues at the next line that has the shape of a row.
# If they match, but a cell contains a row of the table, all lines of the cell are refused, each as
# its own row.


@dataclass(frozen=True, slots=True)
class RowShape:
    """Shape of a table's rows, to recognize the next row after a wrong quote.

    Attributes:
        first_row: Index of the first row below the headings.
        widths: Numbers of cells that a row may have.
        columns_with_emails: Indexes of the columns in which most rows have an email address.
        email_columns: Indexes of the columns whose headings are those of email addresses.
        one_line_columns: Indexes of the columns whose headings are those of fields with one line.
    """

    first_row: int
    widths: range
    columns_with_emails: frozenset[int]
    email_columns: frozenset[int]
    one_line_columns: frozenset[int]

    def fits(self, cells: Sequence[str]) -> bool:
        """Return True if the number of cells is right and email columns contain an @."""
        width = len(cells)
        if width == self.widths.stop and not cells[-1]:
            width -= 1
        return width in self.widths and all(
            "@" in cells[i] for i in self.columns_with_emails if i < width
        )

    def contains_other_rows(
        self, cells: Sequence[str], lines: Sequence[str], delimiter: str
    ) -> bool:
        """Return True if a cell contains other rows because a quote is not closed.

        `cells` and `lines` belong to one row that has several lines.
        """
        for index, cell in enumerate(cells):
            if index in self.one_line_columns and (found := _BREAK(cell)):
                # A swallowed row begins after the other cells of the row that swallows it.
                is_rest = cell.count(delimiter, 0, found.start()) >= len(cells) - 1 - index
                is_named = "@" in cell and index not in self.email_columns
                if is_named or (is_rest and delimiter in cell):
                    return True
        if (
            not self.columns_with_emails
            or len(_split_ignoring_quotes(lines[0], delimiter)) < self.widths.start
        ):
            return False
        return any(
            self.fits(each)
            for line in lines[1:]
            for each in (
                _split_ignoring_quotes(line, delimiter),
                next(csv.reader([line], delimiter=delimiter), []),
            )
        )


_BREAK = re.compile("[\r\n]").search

QuoteCode = Literal["quote_not_closed", "quote_in_cell"]
QuoteDamage = tuple[QuoteCode, int, int]
"""Wrong quote: its code, and the numbers of the first and the last row that it affects."""

DelimitedRow = tuple[int, list[str], QuoteDamage | None]
"""First line of a row, its cells, and the wrong quote that makes the row unreliable."""


def read_rows(
    source: SourceFile, encoded: TextEncoding, delimiter: str, shape: RowShape | None = None
) -> Generator[DelimitedRow, None, None]:
    """Yield each row, including the headings. A blank line has no cells.

    With a `shape`, reading continues after a wrong quote; the cells of such a row are the parts of
    its line between delimiters.

    Raises `DamagedSpreadsheet` for a wrong quote without a shape, and `SpreadsheetChanged`.
    """
    # The limit applies to the whole process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LINE_CHARACTERS_MAX))
    with source.open() as file:
        head = file.read(_HEAD_BYTES).decode(encoded.codec, "ignore")
        file.seek(0)
        text = io.TextIOWrapper(file, encoding=encoded.codec, errors="strict", newline="")
        # Some programs write a blank between a delimiter and a quote.
        is_spaced = _SPACED_QUOTE(head) is not None
        try:
            yield from _RowReader(source, text, delimiter, shape, is_spaced=is_spaced).rows()
        except UnicodeDecodeError as error:
            raise source.changed_error() from error
    source.check_unchanged()


_SPACED_QUOTE = re.compile(r'[,;\t|] +"').search


class _RowReader:
    """Reader of the rows of delimited text. With a shape, it continues after wrong quotes."""

    def __init__(
        self,
        source: SourceFile,
        text: Iterable[str],
        delimiter: str,
        shape: RowShape | None,
        *,
        is_spaced: bool,
    ) -> None:
        self._source, self._text, self._delimiter, self._shape = source, text, delimiter, shape
        self._is_spaced = is_spaced
        self._taken: list[str] = []
        self._returned: deque[str] = deque()
        self._line = self._row = 1
        # The row of an unclosed quote, until a later line has the shape of a row again.
        self._opened = 0

    def rows(self) -> Iterator[DelimitedRow]:
        """Yield all rows. Raises `DamagedSpreadsheet` for a wrong quote without a shape."""
        lines = self._taken
        while True:
            reader = csv.reader(
                self._read_lines(),
                delimiter=self._delimiter,
                strict=True,
                skipinitialspace=self._is_spaced,
            )
            try:
                for cells in reader:
                    # Most rows have one line, and no quote within a cell.
                    if (
                        self._opened
                        or len(lines) > 1
                        or ('"' in lines[0] and '"' in "".join(cells))
                    ) and (refused := self._rows_to_refuse(cells)):
                        yield from refused
                        break
                    yield self._line, cells, None
                    self._line += len(lines)
                    self._row += 1
                    lines.clear()
                else:
                    return
            except csv.Error as error:
                if self._shape is None or self._row <= self._shape.first_row:
                    raise _damage_error(self._source, self._line, str(error)) from error
                yield self._refuse_unmatched_quotes(str(error))

    def _read_lines(self) -> Iterator[str]:
        """Yield the lines that were put back, then those of the file; remember them as `_taken`."""
        while self._returned:
            self._taken.append(self._returned.popleft())
            yield self._taken[-1]
        take = self._taken.append
        for line in self._text:
            take(line)
            yield line

    def _refuse_unmatched_quotes(self, error: str) -> DelimitedRow:
        """Return the first line as a row to refuse; the lines after it are read again as rows."""
        is_closed = "expected after" in error and len(self._taken) == 1
        if is_closed and self._taken[0].count('"') % 2 == 0:
            return self._refuse_first_line("quote_in_cell", self._row)
        self._opened = self._opened or self._row
        return self._refuse_first_line(
            "quote_in_cell" if is_closed else "quote_not_closed", self._opened
        )

    def _rows_to_refuse(self, cells: list[str]) -> list[DelimitedRow]:
        """Return the rows to refuse instead of these cells; empty if the cells are a row."""
        shape, lines = self._shape, self._taken
        if shape is None or self._row <= shape.first_row or not cells:
            return []
        if len(lines) > 1 and shape.contains_other_rows(cells, lines, self._delimiter):
            return self._refuse_all_lines()
        if self._opened:
            if not shape.fits(cells):
                return [self._refuse_first_line("quote_not_closed", self._opened)]
            self._opened = 0
        if len(lines) == 1:
            stray = sum(
                map(_has_stray_quote, _unquoted_cells_with_quotes(lines[0], self._delimiter))
            )
            if stray > 1:
                return [self._refuse_first_line("quote_in_cell", self._row)]
        return []

    def _refuse_first_line(self, code: QuoteCode, row: int) -> DelimitedRow:
        """Return the first line as a row to refuse, and put back the other lines.

        `row` is the number of the row with the wrong quote.
        """
        first, *others = self._taken
        self._returned.extendleft(reversed(others))
        self._taken.clear()
        self._line += 1
        self._row += 1
        return self._line - 1, _split_ignoring_quotes(first, self._delimiter), (code, row, row)

    def _refuse_all_lines(self) -> list[DelimitedRow]:
        """Return all lines of the row, each as a row to refuse."""
        line, row, count = self._line, self._row, len(self._taken)
        damage: QuoteDamage = "quote_not_closed", row, row + count - 1
        found = [
            (line + index, _split_ignoring_quotes(each, self._delimiter), damage)
            for index, each in enumerate(self._taken)
        ]
        self._line, self._row = line + count, row + count
        self._taken.clear()
        return list[DelimitedRow](found)


def _split_ignoring_quotes(line: str, delimiter: str) -> list[str]:
    """Return the parts of a line between delimiters; quotes are ordinary characters."""
    return line.rstrip("\r\n").split(delimiter)


# Quotes in an unquoted cell: around a word, after a number of inches, or stray.
_PAIRED = re.compile(r'(?<![^\s(\[])"[^"]+"(?![^\s)\].,;:!?])')
_INCHES = re.compile(r'(?<=[0-9])"')


def _has_stray_quote(cell: str) -> bool:
    """Return True if the cell has a quote that is not around words and not a sign for inches."""
    return '"' in _INCHES.sub("", _PAIRED.sub("", cell))


def _unquoted_cells_with_quotes(line: str, delimiter: str) -> Iterator[str]:
    """Yield the cells of a line that do not begin with a quote but contain one."""
    sign = re.escape(delimiter)
    for found in re.finditer(rf'(?:^|{sign}) *(?:"(?:[^"]|"")*"|([^{sign}\r\n]*))', line):
        if found[1] and '"' in found[1]:
            yield found[1]


def _damage_error(source: SourceFile, line: int, error: str) -> DamagedSpreadsheet:
    """Return the error for the message of the csv library at this line."""
    damage = f"the cells cannot be separated: {error}"
    if "unexpected end" in error or "field larger" in error:
        damage = 'a quote (") opens a cell that is not closed'
    elif "expected after" in error:
        damage = 'a quote (") inside a cell is neither doubled nor the last character'
    return DamagedSpreadsheet(f"{source.path}: line {line}: {damage}")


# -- Delimiters ------------------------------------------------------------------------------------


DELIMITERS: Mapping[str, str] = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Delimiters that are tried and that the user can give, by name."""

_NAMES = {character: name for name, character in DELIMITERS.items()}


@dataclass(frozen=True, slots=True)
class DelimiterFit:
    """Fit of one delimiter to the rows of a file.

    Attributes:
        first_row: Cells of the row with the headings.
        rows: Number of other rows that are not blank.
        fitting_rows: Number of those rows that have the width of the headings, ignoring empty
            cells at the end.
        damaged_rows: Number of those rows with a wrong quote.
        has_end_delimiters: True if every row has one more delimiter than the headings, at its end.
        first_misfit: Number, line and width of the first row that does not fit.
        filled_columns: Number of columns up to the last one with a cell that is not empty, in rows
            that are not wider than the headings.
    """

    delimiter: str
    first_row: tuple[str, ...]
    rows: int
    fitting_rows: int
    damaged_rows: int
    has_end_delimiters: bool
    first_misfit: tuple[int, int, int] | None
    filled_columns: int
    heading_rows: HeadingRows
    shape: RowShape | None

    @property
    def max_width(self) -> int:
        """Maximum number of cells of a row, including an empty cell after the last delimiter."""
        return len(self.first_row) + self.has_end_delimiters

    def __str__(self) -> str:
        name, width = _NAMES[self.delimiter], len(self.first_row)
        text = f"{name} gives {width} columns and fits {self.fitting_rows} of {self.rows} rows"
        if self.first_misfit is None:
            return text
        row, line, cells = self.first_misfit
        return f"{text} (row {row}, line {line}, has {cells})"


def detect_delimiter(
    source: SourceFile, encoded: TextEncoding, given: str | None, header_row: int | None = None
) -> DelimiterFit:
    """Return the fit of the delimiter that the user gave, or else of the only one that fits.

    Raises `SpreadsheetError`, also if no delimiter or several fit, `UnknownName` for one that may
    not be given, and the errors of `read_rows`.
    """
    if given is None:
        fit = _best_fit(source, _candidate_fits(source, encoded, header_row))
    else:
        character = DELIMITERS.get(given.lower(), given)
        if character not in _NAMES:
            raise UnknownName("delimiter", given, DELIMITERS)
        fit = _measure_fit(
            source, encoded, character, _find_headings(source, encoded, character, header_row)
        )
    if not fit.rows and any(fit.first_row):
        raise SpreadsheetError(f"{source.path} has headings, but no rows", code="no_rows")
    return fit


def _candidate_fits(
    source: SourceFile, encoded: TextEncoding, header_row: int | None
) -> list[DelimiterFit]:
    """Return the fits of delimiters that separate the headings, or of one for a single column."""
    headings_by_delimiter = {
        each: _find_headings(source, encoded, each, header_row) for each in _NAMES
    }
    for each, heading_rows in headings_by_delimiter.items():
        if has_report_headings(heading_rows.headings):
            # Only a report of this program has these headings, even if its rows still have errors.
            return [_measure_fit(source, encoded, each, heading_rows)]
    # Known headings do not result from chance.
    known_max = max(heading_rows.known_count for heading_rows in headings_by_delimiter.values())
    if known_max > 1:
        headings_by_delimiter = {
            each: heading_rows
            for each, heading_rows in headings_by_delimiter.items()
            if heading_rows.known_count == known_max
        }
    elif any(
        len(heading_rows.headings) > 1 and heading_rows.is_first
        for heading_rows in headings_by_delimiter.values()
    ):
        headings_by_delimiter = {
            each: heading_rows
            for each, heading_rows in headings_by_delimiter.items()
            if heading_rows.is_first
        }
    parting = [
        each
        for each, heading_rows in headings_by_delimiter.items()
        if len(heading_rows.headings) > 1
    ]
    fits: list[DelimiterFit] = []
    damage = None
    for each in parting or headings_by_delimiter:
        try:
            fit = _measure_fit(source, encoded, each, headings_by_delimiter[each])
        except DamagedSpreadsheet as error:
            # Quotes need not match with a delimiter that is not the file's.
            damage = damage or error
            continue
        fits.append(fit)
        # With a single column, every delimiter that is not in the file reads the same cells.
        if not parting and fit.fitting_rows == fit.rows:
            return [fit]
    if damage is not None and not fits:
        raise damage
    return fits


def _find_headings(
    source: SourceFile, encoded: TextEncoding, delimiter: str, header_row: int | None
) -> HeadingRows:
    """Return the headings that result from this delimiter; without cells if quotes do not match.

    A first line `sep=;`, as some spreadsheet programs write it, is skipped.
    """
    first: list[list[str]] = []
    with closing(read_rows(source, encoded, delimiter)) as records:
        try:
            for _, cells, _ in islice(records, header_row or LOOKED_AT):
                first.append(cells)
        except DamagedSpreadsheet:
            if not first:
                return HeadingRows(())
    if header_row is None and first and _SAID(",".join(first[0])):
        found = find_headings(first[1:])
        return replace(found, index=found.index + 1)
    return find_headings(first, header_row)


_SAID = re.compile(r"sep=.?,?", re.IGNORECASE).fullmatch


def _best_fit(source: SourceFile, fits: list[DelimiterFit]) -> DelimiterFit:
    """Return the fit without misfits, else the only one for most rows, else with known headings.

    The first fit is returned for blank headings and for a report. Raises `SpreadsheetError` if none
    or several are left.
    """
    first = fits[0]
    # Blank headings are themselves the error; a report is recognized by its own.
    if not any(first.first_row) or has_report_headings(first.first_row):
        return first
    # Rows with a wrong quote do not count, unless there are no other rows and delimiters.
    whole = [
        fit
        for fit in fits
        if fit.fitting_rows == fit.rows - fit.damaged_rows and (fit.fitting_rows or len(fits) == 1)
    ]
    if len(whole) > 1 and source.path.suffix.lower() == ".tsv":
        whole = [fit for fit in whole if fit.delimiter == "\t"] or whole
    chosen = whole or [fit for fit in fits if fit.fitting_rows * 2 > fit.rows]
    # Known headings do not result from chance, even if many rows have another width.
    chosen = chosen or [fit for fit in fits if fit.heading_rows.known_count > 1]
    if len(chosen) == 1:
        return chosen[0]
    reason = "more than one delimiter fits" if chosen else "no delimiter fits"
    counts = "; ".join(map(str, fits))
    raise SpreadsheetError(f"{source.path}: {reason} the rows: {counts}", code="delimiter_unknown")


def _measure_fit(
    source: SourceFile, encoded: TextEncoding, delimiter: str, heading_rows: HeadingRows
) -> DelimiterFit:
    """Return the fit of this delimiter, after reading the whole file with it."""
    shape = _row_shape(source, encoded, delimiter, heading_rows)
    records = read_rows(source, encoded, delimiter, shape)
    first = list(heading_rows.headings)
    header_width, rows, fitting_rows, damaged, ended, filled = _filled_width(first), 0, 0, 0, 0, 0
    misfit = None
    below = islice(records, heading_rows.first_row, None)
    for number, (line, cells, damage) in enumerate(below, heading_rows.first_row + 1):
        if not any(map(str.strip, cells)):
            continue
        rows += 1
        width = len(cells)
        if damage is not None:
            damaged += 1
            continue
        if header_width <= width <= len(first):
            fitting_rows += 1
        else:
            ended += width == len(first) + 1 and not cells[-1]
            misfit = misfit or (number, line, width)
        if filled < width <= len(first):
            filled = max(filled, _filled_width(cells))
    is_ended = bool(ended) and ended == rows - damaged
    return DelimiterFit(
        delimiter=delimiter,
        first_row=tuple(first),
        rows=rows,
        fitting_rows=ended if is_ended else fitting_rows,
        damaged_rows=damaged,
        has_end_delimiters=is_ended,
        first_misfit=None if is_ended else misfit,
        filled_columns=filled,
        heading_rows=heading_rows,
        shape=shape,
    )


def _row_shape(
    source: SourceFile, encoded: TextEncoding, delimiter: str, heading_rows: HeadingRows
) -> RowShape | None:
    """Return the shape that rows below these headings have, judged by the first lines.

    None if all headings are empty.
    """
    headings = list(heading_rows.headings)
    if not any(headings):
        return None
    with source.open() as file:
        head = file.read(_HEAD_BYTES).decode(encoded.codec, "ignore")
    lines = csv.reader(head.splitlines()[heading_rows.first_row :], delimiter=delimiter)
    widths = range(_filled_width(headings), len(headings) + 1)
    rows = [cells for cells in lines if len(cells) in widths]
    normalized = list(map(normalized_heading, headings))
    return RowShape(
        heading_rows.first_row,
        widths,
        frozenset(
            index
            for index in range(len(headings))
            if 2 * sum(index < len(row) and "@" in row[index] for row in rows) > len(rows)
        ),
        frozenset(i for i, each in enumerate(normalized) if each in email_headings()),
        frozenset(i for i, each in enumerate(normalized) if each in one_line_headings()),
    )


def _filled_width(cells: list[str]) -> int:
    """Return the number of cells up to the last one that is not empty."""
    width = len(cells)
    while width and not cells[width - 1]:
        width -= 1
    return width

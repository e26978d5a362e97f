"""XLS workbooks (Excel 97), made byte by byte: one sheet of texts and numbers."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import count

_SECTOR = 512
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_STREAM_MIN = 4096
_GLOBALS, _SHEET = 0x0005, 0x0010

OldCell = str | float | tuple[float, str]
"""A text, a number, or a number with its number format."""


def make_xls(rows: Sequence[Sequence[OldCell]], *, is_encrypted: bool = False) -> bytes:
    """Return an XLS file with these rows on its only sheet."""
    formats = ["General"]
    for row in rows:
        formats += [each[1] for each in row if isinstance(each, tuple) and each[1] not in formats]
    return make_compound_file(
        make_workbook_stream(rows, list(dict.fromkeys(formats)), is_encrypted)
    )


def make_biff_record(kind: int, content: bytes = b"") -> bytes:
    """Return a record of the XLS format: type, length, content."""
    return struct.pack("<HH", kind, len(content)) + content


def encode_text(text: str, length: str = "<HB") -> bytes:
    """Return a text in UTF-16 after its length and encoding; `length` packs both."""
    return struct.pack(length, len(text), 1) + text.encode("utf-16-le")


def make_start_record(kind: int) -> bytes:
    """Return the record that starts the workbook or a sheet."""
    return make_biff_record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0, 1997, 0, 6))


def make_workbook_stream(
    rows: Sequence[Sequence[OldCell]], formats: list[str], is_encrypted: bool
) -> bytes:
    """Return the records of a workbook with these rows and number formats."""
    font = make_biff_record(
        0x0031, struct.pack("<HHHHHBBBB", 200, 0, 8, 400, 0, 0, 0, 0, 0) + encode_text("A", "<BB")
    )
    book = make_start_record(_GLOBALS)
    if is_encrypted:
        book += make_biff_record(0x002F, struct.pack("<HHH", 1, 1, 1) + b"\0" * 48)
    book += font * 5
    for number, number_format in enumerate(formats):
        book += make_biff_record(
            0x041E, struct.pack("<H", 164 + number) + encode_text(number_format)
        )
    for number in range(len(formats)):
        book += make_biff_record(
            0x00E0, struct.pack("<HHHBBBBIiH", 0, 164 + number, 1, 0, 0, 0, 0, 0, 0, 0)
        )
    name = encode_text("List", "<BB")
    sheet_at = len(book) + 4 + 6 + len(name) + 4
    book += make_biff_record(0x0085, struct.pack("<IBB", sheet_at, 0, 0) + name) + make_biff_record(
        0x000A
    )
    width = max(map(len, rows))
    book += make_start_record(_SHEET) + make_biff_record(
        0x0200, struct.pack("<IIHHH", 0, len(rows), 0, width, 0)
    )
    for row_number, row in enumerate(rows):
        for column, cell in enumerate(row):
            book += make_cell_record(row_number, column, cell, formats)
    return book + make_biff_record(0x000A)


def make_cell_record(row: int, column: int, cell: OldCell, formats: list[str]) -> bytes:
    """Return the record of a cell; an empty text has none."""
    if isinstance(cell, str):
        return (
            make_biff_record(0x0204, struct.pack("<HHH", row, column, 0) + encode_text(cell))
            if cell
            else b""
        )
    value, number_format = cell if isinstance(cell, tuple) else (cell, "General")
    return make_biff_record(
        0x0203, struct.pack("<HHHd", row, column, formats.index(number_format), value)
    )


def make_compound_file(stream: bytes) -> bytes:
    """Return a compound file with the stream: header, table of sectors, directory, stream."""
    stream = stream.ljust(max(_STREAM_MIN, -(-len(stream) // _SECTOR) * _SECTOR), b"\0")
    sectors = len(stream) // _SECTOR
    chain = [_FAT, _END, *range(3, sectors + 2), _END]
    assert len(chain) <= _SECTOR // 4
    table = struct.pack(f"<{len(chain)}I", *chain).ljust(_SECTOR, b"\xff")
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 16
    head += struct.pack(
        "<HHHHH6xIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, _STREAM_MIN, _END, 0, _END, 0
    )
    head += struct.pack("<109I", 0, *[_FREE] * 108)
    return head + table + b"".join(make_directory_entries(len(stream))) + stream


def make_directory_entries(size: int) -> Iterator[bytes]:
    """Yield the directory for a stream of this size: root, stream, and two unused entries."""
    entries = (("Root Entry", 5, 1, _END, 0), ("Workbook", 2, _FREE, 2, size))
    for number in count():
        if number == 4:
            return
        name, kind, child, start, length = entries[number] if number < 2 else ("", 0, _FREE, 0, 0)
        encoded = name.encode("utf-16-le")
        yield (
            encoded.ljust(64, b"\0")
            + struct.pack("<HBB", len(encoded) + 2 if name else 0, kind, 1)
            + struct.pack("<III", _FREE, _FREE, child)
            + b"\0" * 36
            + struct.pack("<III", start, length, 0)
        )

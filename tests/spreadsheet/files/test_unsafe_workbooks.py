"""Workbooks that fill the memory or reach outside are refused early.

A bomb is refused after few of its bytes are decompressed, and before the library that reads values
sees the file. Memory is what Python allocates during the test.
"""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from connector.errors import SpreadsheetError
from connector.spreadsheet import source_file as container
from connector.spreadsheet import workbook
from connector.spreadsheet.table import open_table
from tests.spreadsheet.files.made import (
    list_cells,
    make_relationship,
    make_relationships_part,
    make_sheet_part,
    make_text_row,
    make_workbook_parts,
    make_zip,
    write_file,
)
from tests.support.errors import has_code

ROWS = (make_text_row(1, "a"), make_text_row(2, "1"))
GOOD = make_workbook_parts({"People": make_sheet_part(*ROWS)})
SHEET = "xl/worksheets/s1.xml"
MEBIBYTE = 1024 * 1024


class DecompressedBytes:
    """Counter of the bytes that were decompressed from zip members."""

    bytes = 0


@pytest.fixture
def inflated(monkeypatch: pytest.MonkeyPatch) -> Iterator[DecompressedBytes]:
    """Count decompressed bytes, fail if values are read, and assert a peak memory below 64 MiB."""
    counted = DecompressedBytes()
    read = zipfile.ZipExtFile.read

    def counting(member: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        piece = read(member, n)
        counted.bytes += len(piece)
        return piece

    def forbidden(*arguments: object) -> None:
        raise AssertionError("the values of an unsafe workbook were read")

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counting)
    monkeypatch.setattr(workbook, "_load_sheet", forbidden)
    tracemalloc.start()
    yield counted
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * MEBIBYTE


def make_bomb(size: int, declared: int) -> bytes:
    """Return a workbook with a sheet of `size` spaces that declares another size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b" " * size) + packer.flush()
    made = io.BytesIO(make_zip({name: xml for name, xml in GOOD.items() if name != SHEET}))
    with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as archive:
        # The compressed bytes are stored, then the list of members gets their real type.
        archive.writestr(zipfile.ZipInfo(SHEET), packed)
        member = archive.getinfo(SHEET)
        member.compress_type, member.file_size = zipfile.ZIP_DEFLATED, declared
    assert len(made.getvalue()) * 500 < size
    return made.getvalue()


def make_many_members() -> bytes:
    """Return a workbook whose members are small enough each, but too large together."""
    made = io.BytesIO(make_zip(GOOD))
    with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as archive:
        for each in range(33):
            archive.writestr(f"xl/media/{each}.bin", b"")
            archive.getinfo(f"xl/media/{each}.bin").file_size = 8 * MEBIBYTE
    return made.getvalue()


def make_large_directory() -> bytes:
    """Return a zip file whose list of members is larger than a workbook's may be."""
    directory = b"\0" * (3 * MEBIBYTE)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(directory), 4, 0)
    return b"PK\x03\x04" + directory + end


def make_encrypted_zip() -> bytes:
    """Return an encrypted zip file."""
    content = bytearray(make_zip(GOOD))
    content[content.rindex(SHEET.encode()) - 46 + 8] |= 1
    return bytes(content)


def make_sheet_with_rows(*rows: str, used_range: str = "") -> bytes:
    """Return a workbook with these rows of XML below two valid ones."""
    return make_zip(
        make_workbook_parts({"People": make_sheet_part(*ROWS, *rows, used_range=used_range)})
    )


def make_linked_workbook(kind: str, part: str = "xl/externalLinks/_rels/e1.xml.rels") -> bytes:
    """Return a workbook with a part that has a relationship to an external target."""
    target = make_relationship("r9", kind, "mailto:ann@example.com", is_outside=True)
    return make_zip({**GOOD, part: make_relationships_part(target)})


CORNER = '<row r="1048576"><c r="XFD1048576">{}</c></row>'
TWO_SIDES = '<row r="3"><c r="ZZZ3"><v>1</v></c></row><row r="9999"><c r="A9999"><v>1</v></c></row>'
BEYOND = '<row r="9999999"><c r="A9999999"><v>1</v></c></row>'
TWICE = "has too many parts, or contains a part twice"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
UNSAFE: dict[str, tuple[Callable[[], bytes], str, int | None]] = {
    "bomb": (lambda: make_bomb(32 * MEBIBYTE, 32 * MEBIBYTE), "unusually large when unpacked", 0),
    "bomb that lies": (
        lambda: make_bomb(32 * MEBIBYTE, 1000),
        "is larger than the 1,000 bytes that it declares",
        MEBIBYTE,
    ),
    "together": (make_many_members, "unpacked, it has more than 268 MB", 0),
    "list": (make_large_directory, "has too many parts", 0),
    "name in another case": (lambda: make_zip({**GOOD, SHEET.upper(): "<a/>"}), TWICE, 0),
    "other slash": (lambda: make_zip({**GOOD, SHEET.replace("/", "\\"): "<a/>"}), TWICE, 0),
    "corner": (
        lambda: make_sheet_with_rows(CORNER.format("<v>1</v>")),
        "the table reaches to XFD1048576",
        None,
    ),
    "two sides": (lambda: make_sheet_with_rows(TWO_SIDES), "the table reaches to A9999", None),
    "beyond": (lambda: make_sheet_with_rows(BEYOND), "the table reaches to A9999999", None),
    **{
        kind: (partial(make_linked_workbook, kind), f"refers to other files ({kind})", None)
        for kind in ("externalLinkPath", "oleObject", "image")
    },
}
"""By name: the workbook, a part of the message, and how many bytes may be decompressed."""


def open_refused(folder: Path, content: bytes, code: str = "unsafe_workbook") -> str:
    """Open a workbook, assert that it is refused with this code, and return the message."""
    path = write_file(folder, content, "rows.xlsx")
    with pytest.raises(SpreadsheetError, check=has_code(code)) as refused:
        open_table(path)
    assert path.name in str(refused.value)
    assert refused.value.action.endswith(".")
    return str(refused.value)


@pytest.mark.parametrize(
    ("make_workbook", "message_part", "bytes_limit"), UNSAFE.values(), ids=UNSAFE
)
def test_unsafe_workbooks_are_refused_early(
    tmp_path: Path,
    inflated: DecompressedBytes,
    make_workbook: Callable[[], bytes],
    message_part: str,
    bytes_limit: int | None,
) -> None:
    content = make_workbook()
    inflated.bytes = 0

    assert message_part in open_refused(tmp_path, content)
    assert bytes_limit is None or inflated.bytes <= bytes_limit


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]>'
FILE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize(
    "part_name", [SHEET, "xl/workbook.xml", "_rels/.rels", "docProps/core.xml"]
)
def test_a_workbook_with_a_document_type_is_refused(
    tmp_path: Path, inflated: DecompressedBytes, part_name: str
) -> None:
    for prolog in (ENTITIES, FILE, '<?xml version="1.0"?>\n<!DOCTYPE x>'):
        content = prolog + GOOD.get(part_name, "<a/>")
        for encoded in (content.encode(), b"\xff\xfe" + content.encode("utf-16-le")):
            made = make_zip({**GOOD, part_name: encoded})
            assert f"{part_name!r} declares a document type" in open_refused(tmp_path, made)


def test_a_workbook_with_too_many_shared_texts_is_refused(
    tmp_path: Path, inflated: DecompressedBytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "SHARED_TEXTS_MAX", 1000)
    made = make_zip({**GOOD, "xl/sharedStrings.xml": f"<sst>{'<si/>' * 1001}</sst>"})

    assert "has too many texts" in open_refused(tmp_path, made)


@pytest.mark.parametrize(
    ("content", "code", "message_part"),
    [
        (
            OLE + b"\0" * 300_000 + "EncryptedPackage".encode("utf-16-le"),
            "password_protected",
            "with a password",
        ),
        (make_encrypted_zip(), "not_a_spreadsheet", "is encrypted, or packed in an unusual way"),
        (make_zip({"Index/Document.iwa": b"\0"}), "not_a_spreadsheet", "is a Numbers document"),
    ],
    ids=["encrypted", "member", "numbers"],
)
def test_encrypted_and_unsupported_workbooks_are_refused_unread(
    tmp_path: Path, inflated: DecompressedBytes, content: bytes, code: str, message_part: str
) -> None:
    inflated.bytes = 0
    assert message_part in open_refused(tmp_path, content, code)
    assert 0 == inflated.bytes


def test_workbooks_with_harmless_features_are_read(tmp_path: Path) -> None:
    hyperlink = make_linked_workbook("hyperlink", "xl/worksheets/_rels/s1.xml.rels")
    for content in (make_sheet_with_rows(CORNER.format("")), hyperlink):
        assert [("1",)] == list_cells(open_table(write_file(tmp_path, content, "rows.xlsx")))

"""Workbooks that fill the memory or reach outside are refused early.

How early is told by what was read: a bomb is refused after a few of its bytes were inflated, and
the reader of values has not seen the file. Memory is measured by what Python allocated meanwhile.
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
    cells_of,
    parts,
    relation,
    relations,
    sheet_xml,
    text_file,
    text_row,
    zipped,
)
from tests.support.errors import has_code

ROWS = (text_row(1, "a"), text_row(2, "1"))
GOOD = parts({"People": sheet_xml(*ROWS)})
SHEET = "xl/worksheets/s1.xml"
MEBIBYTE = 1024 * 1024


class InflatedBytes:
    """Number of bytes that members of workbooks returned."""

    bytes = 0


@pytest.fixture
def inflated(monkeypatch: pytest.MonkeyPatch) -> Iterator[InflatedBytes]:
    """Counts what is inflated, lets nobody read values, and bounds the memory."""
    counted = InflatedBytes()
    read = zipfile.ZipExtFile.read

    def counting(member: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        piece = read(member, n)
        counted.bytes += len(piece)
        return piece

    def forbidden(*arguments: object) -> None:
        raise AssertionError("the values of an unsafe workbook were read")

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counting)
    monkeypatch.setattr(workbook, "_read", forbidden)
    tracemalloc.start()
    yield counted
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * MEBIBYTE


def bomb(size: int, declared: int) -> bytes:
    """A workbook with so many blanks, packed a thousandfold; it may declare less."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b" " * size) + packer.flush()
    made = io.BytesIO(zipped({name: xml for name, xml in GOOD.items() if name != SHEET}))
    with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as archive:
        # The packed bytes go in as they are, and the list of members is told their real meaning.
        archive.writestr(zipfile.ZipInfo(SHEET), packed)
        member = archive.getinfo(SHEET)
        member.compress_type, member.file_size = zipfile.ZIP_DEFLATED, declared
    assert len(made.getvalue()) * 500 < size
    return made.getvalue()


def many_members() -> bytes:
    """Members that are each within bounds, and too large together."""
    made = io.BytesIO(zipped(GOOD))
    with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as archive:
        for each in range(33):
            archive.writestr(f"xl/media/{each}.bin", b"")
            archive.getinfo(f"xl/media/{each}.bin").file_size = 8 * MEBIBYTE
    return made.getvalue()


def countless_members() -> bytes:
    """A list of members whose size alone fills the memory."""
    directory = b"\0" * (3 * MEBIBYTE)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(directory), 4, 0)
    return b"PK\x03\x04" + directory + end


def encrypted_member() -> bytes:
    """A zip that is encrypted itself."""
    content = bytearray(zipped(GOOD))
    content[content.rindex(SHEET.encode()) - 46 + 8] |= 1
    return bytes(content)


def sheet(*rows: str, claim: str = "") -> bytes:
    """A workbook with these rows below two good ones."""
    return zipped(parts({"People": sheet_xml(*ROWS, *rows, claim=claim)}))


def linked(kind: str, part: str = "xl/externalLinks/_rels/e1.xml.rels") -> bytes:
    """A workbook with a relationship to something outside itself."""
    target = relation("r9", kind, "mailto:ann@example.com", is_outside=True)
    return zipped({**GOOD, part: relations(target)})


CORNER = '<row r="1048576"><c r="XFD1048576">{}</c></row>'
TWO_SIDES = '<row r="3"><c r="ZZZ3"><v>1</v></c></row><row r="9999"><c r="A9999"><v>1</v></c></row>'
BEYOND = '<row r="9999999"><c r="A9999999"><v>1</v></c></row>'
TWICE = "has too many parts, or contains a part twice"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
UNSAFE: dict[str, tuple[Callable[[], bytes], str, int | None]] = {
    "bomb": (lambda: bomb(32 * MEBIBYTE, 32 * MEBIBYTE), "unusually large when unpacked", 0),
    "bomb that lies": (
        lambda: bomb(32 * MEBIBYTE, 1000),
        "is larger than the 1,000 bytes that it declares",
        MEBIBYTE,
    ),
    "together": (many_members, "unpacked, it has more than 268 MB", 0),
    "list": (countless_members, "has too many parts", 0),
    "name in another case": (lambda: zipped({**GOOD, SHEET.upper(): "<a/>"}), TWICE, 0),
    "other slash": (lambda: zipped({**GOOD, SHEET.replace("/", "\\"): "<a/>"}), TWICE, 0),
    "corner": (lambda: sheet(CORNER.format("<v>1</v>")), "the table reaches to XFD1048576", None),
    "two sides": (lambda: sheet(TWO_SIDES), "the table reaches to A9999", None),
    "beyond": (lambda: sheet(BEYOND), "the table reaches to A9999999", None),
    **{
        kind: (partial(linked, kind), f"refers to other files ({kind})", None)
        for kind in ("externalLinkPath", "oleObject", "image")
    },
}
"""By name: the workbook, what is said of it, and how many bytes may be inflated before."""


def refusal(folder: Path, content: bytes, code: str = "unsafe_workbook") -> str:
    """Open a workbook that must be refused; returns the message."""
    path = text_file(folder, content, "rows.xlsx")
    with pytest.raises(SpreadsheetError, check=has_code(code)) as refused:
        open_table(path)
    assert path.name in str(refused.value)
    assert refused.value.action.endswith(".")
    return str(refused.value)


@pytest.mark.parametrize(("made", "part", "limit"), UNSAFE.values(), ids=UNSAFE)
def test_unsafe_workbooks_are_refused_early(
    tmp_path: Path, inflated: InflatedBytes, made: Callable[[], bytes], part: str, limit: int | None
) -> None:
    content = made()
    inflated.bytes = 0

    assert part in refusal(tmp_path, content)
    assert limit is None or inflated.bytes <= limit


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]>'
FILE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize("part", [SHEET, "xl/workbook.xml", "_rels/.rels", "docProps/core.xml"])
def test_a_document_type_is_refused(tmp_path: Path, inflated: InflatedBytes, part: str) -> None:
    for prolog in (ENTITIES, FILE, '<?xml version="1.0"?>\n<!DOCTYPE x>'):
        content = prolog + GOOD.get(part, "<a/>")
        for encoded in (content.encode(), b"\xff\xfe" + content.encode("utf-16-le")):
            made = zipped({**GOOD, part: encoded})
            assert f"{part!r} declares a document type" in refusal(tmp_path, made)


def test_texts_without_number_are_refused(
    tmp_path: Path, inflated: InflatedBytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "SHARED_TEXTS_MAX", 1000)
    made = zipped({**GOOD, "xl/sharedStrings.xml": f"<sst>{'<si/>' * 1001}</sst>"})

    assert "has too many texts" in refusal(tmp_path, made)


@pytest.mark.parametrize(
    ("content", "code", "part"),
    [
        (
            OLE + b"\0" * 300_000 + "EncryptedPackage".encode("utf-16-le"),
            "password_protected",
            "with a password",
        ),
        (encrypted_member(), "not_a_spreadsheet", "is encrypted, or packed in an unusual way"),
        (zipped({"Index/Document.iwa": b"\0"}), "not_a_spreadsheet", "is a Numbers document"),
    ],
    ids=["encrypted", "member", "numbers"],
)
def test_encrypted_and_other_workbooks(
    tmp_path: Path, inflated: InflatedBytes, content: bytes, code: str, part: str
) -> None:
    inflated.bytes = 0
    assert part in refusal(tmp_path, content, code)
    assert 0 == inflated.bytes


def test_what_is_harmless_is_read(tmp_path: Path) -> None:
    hyperlink = linked("hyperlink", "xl/worksheets/_rels/s1.xml.rels")
    for content in (sheet(CORNER.format("")), hyperlink):
        assert [("1",)] == cells_of(open_table(text_file(tmp_path, content, "rows.xlsx")))

"""Test 39: workbooks that would fill the memory, or reach out of themselves, are refused early.

How early is told by what was read: a bomb is refused after a few of its bytes were inflated, and
the reader of values has not seen the file. Memory is measured by what Python allocated meanwhile.
"""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.errors import ConnectorError, NotASpreadsheet, UnsafeWorkbook
from connector.spreadsheet import source_file as container
from connector.spreadsheet import workbook
from connector.spreadsheet.table import open_table
from tests.spreadsheet.files.made import (
    cells_of,
    parts,
    relation,
    relations,
    sheet_xml,
    text_row,
    workbook_file,
    zipped,
)

ROWS = (text_row(1, "a"), text_row(2, "1"))
GOOD = parts({"People": sheet_xml(*ROWS)})
SHEET = "xl/worksheets/s1.xml"
MEBIBYTE = 1024 * 1024


class Inflated:
    """How many bytes the members of workbooks have given."""

    bytes = 0


@pytest.fixture
def inflated(monkeypatch: pytest.MonkeyPatch) -> Iterator[Inflated]:
    """Counts what is inflated, lets nobody read values, and bounds the memory."""
    counted = Inflated()
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


def refusal(path: Path, error: type[ConnectorError] = UnsafeWorkbook) -> str:
    """What is said of the workbook, which must be refused."""
    with pytest.raises(error) as refused:
        open_table(path)
    assert path.name in str(refused.value)
    assert refused.value.action.endswith(".")
    return str(refused.value)


def bomb(folder: Path, size: int, *, declared: int | None = None) -> Path:
    """A workbook whose sheet is so many blanks, packed a thousandfold; it may declare less."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = b" " * MEBIBYTE
    packed = b"".join([*(packer.compress(piece) for _ in range(size // MEBIBYTE)), packer.flush()])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in GOOD.items():
            if name != SHEET:
                archive.writestr(name, content)
        # The packed bytes go in as they are, and the list of members is told their real meaning.
        archive.writestr(zipfile.ZipInfo(SHEET), packed)
        member = archive.getinfo(SHEET)
        member.compress_type = zipfile.ZIP_DEFLATED
        member.file_size = size if declared is None else declared
    path = folder / "bomb.xlsx"
    path.write_bytes(made.getvalue())
    return path


def test_39_a_bomb_is_refused_by_its_word(tmp_path: Path, inflated: Inflated) -> None:
    """A thousandfold growth that is declared is refused before a byte is inflated."""
    path = bomb(tmp_path, 32 * MEBIBYTE)

    assert path.stat().st_size * 500 < 32 * MEBIBYTE
    assert "would grow" in refusal(path)
    assert 0 == inflated.bytes


def test_39_a_bomb_that_lies_is_refused_at_its_word(tmp_path: Path, inflated: Inflated) -> None:
    """A member that declares little is inflated up to that and no further."""
    path = bomb(tmp_path, 32 * MEBIBYTE, declared=1000)

    assert "grows beyond the 1,000 bytes that it declares" in refusal(path)
    assert inflated.bytes < MEBIBYTE


def test_39_many_members_are_measured_together(tmp_path: Path, inflated: Inflated) -> None:
    """Members that are each within bounds are refused for what they are together."""
    path = tmp_path / "many.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in GOOD.items():
            archive.writestr(name, content)
        for each in range(33):
            archive.writestr(f"xl/media/{each}.bin", b"")
            archive.getinfo(f"xl/media/{each}.bin").file_size = 8 * MEBIBYTE

    assert "has more than 268,435,456 bytes when inflated" in refusal(path)
    assert 0 == inflated.bytes


def test_39_a_list_of_countless_members_is_not_read(tmp_path: Path, inflated: Inflated) -> None:
    """The list's own size is looked at first, and nothing in it."""
    directory = b"\0" * (3 * MEBIBYTE)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(directory), 4, 0)
    path = tmp_path / "list.xlsx"
    path.write_bytes(b"PK\x03\x04" + directory + end)

    assert "lists more parts than any workbook has" in refusal(path)
    assert 0 == inflated.bytes


@pytest.mark.parametrize("name", [SHEET.upper(), SHEET.replace("/", "\\")])
def test_39_members_of_one_name_are_refused(tmp_path: Path, inflated: Inflated, name: str) -> None:
    """Two members that a reader may take for one would be two workbooks in one file."""
    path = tmp_path / "twice.xlsx"
    path.write_bytes(zipped({**GOOD, name: sheet_xml(*ROWS)}))

    assert "or one twice" in refusal(path)


def test_39_a_claim_of_all_cells_is_refused(tmp_path: Path, inflated: Inflated) -> None:
    """A sheet that says it has every row and column is refused by its word."""
    path = workbook_file(tmp_path, *ROWS, claim="A1:XFD1000000")

    assert "sheet 'People': the sheet says that it reaches to XFD1000000" in refusal(path)


@pytest.mark.parametrize(
    "corner",
    [
        '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
        '<row r="3"><c r="ZZZ3"><v>1</v></c></row><row r="9999"><c r="A9999"><v>1</v></c></row>',
        '<row r="9999999"><c r="A9999999"><v>1</v></c></row>',
    ],
    ids=["corner", "two sides", "beyond"],
)
def test_39_two_cells_far_apart_are_refused(
    tmp_path: Path, inflated: Inflated, corner: str
) -> None:
    """What lies between two cells is counted as they come, whatever the sheet claims."""
    assert "the table reaches to " in refusal(workbook_file(tmp_path, *ROWS, corner))


def test_39_styled_cells_without_a_value_reach_nowhere(tmp_path: Path) -> None:
    """A format far out, which people leave behind, is no reason to refuse."""
    path = workbook_file(tmp_path, *ROWS, '<row r="1048576"><c r="XFD1048576" s="0"/></row>')

    assert [("1",)] == cells_of(open_table(path))


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]>'
FILE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize("part", [SHEET, "xl/workbook.xml", "_rels/.rels", "docProps/core.xml"])
@pytest.mark.parametrize("prolog", [ENTITIES, FILE, '<?xml version="1.0"?>\n<!DOCTYPE x>'])
def test_39_a_document_type_is_refused(
    tmp_path: Path, inflated: Inflated, part: str, prolog: str
) -> None:
    """No part may declare one, in any encoding, so no entity is ever expanded."""
    content = prolog + GOOD.get(part, "<a/>")
    for encoded in (content.encode(), b"\xff\xfe" + content.encode("utf-16-le")):
        path = tmp_path / "entities.xlsx"
        path.write_bytes(zipped({**GOOD, part: encoded}))
        assert f"{part!r} declares a document type" in refusal(path)


@pytest.mark.parametrize("kind", ["externalLinkPath", "oleObject", "image"])
def test_39_links_to_other_files_are_refused(tmp_path: Path, inflated: Inflated, kind: str) -> None:
    """Values may not come from outside; the relationship is enough, wherever it is."""
    target = relation("r9", kind, "file:///tmp/other.xlsx", is_outside=True)
    path = tmp_path / "links.xlsx"
    path.write_bytes(zipped({**GOOD, "xl/externalLinks/_rels/e1.xml.rels": relations(target)}))

    assert f"takes values from outside itself ({kind})" in refusal(path)


def test_39_addresses_that_people_click_are_no_links(tmp_path: Path) -> None:
    """A spreadsheet program makes a hyperlink of each email address; they change nothing."""
    mail = relation("r1", "hyperlink", "mailto:ann@example.com", is_outside=True)
    path = tmp_path / "rows.xlsx"
    path.write_bytes(zipped({**GOOD, "xl/worksheets/_rels/s1.xml.rels": relations(mail)}))

    assert [("1",)] == cells_of(open_table(path))


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (
            OLE + b"\0" * 300_000 + "EncryptedPackage".encode("utf-16-le"),
            "encrypted with a password",
        ),
        (OLE + b"\0" * 5_000 + "Workbook".encode("utf-16-le"), "a workbook of the old kind, xls"),
    ],
    ids=["encrypted", "xls"],
)
def test_39_encrypted_and_old_workbooks(
    tmp_path: Path, inflated: Inflated, content: bytes, part: str
) -> None:
    """Both have the same container, and each has its own advice."""
    path = tmp_path / "rows.xlsx"
    path.write_bytes(content)

    assert part in refusal(path, NotASpreadsheet)


def test_39_an_encrypted_member_is_refused(tmp_path: Path, inflated: Inflated) -> None:
    """A zip that is encrypted itself is refused by its list of members."""
    content = bytearray(zipped(GOOD))
    place = content.rindex(SHEET.encode()) - 46 + 8
    content[place] |= 1
    path = tmp_path / "rows.xlsx"
    path.write_bytes(bytes(content))

    assert "is encrypted, or packed in an unusual way" in refusal(path, NotASpreadsheet)
    assert 0 == inflated.bytes


def test_39_texts_without_number_are_refused(
    tmp_path: Path, inflated: Inflated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shared texts are counted before anybody keeps them."""
    monkeypatch.setattr(container, "SHARED_TEXTS_MAX", 1000)
    path = tmp_path / "texts.xlsx"
    path.write_bytes(zipped({**GOOD, "xl/sharedStrings.xml": f"<sst>{'<si/>' * 1001}</sst>"}))

    assert "has too many texts" in refusal(path)

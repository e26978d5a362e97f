"""Source file of a table: a regular file that is checked for changes and for safety."""

from __future__ import annotations

import copy
import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Literal
from xml.parsers import expat

from connector.errors import DamagedSpreadsheet, SpreadsheetChanged, SpreadsheetError

_KINDS = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """File that is read several times. Every reading checks that it has not changed."""

    path: Path
    stamp: tuple[int, int, int, int]
    """Device, inode, size in bytes, and time of change in nanoseconds."""

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.stamp[2]

    def open(self) -> BufferedReader:
        """Open the file.

        Raises `SpreadsheetChanged` if it has changed, or `SpreadsheetError` if it cannot be opened.
        """
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise _unreadable_error(self.path, error) from error
        if _file_stamp(os.fstat(file.fileno())) != self.stamp:
            file.close()
            raise self.changed_error()
        return file

    def digest(self) -> str:
        """Return the SHA-256 of the file in hexadecimal digits. Raises as `open` does."""
        with self.open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def check_unchanged(self) -> None:
        """Raise `SpreadsheetChanged` if the file has changed since `open_source`."""
        self.open().close()

    def changed_error(self) -> SpreadsheetChanged:
        """Return the error for a file that has changed."""
        return SpreadsheetChanged(f"{self.path} was changed while it was being read")


def open_source(path: Path) -> SourceFile:
    """Return the regular file at `path`. Other files are not opened: a pipe would block forever.

    Raises `SpreadsheetError`.
    """
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise SpreadsheetError(
            f"{path} does not exist",
            action="Check the name and the folder.",
            code="not_a_spreadsheet",
        ) from error
    except OSError as error:
        raise _unreadable_error(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        description = next((words for test, words in _KINDS if test(status.st_mode)), "is no file")
        raise SpreadsheetError(
            f"{path} {description}, not a file with a table", code="not_a_spreadsheet"
        )
    return SourceFile(path, _file_stamp(status))


def _file_stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    """Return device, inode, size in bytes, and time of change in nanoseconds."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _unreadable_error(path: Path, error: OSError) -> SpreadsheetError:
    return SpreadsheetError(f"{path} cannot be read: {error.strerror or error}")


# -- Container -------------------------------------------------------------------------------------
# The zip of a workbook is measured before its content is used. Its declared sizes are not trusted:
# every member is inflated once, in pieces that are discarded, and the first one that exceeds its
# declared size or a limit raises an error. XML is only parsed up to its root element, to check that
# it declares no entities. This takes some kilobytes of memory for any file.


BookKind = Literal["xlsx", "ods", "xls"]
"""Kind of workbook: current Excel, OpenDocument, or Excel before 2007."""

INFLATED_BYTES_MAX = 256 * 1024 * 1024
"""Maximum inflated size of a workbook, all members together; enough for five million cells."""

SHARED_TEXTS_MAX = 5_000_000

_RATIO_MAX = 250
"""Maximum ratio of the inflated to the compressed size of a member larger than
`_RATIO_FROM_BYTES`. Sheets of office programs have ratios of ten to forty.
"""

_RATIO_FROM_BYTES = 8 * 1024 * 1024
_MEMBERS_MAX = 10_000
_PIECE_BYTES = 256 * 1024
_START_BYTES = 1024
_PROLOG_BYTES_MAX = 1024 * 1024
_DIRECTORY_BYTES_MAX = 2 * 1024 * 1024
_ZIP_MAGIC = b"PK\x03\x04"
_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64_BYTES = 20
_IS_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_AS_XLSX = "Open it in a spreadsheet program and save it as xlsx, then use that file."
_OTHERS: Mapping[str, tuple[str, str]] = {
    "xl/workbook.bin": ("an xlsb workbook", _AS_XLSX),
    "word/document.xml": ("a text document", "Copy its table to a workbook, and use that file."),
    "ppt/presentation.xml": ("a presentation", "Copy its table to a workbook, and use that file."),
    "Index/Document.iwa": ("a Numbers document", "In Numbers, export it to xlsx or csv."),
    "Index.zip": ("a Numbers document", "In Numbers, export it to xlsx or csv."),
}
_TEXTS: tuple[tuple[bytes, str, str], ...] = (
    (b"%pdf", "a PDF", "A PDF has no cells. Ask for the table as xlsx or csv."),
    (b"{\\rtf", "a text document", "Copy its table to a workbook, and use that file."),
    (b"<?xml", "XML, as Excel saved it in 2003", _AS_XLSX),
    (b"<!doctype html", "a web page", _AS_XLSX),
    (b"<html", "a web page", _AS_XLSX),
    (b"<table", "a web page", _AS_XLSX),
    (b"\x89png", "a picture", "Ask for the table as xlsx or csv."),
    (b"\xff\xd8\xff", "a picture", "Ask for the table as xlsx or csv."),
    (b"begin:vcard", "a contact card (vCard)", "Export the contacts as csv."),
)
_MAIN: Mapping[str, BookKind] = {"xl/workbook.xml": "xlsx", "content.xml": "ods"}


def detect_kind(source: SourceFile) -> Literal["text"] | BookKind:
    """Return the kind of file by its content, regardless of its name.

    Raises `SpreadsheetError`, with the next step, if it is neither text nor a workbook.
    """
    with source.open() as file:
        start = file.read(_START_BYTES)
    if start.startswith(_ZIP_MAGIC):
        with open_archive(source) as archive:
            return _workbook_kind(source, archive.namelist())
    if start.startswith(_OLE_MAGIC):
        _refuse_encrypted(source)
        return "xls"
    head = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for mark, description, action in _TEXTS:
        if head.startswith(mark):
            raise SpreadsheetError(
                f"{source.path} is {description}, but has the file name of another type",
                action=action,
                code="not_a_spreadsheet",
            )
    return "text"


def _workbook_kind(source: SourceFile, members: list[str]) -> BookKind:
    """Return the kind of a zip by the names of its members.

    Raises `SpreadsheetError` if it is no workbook that can be read.
    """
    # Readers differ in whether letter case distinguishes names.
    names = {each.lower() for each in members}
    for part, kind in _MAIN.items():
        if part in names:
            return kind
    found = (texts for name, texts in _OTHERS.items() if name.lower() in names)
    text, action = next(
        found, ("a zip file, not a workbook", "Unpack the file, and use the table.")
    )
    raise SpreadsheetError(f"{source.path} is {text}", action=action, code="not_a_spreadsheet")


def measure_archive(source: SourceFile) -> None:
    """Read the whole archive once, to check that it is safe to open.

    Raises `SpreadsheetError` for excessive sizes and for declared entities, and
    `DamagedSpreadsheet`.
    """
    with open_archive(source) as archive:
        members = archive.infolist()
        _check_members(source, members)
        total = 0
        for member in members:
            prolog = _PrologParser(source, member.filename)
            for piece in _read_member(source, archive, member):
                prolog.feed(piece)
                total += len(piece)
                if total > INFLATED_BYTES_MAX:
                    raise _too_large_error(source)


def _refuse_encrypted(source: SourceFile) -> None:
    """Raise `SpreadsheetError` if the file contains a workbook encrypted with a password."""
    with source.open() as file:
        tail = b""
        while piece := file.read(_PIECE_BYTES):
            if _ENCRYPTED_STREAM in tail + piece:
                raise SpreadsheetError(
                    f"{source.path} is encrypted with a password", code="password_protected"
                )
            tail = piece[-len(_ENCRYPTED_STREAM) :]


@contextmanager
def open_archive(source: SourceFile) -> Iterator[zipfile.ZipFile]:
    """Yield the opened zip of a workbook. Errors of its structure become `DamagedSpreadsheet`."""
    with source.open() as file:
        _check_zip_directory(source, file)
        with _convert_errors(source), zipfile.ZipFile(file) as archive:
            # Some Windows programs write backslashes into the names of members.
            for member in archive.infolist():
                member.filename = member.filename.replace("\\", "/")
            archive.NameToInfo = {member.filename: member for member in archive.infolist()}
            yield archive


@contextmanager
def _convert_errors(source: SourceFile) -> Iterator[None]:
    """Convert the errors of a broken zip or broken XML to `DamagedSpreadsheet`."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error) as error:
        raise DamagedSpreadsheet(f"{source.path} is damaged: {error}") from error
    except expat.ExpatError as error:
        raise DamagedSpreadsheet(f"{source.path} contains damaged XML: {error}") from error


def _check_zip_directory(source: SourceFile, file: BinaryIO) -> None:
    """Check the position and size of the zip's list of members.

    Raises `SpreadsheetError` if it is too long, and `DamagedSpreadsheet` if bytes precede or
    follow.
    """
    file.seek(max(0, source.size - _END.size))
    end = file.read()
    if len(end) != _END.size or not end.startswith(b"PK\x05\x06") or end[-2:] != b"\0\0":
        raise DamagedSpreadsheet(f"{source.path} is incomplete, or has extra data at its end")
    length, offset = _END.unpack(end)[5:7]
    rest = source.size - _END.size - length - offset
    if rest:
        # Some programs always write 64-bit sizes.
        behind = _END.size + _LOCATOR_64_BYTES + _END_64.size
        file.seek(max(0, source.size - behind))
        end_64 = file.read(_END_64.size)
        if end_64.startswith(b"PK\x06\x06"):
            length, offset = _END_64.unpack(end_64)[8:10]
            rest = source.size - behind - length - offset
    if length > _DIRECTORY_BYTES_MAX:
        raise SpreadsheetError(f"{source.path} has too many parts", code="unsafe_workbook")
    if rest:
        raise DamagedSpreadsheet(f"{source.path} has extra data before or between its parts")


def _check_members(source: SourceFile, members: list[zipfile.ZipInfo]) -> None:
    """Raise `SpreadsheetError` for too many, encrypted or excessively large members."""
    # Readers differ in whether letter case distinguishes names.
    names = [member.filename.lower() for member in members]
    if len(names) > _MEMBERS_MAX or len(set(names)) != len(names):
        raise SpreadsheetError(
            f"{source.path} has too many parts, or contains a part twice", code="unsafe_workbook"
        )
    _workbook_kind(source, names)
    for member in members:
        if member.flag_bits & _IS_ENCRYPTED or member.compress_type not in _METHODS:
            raise SpreadsheetError(
                f"{source.path}: {member.filename!r} is encrypted, or packed in an unusual way",
                code="not_a_spreadsheet",
            )
        ratio = member.file_size / max(1, member.compress_size)
        if member.file_size > _RATIO_FROM_BYTES and ratio > _RATIO_MAX:
            raise SpreadsheetError(
                f"{source.path} is unusually large when unpacked: {member.filename!r} would take"
                f" {member.file_size / 1e6:,.0f} MB",
                action="Copy the table to a new workbook, and use that file.",
                code="unsafe_workbook",
            )
    if sum(member.file_size for member in members) > INFLATED_BYTES_MAX:
        raise _too_large_error(source)


def _too_large_error(source: SourceFile) -> SpreadsheetError:
    return SpreadsheetError(
        f"{source.path} is too large: unpacked, it has more than"
        f" {INFLATED_BYTES_MAX / 1e6:,.0f} MB",
        action="Save the sheet as csv in UTF-8, which has no size limit, and use that file.",
        code="unsafe_workbook",
    )


def _read_member(
    source: SourceFile, archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> Iterator[bytes]:
    """Yield the bytes of a member, never more than its declared size.

    Raises `SpreadsheetError` if there are more, and `DamagedSpreadsheet` if there are fewer.
    """
    # The library would cut off bytes beyond the declared size; other readers do not.
    unlimited = copy.copy(member)
    unlimited.file_size = INFLATED_BYTES_MAX + 1
    size = 0
    with archive.open(unlimited) as file:
        while piece := file.read(_PIECE_BYTES):
            size += len(piece)
            if size > member.file_size:
                raise SpreadsheetError(
                    f"{source.path}: {member.filename!r} is larger than the {member.file_size:,} "
                    f"bytes that it declares",
                    code="unsafe_workbook",
                )
            yield piece
    if size != member.file_size:
        raise DamagedSpreadsheet(f"{source.path}: {member.filename!r} is shorter than it declares")


class _PrologParser:
    """Check of a member's XML up to its root element: no document type, and no long text before it.

    The member with shared texts is parsed completely, to count the texts.
    """

    def __init__(self, source: SourceFile, name: str) -> None:
        self._where = f"{source.path}: {name!r}"
        self._is_shared = name.lower().endswith("sharedstrings.xml")
        self._texts = self._before_root = 0
        self._has_begun = False
        self._is_done = not name.lower().endswith((".xml", ".rels"))
        self._parser = safe_parser(source, name)
        self._parser.StartElementHandler = self._on_start_tag

    def feed(self, piece: bytes) -> None:
        """Parse the next piece; pieces after the root element are ignored. Raises
        `SpreadsheetError`.
        """
        if self._is_done:
            return
        self._parser.Parse(piece)
        if not self._has_begun:
            self._before_root += len(piece)
            if self._before_root > _PROLOG_BYTES_MAX:
                raise SpreadsheetError(
                    f"{self._where} does not begin with an XML element", code="unsafe_workbook"
                )

    def _on_start_tag(self, tag: str, attributes: dict[str, str]) -> None:
        """Stop parsing at the root element, or count a shared text."""
        self._has_begun = True
        if not self._is_shared:
            self._is_done = True
            self._parser.StartElementHandler = None
            return
        self._texts += tag.endswith("si")
        if self._texts > SHARED_TEXTS_MAX:
            raise SpreadsheetError(f"{self._where} has too many texts", code="unsafe_workbook")


def safe_parser(source: SourceFile, name: str) -> expat.XMLParserType:
    """Return an XML parser that raises `SpreadsheetError` for a document type or an entity."""

    def refuse(*declared: object) -> None:
        raise SpreadsheetError(
            f"{source.path}: {name!r} declares a document type, which is not allowed",
            code="unsafe_workbook",
        )

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    return parser


def parse_member(
    source: SourceFile,
    archive: zipfile.ZipFile,
    member: str,
    parser: expat.XMLParserType,
    filter_pieces: Callable[[Iterator[bytes]], Iterator[bytes]] = iter,
) -> Iterator[None]:
    """Parse a member's XML with `parser`, one piece per step of the iterator.

    `filter_pieces` changes the bytes before they are parsed. Raises `DamagedSpreadsheet`,
    `SpreadsheetError`.
    """
    with _convert_errors(source):
        for piece in filter_pieces(_read_member(source, archive, archive.getinfo(member))):
            parser.Parse(piece)
            yield
        parser.Parse(b"", True)

"""Files as other programs write them, made from rows of Python values."""

from __future__ import annotations

import base64
import csv
import io
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from openpyxl import Workbook
from openpyxl.worksheet.worksheet import Worksheet

from tests.spreadsheet.files.made import make_zip

Rows = Sequence[Sequence[Any]]
Record = Mapping[str, Any]

SKIP = object()
"""Marks a value that must not be sent."""


@dataclass(frozen=True)
class SampleFile:
    """A file and the records to send for its rows in order; None is a row that must not be sent.

    `given` are push options, and `answer` more of them, with which a user answers the questions
    about the file. With `lost`, a question about ignored columns is required.
    """

    name: str
    content: bytes
    sent: Sequence[Record | None]
    resource: str = "candidates"
    answer: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    lost: bool = False

    def write(self, folder: Path) -> Path:
        """Write the file to the folder, and return its path."""
        path = folder / self.name
        path.write_bytes(self.content)
        return path


def encode_csv(
    rows: Rows, encoding: str = "utf-8", delimiter: str = ",", before: str = ""
) -> bytes:
    """Return a CSV file of these rows, after the text `before`."""
    made = io.StringIO(newline="")
    made.write(before)
    csv.writer(made, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return made.getvalue().encode(encoding)


def make_workbook(
    rows: Rows,
    formats: Mapping[str, str] | None = None,
    *,
    hidden: Sequence[int] = (),
    merged: Sequence[str] = (),
    cover: Rows = (),
) -> bytes:
    """Return an XLSX file. `formats` are number formats by column letter."""
    made = Workbook()
    sheet = made.active
    assert isinstance(sheet, Worksheet)
    sheet.title = "Cover" if cover else "List"
    for row in cover:
        sheet.append(list(row))
    if cover:
        sheet = made.create_sheet("List")
    for row in rows:
        sheet.append(list(row))
    for letters, form in (formats or {}).items():
        for (cell,) in sheet.iter_rows(
            min_col=ord(letters) - 64, max_col=ord(letters) - 64, min_row=2
        ):
            cell.number_format = form
    for number in hidden:
        sheet.row_dimensions[number].hidden = True
    for each in merged:
        sheet.merge_cells(each)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def make_ods(rows: Rows) -> bytes:
    """Return an ODS file with one sheet. A tuple in a cell is a value type and its value."""
    lines = "".join(
        f"<table:table-row>{''.join(map(_make_ods_cell, row))}</table:table-row>" for row in rows
    )
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    body = f'<table:table table:name="List">{lines}</table:table>'
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {spaces}><office:body>'
        f"<office:spreadsheet>{body}</office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        "</manifest:manifest>"
    )
    return make_zip({"mimetype": kind, "content.xml": content, "META-INF/manifest.xml": manifest})


def _make_ods_cell(value: Any) -> str:
    if isinstance(value, tuple):
        kind, number = value
        return (
            f'<table:table-cell office:value-type="{kind}" office:value="{number}">'
            f"<text:p>{number}</text:p></table:table-cell>"
        )
    if isinstance(value, date):
        return (
            f'<table:table-cell office:value-type="date" office:date-value="{value}">'
            f"<text:p>{value}</text:p></table:table-cell>"
        )
    return (
        '<table:table-cell office:value-type="string">'
        f"<text:p>{escape(str(value))}</text:p></table:table-cell>"
    )


_OLD_BOOK = (
    "c-rk)T}TvB6#nk)tnMzlu780BvItt4sL@L=I%cRnlvqJV1U0%NEbi>exKQ>`miZV2y;SrfSkQ~rOFvXlFVRDw)I$"
    "&iZawxC6!f4@=bo9#pA1|oA(?Nu=iYnHJ?Eae=l;#i&Xmqg-mlJK71|KMq8&!TGM=Cm_9`)u+_q)W%R`iGAO97?A"
    "qr$c5KoF<7s?pQc;}$tp8A3)@R8C945KHLHsTwI4)#G8(uY=}0yl{hMHPEh#&m#bIn%q`@+s4H=3HjlN^R%Fam;8"
    "v4SU>Kd`zijSrpRlL)LlEoL#8ID>;kLUlC5*Aof~GJ+)Z`HEI#2K#}e?(uO7LVcdcWv^2HU)u<)7jR=rPG@EAgC}"
    "9p2G$p3+&5i?Ky|w>5?(;X6FF^e7EBS@L;fE-qYw^Pr+|~T63dMd5_9<Rs6DY<tRZ4>BN?PW~JS^VTWg>o$ZW=+L"
    ")6|nG%DW6BUKa)SWztzoAIQc>vbvR}6Qa*D((!Jye}6fU85~Rw811Kt)nuH}&Eb?m)9-+84aGZ-F3D5G@Z=GB&hW"
    "kzTd^+{^Li~Jnm`GcOL^7C$iMkJU)~(-@6}E+XN)~|POLilim-7(YLIf2B>|>V(!d%!nO<b8Te)1#w1S3$^7`INx"
    "6n1tZ7#92p8DC%c&lw&R^CqKiO+`~)l7WSc2Ie`J9oBX`kgk3S_(sg^yM>-M$ss4T$gyPdAV?Rw+~FKe%a|lO3d}"
    "$c8}!}EXY+$C}rx@<miZ>HN_n(rxu`Ez_lgTuqD`*>b4hbD=777^aR-{!yx0Oc21G<0QnY~RoI@ghCPMt6}a}C$j"
    "Pui<9C(zj_~_M$wmNeN*NwV723&{5P=ULK79D_;lqcIKZoGEp>rQr`Qq=~wF}+<It!E*{of>;7Kf3cCrh7&ok&w|"
    "VKlG#vjsun*%Is2@%|S|^il5?hS1M`4COt4>H9$}f1h<L#{S+C%D4Z;eEj^!{r>=Nn*WF"
)


def make_old_workbook() -> bytes:
    """Return an XLS file with two companies: Name, Email, Fee % (as percent), Contract start."""
    return zlib.decompress(base64.b85decode(_OLD_BOOK))

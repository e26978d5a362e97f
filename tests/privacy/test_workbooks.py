"""An erased person is in no part of a workbook any more, or the part is listed as still there."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.comments import Comment
from openpyxl.packaging.custom import StringProperty
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation

from connector.privacy.erase import erase
from connector.privacy.folder_files import InFiles, clean, search
from connector.spreadsheet.persons import look, replace_parts
from connector.suppression.person import Person
from tests.privacy.populated_agency import EMAIL, NOW, populated_agency, traces

NAME = "Olwen Zzyzxworth"
TOLD = (NAME, EMAIL)
PERSON = Person(emails=frozenset((EMAIL.lower(),)), texts=frozenset((NAME.lower(),)))
DRAWING = "xl/drawings/drawing9.xml"


def properties(workbook: Workbook) -> None:
    """The document's own properties, usual ones and others."""
    workbook.properties.creator = workbook.properties.lastModifiedBy = NAME
    workbook.properties.title = f"CV & notes of {NAME}"
    workbook.custom_doc_props.append(  # type: ignore[attr-defined] # the stubs lack it
        StringProperty(name=f"By {NAME}", value=EMAIL)
    )


def sheet_name(workbook: Workbook) -> None:
    """A sheet's name, and a rule's formula and a defined name that use it."""
    workbook.create_sheet(NAME)["A1"] = 7
    rule = DataValidation("list", formula1=f"'{NAME}'!$A$1:$A$3")
    rule.add("B2")
    workbook.worksheets[0].add_data_validation(rule)
    workbook.defined_names["area"] = DefinedName("area", attr_text=f"'{NAME}'!$A$1")


def second_sheet(workbook: Workbook) -> None:
    """A row of a second sheet with something in it."""
    workbook.create_sheet("other").append(["x", NAME])


def hidden_sheet(workbook: Workbook) -> None:
    """A row of a sheet that is hidden."""
    sheet = workbook.create_sheet("kept")
    sheet.append([EMAIL])
    sheet.sheet_state = "veryHidden"


def header(workbook: Workbook) -> None:
    """The printed header and footer."""
    printed = workbook.worksheets[0].HeaderFooter
    assert printed.oddHeader is not None
    assert printed.evenFooter is not None
    printed.oddHeader.center.text, printed.evenFooter.left.text = f"About {NAME}", EMAIL


def comment(workbook: Workbook) -> None:
    """The author and the text of a comment on somebody else's row."""
    workbook.worksheets[0]["A2"].comment = Comment(f"ask {EMAIL}", NAME)


def link(workbook: Workbook) -> None:
    """A link's target and its tip."""
    cell = workbook.worksheets[0]["A2"]
    cell.hyperlink = f"mailto:{EMAIL}"
    assert cell.hyperlink is not None
    cell.hyperlink.tooltip = f"write to {NAME}"
    cell.value = "bob@mail.example"


def choices(workbook: Workbook) -> None:
    """The list of a cell's allowed values."""
    rule = DataValidation("list", formula1=f'"{NAME},Bob"', prompt=EMAIL)
    rule.add("B2")
    workbook.worksheets[0].add_data_validation(rule)


def headings(workbook: Workbook) -> None:
    """The row of headings."""
    workbook.worksheets[0]["D1"] = f"Seen by {NAME}"


CLEANED: tuple[Callable[[Workbook], None], ...] = (
    *(properties, sheet_name, second_sheet, hidden_sheet, header, comment, link, choices),
    headings,
)


def saved(path: Path, *puts: Callable[[Workbook], None], **parts: str | bytes) -> None:
    """Save a workbook with the person in these places, and in parts of the zip."""
    workbook = Workbook()
    sheet = workbook.worksheets[0]
    for row in (["Email", "Name"], ["bob@mail.example", "Bob"]):
        sheet.append(row)
    for put in puts:
        put(workbook)
    path.parent.mkdir(parents=True, exist_ok=True)
    workbook.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def searched(folder: Path) -> InFiles:
    """What is found of the person, after it was cleaned once."""
    clean(search(folder, PERSON), PERSON)
    return search(folder, PERSON)


@pytest.mark.parametrize("put", CLEANED, ids=lambda each: each.__name__)
def test_person_leaves_the_workbook(tmp_path: Path, put: Callable[[Workbook], None]) -> None:
    path = tmp_path / "inbox" / "people.xlsx"
    saved(path, put)
    assert [] != list(traces(tmp_path, *TOLD))

    assert {path: 1} == {each: min(1, n) for each, n in search(tmp_path, PERSON).tables.items()}
    left = searched(tmp_path)

    assert InFiles() == left
    assert [] == list(traces(tmp_path, *TOLD))
    rows = [[each.value for each in row[:2]] for row in load_workbook(path).worksheets[0].rows]
    assert ["bob@mail.example", "Bob"] == rows[1]


def test_sheet_keeps_its_formulas(tmp_path: Path) -> None:
    path = tmp_path / "people.xlsx"
    saved(path, sheet_name)

    searched(tmp_path)

    workbook = load_workbook(path)
    assert ["Sheet", "erased"] == workbook.sheetnames
    (rule,) = workbook.worksheets[0].data_validations.dataValidation
    assert "'erased'!$A$1:$A$3" == rule.formula1
    assert "'erased'!$A$1" == workbook.defined_names["area"].attr_text


def test_shapes_lose_the_person(tmp_path: Path) -> None:
    whole = f"<a:p><a:r><a:t>by {NAME}, 1 &lt; 2</a:t></a:r></a:p>"
    runs = "<a:r><a:rPr b='1'><a:x/></a:rPr><a:t>Olwen </a:t></a:r><a:r><a:t>Zzyzxworth</a:t></a:r>"
    before = '<a:txBody xmlns:a="urn:a"><?x y?>{}</a:txBody>'
    for name, text in (("whole", whole), ("runs", runs)):
        saved(tmp_path / f"{name}.xlsx", **{DRAWING: before.format(text)})

    left = searched(tmp_path)

    assert [(tmp_path / "runs.xlsx", DRAWING)] == left.parts
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as archive:
        corrected = before.format(whole.replace(NAME, "[erased]"))
        assert corrected == archive.read(DRAWING).decode()


def test_address_that_touches_other_words_is_still_there(tmp_path: Path) -> None:
    saved(tmp_path / "a.xlsx", **{DRAWING: f"<a b='https://x.example/?to={EMAIL}&amp;x=1'/>"})

    assert [(tmp_path / "a.xlsx", DRAWING)] == searched(tmp_path).parts


def packed(text: str) -> bytes:
    """A packed document with the text in it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w>{text}</w>")
    return made.getvalue()


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("xl/media/image1.png", b"\x89PNG tEXt" + NAME.encode()),
        ("xl/embeddings/note.bin", b"\1" + NAME.encode("utf-16-le")),
        ("xl/embeddings/cv.docx", packed(NAME)),
        ("xl/embeddings/cv.zip", packed("x")[:-30]),
    ],
    ids=["picture", "object", "document", "damaged"],
)
def test_part_that_cannot_be_corrected_is_still_there(
    tmp_path: Path, part: str, content: bytes
) -> None:
    saved(tmp_path / "a.xlsx", **{part: content})

    assert [(tmp_path / "a.xlsx", part)] == searched(tmp_path).parts


def test_names_of_sheets_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    workbook = Workbook()
    workbook.worksheets[0].title = NAME
    workbook.create_sheet(EMAIL)
    workbook.save(path)

    left = searched(tmp_path)

    assert {"xl/workbook.xml", "docProps/app.xml"} >= {part for _, part in left.parts} != set()
    assert [NAME, EMAIL] == load_workbook(path).sheetnames


def test_unreadable_workbook_is_not_taken_for_clean(tmp_path: Path) -> None:
    saved(tmp_path / "damaged.xlsx", properties)
    content = (tmp_path / "damaged.xlsx").read_bytes()
    (tmp_path / "damaged.xlsx").write_bytes(content + b"more")
    with zipfile.ZipFile(tmp_path / "lacking.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", f"<workbook><sheet name='{NAME}'/></workbook>")
    (tmp_path / "macros.xlsm").write_bytes(content)
    (tmp_path / f"{NAME}.md").write_text("nothing", encoding="utf-8")

    found = search(tmp_path, PERSON)

    unread = ["damaged.xlsx", "lacking.xlsx", "macros.xlsm"]
    assert unread == [each.name for each in found.not_searched]
    assert [f"{NAME}.md"] == [each.name for each in found.by_hand]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("before", [0, 1, 511, 512, 513, 100_001])
def test_a_file_of_bytes_is_searched_whole(tmp_path: Path, encoding: str, before: int) -> None:
    named, longer = f" {NAME} ".encode(encoding), f"x{NAME}x".encode(encoding)
    (tmp_path / "named.bin").write_bytes(b"\1" * before + longer + named + b"\1" * 2_000)
    (tmp_path / "longer.bin").write_bytes(b"\1" * before + longer * 3)

    assert ["named.bin"] == [each.name for each in search(tmp_path, PERSON).by_hand]


def test_untouched_parts_keep_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    saved(path, properties)
    nobody = Person(emails=frozenset(("eve@mail.example",)))

    assert {} == look(path.read_bytes(), nobody).cleaned
    cleaned = look(path.read_bytes(), PERSON).cleaned
    assert {"docProps/core.xml", "docProps/custom.xml"} == cleaned.keys()
    (tmp_path / "b.xlsx").write_bytes(replace_parts(path.read_bytes(), cleaned))
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(tmp_path / "b.xlsx") as after:
        assert before.namelist() == after.namelist()
        differing = {n for n in before.namelist() if before.read(n) != after.read(n)}
    assert set(cleaned) == differing


def test_receipt_lists_what_is_still_there(tmp_path: Path) -> None:
    agency = populated_agency(tmp_path)
    part = "xl/media/image1.png"
    saved(agency.folder / "inbox" / "leads" / "a.xlsx", properties, **{part: NAME.encode()})

    erased = erase(agency.settings, EMAIL, applies=True, now=lambda: NOW)

    (receipt,) = erased.receipts
    assert [("inbox/leads/a.xlsx", part, 1)] == [(e.file, e.table, e.rows) for e in receipt.left]
    assert 3 == erased.exit_status

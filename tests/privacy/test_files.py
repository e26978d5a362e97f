"""Rows of the person are removed from text files, and workbooks with such a row are deleted."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from openpyxl import Workbook
from openpyxl.comments import Comment

from connector.ledger.person import Mention, Person
from connector.privacy.erase import erase
from connector.privacy.folder_files import FileMatches, remove_from_files, search_files
from tests.privacy.populated_agency import EMAIL, NOW, copy_populated_agency, find_traces

NAME = "Olwen Zzyzxworth"
PERSON = Person(emails=frozenset((EMAIL.lower(),)), names=frozenset((NAME.lower(),)))


def add_row(workbook: Workbook) -> None:
    """Add a row with the person's email to the first sheet."""
    workbook.worksheets[0].append([EMAIL, "x"])


def add_hidden_row(workbook: Workbook) -> None:
    """Add a row with the person's email to a hidden sheet."""
    sheet = workbook.create_sheet("kept")
    sheet.append([EMAIL])
    sheet.sheet_state = "veryHidden"


def set_author(workbook: Workbook) -> None:
    """Set the person as the author of the workbook."""
    workbook.properties.creator = NAME


def set_sheet_name(workbook: Workbook) -> None:
    """Add a sheet named after the person."""
    workbook.create_sheet(NAME)


def add_comment(workbook: Workbook) -> None:
    """Mention the person in a comment on another row."""
    workbook.worksheets[0]["A2"].comment = Comment(f"ask {EMAIL}", "Bob")


def mention_in_cell(workbook: Workbook) -> None:
    """Mention the person in a cell of another row."""
    workbook.worksheets[0]["B2"] = f"knows {NAME}"


def save_workbook(path: Path, *changes: Callable[[Workbook], None], **parts: str | bytes) -> Path:
    """Save a workbook after the `changes`, and add `parts` to its zip file."""
    workbook = Workbook()
    for each in (["Email", "Name"], ["bob@mail.example", "Bob"]):
        workbook.worksheets[0].append(each)
    for put in changes:
        put(workbook)
    path.parent.mkdir(parents=True, exist_ok=True)
    workbook.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("put", [add_row, add_hidden_row], ids=lambda each: each.__name__)
def test_a_workbook_with_a_row_of_the_person_is_deleted(
    tmp_path: Path, put: Callable[[Workbook], None]
) -> None:
    path = save_workbook(tmp_path / "inbox" / "people.xlsx", put)

    found = search_files(tmp_path, PERSON)
    remove_from_files(found, PERSON)

    assert ({path: 1}, [path]) == (found.spreadsheets, found.workbooks)
    assert not path.exists()


@pytest.mark.parametrize(
    ("put", "place"),
    [
        (mention_in_cell, ("sheet 1 row 2", "B")),
        (set_author, ("", "docProps/core.xml")),
        (set_sheet_name, ("", "xl/workbook.xml")),
        (add_comment, ("", "xl/comments/comment1.xml")),
    ],
    ids=["cell", "properties", "sheet name", "comment"],
)
def test_a_workbook_that_only_mentions_the_person_is_kept(
    tmp_path: Path, put: Callable[[Workbook], None], place: tuple[str, str]
) -> None:
    path = save_workbook(tmp_path / "people.xlsx", put)
    before = path.read_bytes()

    found = search_files(tmp_path, PERSON)
    remove_from_files(found, PERSON)

    assert {} == found.spreadsheets
    assert Mention("people.xlsx", *place) in found.mentions
    assert before == path.read_bytes()


def test_a_name_split_over_text_runs_is_found_as_a_mention(tmp_path: Path) -> None:
    runs = "<a:r><a:t>Olwen </a:t></a:r><a:r><a:t>Zzyzxworth</a:t></a:r>"
    text = f'<a:txBody xmlns:a="urn:a">{runs}</a:txBody>'
    save_workbook(tmp_path / "a.xlsx", **{"xl/drawings/drawing9.xml": text})

    assert [Mention("a.xlsx", "", "xl/drawings/drawing9.xml")] == search_files(
        tmp_path, PERSON
    ).mentions


def test_an_unreadable_workbook_is_reported(tmp_path: Path) -> None:
    content = save_workbook(tmp_path / "damaged.xlsx", set_author).read_bytes()
    (tmp_path / "damaged.xlsx").write_bytes(content + b"more")
    with zipfile.ZipFile(tmp_path / "lacking.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", f"<workbook><sheet name='{NAME}'/></workbook>")
    (tmp_path / "macros.xlsm").write_bytes(content)
    (tmp_path / f"{NAME}.md").write_text("nothing", encoding="utf-8")

    found = search_files(tmp_path, PERSON)

    unread = ["damaged.xlsx", "lacking.xlsx", "macros.xlsm"]
    assert unread == [each.name for each in found.not_searched]
    assert [f"{NAME}.md"] == [each.name for each in found.by_hand]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16-le", "utf-16-be"])
def test_other_files_are_searched_in_common_encodings(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "named.bin").write_bytes(f"{'x' * 1_000} {NAME} y".encode(encoding))
    (tmp_path / "longer.bin").write_bytes(f"x{NAME}x".encode(encoding))

    found = search_files(tmp_path, PERSON)

    assert FileMatches(by_hand=[tmp_path / "named.bin"]) == found


def test_the_receipt_names_the_deleted_workbook(tmp_path: Path) -> None:
    agency = copy_populated_agency(tmp_path)
    save_workbook(agency.folder / "inbox" / "leads" / "a.xlsx", add_row)

    erased = erase(agency.settings, EMAIL, applies=True, now=lambda: NOW)

    (receipt,) = erased.receipts
    assert "inbox/leads/a.xlsx" in receipt.whole_files
    assert () == receipt.left
    assert [] == list(find_traces(agency.folder))

"""A cell reaches the API as it is in the file, or is refused; it never changes silently."""

from __future__ import annotations

import io
from datetime import date
from typing import Any

import openpyxl
import pytest

from tests.contract.kit import Account, candidate

CREATE = ("--mode", "create", "--report", "all", "--no-pull", "--json")
TEXTS = [
    "O'Neil", 'Says "yes"', "a, b; c", "tab\there", "007", "+44", "=1+1", "-", "1e5", "0x1F",
    "Zoë 李 🚀", "NaN", "true", "1/2", "100%", "<b>bold</b>", "back\\slash", "C:\\new", "e\u0301",
]  # fmt: skip


def preview(account: Account, content: bytes, name: str = "a.csv", *more: str) -> dict[str, Any]:
    """Preview a file of candidates, and return the JSON object."""
    path = account.folder / name
    path.write_bytes(content)
    result = account.run("push", "candidates", path, *CREATE, *more)
    assert result.status in (0, 3), result.text
    return result.json


def value(report: dict[str, Any], field: str) -> Any:
    """Return the value that would be sent."""
    found = [each["then"] for each in report["changes"] if each["field"] == field]
    return found[0] if found else None


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_of_a_csv_is_sent_as_it_is_or_not_at_all(empty: Account, text: str) -> None:
    path = empty.csv("a.csv", [candidate(1, skills=text)])
    report = preview(empty, path.read_bytes())
    assert value(report, "skills") in (text, None)
    if value(report, "skills") is None:
        assert report.get("invalid") or report["warned"] or report["notices"]


@pytest.mark.parametrize("text", ["007", "+44 20", "O'Neil", "=1+1", "Zoë 李", "1e5", "TRUE"])
def test_a_text_of_a_workbook_is_sent_as_it_is_or_not_at_all(empty: Account, text: str) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    row = candidate(1, skills=text)
    sheet.append(list(row))
    sheet.append(list(row.values()))
    sheet.cell(2, len(row)).data_type = "s"
    stream = io.BytesIO()
    book.save(stream)
    assert value(preview(empty, stream.getvalue(), "a.xlsx"), "skills") in (text, None)


@pytest.mark.parametrize(("cell", "field", "expected"), [
    ("2026-03-01", "available_from", "2026-03-01"), ("25.12.2026", "available_from", "2026-12-25"),
    ("1. März 2026", "available_from", "2026-03-01"), ("45 000", "expected_salary", 45000),
    ("1,250.50", "expected_salary", 1250.5), ("£45,000.00", "expected_salary", 45000),
    ("yes", "willing_to_relocate", True), ("nein", "willing_to_relocate", False),
    ("30", "notice_period_days", 30), ("3", "rating", 3),
    ("Perm", "employment_type", "permanent"),
    ("mailto:ann1@people.example", "email", "ann1@people.example"),
])  # fmt: skip
def test_common_forms_have_one_meaning(
    empty: Account, cell: str, field: str, expected: object
) -> None:
    path = empty.csv("a.csv", [candidate(1, **{field: cell})])
    assert expected == value(preview(empty, path.read_bytes()), field)


@pytest.mark.parametrize(("cell", "field"), [
    ("03/04/2026", "available_from"), ("31.02.2026", "available_from"),
    ("12", "available_from"), ("1,2,3", "expected_salary"), ("45,000", "expected_salary"),
    ("maybe", "willing_to_relocate"), ("not permanent", "employment_type"),
    ("unwilling", "willing_to_relocate"), ("a@b.example c@d.example", "email"),
])  # fmt: skip
def test_a_doubtful_cell_is_not_sent(empty: Account, cell: str, field: str) -> None:
    path = empty.csv("a.csv", [candidate(1, **{field: cell})])
    empty.run("push", "candidates", path, "--mode", "create", "--apply", "--no-pull")
    assert [] == empty.server.sent()


@pytest.mark.parametrize(("given", "expected"), [("dmy", "2026-04-03"), ("mdy", "2026-03-04")])
def test_the_order_of_a_date_can_be_set(empty: Account, given: str, expected: str) -> None:
    path = empty.csv("a.csv", [candidate(1, available_from="03/04/2026")])
    report = preview(empty, path.read_bytes(), "a.csv", "--date-format", given)
    assert expected == value(report, "available_from")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_files_are_read_in_each_form(empty: Account, encoding: str, delimiter: str) -> None:
    row = candidate(1, city="Zürich")
    text = "\r\n".join(delimiter.join(each) for each in (row.keys(), row.values()))
    assert "Zürich" == value(preview(empty, text.encode(encoding)), "city")


def test_typed_cells_of_a_workbook_have_their_meaning(empty: Account) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    typed: dict[str, Any] = {
        "available_from": date(2026, 4, 3), "expected_salary": 45000.5, "rating": 4,
        "willing_to_relocate": True,
    }  # fmt: skip
    row = candidate(1, **typed)
    sheet.append(["Fair 2026"])
    sheet.append([])
    sheet.append(list(row))
    sheet.append(list(row.values()))
    stream = io.BytesIO()
    book.save(stream)
    report = preview(empty, stream.getvalue(), "a.xlsx")
    assert {**typed, "available_from": "2026-04-03"} == {
        name: value(report, name) for name in typed
    }


@pytest.mark.parametrize("content", [
    b"", b"\n\n", b"PK\x03\x04broken", b"\xd0\xcf\x11\xe0broken", b"first_name\n",
    b"first_name,email\n\"never closed,a@b.example\nx,y\n",
])  # fmt: skip
@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "a.xls", "a.ods"])
def test_a_file_that_is_none_is_refused_with_an_error(
    empty: Account, content: bytes, name: str
) -> None:
    path = empty.folder / name
    path.write_bytes(content)
    words = ("--mode", "create", "--apply", "--no-pull")
    result = empty.run("push", "candidates", path, *words)
    assert result.status in (1, 2, 3), result.text
    assert [] == empty.server.sent()


def test_a_damaged_quote_costs_its_rows_only(empty: Account) -> None:
    lines = ["first_name,last_name,email,employment_type"]
    lines += [f"Ann{n},Lee,ann{n}@people.example,permanent" for n in range(6)]
    lines[3] = 'Ann2,"Lee,ann2@people.example,permanent'
    path = empty.folder / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    empty.run("push", "candidates", path, "--mode", "create", "--apply", "--no-pull")
    assert {each.fields["last_name"] for each in empty.server.sent()} <= {"Lee"}


@pytest.mark.parametrize("heading", [
    "Unwilling to relocate", "Manager email", "Previous employer", "Not available from",
])  # fmt: skip
def test_a_heading_that_turns_the_meaning_is_not_mapped(empty: Account, heading: str) -> None:
    path = empty.csv("a.csv", [{**candidate(1), heading: "yes"}])
    report = preview(empty, path.read_bytes())
    assert {*candidate(1)} >= {each["field"] for each in report["changes"]}
    words = ("--mode", "create", "--apply", "--no-pull")
    empty.run("push", "candidates", path, *words)
    assert [] == empty.server.sent(), "the unknown column is a question"
    empty.push("candidates", path, "--mode", "create", "--ignore", "*")
    (request,) = empty.server.sent()
    assert candidate(1) == request.fields

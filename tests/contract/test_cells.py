"""A cell reaches the API as it is in the file, or is refused; it never changes silently."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import date
from typing import Any

import openpyxl
import pytest

from tests.contract.kit import Account, Push, candidate

TEXTS = [
    "O'Neil", 'Says "yes"', "a, b; c", "tab\there", "007", "+44", "=1+1", "-", "1e5", "0x1F",
    "Zoë 李 🚀", "NaN", "true", "1/2", "100%", "<b>bold</b>", "back\\slash", "C:\\new", "e\u0301",
]  # fmt: skip


def check(account: Account, content: bytes, name: str = "a.csv", *more: str) -> Push:
    """Preview a file of candidates with a report of all rows."""
    path = account.folder / name
    path.write_bytes(content)
    words = ("--mode", "create", "--report", "all", "--no-pull", "--json")
    result = account.run("push", "candidates", path, *words, *more)
    assert result.status in (0, 3), result.text
    return Push(result.json, account.folder)


def values(preview: Push, field: str) -> dict[int, Any]:
    """Return the values of a field that would be sent, by row of the file."""
    found = preview.json["changes"]
    return {each["row"]: each["then"] for each in found if each["field"] == field}


def value(preview: Push, field: str) -> Any:
    """Return the value that would be sent for the first row."""
    return values(preview, field).get(2)


def workbook(*rows: Iterable[Any]) -> bytes:
    """Return a workbook with one sheet. A text stays a text, also if it begins with `=`."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in rows:
        sheet.append(list(row))
    for cells in sheet.iter_rows():
        for cell in cells:
            if isinstance(cell.value, str):
                cell.data_type = "s"
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_a_text_is_sent_as_it_is_or_its_row_shows_why_not(empty: Account, form: str) -> None:
    rows = [candidate(number, skills=text) for number, text in enumerate(TEXTS)]
    path = empty.csv("a.csv", rows)
    if form == "xlsx":
        path = empty.folder / "a.xlsx"
        path.write_bytes(workbook(rows[0].keys(), *(row.values() for row in rows)))
    words = ("--mode", "create", "--accept-warnings", "--apply", "--no-pull", "--json")
    result = empty.run("push", "candidates", path, *words)
    assert result.status in (0, 3), result.text
    sent = {each.fields["email"]: each.fields.get("skills") for each in empty.server.sent()}
    different = {
        row["skills"]: sent[row["email"]]
        for row in rows
        if row["email"] in sent and row["skills"] != sent[row["email"]]
    }
    # Words for an empty value are imported as empty, with a remark.
    assert {"-": None, "NaN": None} == different, result.text
    assert any("skills" in each and "empty" in each for each in result.json["notices"])


FORMS: dict[str, tuple[tuple[str, object], ...]] = {
    "available_from": (
        ("2026-03-01", "2026-03-01"), ("25.12.2026", "2026-12-25"), ("1. März 2026", "2026-03-01"),
    ),
    "expected_salary": (("45 000", 45000), ("1,250.50", 1250.5)),
    "current_salary": (("£45,000.00", 45000),),
    "willing_to_relocate": (("yes", True), ("nein", False)),
    "notice_period_days": (("30", 30),),
    "rating": (("3", 3),),
    "employment_type": (("Perm", "permanent"), ("festangestellt", "permanent")),
    "email": (("mailto:ann9@people.example", "ann9@people.example"),),
}  # fmt: skip


@pytest.mark.parametrize("field", FORMS)
def test_common_forms_have_one_meaning(empty: Account, field: str) -> None:
    rows = [candidate(n, **{field: cell}) for n, (cell, _) in enumerate(FORMS[field])]
    preview = check(empty, empty.csv("b.csv", rows).read_bytes())
    assert [each for _, each in FORMS[field]] == [*values(preview, field).values()]


DOUBTFUL = [
    ("31.02.2026", "available_from"), ("12", "available_from"), ("1,2,3", "expected_salary"),
    ("45.000", "expected_salary"), ("maybe", "willing_to_relocate"),
    ("not permanent", "employment_type"), ("unwilling", "willing_to_relocate"),
    ("a@b.example c@d.example", "email"), ("non-permanent", "employment_type"),
    ("no permanent", "employment_type"), ("not yes", "willing_to_relocate"),
    ("not actively looking", "employment_status"),
]  # fmt: skip


def test_a_doubtful_cell_is_not_sent(empty: Account) -> None:
    """Among them are words that turn the meaning of a known word."""
    rows = [candidate(n, **{field: cell}) for n, (cell, field) in enumerate(DOUBTFUL)]
    file = empty.csv("a.csv", [*rows, candidate(99)])
    empty.run("push", "candidates", file, "--mode", "create", "--apply", "--no-pull")
    assert [candidate(99)] == [each.fields for each in empty.server.sent()]
    for row in rows:  # A column of one cell has no other cell that shows its format.
        preview = check(empty, empty.csv("b.csv", [row]).read_bytes())
        assert "held" in preview.outcomes or "invalid" in preview.outcomes, row


@pytest.mark.parametrize(("words", "expected"), [
    (("--date-format", "dmy"), "2026-04-03"), (("--date-format", "mdy"), "2026-03-04"),
    ((), "2026-04-03"), (("--region", "US"), "2026-03-04"),
], ids=" ".join)  # fmt: skip
def test_the_order_of_a_date_is_set_or_shown(
    empty: Account, words: tuple[str, ...], expected: str
) -> None:
    path = empty.csv("b.csv", [candidate(1, available_from="03/04/2026")])
    preview = check(empty, path.read_bytes(), "a.csv", *words)
    assert expected == value(preview, "available_from")
    is_shown = any("available_from" in each for each in preview.json["notices"])
    assert is_shown or "--date-format" in words


def test_the_region_of_the_settings_applies_unless_the_push_names_one(empty: Account) -> None:
    cells = {"available_from": "03/04/2026", "phone": "(212) 555-0123"}
    path = empty.csv("b.csv", [candidate(1, **cells)])
    empty.environ["CONNECTOR_REGION"] = "US"
    there = check(empty, path.read_bytes())
    here = check(empty, path.read_bytes(), "c.csv", "--region", "GB")
    assert ["2026-03-04", "+12125550123"] == [value(there, name) for name in cells]
    assert "2026-04-03" == value(here, "available_from")


def test_a_date_of_another_country_leaves_the_other_dates_open(empty: Account) -> None:
    cells = ["03/04/2026", "03/25/2026"]
    rows = [candidate(n, available_from=cell) for n, cell in enumerate(cells)]
    path = empty.csv("b.csv", rows)
    preview = check(empty, path.read_bytes())
    assert {3: "2026-03-25"} == values(preview, "available_from")
    assert "ambiguous_date" in preview.codes[0]
    chosen = check(empty, path.read_bytes(), "c.csv", "--date-format", "mdy")
    assert {2: "2026-03-04", 3: "2026-03-25"} == values(chosen, "available_from")


@pytest.mark.parametrize(("encoding", "delimiter"), [
    ("utf-8", ","), ("utf-8-sig", ";"), ("utf-16", "\t"), ("cp1252", "|"),
])  # fmt: skip
def test_csv_files_are_read_in_each_form(empty: Account, encoding: str, delimiter: str) -> None:
    row = candidate(1, city="Zürich")
    text = "\r\n".join(delimiter.join(each) for each in (row.keys(), row.values()))
    assert "Zürich" == value(check(empty, text.encode(encoding)), "city")


def test_typed_cells_of_a_workbook_have_their_meaning(empty: Account) -> None:
    typed: dict[str, Any] = {
        "available_from": date(2026, 4, 3), "expected_salary": 45000.5, "rating": 4,
        "willing_to_relocate": True,
    }  # fmt: skip
    row = candidate(1, **typed)
    preview = check(empty, workbook(["Fair 2026"], [], row.keys(), row.values()), "a.xlsx")
    assert {**typed, "available_from": "2026-04-03"} == {
        name: next(iter(values(preview, name).values())) for name in typed
    }


FIRST = b"first_name,last_name,email,employment_type\n"


@pytest.mark.parametrize(("name", "content"), [
    ("a.csv", b""), ("a.csv", b"\n\n"), ("a.csv", FIRST),
    ("a.xlsx", b"PK\x03\x04broken"), ("a.ods", b"PK\x03\x04broken"),
    ("a.xls", b"\xd0\xcf\x11\xe0broken"), ("a.xlsx", b""),
])  # fmt: skip
def test_a_file_that_is_none_is_refused_with_an_error(
    empty: Account, content: bytes, name: str
) -> None:
    path = empty.folder / name
    path.write_bytes(content)
    result = empty.run("push", "candidates", path, "--mode", "create", "--apply", "--no-pull")
    assert 2 == result.status, result.text
    assert "Error" in result.err
    assert [] == empty.server.sent()


def test_a_damaged_quote_costs_its_row_only(empty: Account) -> None:
    lines = [f'Ann{n},Lee,ann{n}@people.example,permanent,"a, b"' for n in range(6)]
    lines[2] = 'Ann2,Lee,ann2@people.example,permanent,"a" b"'
    content = FIRST.replace(b"type", b"type,skills") + "\n".join(lines).encode()
    path = empty.folder / "a.csv"
    path.write_bytes(content)
    words = ("--mode", "create", "--apply", "--no-pull")
    empty.run("push", "candidates", path, *words)
    sent = [(each.fields["first_name"], each.fields["skills"]) for each in empty.server.sent()]
    assert [(f"Ann{n}", "a, b") for n in range(6) if n != 2] == sorted(sent)


def test_a_heading_that_turns_the_meaning_is_not_mapped(empty: Account) -> None:
    turned = ("Unwilling to relocate", "Manager email", "Previous employer", "Not available from")
    path = empty.csv("a.csv", [{**candidate(1), **dict.fromkeys(turned, "yes")}])
    preview = check(empty, path.read_bytes())
    assert {*turned} == {*preview.json["unmapped"]}
    assert {*candidate(1)} >= {each["field"] for each in preview.json["changes"]}
    words = ("--mode", "create", "--apply", "--no-pull")
    empty.run("push", "candidates", path, *words)
    assert [] == empty.server.sent(), "the unknown column is a question"
    empty.push("candidates", path, "--mode", "create", "--ignore", "*")
    (request,) = empty.server.sent()
    assert candidate(1) == request.fields

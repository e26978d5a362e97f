"""Any sheet: nothing is sent that a person would not read in it, unless they are asked first.

A cell is drawn from what a person reads in it: a value, and one of the many ways in which people
and programs write or show it. So what may be sent is known without reading the cell again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from connector.catalog import CATALOG
from connector.catalog.field import Kind
from connector.errors import ConnectorError
from connector.spreadsheet.target_columns import TargetColumn, target_columns
from tests.spreadsheet.corpus.cases import HEAD, make_person
from tests.spreadsheet.corpus.files import File, make_ods, make_text, make_workbook
from tests.spreadsheet.corpus.judge import preview_file


@dataclass(frozen=True)
class Cell:
    """A cell: its text in a csv, its value and number format in a workbook, and what may be sent
    of it without a word (nothing, where a person cannot read one value in it): of the value, and of
    its text where that says something else.
    """

    text: str
    value: Any
    means: tuple[Any, ...]
    form: str = "General"
    text_means: tuple[Any, ...] | None = None

    def may_be(self, kind: str) -> tuple[Any, ...]:
        """Return the values that may be sent from a file of that kind."""
        return self.means if kind == "xlsx" or self.text_means is None else self.text_means


def make_text_cell(text: str, *means: Any) -> Cell:
    """Return a cell that is text in every file format."""
    return Cell(text, text, means)


MONTHS = ("Januar", "février", "March", "abril", "mei", "giugno", "July", "August", "septembre")
EMPTY = [make_text_cell(each) for each in ("n/a", "-", "TBC", "k.A.", "?")]
ODD = [
    *(
        make_text_cell("#N/A"),
        make_text_cell("call agent", "call agent"),
        make_text_cell("\u202e0001"),
    ),
    Cell("=1+1", "=1+1", (), "General", ("=1+1",)),
]


@some.composite
def draw_date(draw: some.DrawFn) -> Cell:
    """Draw a date as users write it, or as a workbook shows it."""
    day = draw(some.dates(date(1950, 1, 1), date(2005, 12, 31)))
    iso = day.isoformat()
    ways: list[Callable[[], Cell]] = [
        lambda: make_text_cell(iso, iso),
        # Which of two dates it is the column's other cells may settle, and then all agree.
        lambda: make_text_cell(f"{day:%d/%m/%Y}", iso, *swap_day_and_month(day)),
        lambda: make_text_cell(f"{day:%m/%d/%Y}", iso, *swap_day_and_month(day)),
        lambda: make_text_cell(f"{day:%d.%m.%Y}", iso),
        lambda: make_text_cell(f"{day:%d.%m.%y}"),
        lambda: (
            make_text_cell(f"{day.day}. {MONTHS[day.month % 9 - 1]} {day.year}", iso)
            if day.month <= 9 and day.month % 9
            else make_text_cell(iso, iso)
        ),
        lambda: make_text_cell(f"{day:%B %Y}"),
        lambda: Cell(iso, day, (iso,), "yyyy-mm-dd"),
        lambda: Cell(f"{day:%d.%m.%y}", day, (iso,), "dd.mm.yy"),
        lambda: Cell(f"{day:%b-%y}", day, (), "mmm-yy"),
        lambda: Cell(f"{day:%Y}", day, (), "yyyy"),
        lambda: Cell(f"{day:%d-%b}", day, (), "d-mmm"),
        lambda: Cell(f"{day:%H:%M}", datetime(day.year, day.month, day.day, 9, 30), (), "h:mm"),
        lambda: Cell(iso, datetime(day.year, day.month, day.day), (iso,), "dd/mm/yyyy"),
    ]
    return draw(some.sampled_from(ways))()


def swap_day_and_month(day: date) -> tuple[str, ...]:
    """Return the other date that the same digits can mean."""
    return (f"{day.year}-{day.day:02}-{day.month:02}",) if day.day <= 12 else ()


@some.composite
def draw_number(draw: some.DrawFn) -> Cell:
    """Draw a number as users write it, or as a workbook shows it."""
    cents = draw(some.integers(0, 30_000_000))
    whole, value = cents // 100, cents / 100
    parted = f"{whole:,}"
    turned = parted.replace(",", ".")
    # Three digits behind one sign can be a fraction, where other cells say so.
    either = (whole, float(parted.replace(",", ".", 1))) if parted.count(",") == 1 else (whole,)
    ways = [
        make_text_cell(str(whole), whole),
        make_text_cell(f"{value:.2f}", value),
        make_text_cell(f"{value:.2f}".replace(".", ","), value),
        make_text_cell(parted, *either),
        make_text_cell(turned, *either),
        make_text_cell(parted.replace(",", " "), whole),
        make_text_cell(f"{parted}.50", whole + 0.5),
        make_text_cell(f"{turned},50", whole + 0.5),
        make_text_cell(f"{whole}k", whole * 1000),
        make_text_cell(f"{whole}-{whole + 5}k"),
        make_text_cell(f"ca. {whole}"),
        Cell(str(whole), whole, (whole,)),
        Cell(f"{value}", value, (value,), "0.00"),
        Cell(parted, whole, (whole,), "#,##0", either),
        Cell(parted, whole + 0.25, (), "#,##0", either),
        Cell(f"{whole}.1", whole + 0.125, (), "0.0", (whole + 0.1,)),
        Cell(f"{whole}k", whole * 1000, (whole * 1000,), '0,"k"'),
        Cell(f"{whole}%", whole / 100, (), "0%"),
        Cell("", whole, (), ";;;"),
    ]
    return draw(some.sampled_from(ways))


@some.composite
def draw_phone(draw: some.DrawFn) -> Cell:
    """Draw a telephone number, or another text of such a column."""
    digits = draw(some.integers(10**8, 10**9 - 1))
    spaced = f"+44 7{str(digits)[:3]} {str(digits)[3:]}"
    ways = [
        make_text_cell(spaced, spaced),
        make_text_cell(f"07{digits}", f"07{digits}"),
        make_text_cell(f"tel:+447{digits}", f"+447{digits}"),
        make_text_cell(f"'07{digits}", f"07{digits}"),
        make_text_cell(f"7{digits}.0"),
        make_text_cell(f"{7 * 10**9 + digits:,}"),
        make_text_cell(f"07{digits} / 07{digits + 1}"),
        make_text_cell("4.479E+11"),
        Cell(f"7{digits}", 7 * 10**9 + digits, (), "General", (f"7{digits}",)),
        Cell(f"07{digits}", 7 * 10**9 + digits, (f"07{digits}",), "00000000000"),
    ]
    return draw(some.sampled_from(ways))


WORDS = (
    "Leeds",
    "Zürich",
    "Łódź",
    "São Paulo",
    "Málaga",
    "Köln",
    "'s-Hertogenbosch",
    "N/A Systems",
)
TEXTS = some.sampled_from(
    [
        *(make_text_cell(each, each) for each in WORDS),
        make_text_cell("Two\nlines", "Two\nlines"),
        make_text_cell(' He said "yes" ', 'He said "yes"'),
        # A csv in cp1252 holds the bytes of the right word in UTF-8.
        Cell("ZÃ¼rich", "ZÃ¼rich", (), "General", ("Zürich",)),
        make_text_cell("Le\u200beds"),
        make_text_cell("x" * 255),
        Cell("123", 123, ("123",)),
        Cell("00123", 123, ("00123",), "00000"),
        Cell("17.5%", 0.175, ("17.5%",), "0.0%"),
        Cell("2026-03-01", date(2026, 3, 1), (), "yyyy-mm-dd", ("2026-03-01",)),
        Cell("Mar-26", date(2026, 3, 1), ("Mar-26",), "mmm-yy"),
        Cell("TRUE", True, (), "General", ("TRUE",)),
    ]
)
TRUTHS = some.sampled_from(
    [
        *(make_text_cell(each, True) for each in ("yes", "Ja", "oui", "sí", "TRUE", "1", "y")),
        *(make_text_cell(each, False) for each in ("no", "Nein", "non", "nee", "false", "0")),
        make_text_cell("maybe"),
        Cell("TRUE", True, (True,)),
        Cell("0", 0, (False,)),
        Cell("2", 2, ()),
    ]
)
EMAILS = some.sampled_from(
    [
        make_text_cell("ann@people.example", "ann@people.example"),
        make_text_cell("mailto:ann@people.example", "ann@people.example"),
        make_text_cell("Ann Lee <ann@people.example>", "ann@people.example"),
        make_text_cell("ann(at)people.example"),
        make_text_cell("a@b.example, c@d.example"),
    ]
)
URLS = some.sampled_from(
    [
        make_text_cell("https://people.example/ann", "https://people.example/ann"),
        make_text_cell("people.example/ann"),
        make_text_cell("see CV"),
    ]
)
CURRENCIES = some.sampled_from(
    [
        make_text_cell("gbp", "GBP"),
        make_text_cell("EUR", "EUR"),
        make_text_cell("£", "GBP"),
        make_text_cell("pounds"),
    ]
)
CHOICES = {
    "employment_type": ("Permanent", "permanent"),
    "employment_status": ("Actively looking", "actively_looking"),
    "status": ("Screening", "screening"),
    "ir35_status": ("OUTSIDE", "outside"),
}
COLUMNS = [
    each
    for each in target_columns(CATALOG["candidates"], "create")
    if each.name not in ("first_name", "last_name", "email", "employment_type", "assigned_to")
]


def draw_cells(column: TargetColumn) -> some.SearchStrategy[Cell]:
    """Draw cells of a column, a few of them unusable."""
    kind, form = column.field.kind, column.field.format
    own: some.SearchStrategy[Cell]
    if column.field.values:
        text_, value = CHOICES[column.name]
        own = some.sampled_from([make_text_cell(text_, value), make_text_cell("something else")])
    elif kind is Kind.DATE:
        own = draw_date()
    elif kind is Kind.BOOL:
        own = TRUTHS
    elif kind in (Kind.NUMBER, Kind.INTEGER):
        own = draw_number()
    elif column.is_phone:
        own = draw_phone()
    else:
        own = {"email": EMAILS, "url": URLS, "currency": CURRENCIES}.get(form or "", TEXTS)
    return some.one_of(own, own, own, some.sampled_from([*EMPTY, *ODD]))


@some.composite
def draw_sheet(draw: some.DrawFn) -> tuple[list[TargetColumn], list[list[Cell]]]:
    """Draw some columns and a few rows."""
    columns = draw(some.lists(some.sampled_from(COLUMNS), min_size=1, max_size=5, unique=True))
    rows = some.tuples(*map(draw_cells, columns)).map(list)
    return columns, draw(some.lists(rows, min_size=1, max_size=4))


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252", "mac-roman")
FILES = ("csv", "xlsx", "ods")
LAYOUTS = ("plain", "title", "groups", "total", "repeated")


def arrange_rows(
    layout: str, head: Sequence[str], rows: list[tuple[Any, ...]]
) -> list[Sequence[Any]]:
    """Return the table with a title, groups, totals, or repeated headings."""
    match layout:
        case "title":
            return [("Spring fair 2026",), (), head, *rows]
        case "groups":
            return [("Person", *[""] * (len(head) - 2), "More"), head, *rows]
        case "total":
            return [head, *rows, ("Total", len(rows))]
        case "repeated":
            return [head, rows[0], head, *rows[1:]]
    return [head, *rows]


def make_file(
    kind: str, layout: str, encoding: str, columns: list[TargetColumn], rows: list[list[Cell]]
) -> File | None:
    """Return the sheet as a file; None if the encoding lacks a letter."""
    head = (*HEAD, *(each.name for each in columns))
    if kind == "xlsx":
        values = [(*make_person(n), *(each.value for each in row)) for n, row in enumerate(rows)]
        table = arrange_rows(layout, head, values)
        forms = {
            (table.index(values[n]) + 1, len(HEAD) + i + 1): each.form
            for n, row in enumerate(rows)
            for i, each in enumerate(row)
        }
        return File("sheet.xlsx", make_workbook(table, cells=forms), [])
    texts = [(*make_person(n), *(each.text for each in row)) for n, row in enumerate(rows)]
    table = arrange_rows(layout, head, texts)
    if kind == "ods":
        return File("sheet.ods", make_ods(table), [])
    try:
        return File("sheet.csv", make_text(table, encoding), [])
    except UnicodeEncodeError:
        return None


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[*HealthCheck])
@given(
    sheet=draw_sheet(),
    kind=some.sampled_from(FILES),
    layout=some.sampled_from(LAYOUTS),
    encoding=some.sampled_from(ENCODINGS),
)
def test_every_value_sent_without_a_warning_is_what_a_user_reads(
    tmp_path_factory: pytest.TempPathFactory,
    sheet: tuple[list[TargetColumn], list[list[Cell]]],
    kind: str,
    layout: str,
    encoding: str,
) -> None:
    columns, rows = sheet
    file = make_file(kind, layout, encoding, columns, rows)
    if file is None:
        return
    seen = preview_file(file, tmp_path_factory.mktemp("sheet") / "data", {})
    if isinstance(seen, ConnectorError) or {each.code for each in seen.blocking_questions} - {
        "warnings"
    }:
        return
    results = list(seen.results)
    assert len(results) == len(rows)
    warned = {each.number for each in results if each.warnings}
    tasks = {each.number: each for each in seen.rows.tasks}
    for result, row in zip(results, rows, strict=True):
        task = tasks.get(result.number)
        if task is None or result.number in warned:
            continue
        sent = {**task.fields, **task.afterwards}
        for column, cell in zip(columns, row, strict=True):
            value = sent.get(column.key)
            if value is not None:
                assert value in cell.may_be(kind), (column.key, value, cell)

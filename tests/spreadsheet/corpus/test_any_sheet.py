"""No sheet sends a value without a question or warning that a user would not read in its cell.

Each cell is drawn with the values that a user can read in it, so the test knows what may be sent
without reading the cell again.
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
from connector.settings import Settings
from connector.spreadsheet.targets import TargetColumn, target_columns
from tests.spreadsheet.corpus.cases import HEAD, person_cells
from tests.spreadsheet.corpus.files import SampleFile, encode_csv, make_ods, make_workbook
from tests.spreadsheet.corpus.judge import preview_file


@dataclass(frozen=True)
class DrawnCell:
    """A cell as text (CSV, ODS) and as value with a number format (XLSX), and its allowed meanings.

    `means` are the values that may be sent without a warning; `text_means`, if given, those of the
    text.
    """

    text: str
    value: Any
    means: tuple[Any, ...]
    form: str = "General"
    text_means: tuple[Any, ...] | None = None

    def allowed_values(self, kind: str) -> tuple[Any, ...]:
        """Return the values that may be sent without a warning from a file with this extension."""
        return self.means if kind == "xlsx" or self.text_means is None else self.text_means


def make_text_cell(text: str, *means: Any) -> DrawnCell:
    """Return a cell that is text in every file format, with its allowed values."""
    return DrawnCell(text, text, means)


MONTHS = ("Januar", "février", "March", "abril", "mei", "giugno", "July", "August", "septembre")
EMPTY = [make_text_cell(each) for each in ("n/a", "-", "TBC", "k.A.", "?")]
ODD = [
    *(
        make_text_cell("#N/A"),
        make_text_cell("call agent", "call agent"),
        make_text_cell("\u202e0001"),
    ),
    DrawnCell("=1+1", "=1+1", (), "General", ("=1+1",)),
]


@some.composite
def draw_date(draw: some.DrawFn) -> DrawnCell:
    """Draw a date as users write it, or as a workbook shows it."""
    day = draw(some.dates(date(1950, 1, 1), date(2005, 12, 31)))
    iso = day.isoformat()
    ways: list[Callable[[], DrawnCell]] = [
        lambda: make_text_cell(iso, iso),
        # The column's other cells may decide between the two dates.
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
        lambda: DrawnCell(iso, day, (iso,), "yyyy-mm-dd"),
        lambda: DrawnCell(f"{day:%d.%m.%y}", day, (iso,), "dd.mm.yy"),
        lambda: DrawnCell(f"{day:%b-%y}", day, (), "mmm-yy"),
        lambda: DrawnCell(f"{day:%Y}", day, (), "yyyy"),
        lambda: DrawnCell(f"{day:%d-%b}", day, (), "d-mmm"),
        lambda: DrawnCell(
            f"{day:%H:%M}", datetime(day.year, day.month, day.day, 9, 30), (), "h:mm"
        ),
        lambda: DrawnCell(iso, datetime(day.year, day.month, day.day), (iso,), "dd/mm/yyyy"),
    ]
    return draw(some.sampled_from(ways))()


def swap_day_and_month(day: date) -> tuple[str, ...]:
    """Return the date with day and month swapped, if it exists, as ISO text in a tuple."""
    return (f"{day.year}-{day.day:02}-{day.month:02}",) if day.day <= 12 else ()


@some.composite
def draw_number(draw: some.DrawFn) -> DrawnCell:
    """Draw a number as users write it, or as a workbook shows it."""
    cents = draw(some.integers(0, 30_000_000))
    whole, value = cents // 100, cents / 100
    parted = f"{whole:,}"
    turned = parted.replace(",", ".")
    # Three digits after one separator can be a fraction, if other cells show it.
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
        DrawnCell(str(whole), whole, (whole,)),
        DrawnCell(f"{value}", value, (value,), "0.00"),
        DrawnCell(parted, whole, (whole,), "#,##0", either),
        DrawnCell(parted, whole + 0.25, (), "#,##0", either),
        DrawnCell(f"{whole}.1", whole + 0.125, (), "0.0", (whole + 0.1,)),
        DrawnCell(f"{whole}k", whole * 1000, (whole * 1000,), '0,"k"'),
        DrawnCell(f"{whole}%", whole / 100, (), "0%"),
        DrawnCell("", whole, (), ";;;"),
    ]
    return draw(some.sampled_from(ways))


@some.composite
def draw_phone(draw: some.DrawFn) -> DrawnCell:
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
        DrawnCell(f"7{digits}", 7 * 10**9 + digits, (), "General", (f"7{digits}",)),
        DrawnCell(f"07{digits}", 7 * 10**9 + digits, (f"07{digits}",), "00000000000"),
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
        DrawnCell("ZÃ¼rich", "ZÃ¼rich", (), "General", ("Zürich",)),
        make_text_cell("Le\u200beds"),
        make_text_cell("x" * 255),
        DrawnCell("123", 123, ("123",)),
        DrawnCell("00123", 123, ("00123",), "00000"),
        DrawnCell("17.5%", 0.175, ("17.5%",), "0.0%"),
        DrawnCell("2026-03-01", date(2026, 3, 1), (), "yyyy-mm-dd", ("2026-03-01",)),
        DrawnCell("Mar-26", date(2026, 3, 1), ("Mar-26",), "mmm-yy"),
        DrawnCell("TRUE", True, (), "General", ("TRUE",)),
    ]
)
TRUTHS = some.sampled_from(
    [
        *(make_text_cell(each, True) for each in ("yes", "Ja", "oui", "sí", "TRUE", "1", "y")),
        *(make_text_cell(each, False) for each in ("no", "Nein", "non", "nee", "false", "0")),
        make_text_cell("maybe"),
        DrawnCell("TRUE", True, (True,)),
        DrawnCell("0", 0, (False,)),
        DrawnCell("2", 2, ()),
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


def draw_cells(column: TargetColumn) -> some.SearchStrategy[DrawnCell]:
    """Return a strategy for cells of a column, about a quarter of them empty or unusable."""
    kind, form = column.field.kind, column.field.format
    own: some.SearchStrategy[DrawnCell]
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
def draw_sheet(draw: some.DrawFn) -> tuple[list[TargetColumn], list[list[DrawnCell]]]:
    """Draw one to five columns, and one to four rows of their cells."""
    columns = draw(some.lists(some.sampled_from(COLUMNS), min_size=1, max_size=5, unique=True))
    rows = some.tuples(*map(draw_cells, columns)).map(list)
    return columns, draw(some.lists(rows, min_size=1, max_size=4))


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252", "mac-roman")
FILES = ("csv", "xlsx", "ods")
LAYOUTS = ("plain", "title", "groups", "total", "repeated")


def arrange_rows(
    layout: str, head: Sequence[str], rows: list[tuple[Any, ...]]
) -> list[Sequence[Any]]:
    """Return head and rows in a layout: plain, title, groups, total, or repeated headings."""
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
    kind: str, layout: str, encoding: str, columns: list[TargetColumn], rows: list[list[DrawnCell]]
) -> SampleFile | None:
    """Return the sheet as a CSV, XLSX or ODS file. None if the encoding lacks a letter."""
    head = (*HEAD, *(each.name for each in columns))
    if kind == "xlsx":
        values = [(*person_cells(n), *(each.value for each in row)) for n, row in enumerate(rows)]
        table = arrange_rows(layout, head, values)
        forms = {
            (table.index(values[n]) + 1, len(HEAD) + i + 1): each.form
            for n, row in enumerate(rows)
            for i, each in enumerate(row)
        }
        return SampleFile("sheet.xlsx", make_workbook(table, cells=forms), [])
    texts = [(*person_cells(n), *(each.text for each in row)) for n, row in enumerate(rows)]
    table = arrange_rows(layout, head, texts)
    if kind == "ods":
        return SampleFile("sheet.ods", make_ods(table), [])
    try:
        return SampleFile("sheet.csv", encode_csv(table, encoding), [])
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
    preview_settings: Settings,
    *,
    sheet: tuple[list[TargetColumn], list[list[DrawnCell]]],
    kind: str,
    layout: str,
    encoding: str,
) -> None:
    columns, rows = sheet
    file = make_file(kind, layout, encoding, columns, rows)
    if file is None:
        return
    seen = preview_file(file, tmp_path_factory.mktemp("sheet"), {}, preview_settings)
    if isinstance(seen, ConnectorError) or {each.code for each in seen.blocking_questions} - {
        "warnings"
    }:
        return
    results = list(seen.results)
    assert len(results) == len(rows)
    warned = {each.number for each in results if each.warnings}
    said = " ".join(seen.notices)  # A remark names its column.
    tasks = {each.number: each for each in seen.rows.tasks}
    for result, row in zip(results, rows, strict=True):
        task = tasks.get(result.number)
        if task is None or result.number in warned:
            continue
        sent = {**task.fields, **task.afterwards}
        for column, cell in zip(columns, row, strict=True):
            value = sent.get(column.key)
            if value is not None and f"Column {column.key!r}, " not in said:
                allowed = cell.allowed_values(kind)
                # A national number gets the code of the default country.
                if column.key in ("phone", "mobile"):
                    allowed += tuple(f"+44{e[1:]}" for e in allowed if str(e).startswith("0"))
                assert value in allowed, (column.key, value, cell)

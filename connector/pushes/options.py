"""Options of a push, declared once for the command, the Dagster job and the inbox's `push.toml`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import PositiveInt, TypeAdapter, ValidationError

from connector.errors import Misused, UnknownName
from connector.spreadsheet.dates import HOURS_ALLOWED, ORDERS, parse_hours
from connector.spreadsheet.mapping_file import SavedMap, load_map, with_options
from connector.spreadsheet.problems import WARNINGS
from connector.spreadsheet.table import Spreadsheet, open_table
from connector.spreadsheet.targets import CellOptions, Decimal, Lookups, PushTarget, push_target
from connector.spreadsheet.texts import REGIONS
from connector.state.row import Mode

NO_MAP = "none"
"""Name that turns off the remembered column mapping."""

DECIMALS: Mapping[str, Decimal] = {"dot": ".", "comma": ","}
"""Decimal separators by name."""

MODES: tuple[Mode, ...] = get_args(Mode)

KINDS = (*WARNINGS, "headings", "merged_cells", "mixed_dates")
"""Kinds of warnings that can be accepted: those of rows, and those of the file."""

ReportRows = Literal["problems", "all"]
"""Rows in the report of a preview. A report after sending has all of them."""


PUSH_OPTIONS: Mapping[str, str] = {
    "mode": "Operation for the rows: create or update records, either (upsert), or convert leads.",
    "match": "Fields that identify the record of a row, for example email or title,company_id.",
    "apply": "Send the rows. Default: preview only.",
    "mapping": "Column mapping file. Use 'none' to ignore a remembered mapping.",
    "ignore": "Columns that are not imported, or '*' for all unknown columns.",
    "content_type": "Content type of the rows (content_items only).",
    "sheet": "Sheet of the workbook. Required if several sheets have rows.",
    "encoding": "Text encoding, for example cp1252.",
    "delimiter": "Column delimiter: comma, semicolon, tab or pipe.",
    "header_row": "Row number of the headings. Detected by default.",
    "date_format": "Order of numeric dates: dmy, mdy or ymd.",
    "region": "Country whose customs decide dates, numbers, currencies and telephone numbers."
    " Default: the setting region.",
    "day_hours": f"Times of days without a time in fields that need one: {HOURS_ALLOWED}.",
    "set_values": "Value of a field for all rows, for example booking_type=contract. Can be"
    " repeated.",
    "decimal": "Decimal separator.",
    "clear": "Text that empties a field. Blank cells change nothing.",
    "accept_warnings": "Send rows that have warnings.",
    "accept": "Send rows that have only these kinds of warnings.",
    "overwrite": "Overwrite values that others changed since the last pull.",
    "resend": "Send rows again even if an earlier push already applied them.",
    "output": "Path of the report. Default: next to the file.",
    "report": "Rows in the report of a preview: only rows with problems, or all.",
}
"""Help text of each option by name, for the command, the job and `push.toml`."""


@dataclass(frozen=True, slots=True)
class PushOptions:
    """Options of a push as the user gives them. `push_file` checks the values.

    `pull` pulls before the rows are sent, and `wait` waits until unconfirmed rows can be looked up.
    `max_requests` is the maximum number of requests, including those of the pull.
    """

    mode: Mode
    match: tuple[str, ...] = ()
    apply: bool = False
    mapping: Path | None = None
    ignore: tuple[str, ...] = ()
    content_type: str | None = None
    sheet: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header_row: int | None = None
    date_format: str | None = None
    region: str | None = None
    day_hours: str | None = None
    set_values: tuple[str, ...] = ()
    decimal: str | None = None
    clear: str | None = None
    accept_warnings: bool = False
    accept: tuple[str, ...] = ()
    overwrite: bool = False
    resend: bool = False
    output: Path | None = None
    report: ReportRows = "problems"
    pull: bool = True
    wait: bool = True
    max_requests: PositiveInt | None = None
    ignore_quota: bool = False

    def push_file(self, resource: str, path: Path) -> PushFile:
        """Return the file to push with these options.

        Raises:
            UnknownName: A value is not allowed.
            Misused: A value is not valid, or the mapping file is not.
        """
        _check_values(self)
        saved = SavedMap(resource)
        if self.mapping is not None and self.mapping.name != NO_MAP:
            saved = load_map(self.mapping)
        constants = {**saved.constants, **dict(map(_assignment, self.set_values))}
        cells = CellOptions(
            date_format=self.date_format,
            decimal=DECIMALS[self.decimal] if self.decimal else None,
            region=self.region.upper() if self.region else None,
            day_hours=self.day_hours,
        )
        options = replace(self, header_row=self.header_row or saved.header_row)
        saved = with_options(replace(saved, constants=constants), cells)
        return PushFile(resource, path, options, saved, remembers=self.mapping is None)


_OPTIONS = TypeAdapter(PushOptions)


@dataclass(frozen=True, slots=True)
class PushFile:
    """File to push.

    Attributes:
        saved: Column mapping of the user, with the options for cells.
        remembers: Whether to use the last mapping for the same headings if none is given.
    """

    resource: str
    path: Path
    options: PushOptions
    saved: SavedMap
    remembers: bool = True

    def accepts(self, code: str) -> bool:
        """Return True if the user has accepted warnings of this kind."""
        return self.options.accept_warnings or code in self.options.accept

    def open(self) -> Spreadsheet:
        """Open the spreadsheet. Raises as `open_table` does."""
        names = ("sheet", "encoding", "delimiter", "header_row")
        return open_table(self.path, **{name: getattr(self.options, name) for name in names})

    def target(self, lookups: Lookups) -> PushTarget:
        """Return the fields that columns can fill. Raises as `push_target` does."""
        options = self.options
        # Only content items have a content type.
        parent = options.content_type if self.resource == "content_items" else None
        return push_target(
            self.resource,
            options.mode,
            lookups,
            match=options.match,
            clear=options.clear,
            parent=parent,
        )


def parse_options(given: Mapping[str, Any]) -> PushOptions:
    """Return the options that `push.toml` or the configuration of a Dagster job gives by name.

    Raises `Misused` that names the invalid option.
    """
    allowed = (*PUSH_OPTIONS, "pull", "max_requests")
    for name in given:
        if name not in allowed:
            raise Misused(
                f"unknown option {name!a} of a push; allowed are {', '.join(allowed)}",
                action="Correct the name.",
            )
    try:
        # JSON has no tuples and no paths either, so that lists and texts are accepted for them.
        return _OPTIONS.validate_json(json.dumps(given, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        names = ".".join(map(str, first["loc"]))
        raise Misused(f"{names}: {first['msg']}", action="Correct the option.") from None


def _check_values(options: PushOptions) -> None:
    """Raise `UnknownName` or `Misused` if a value is not allowed."""
    region = options.region.upper() if options.region else None
    given: tuple[tuple[str, Sequence[str | None], Sequence[str]], ...] = (
        ("mode", [options.mode], MODES),
        ("date order", [options.date_format], tuple(ORDERS)),
        ("decimal sign", [options.decimal], tuple(DECIMALS)),
        ("region", [region], sorted(REGIONS)),
        ("kind of warning", options.accept, KINDS),
    )
    for name, values, allowed in given:
        for value in values:
            if value is not None and value not in allowed:
                raise UnknownName(name, value, allowed)
    if options.header_row is not None and options.header_row < 1:
        action = "Give a number of 1 or greater."
        raise Misused(f"{options.header_row} is not a row of the headings", action=action)
    if options.day_hours is not None:
        try:
            parse_hours(options.day_hours)
        except ValueError:
            message = f"{options.day_hours!r} are no hours of a day"
            raise Misused(message, action=f"Give {HOURS_ALLOWED}.") from None


def _assignment(text: str) -> tuple[str, str]:
    """Return field and value of an assignment. Raises `Misused`."""
    name, sign, value = text.partition("=")
    if not (sign and name.strip() and value.strip()):
        raise Misused(
            f"{text!r} is not a field with a value",
            action="Give both, for example --set employment_type=permanent.",
        )
    return name.strip(), value.strip()

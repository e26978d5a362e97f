"""Options of a push, declared once for the command, the Dagster job and the inbox's `push.toml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from connector.errors import Misused, UnknownName
from connector.pushes.preview import PushFile
from connector.spreadsheet.dates import HOURS_ALLOWED, ORDERS, parse_hours
from connector.spreadsheet.mapping_file import SavedMap, load_map, with_options
from connector.spreadsheet.problems import WARNINGS
from connector.spreadsheet.targets import CellOptions, Decimal
from connector.spreadsheet.texts import REGIONS
from connector.state.row import Mode, Policy

DECIMALS: Mapping[str, Decimal] = {"dot": ".", "comma": ","}
"""Decimal separators by name."""

NO_MAP = "none"
"""Name that turns off the remembered column mapping."""

MODES: tuple[Mode, ...] = get_args(Mode)

KINDS = (*WARNINGS, "headings", "merged_cells", "mixed_dates")
"""Kinds of warnings that can be accepted: those of rows, and those of the file."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PushOption:
    """Description of an option.

    Attributes:
        about: Help text.
        choices: Allowed values; empty if any value is allowed.
        shown: Placeholder for the value in help texts.
    """

    about: str
    choices: Sequence[str] = ()
    shown: str = ""


_MODE = PushOption(
    "Operation for the rows: create or update records, either (upsert), or convert leads.", MODES
)
_MATCH = PushOption(
    "Fields that identify the record of a row, for example email or title,company_id.",
    shown="FIELD,...",
)
_CLEAR = PushOption("Text that empties a field. Blank cells change nothing.", shown="TOKEN")
_OVERWRITE = PushOption("Overwrite values that others changed since the last pull.")


@dataclass(frozen=True, slots=True)
class PushOptions:
    """Options of a push as the user gives them. `push_file` and `policy` check the values."""

    mode: Annotated[str, _MODE]
    match: Annotated[tuple[str, ...], _MATCH] = ()
    mapping_file: Annotated[
        Path | None,
        PushOption("Column mapping file. Use 'none' to ignore a remembered mapping.", shown="FILE"),
    ] = None
    ignore: Annotated[
        tuple[str, ...],
        PushOption(
            "Columns that are not imported, or '*' for all unknown columns.", shown="COLUMN,..."
        ),
    ] = ()
    content_type: Annotated[
        str | None, PushOption("Content type of the rows (content_items only).", shown="SLUG")
    ] = None
    sheet: Annotated[
        str | None,
        PushOption("Sheet of the workbook. Required if several sheets have rows.", shown="NAME"),
    ] = None
    encoding: Annotated[
        str | None, PushOption("Text encoding, for example cp1252.", shown="NAME")
    ] = None
    delimiter: Annotated[
        str | None, PushOption("Column delimiter: comma, semicolon, tab or pipe.", shown="NAME")
    ] = None
    header_row: Annotated[
        int | None, PushOption("Row number of the headings. Detected by default.", shown="N")
    ] = None
    date_format: Annotated[
        str | None, PushOption("Order of numeric dates: dmy, mdy or ymd.", shown="ORDER")
    ] = None
    region: Annotated[
        str | None,
        PushOption(
            "Country whose customs decide dates, numbers, currencies and telephone numbers."
            " Default: the setting region.",
            shown="CODE",
        ),
    ] = None
    day_hours: Annotated[
        str | None,
        PushOption(
            f"Times of days without a time in fields that need one: {HOURS_ALLOWED}.", shown="HOURS"
        ),
    ] = None
    set_values: Annotated[
        tuple[str, ...],
        PushOption(
            "Value of a field for all rows, for example booking_type=contract. Can be repeated.",
            shown="FIELD=VALUE",
        ),
    ] = ()
    decimal: Annotated[str | None, PushOption("Decimal separator.", tuple(DECIMALS))] = None
    clear: Annotated[str | None, _CLEAR] = None
    accept_warnings: Annotated[bool, PushOption("Send rows that have warnings.")] = False
    accept: Annotated[
        tuple[str, ...],
        PushOption("Send rows that have only these kinds of warnings.", shown="CODE,..."),
    ] = ()
    overwrite: Annotated[bool, _OVERWRITE] = False
    resend: Annotated[
        bool, PushOption("Send rows again even if an earlier push already applied them.")
    ] = False

    def push_file(self, resource: str, path: Path) -> PushFile:
        """Return the file to push with these options.

        Raises `UnknownName` with the values allowed, `Misused` for an invalid date format or row
        number, and what `load_map` raises.
        """
        mode, saved = (
            _checked_choice("mode", self.mode, MODES),
            self._mapping_with_options(resource),
        )
        return PushFile(
            resource,
            path,
            mode,
            match=self.match,
            saved=saved,
            ignored=self.ignore,
            clear=self.clear,
            # Other records have no content type.
            parent=self.content_type if resource == "content_items" else None,
            sheet=self.sheet,
            encoding=self.encoding,
            delimiter=self.delimiter,
            header_row=_checked_row_number(self.header_row) or saved.header_row,
            accepts_warnings=self.accept_warnings,
            accepted=tuple(_checked_choice("kind of warning", e, KINDS) for e in self.accept),
            remembers=self.mapping_file is None,
        )

    def policy(self) -> Policy:
        """Return the policy of the push."""
        return Policy(overwrite=self.overwrite, resend=self.resend)

    def _mapping_with_options(self, resource: str) -> SavedMap:
        """Return the mapping from `mapping_file`, or an empty one, with the options for cells
        added.
        """
        has_map = self.mapping_file is not None and self.mapping_file.name != NO_MAP
        saved = load_map(self.mapping_file) if has_map and self.mapping_file else SavedMap(resource)
        said: dict[str, Any] = {}
        if self.date_format is not None:
            orders = tuple(ORDERS)
            said["date_format"] = _checked_choice("date order", self.date_format, orders)
        if self.decimal is not None:
            said["decimal"] = DECIMALS[
                _checked_choice("decimal sign", self.decimal, tuple(DECIMALS))
            ]
        if self.region is not None:
            said["region"] = _checked_choice("region", self.region.upper(), tuple(sorted(REGIONS)))
        if self.day_hours is not None:
            said["day_hours"] = _checked_hours(self.day_hours)
        constants = {**saved.constants, **dict(map(_checked_assignment, self.set_values))}
        return with_options(replace(saved, constants=constants), CellOptions(**said))


OPTIONS: Mapping[str, PushOption] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(PushOptions, include_extras=True).items()
}
"""Every option by name, for the command, the job and `push.toml`."""

PUSH_OPTIONS: Mapping[str, str] = {name: each.about for name, each in OPTIONS.items()}
"""Help text of each option by name."""


def _checked_choice(name: str, value: str, allowed: tuple[T, ...]) -> T:
    """Return the value if it is allowed. Raises `UnknownName` that calls the value `name`."""
    for each in allowed:
        if each == value:
            return each
    raise UnknownName(name, value, map(str, allowed))


def _checked_hours(hours: str) -> str:
    """Return the times of days without a time if they are valid. Raises `Misused`."""
    try:
        parse_hours(hours)
    except ValueError:
        raise Misused(f"{hours!r} are no hours of a day", action=f"Give {HOURS_ALLOWED}.") from None
    return hours


def _checked_assignment(text: str) -> tuple[str, str]:
    """Return field and value of an assignment. Raises `Misused`."""
    name, sign, value = text.partition("=")
    if not (sign and name.strip() and value.strip()):
        raise Misused(
            f"{text!r} is not a field with a value",
            action="Give both, for example --set employment_type=permanent.",
        )
    return name.strip(), value.strip()


def _checked_row_number(number: int | None) -> int | None:
    """Return the number if it is None or at least 1. Raises `Misused`."""
    if number is not None and number < 1:
        raise Misused(
            f"{number} is not a row number",
            action="Give the row number of the spreadsheet, 1 or greater.",
        )
    return number

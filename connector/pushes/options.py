"""Options of a push, declared once.

The command, the job and the inbox's `push.toml` take the same options, with the same words for
them, the same values and the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from connector.engine.push_plan import DoubtPolicy, PushPolicy
from connector.engine.push_states import Mode
from connector.errors import Misused, UnknownName
from connector.pushes.dry_run import PushFile
from connector.spreadsheet.cells import CellOptions
from connector.spreadsheet.contacts import REGIONS
from connector.spreadsheet.dates import FORMAT_ALLOWED, check_form
from connector.spreadsheet.mapping_file import (
    CENTURY_ALLOWED,
    SavedMap,
    is_century,
    load_map,
    with_options,
)
from connector.spreadsheet.numbers import Decimal

DECIMALS: Mapping[str, Decimal] = {"dot": ".", "comma": ","}
"""The signs that part a fraction, by name."""

NO_MAP = "none"
"""Stands for no map: not even that which was used before for the same headings."""

MODES: tuple[Mode, ...] = get_args(Mode)

POLICIES: tuple[DoubtPolicy, ...] = get_args(DoubtPolicy)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PushOption:
    """Words on one option, its choices (empty: anything), and its placeholder."""

    about: str
    choices: Sequence[str] = ()
    shown: str = ""


_MODE = PushOption(
    "What rows become: new records, changes of records, either, or conversions of leads.", MODES
)
_MATCH = PushOption(
    "The fields by which rows find their records, as in email or title,company_id.",
    shown="FIELD,...",
)
_IN_DOUBT = PushOption(
    "What becomes of a create that was not answered and is not found: kept for a person, or sent"
    " once more, which can make two where the server is slow.",
    POLICIES,
)
_MARKER = PushOption(
    "A text field that is given a mark, by which a record is known for certain.", shown="FIELD"
)
_CLEAR = PushOption("The text that empties a field; blank cells leave it alone.", shown="TOKEN")
_OVERWRITE = PushOption("Write even what somebody else has changed since it was pulled.")


@dataclass(frozen=True, slots=True)
class PushOptions:
    """Options of a push as a person says them: their one declaration.

    Names of columns and values are as typed: whether they make sense is seen when a file is asked
    for, and when it is read.
    """

    mode: Annotated[str, _MODE]
    match: Annotated[tuple[str, ...], _MATCH] = ()
    map_file: Annotated[
        Path | None, PushOption("What each column is for, or 'none': anew.", shown="FILE")
    ] = None
    ignore: Annotated[
        tuple[str, ...], PushOption("Columns that may be lost, or '*' for all.", shown="COLUMN,...")
    ] = ()
    content_type: Annotated[
        str | None, PushOption("The content type of content_items.", shown="SLUG")
    ] = None
    sheet: Annotated[
        str | None, PushOption("The workbook's sheet, where several have rows.", shown="NAME")
    ] = None
    encoding: Annotated[
        str | None, PushOption("The text's encoding, such as cp1252.", shown="NAME")
    ] = None
    delimiter: Annotated[str | None, PushOption("comma, semicolon, tab or pipe.", shown="NAME")] = (
        None
    )
    header_row: Annotated[
        int | None, PushOption("The row of the headings, where it is not found.", shown="N")
    ] = None
    date_format: Annotated[
        str | None,
        PushOption("How dates are written: dmy, mdy, or a form as DD/MM/YYYY.", shown="FORM"),
    ] = None
    century: Annotated[
        int | None,
        PushOption("The first year that a year of two digits may mean, as 1930.", shown="YEAR"),
    ] = None
    region: Annotated[
        str | None,
        PushOption("The country of telephone numbers that name none, as GB.", shown="CODE"),
    ] = None
    decimal: Annotated[str | None, PushOption("What parts a fraction.", tuple(DECIMALS))] = None
    clear: Annotated[str | None, _CLEAR] = None
    accept_warnings: Annotated[
        bool, PushOption("Send rows with warnings: you have looked at them.")
    ] = False
    overwrite: Annotated[bool, _OVERWRITE] = False
    again: Annotated[bool, PushOption("Write even rows that an earlier push has applied.")] = False
    in_doubt: Annotated[str, _IN_DOUBT] = "hold"
    marker_field: Annotated[str | None, _MARKER] = None

    def push_file(self, resource: str, path: Path) -> PushFile:
        """One file of a resource, to be read as the options say.

        Raises `UnknownName` with what is allowed, `Misused` for a form of dates that is none, and
        what `load_map` raises.
        """
        mode, saved = _one_of("mode", self.mode, MODES), self._saved(resource)
        return PushFile(
            resource,
            path,
            mode,
            match=self.match,
            saved=saved,
            ignored=self.ignore,
            clear=self.clear,
            # One command may push content items beside others, which are of no content type.
            parent=self.content_type if resource == "content_items" else None,
            sheet=self.sheet,
            encoding=self.encoding,
            delimiter=self.delimiter,
            header_row=_row_number(self.header_row) or saved.header_row,
            accepts_warnings=self.accept_warnings,
            remembers=self.map_file is None,
        )

    def policy(self) -> PushPolicy:
        """On which terms rows are written. Raises `UnknownName` with what is allowed."""
        return PushPolicy(
            policy=_one_of("policy for rows in doubt", self.in_doubt, POLICIES),
            overwrite=self.overwrite,
            again=self.again,
            marker_field=self.marker_field,
        )

    def _saved(self, resource: str) -> SavedMap:
        """What was decided about the columns; options speak where the map says nothing."""
        has_map = self.map_file is not None and self.map_file.name != NO_MAP
        saved = load_map(self.map_file) if has_map and self.map_file else SavedMap(resource)
        said: dict[str, Any] = {}
        if self.date_format is not None:
            said["date_format"] = _date_format(self.date_format)
        if self.decimal is not None:
            said["decimal"] = DECIMALS[_one_of("decimal sign", self.decimal, tuple(DECIMALS))]
        if self.century is not None:
            said["century"] = _century(self.century)
        if self.region is not None:
            said["region"] = _one_of("region", self.region.upper(), tuple(sorted(REGIONS)))
        return with_options(saved, CellOptions(**said)) if said else saved


OPTIONS: Mapping[str, PushOption] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(PushOptions, include_extras=True).items()
}
"""The words on each option, by its name, for whoever offers them: a command, a job, a file."""

PUSH_OPTIONS: Mapping[str, str] = {name: each.about for name, each in OPTIONS.items()}
"""What each option means, by its name."""


def _one_of(what: str, said: str, allowed: tuple[T, ...]) -> T:
    for each in allowed:
        if each == said:
            return each
    raise UnknownName(what, said, map(str, allowed))


def _century(said: int | str) -> int:
    year = int(said) if str(said).isdecimal() else 0
    if not is_century(year):
        raise Misused(f"{said!r} is no first year of a century", action=f"Give {CENTURY_ALLOWED}.")
    return year


def _row_number(said: int | None) -> int | None:
    if said is not None and said < 1:
        raise Misused(f"{said} is no row", action="Count the rows from 1, as a spreadsheet does.")
    return said


def _date_format(said: str) -> str:
    try:
        check_form(said)
    except ValueError as error:
        raise Misused(
            f"{said!r} is no form of a date: {error}", action=f"Write {FORMAT_ALLOWED}."
        ) from None
    return said

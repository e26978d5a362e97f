"""What a person may say of a push, in one place.

The command, the job and the inbox's `push.toml` take the same options, with the same words for
them, the same values and the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from connector.engine.push_plan import Policy, Terms
from connector.engine.push_states import Mode
from connector.errors import Misused, UnknownName
from connector.pushes.dry_run import Asked
from connector.spreadsheet.cells import Decimal
from connector.spreadsheet.dates import FORMAT_ALLOWED, DateFormat
from connector.spreadsheet.mapping_file import SavedMap, load_map

DecimalName = Literal["dot", "comma"]
"""What parts a number's fraction, by name."""

DECIMALS: Mapping[str, Decimal] = {"dot": ".", "comma": ","}
"""The signs that part a fraction, by name."""

MODES: tuple[Mode, ...] = get_args(Mode)

POLICIES: tuple[Policy, ...] = get_args(Policy)

PUSH_OPTIONS: Mapping[str, str] = {
    "mode": "What rows become: new records, changes of records, either, or conversions of leads.",
    "match": "The fields by which rows find their records, as in email or title,company_id.",
    "map_file": "What each column is for, as --save-map writes it.",
    "ignore": "Columns that fill nothing and are not told of.",
    "content_type": "The content type of content_items.",
    "sheet": "The workbook's sheet, where several have rows.",
    "encoding": "The text's encoding, such as cp1252.",
    "delimiter": "comma, semicolon, tab or pipe.",
    "date_format": "How dates are written, as DD/MM/YYYY.",
    "decimal": "What parts a fraction.",
    "clear": "The text that empties a field; blank cells leave it alone.",
    "overwrite": "Write even what somebody else has changed since it was pulled.",
    "again": "Write even rows that an earlier push has applied.",
    "in_doubt": "What becomes of a create that was not answered and is not found: kept for a"
    " person, or sent once more, which can make two where the server is slow.",
    "marker_field": "A text field that is given a mark, by which a record is known for certain.",
}
"""What each option means, by its name below."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PushOptions:
    """How files are to be pushed, as a person says it; `PUSH_OPTIONS` tells what each option means.

    Names of columns and values are as typed: whether they make sense is seen when a file is asked
    for, and when it is read.
    """

    mode: str
    match: tuple[str, ...] = ()
    map_file: Path | None = None
    ignore: tuple[str, ...] = ()
    content_type: str | None = None
    sheet: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    date_format: str | None = None
    decimal: str | None = None
    clear: str | None = None
    overwrite: bool = False
    again: bool = False
    in_doubt: str = "hold"
    marker_field: str | None = None

    def asked(self, resource: str, path: Path) -> Asked:
        """One file of a resource, to be read as the options say.

        Raises `UnknownName` with what is allowed, `Misused` for a form of dates that is none, and
        what `load_map` raises.
        """
        return Asked(
            resource,
            path,
            _one_of("mode", self.mode, MODES),
            match=self.match,
            saved=self._saved(resource),
            ignored=self.ignore,
            clear=self.clear,
            # One command may push content items beside others, which are of no content type.
            parent=self.content_type if resource == "content_items" else None,
            sheet=self.sheet,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )

    def terms(self) -> Terms:
        """On which terms rows are written. Raises `UnknownName` with what is allowed."""
        return Terms(
            policy=_one_of("policy for rows in doubt", self.in_doubt, POLICIES),
            overwrite=self.overwrite,
            again=self.again,
            marker_field=self.marker_field,
        )

    def _saved(self, resource: str) -> SavedMap:
        """What was decided about the columns; options speak where the map says nothing."""
        saved = SavedMap(resource) if self.map_file is None else load_map(self.map_file)
        said: dict[str, Any] = {}
        if self.date_format is not None:
            said["date_format"] = _date_format(self.date_format)
        if self.decimal is not None:
            said["decimal"] = DECIMALS[_one_of("decimal sign", self.decimal, tuple(DECIMALS))]
        return replace(saved, options=replace(saved.options, **said)) if said else saved


def _one_of(what: str, said: str, allowed: tuple[T, ...]) -> T:
    for each in allowed:
        if each == said:
            return each
    raise UnknownName(what, said, map(str, allowed))


def _date_format(said: str) -> str:
    try:
        DateFormat(said)
    except ValueError as error:
        raise Misused(
            f"{said!r} is no form of a date: {error}", action=f"Write {FORMAT_ALLOWED}."
        ) from None
    return said

"""Reading of dates and times in cells.

`03/04/2025` can be two dates, so it is an error until the other cells of the column or the user
decide the order. A year of two digits needs its century, and a time needs its time zone: written
after it, or declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from connector.spreadsheet.problems import (
    CellError,
    PartlyVisibleCell,
    ReadText,
    ReadTyped,
    with_note,
)
from connector.spreadsheet.word_lists import MONTHS, normalized_words

_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0+)?)?(Z|\+00:00)?").fullmatch
_ISO_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?"
    r"\s?(Z|[+-][0-9]{2}:?[0-9]{2})?"
).fullmatch
_NUMERIC = re.compile(
    r"(?:[^\W\d_]{2,12}\.?,?\s+)?([0-9]{1,2})(\s?[/.\-]\s?|\s)([0-9]{1,2})\2"
    r"([0-9]{4}|'?[0-9]{2})"
    r"(?:,?[T ]\s?(.+))?"
).fullmatch
_YEAR_FIRST = re.compile(
    r"([0-9]{4})\s?[/.]\s?([0-9]{1,2})\s?[/.]\s?([0-9]{1,2})(?:[T ](.+))?"
).fullmatch
_WORD = r"([^\W\d_]{3,12})\.?"
_DAY_IN_LETTERS = re.compile(
    r"(?:[^\W\d_]{2,12}\.?,?\s+)?([0-9]{1,2})(?:st|nd|rd|th|er|º|°|\.)?(?:\s+(?:de|of))?[\s\-./]*"
    rf"{_WORD}(?:\s+(?:de|del))?[\s\-./,]*([0-9]{{4}}|'?[0-9]{{2}})(?:,?[T ]\s?(.+))?"
).fullmatch
_LETTERS_BEFORE_DAY = re.compile(
    rf"(?:[^\W\d_]{{2,12}}\.?,?\s+)?{_WORD}[\s\-]+"
    r"([0-9]{1,2})(?:st|nd|rd|th)?,?[\s\-]+([0-9]{4})(?:,?[T ]\s?(.+))?"
).fullmatch
_TIME = re.compile(
    r"([0-9]{1,2})[:.h]([0-9]{2})(?::([0-9]{2}))?\s?(am|pm|Uhr|h)?", re.IGNORECASE
).fullmatch
_YEARS = range(1900, 2201)

_DATE = "a date, for example 2026-05-01"
_MOMENT = "a date and time, for example 2026-05-01T09:30:00Z"
_TOKENS = {
    "YYYY": r"(?P<year>[0-9]{4})",
    "MMM": r"(?P<month>[^\W\d_]{3,12})\.?",
    "MM": r"(?P<month>[0-9]{1,2})",
    "M": r"(?P<month>[0-9]{1,2})",
    "DD": r"(?P<day>[0-9]{1,2})",
    "D": r"(?P<day>[0-9]{1,2})",
    "hh": r"(?P<hour>[0-9]{1,2})",
    "mm": r"(?P<minute>[0-9]{2})",
    "ss": r"(?P<second>[0-9]{2})",
}
_TOKEN = re.compile(f"({'|'.join(_TOKENS)})")

FORMAT_ALLOWED = (
    "dmy, mdy or ymd; or a pattern of YYYY, MM or MMM, and DD with separators, for "
    "example DD/MM/YYYY; add hh:mm or hh:mm:ss for a time"
)


ORDERS: Mapping[str, str] = {
    "dmy": "day, month, year",
    "mdy": "month, day, year",
    "ymd": "year first",
}
"""Orders of a numeric date that the user can declare with one word."""


def parse_declared_format(declared: str | None) -> DateFormat | None:
    """Return the declared date format; None if the user declared nothing, or only an order like
    dmy.

    Raises `ValueError` for an invalid format.
    """
    return None if not declared or declared.lower() in ORDERS else DateFormat(declared)


def check_date_format(declared: str) -> None:
    """Raise `ValueError` unless the text is an order of day, month and year, or a date format."""
    parse_declared_format(declared)


class DateFormat:
    """Format of a column's dates, such as `DD/MM/YYYY` or `D MMM YYYY hh:mm`.

    A day and a month may have one digit or two. `MMM` is the month's English name or its first
    three letters. Raises `ValueError` for a format without day, month and year.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        parts = _TOKEN.split(text)
        tokens, between = parts[1::2], parts[::2]
        kinds = {token[0] for token in tokens}
        if "" in between[1:-1]:
            raise ValueError("two parts without a separator")
        if len(kinds) < len(tokens) or not kinds >= {"Y", "M", "D"}:
            raise ValueError("year, month and day must occur once each")
        if ("h" in kinds) != ("m" in kinds) or ("s" in kinds and "m" not in kinds):
            raise ValueError("half a time")
        if any(re.search(r"[A-SU-Za-z0-9]", each) for each in between):
            raise ValueError("unknown letters")
        pattern = "".join(_TOKENS.get(each) or re.escape(each) for each in parts)
        self._match = re.compile(pattern).fullmatch
        self.has_time = "h" in kinds

    def read(self, text: str) -> datetime | None:
        """Return the date and time of the text, without time zone; None for another format.

        Raises `CellError` for a date that does not exist.
        """
        found = self._match(text)
        if found is None:
            return None
        parts = found.groupdict()
        month = parts["month"]
        if not month.isdigit():
            month = MONTHS.get(normalized_words(month), 0)
        hour, minute, second = (int(parts.get(n) or 0) for n in ("hour", "minute", "second"))
        try:
            return datetime(int(parts["year"]), int(month), int(parts["day"]), hour, minute, second)
        except ValueError:
            raise CellError("no_such_date") from None


def _time_in_date_error(day: str) -> CellError:
    """Return the error for a time in a date column; it suggests the `day` alone."""
    return CellError("time_in_date", fix=f"Enter {day}")


def _time_missing_error(day: str) -> CellError:
    """Return the error for a date without a time; it suggests the `day` with a time."""
    return CellError("time_missing", fix=f"Enter {day}T09:30:00Z, with the right time.")


# -- As people write them --------------------------------------------------------------------------


_ParsedDate = tuple[datetime, bool]
"""A date and time, and whether the text contained the time."""


class DateMeanings:
    """Dates that a text can mean, by order (`dmy`, `mdy`, `ymd`, or "" if a month is in letters).

    `is_short` is True if the year has two digits and no century is declared. The dates then only
    show whether day and month can be told apart.
    """

    __slots__ = ("dates", "has_time", "is_short", "time")

    def __init__(self, dates: Mapping[str, date], rest: str | None, *, is_short: bool) -> None:
        self.dates, self.is_short = dates, is_short
        self.has_time = bool(rest)
        self.time = _parse_time(rest) if rest else time()

    @property
    def is_ambiguous(self) -> bool:
        """Return True if the text can mean two dates."""
        return len(set(self.dates.values())) > 1


def date_meanings(text: str, century: int | None = None) -> DateMeanings | None:
    """Return the dates that the text can mean; None if it is no date.

    Raises `CellError` for a date that does not exist.
    """
    if found := _NUMERIC(text):
        first, second, rest = int(found[1]), int(found[3]), found[5]
        year, is_short = _full_year(found[4], century)
        orders = {"dmy": (second, first), "mdy": (first, second)}
        if found[2].strip() == ".":
            # Dots separate a date that begins with the day, in all countries that use dots.
            del orders["mdy"]
        return _existing_dates(
            {order: (year, *pair) for order, pair in orders.items()}, rest, is_short
        )
    if found := _YEAR_FIRST(text):
        return _existing_dates(
            {"ymd": (int(found[1]), int(found[2]), int(found[3]))}, found[4], False
        )
    for pattern, day, month, year in ((_DAY_IN_LETTERS, 1, 2, 3), (_LETTERS_BEFORE_DAY, 2, 1, 3)):
        if (found := pattern(text)) and (number := MONTHS.get(normalized_words(found[month]))):
            full, is_short = _full_year(found[year], century)
            return _existing_dates({"": (full, number, int(found[day]))}, found[4], is_short)
    return None


def _full_year(text: str, century: int | None) -> tuple[int, bool]:
    """Return the year, and True if it has two digits without a declared century."""
    digits = text.lstrip("'")
    if len(digits) == 4:
        return int(digits), False
    # Without a declared century, 29 February is accepted in every possible leap year.
    first = century or 2000
    year = first + (int(digits) - first) % 100
    return year, century is None


def _existing_dates(
    orders: Mapping[str, tuple[int, int, int]], rest: str | None, is_short: bool
) -> DateMeanings | None:
    """Return the dates that exist, by order; None if `rest` is no time.

    `orders` has year, month and day by order. Raises `CellError` if no date exists.
    """
    dates = {}
    for order, parts in orders.items():
        try:
            dates[order] = date(*parts)
        except ValueError:
            continue
    if not dates:
        raise CellError("no_such_date")
    try:
        return DateMeanings(dates, rest, is_short=is_short)
    except ValueError:
        return None


def _parse_time(text: str) -> time:
    """Return the time of a text such as 9:30 pm. Raises `ValueError`."""
    found = _TIME(text.strip())
    if found is None:
        raise ValueError(text)
    hour, word = int(found[1]), (found[4] or "").lower()
    if word in ("am", "pm"):
        if not 1 <= hour <= 12:
            raise ValueError(text)
        hour = hour % 12 + (12 if word == "pm" else 0)
    return time(hour, int(found[2]), int(found[3] or 0))


def _single_date(
    text: str, order: str | None, century: int | None, allowed: str
) -> _ParsedDate | None:
    """Return the date and time of the text; None if it is no date.

    `allowed` describes allowed values in an error. Raises `CellError` if the text can mean two
    dates, or has two digits for the year.
    """
    found = date_meanings(text, century)
    if found is None:
        return None
    if order in ("dmy", "mdy") and "" not in found.dates and "ymd" not in found.dates:
        if order not in found.dates:
            message = f"The value is not a date in the order {ORDERS[order]}."
            raise CellError("date_format", message, fix=f"Enter {allowed}.")
        day = found.dates[order]
    elif found.is_ambiguous:
        one, other = found.dates.values()
        raise CellError(
            "ambiguous_date",
            f"The value can be {one:%-d %B %Y} or {other:%-d %B %Y}.",
            fix=f"Choose the date order of the column, or enter {one} or {other}.",
        )
    else:
        day = next(iter(found.dates.values()))
    if found.is_short:
        raise CellError("two_digit_year")
    return datetime.combine(day, found.time), found.has_time


def _date_finder(
    date_format: str | None, century: int | None, allowed: str
) -> Callable[[str], _ParsedDate | None]:
    """Return a function that reads a date in the declared format, or else in any format.

    The function returns None for other texts, and raises `CellError` as `_single_date` does.
    """
    declared = parse_declared_format(date_format)
    order = date_format.lower() if date_format and declared is None else None

    def find(text: str) -> _ParsedDate | None:
        if declared is not None:
            read = declared.read(text)
            return None if read is None else (read, declared.has_time)
        return _single_date(text, order, century, allowed)

    return find


# -- Dates -----------------------------------------------------------------------------------------


def date_reader(date_format: str | None, century: int | None = None) -> ReadText:
    """Return the reader of texts in a date column. ISO dates are always accepted."""
    find = _date_finder(date_format, century, _DATE)

    def read(text: str) -> str:
        day, rest = text[:10], text[10:]
        if _ISO_DATE(day) is not None:
            try:
                day = _format_day(date.fromisoformat(day))
            except ValueError:
                raise CellError("no_such_date") from None
            if rest and _MIDNIGHT(rest) is None:
                raise _time_in_date_error(day)
            return day
        found = find(text)
        if found is None:
            raise _not_a_date_error(date_format, _DATE)
        return _format_day_without_time(found[0])

    return read


def typed_date(cell: Any) -> Any:
    """Return the ISO date of a date cell, with a note if its format hides the year.

    Raises `CellError` for a cell with a time or of another type.
    """
    match cell:
        case PartlyVisibleCell(value=date() as hidden_year):
            day = _format_day_without_time(hidden_year)
            return with_note(day, "partly_shown")
        case time() if cell == time():
            raise CellError(
                "date_format",
                "The cell contains 0, which Excel shows as 00/01/1900.",
                fix="Clear the cell, or enter a date.",
            )
        case date():
            return _format_day_without_time(cell)
    raise CellError("date_format", fix="Format the column as a date and enter the value again.")


def _format_day_without_time(cell: date) -> str:
    """Return the ISO date. Raises `CellError` if it has a time, or its year is out of range."""
    if not isinstance(cell, datetime):
        return _format_day(cell)
    if cell.time() != time():
        raise _time_in_date_error(cell.date().isoformat())
    return _format_day(cell.date())


def _format_day(day: date) -> str:
    """Return the ISO date. Raises `CellError` for a year before 1900 or after 2200."""
    if day.year in _YEARS:
        return day.isoformat()
    raise CellError(
        "no_such_date",
        f"The year {day.year} is out of range ({_YEARS[0]} to {_YEARS[-1]}).",
        fix="Correct the year.",
    )


def _not_a_date_error(date_format: str | None, allowed: str) -> CellError:
    """Return the error that asks for a value as in `allowed`, or in the declared format."""
    if date_format is not None:
        allowed = f"{allowed}, or in the form {ORDERS.get(date_format.lower(), date_format)}"
    return CellError("date_format", fix=f"Enter {allowed}.")


# -- Times ---------------------------------------------------------------------------------------


def timestamp_reader(
    date_format: str | None, zone: ZoneInfo | None, century: int | None = None
) -> ReadText:
    """Return the reader of texts in a timestamp column; `zone` is the default time zone."""
    find = _date_finder(date_format, century, _MOMENT)

    def read(text: str) -> str:
        if _ISO_MOMENT(text) is not None:
            try:
                moment = datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
            except ValueError:
                raise CellError("no_such_date") from None
            return _format_utc(moment, zone)
        if _ISO_DATE(text) is not None:
            raise _time_missing_error(text)
        found = find(text)
        if found is None:
            raise _not_a_date_error(date_format, _MOMENT)
        moment, has_time = found
        if not has_time:
            raise _time_missing_error(moment.date().isoformat())
        return _format_utc(moment, zone)

    return read


def typed_timestamp(zone: ZoneInfo | None) -> ReadTyped:
    """Return the reader of date cells in a timestamp column, which returns UTC.

    `zone` is the time zone of the cells. The reader raises `CellError` for other cells.
    """

    def read(cell: Any) -> str:
        match cell:
            case datetime():
                return _format_utc(cell, zone)
            case date():
                raise _time_missing_error(cell.isoformat())
        raise CellError(
            "date_format", fix="Format the column as a date and time and enter the value again."
        )

    return read


def _format_utc(moment: datetime, zone: ZoneInfo | None) -> str:
    """Return the timestamp in UTC in the format of the API; `zone` is the default time zone.

    Raises `CellError` if neither has a time zone, or if the local time is not unique.
    """
    if moment.tzinfo is None:
        if zone is None:
            raise CellError(
                "no_time_zone", fix=f"Enter {moment.isoformat()}Z if the time is in UTC."
            )
        moment = moment.replace(tzinfo=zone)
        if moment.replace(fold=1).utcoffset() != moment.utcoffset():
            raise CellError(
                "clock_change",
                f"The clocks of {zone.key} change at that time, so the time occurs twice "
                "or not at all.",
            )
    _format_day(moment.date())
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

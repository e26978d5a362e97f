"""Dates and times in cells.

The country or the user decides between the two dates of `03/04/2025`. A time needs its time zone:
written after it, or declared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, Literal
from zoneinfo import ZoneInfo

from connector.spreadsheet.problems import (
    CellError,
    PartlyVisibleCell,
    ReadText,
    ReadTyped,
    with_note,
    with_notes,
)
from connector.spreadsheet.targets import CellOptions, TargetColumn
from connector.spreadsheet.words import MONTHS, WEEKDAYS, normalized_words, timezone_of_region

ORDERS: Mapping[str, str] = {
    "dmy": "day, month, year",
    "mdy": "month, day, year",
    "ymd": "year first",
}
"""Orders of a numeric date that the user can declare."""

HOURS_ALLOWED = "all-day, or two times such as 09:00-17:30"

_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0+)?)?(Z|\+00:00)?").fullmatch
_ISO_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?"
    r"\s?(Z|[+-][0-9]{2}:?[0-9]{2})?"
).fullmatch
_WEEKDAY = r"(?:(?P<weekday>[^\W\d_]{2,12})\.?,?\s+)?"
_REST = r"(?:,?[T ]\s?(?P<rest>.+))?"
_WORD = r"(?P<month>[^\W\d_]{3,12})\.?"
_NUMERIC = re.compile(
    rf"{_WEEKDAY}(?P<first>[0-9]{{1,2}})(?P<sign>\s?[/.\-]\s?|\s)(?P<second>[0-9]{{1,2}})(?P=sign)"
    rf"(?P<year>[0-9]{{4}}|'?[0-9]{{2}}){_REST}"
).fullmatch
_YEAR_FIRST = re.compile(
    rf"(?P<year>[0-9]{{4}})\s?[/.]\s?(?P<month>[0-9]{{1,2}})\s?[/.]\s?(?P<day>[0-9]{{1,2}}){_REST}"
).fullmatch
_LETTERS = tuple(
    re.compile(pattern).fullmatch
    for pattern in (
        rf"{_WEEKDAY}(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th|er|º|°|\.)?(?:\s+(?:de|of))?[\s\-./]*{_WORD}"
        rf"(?:\s+(?:de|del))?[\s\-./,]*(?P<year>[0-9]{{4}}|'?[0-9]{{2}}){_REST}",
        rf"{_WEEKDAY}{_WORD}[\s\-]+(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?,?[\s\-]+"
        rf"(?P<year>[0-9]{{4}}){_REST}",
    )
)
_TIME = re.compile(
    r"([0-9]{1,2})[:.h]([0-9]{2})(?::([0-9]{2}))?\s?(am|pm|Uhr|h)?", re.IGNORECASE
).fullmatch
_YEARS = range(1900, 2201)
_YEARS_AHEAD = 20
"""Years of two digits are at most this number of years in the future."""

_DATE = "a date, for example 2026-05-01"
_MOMENT = "a date and time, for example 2026-05-01T09:30:00Z"

# -- As people write them --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DateMeanings:
    """Dates that a text can mean, by order: `dmy`, `mdy`, `ymd`, or "" if a month is in letters.

    `is_short` is True if the year has two digits; the dates are then of this century.
    """

    dates: Mapping[str, date]
    time: time | None = None
    is_short: bool = False
    weekday: int | None = None


def date_meanings(text: str) -> DateMeanings | None:
    """Return the dates that the text can mean, or None. Raises `CellError` if none exists."""
    if found := _NUMERIC(text):
        first, second = int(found["first"]), int(found["second"])
        pairs = {"dmy": (second, first), "mdy": (first, second)}
        if found["sign"].strip() == ".":
            # Dots separate a date that begins with the day, in all countries that use dots.
            del pairs["mdy"]
        return _meanings(found, pairs)
    if found := _YEAR_FIRST(text):
        return _meanings(found, {"ymd": (int(found["month"]), int(found["day"]))})
    for pattern in _LETTERS:
        if (found := pattern(text)) and (number := MONTHS.get(normalized_words(found["month"]))):
            return _meanings(found, {"": (number, int(found["day"]))})
    return None


def _meanings(found: re.Match[str], pairs: Mapping[str, tuple[int, int]]) -> DateMeanings | None:
    """Return the dates that exist, of month and day by order; None if there are other words."""
    parts = {"weekday": None, **found.groupdict()}
    digits = str(parts["year"]).lstrip("'")
    is_short = len(digits) == 2
    dates = {}
    for order, (month, day) in pairs.items():
        try:
            dates[order] = date(int(digits) + 2000 * is_short, month, day)
        except ValueError:
            continue
    if not dates:
        raise CellError("no_such_date")
    weekday = WEEKDAYS.get(normalized_words(parts["weekday"] or ""))
    clock = _parse_time(parts["rest"] or "")
    if (parts["weekday"] and weekday is None) or (parts["rest"] and clock is None):
        return None
    return DateMeanings(dates, clock, is_short, weekday)


def _parse_time(text: str) -> time | None:
    found = _TIME(text.strip())
    if found is None:
        return None
    hour, word = int(found[1]), (found[4] or "").lower()
    if word in ("am", "pm"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if word == "pm" else 0)
    try:
        return time(hour, int(found[2]), int(found[3] or 0))
    except ValueError:
        return None


# -- Readers ---------------------------------------------------------------------------------------


_Notes = tuple[tuple[str, str | None], ...]


def _find_date(
    text: str, column: TargetColumn, options: CellOptions, allowed: str
) -> tuple[date, time | None, _Notes]:
    """Return a date and perhaps a time in the declared form, with notes. Raises `CellError`."""
    order = options.date_format
    found = date_meanings(text)
    if found is None:
        form = f", or in the form {ORDERS[order]}" if order else ""
        raise CellError("date_format", fix=f"Enter {allowed}{form}.")
    dates = found.dates
    if found.is_short:
        dates = {k: _with_century(v, is_birth=column.is_birth) for k, v in dates.items()}
    day, *others = dict.fromkeys(dates.values())
    if order and order in dates:
        day = dates[order]
    elif order in ("dmy", "mdy") and {"dmy", "mdy"} & {*dates}:
        message = f"The value is not a date in the order {ORDERS[order]}."
        raise CellError("date_format", message, fix=f"Enter {allowed}.")
    elif others:
        message = f"The value can be {day:%-d %B %Y} or {others[0]:%-d %B %Y}."
        fix = f"Choose the date order of the column, or enter {day} or {others[0]}."
        raise CellError("ambiguous_date", message, fix=fix)
    notes: _Notes = ()
    if found.is_short:
        notes = (("age_assumed", f"The value is read as {day:%-d %B %Y}."),)
    if found.weekday not in (None, day.weekday()):
        message = f"{day:%-d %B %Y} is a {day:%A}, but the value has another day of the week."
        notes = (*notes, ("weekday_differs", message))
    return day, found.time, notes


def _with_century(day: date, *, is_birth: bool) -> date:
    """Return a date of this century in the century that its year of two digits means."""
    today = date.today()  # users write dates of their own place
    is_past = day > today if is_birth else day.year > today.year + _YEARS_AHEAD
    try:
        return day.replace(year=day.year - 100 * is_past)
    except ValueError:
        raise CellError("no_such_date") from None


def _read_iso_day(text: str) -> date | None:
    if _ISO_DATE(text) is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise CellError("no_such_date") from None


def date_reader(column: TargetColumn, options: CellOptions) -> ReadText:
    """Return the reader of texts in a date column. ISO dates are always accepted."""

    def read(text: str) -> Any:
        day, rest = _read_iso_day(text[:10]), text[10:]
        if day is not None:
            if rest and _MIDNIGHT(rest) is None:
                raise CellError("time_in_date", fix=f"Enter {_format_day(day)}")
            return check_birth(day)
        day, clock, notes = _find_date(text, column, options, _DATE)
        if clock not in (None, time()):
            raise CellError("time_in_date", fix=f"Enter {day}")
        return with_notes(check_birth(day), notes)

    def check_birth(day: date) -> str:
        if column.is_birth and day > date.today():  # the user's own day
            message = "The date of birth is in the future."
            raise CellError("no_such_date", message, fix="Correct the year.")
        return _format_day(day)

    return read


def typed_reader(read: ReadText) -> ReadTyped:
    """Return the reader of date cells, which reads them like ISO texts.

    A date whose format hides the year gets a note. Other cells raise `CellError`.
    """

    def read_typed(cell: Any) -> Any:
        match cell:
            case PartlyVisibleCell(value=date() as hidden_year):
                return with_note(read(hidden_year.isoformat()), "partly_shown")
            case date():
                return read(cell.isoformat())
        raise CellError("date_format", fix="Format the column as a date and enter the value again.")

    return read_typed


def _format_day(day: date) -> str:
    """Return the ISO date. Raises `CellError` for a year before 1900 or after 2200."""
    if day.year in _YEARS:
        return day.isoformat()
    message = f"The year {day.year} is out of range ({_YEARS[0]} to {_YEARS[-1]})."
    raise CellError("no_such_date", message, fix="Correct the year.")


def timestamp_reader(column: TargetColumn, options: CellOptions) -> ReadText:
    """Return the reader of texts in a timestamp column, which returns UTC.

    ISO timestamps are always accepted; times without a time zone are in that of the options.
    """
    name = options.timezone or timezone_of_region(options.region)
    zone = ZoneInfo(name) if name else None
    is_end = column.key.startswith("end")

    def read(text: str) -> Any:
        if _ISO_MOMENT(text) is not None:
            try:
                moment = datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
            except ValueError:
                raise CellError("no_such_date") from None
            return _format_utc(moment, zone)
        day = _read_iso_day(text)
        clock: time | None = None
        notes: _Notes = ()
        if day is None:
            day, clock, notes = _find_date(text, column, options, _MOMENT)
        if clock is None:
            clock = _time_of_day(day, options.day_hours, is_end=is_end)
        moment = datetime.combine(day, clock)
        return with_notes(_format_utc(moment, zone), notes)

    return read


def parse_hours(text: str) -> tuple[time, time] | Literal["all-day"]:
    """Return the two times of days without a time. Raises `ValueError`."""
    if text == "all-day":
        return "all-day"
    first, _, last = text.partition("-")
    begin, end = _parse_time(first), _parse_time(last)
    if begin is None or end is None:
        raise ValueError(text)
    return begin, end


def _time_of_day(day: date, given: str | None, *, is_end: bool) -> time:
    if given is None:
        raise CellError("time_missing", fix=f"Enter {day}T09:30:00Z, with the right time.")
    hours = parse_hours(given)
    if hours == "all-day":
        return time(23, 59) if is_end else time()
    return hours[is_end]


def _format_utc(moment: datetime, zone: ZoneInfo | None) -> str:
    """Return the timestamp in UTC; `zone` is the default. Raises `CellError` if not unique."""
    if moment.tzinfo is None:
        if zone is None:
            fix = f"Enter {moment.isoformat()}Z if the time is in UTC."
            raise CellError("no_time_zone", fix=fix)
        moment = moment.replace(tzinfo=zone)
        if moment.replace(fold=1).utcoffset() != moment.utcoffset():
            message = f"The clocks of {zone.key} change at that time, so the time occurs twice"
            raise CellError("clock_change", f"{message} or not at all.")
    _format_day(moment.date())
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

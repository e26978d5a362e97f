"""Dates and moments in cells: ISO 8601, or as the column declares.

`03/04/2025` is two dates, so it is neither until a person declares which. A moment needs its time
zone: written behind it, or declared.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from connector.spreadsheet.problems import ReadText, ReadTyped, Unreadable

_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0+)?)?(Z|\+00:00)?").fullmatch
_ISO_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?"
    r"\s?(Z|[+-][0-9]{2}:?[0-9]{2})?"
).fullmatch
_NUMERIC = re.compile(r"([0-9]{1,2})[/.\- ]([0-9]{1,2})[/.\- ]([0-9]{4})(?![0-9])").match
_YEARS = range(1900, 2201)

_DATE = "a date as 2025-04-03"
_MOMENT = "a date and time as 2025-04-03T09:30:00Z"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TOKENS = {
    "YYYY": r"(?P<year>[0-9]{4})",
    "MMM": r"(?P<month>[A-Za-z]{3,9})\.?",
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
    "YYYY, MM or MMM, and DD in any order with signs between them, for example DD/MM/YYYY; then"
    " hh:mm or hh:mm:ss for a time"
)


class DateFormat:
    """Form of a column's dates, as `DD/MM/YYYY` or `D MMM YYYY hh:mm`.

    A day and a month may have one digit or two; `MMM` is the month's English name or its first
    three letters. Raises `ValueError` for a form that does not tell day, month and year apart.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        parts = _TOKEN.split(text)
        tokens, between = parts[1::2], parts[::2]
        kinds = {token[0] for token in tokens}
        if "" in between[1:-1]:
            raise ValueError("two parts without a sign between them")
        if len(kinds) < len(tokens) or not kinds >= {"Y", "M", "D"}:
            raise ValueError("not one each of year, month and day")
        if ("h" in kinds) != ("m" in kinds) or ("s" in kinds and "m" not in kinds):
            raise ValueError("half a time")
        if any(re.search(r"[A-SU-Za-z0-9]", each) for each in between):
            raise ValueError("letters that stand for nothing")
        pattern = "".join(_TOKENS.get(each) or re.escape(each) for each in parts)
        self._match = re.compile(pattern).fullmatch
        self.has_time = "h" in kinds

    def read(self, text: str) -> datetime | None:
        """The date and time that the text is, without a time zone; None where it is none."""
        found = self._match(text)
        if found is None:
            return None
        parts = found.groupdict()
        month = parts["month"].lower()[:3]
        if not month.isdigit():
            month = _MONTHS.index(month) + 1 if month in _MONTHS else 0
        hour, minute, second = (int(parts.get(n) or 0) for n in ("hour", "minute", "second"))
        try:
            return datetime(int(parts["year"]), int(month), int(parts["day"]), hour, minute, second)
        except ValueError:
            raise _no_such_date() from None


def _no_such_date() -> Unreadable:
    return Unreadable("no_such_date", allowed=_DATE)


def _time_in_date(day: str) -> Unreadable:
    return Unreadable("time_in_date", allowed=_DATE, fix=f"Write {day}")


def _time_missing(day: str) -> Unreadable:
    return Unreadable(
        "time_missing", allowed=_MOMENT, fix=f"Write {day}T09:30:00Z with the right time."
    )


# -- Dates -----------------------------------------------------------------------------------------


def date_reader(declared: DateFormat | None) -> ReadText:
    """Reader of texts where a date belongs; ISO is always understood."""

    def read(text: str) -> str:
        day, rest = text[:10], text[10:]
        if _ISO_DATE(day) is not None:
            try:
                day = _plausible(date.fromisoformat(day))
            except ValueError:
                raise _no_such_date() from None
            if rest and _MIDNIGHT(rest) is None:
                raise _time_in_date(day)
            return day
        found = declared.read(text) if declared is not None else None
        if found is None:
            raise _odd_date(text, declared, _DATE)
        return typed_date(found)

    return read


def typed_date(cell: Any) -> str:
    """A date as a spreadsheet program typed it."""
    match cell:
        case datetime():
            if cell.time() != time():
                raise _time_in_date(cell.date().isoformat())
            return _plausible(cell.date())
        case date():
            return _plausible(cell)
    raise Unreadable(
        "date_format", allowed=_DATE, fix="Format the column as a date and type the value again."
    )


def _plausible(day: date) -> str:
    if day.year in _YEARS:
        return day.isoformat()
    raise Unreadable(
        "no_such_date",
        f"The year {day.year} cannot be meant.",
        allowed=f"years from {_YEARS[0]} to {_YEARS[-1]}",
        fix="Correct the year.",
    )


def _odd_date(text: str, declared: DateFormat | None, allowed: str) -> Unreadable:
    """Why the text is no date, with the date or dates that it may be."""
    if declared is not None:
        allowed = f"{allowed}, or {declared.text}"
    found = _NUMERIC(text)
    if found is None:
        return Unreadable("date_format", allowed=allowed, fix=f"Write {_DATE}")
    first, second, year = map(int, found.groups())
    readings = []
    for month, day in dict.fromkeys(((second, first), (first, second))):
        try:
            readings.append(date(year, month, day))
        except ValueError:
            continue
    if not readings:
        return _no_such_date()
    message = None
    if len(readings) > 1:
        one, other = (f"{d.day} {_MONTHS[d.month - 1].capitalize()} {d.year}" for d in readings)
        message = f"It can be {one} or {other}."
    return Unreadable(
        "date_format" if message is None else "ambiguous_date",
        message,
        allowed=allowed,
        fix=f"Write {' or '.join(map(str, readings))}, or declare the column's date format in a"
        " mapping file.",
    )


# -- Moments ---------------------------------------------------------------------------------------


def moment_reader(declared: DateFormat | None, zone: ZoneInfo | None) -> ReadText:
    """Reader of texts where a moment belongs; `zone` is that of moments without one."""

    def read(text: str) -> str:
        if _ISO_MOMENT(text) is not None:
            try:
                moment = datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
            except ValueError:
                raise _no_such_date() from None
            return _utc(moment, zone)
        if _ISO_DATE(text) is not None:
            raise _time_missing(text)
        found = declared.read(text) if declared is not None else None
        if declared is None or found is None:
            raise _odd_date(text, declared, _MOMENT)
        if not declared.has_time:
            raise _time_missing(found.date().isoformat())
        return _utc(found, zone)

    return read


def typed_moment(zone: ZoneInfo | None) -> ReadTyped:
    """Reader of cells that a spreadsheet program typed, where a moment belongs."""

    def read(cell: Any) -> str:
        match cell:
            case datetime():
                return _utc(cell, zone)
            case date():
                raise _time_missing(cell.isoformat())
        raise Unreadable(
            "date_format",
            allowed=_MOMENT,
            fix="Format the column as a date and time and type the value again.",
        )

    return read


def _utc(moment: datetime, zone: ZoneInfo | None) -> str:
    """The moment in UTC as the API writes it (API, conventions)."""
    if moment.tzinfo is None:
        if zone is None:
            raise Unreadable(
                "no_time_zone",
                allowed=_MOMENT,
                fix=f"Write {moment.isoformat()}Z if it is UTC, or declare the column's timezone in"
                " a mapping file.",
            )
        moment = moment.replace(tzinfo=zone)
        if moment.replace(fold=1).utcoffset() != moment.utcoffset():
            raise Unreadable(
                "clock_change",
                f"The clocks of {zone.key} change then: it comes twice, or not at all.",
                allowed=_MOMENT,
            )
    _plausible(moment.date())
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

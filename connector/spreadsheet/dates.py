"""Reading dates and moments: ISO 8601, or in the form that was declared for the column.

`03/04/2025` is two dates, so it is neither until a person says which. A moment needs its time
zone: written behind it, or declared.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from connector.spreadsheet.row import ReadText, ReadTyped, Unreadable

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
    "MMM": r"(?P<name>[A-Za-z]{3,9})\.?",
    "MM": r"(?P<month>[0-9]{1,2})",
    "M": r"(?P<month>[0-9]{1,2})",
    "DD": r"(?P<day>[0-9]{1,2})",
    "D": r"(?P<day>[0-9]{1,2})",
    "hh": r"(?P<hour>[0-9]{1,2})",
    "mm": r"(?P<minute>[0-9]{2})",
    "ss": r"(?P<second>[0-9]{2})",
}
_TOKEN = re.compile("|".join(_TOKENS))

FORMAT_ALLOWED = (
    "YYYY, MM or MMM, and DD in any order with signs between them, for example DD/MM/YYYY; then"
    " hh:mm or hh:mm:ss for a time"
)


class DateFormat:
    """A form in which a column's dates are written, as `DD/MM/YYYY` or `D MMM YYYY hh:mm`.

    A day and a month may have one digit or two; `MMM` is the month's English name or its first
    three letters. Raises `ValueError` for a form that does not tell day, month and year apart.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        pieces, end, pattern, names = [], 0, "", []
        for found in _TOKEN.finditer(text):
            pieces.append((text[end : found.start()], found.group()))
            end = found.end()
        for between, token in pieces:
            if not between and pattern:
                raise ValueError("two parts without a sign between them")
            pattern += re.escape(between) + _TOKENS[token]
            names.append(token)
        rest = text[end:]
        kinds = {"M" if n.startswith("M") else n[0] for n in names}
        if len(kinds) < len(names) or not {"Y", "M", "D"} <= kinds or re.search(r"[A-Za-z]", rest):
            raise ValueError("not one each of year, month and day")
        if ("h" in kinds) != ("m" in kinds) or ("s" in kinds and "m" not in kinds):
            raise ValueError("half a time")
        if any(re.search(r"[A-SU-Za-z0-9]", between) for between, _ in pieces):
            raise ValueError("letters that stand for nothing")
        self._match = re.compile(pattern + re.escape(rest)).fullmatch
        self.has_time = "h" in kinds

    def read(self, text: str) -> datetime | None:
        """The date and time that the text is, without a time zone; None where it is none."""
        found = self._match(text)
        if found is None:
            return None
        parts = found.groupdict()
        month = int(parts["month"]) if parts.get("month") else _month(parts["name"])
        hour, minute, second = (int(parts.get(n) or 0) for n in ("hour", "minute", "second"))
        try:
            return datetime(int(parts["year"]), month, int(parts["day"]), hour, minute, second)
        except ValueError:
            raise _no_such(text) from None


def _month(name: str) -> int:
    short = name.lower()[:3]
    return _MONTHS.index(short) + 1 if short in _MONTHS else 0


def _no_such(text: str) -> Unreadable:
    return Unreadable(
        "no_such_date",
        "There is no such date or time.",
        allowed=_DATE,
        fix="Correct the day, the month or the time.",
    )


def date_reader(declared: DateFormat | None) -> ReadText:
    """How texts are read where a date belongs; ISO is always understood."""

    @lru_cache(maxsize=4096)
    def read(text: str) -> str:
        if _ISO_DATE(text[:10]) is not None:
            day = _iso_day(text[:10])
            if len(text) > 10 and _MIDNIGHT(text[10:]) is None:
                raise _time_in_date(day)
            return day
        if declared is not None:
            found = declared.read(text)
            if found is not None:
                if found.time() != time():
                    raise _time_in_date(found.date().isoformat())
                return _plausible(found.date()).isoformat()
        raise _odd_date(text, declared, _DATE)

    return read


def _iso_day(text: str) -> str:
    try:
        return _plausible(date.fromisoformat(text)).isoformat()
    except ValueError:
        raise _no_such(text) from None


def _plausible(day: date) -> date:
    if day.year in _YEARS:
        return day
    raise Unreadable(
        "no_such_date",
        f"The year {day.year} cannot be meant.",
        allowed=f"years from {_YEARS[0]} to {_YEARS[-1]}",
        fix="Correct the year.",
    )


def _time_in_date(day: str) -> Unreadable:
    return Unreadable(
        "time_in_date",
        "It holds a time, and the field is a date.",
        allowed=_DATE,
        fix=f"Write {day}",
    )


def _odd_date(text: str, declared: DateFormat | None, allowed: str) -> Unreadable:
    """Why the text is no date, with the date or dates that it may be."""
    if declared is not None:
        allowed = f"{allowed}, or {declared.text}"
    found = _NUMERIC(text)
    if found is None:
        return Unreadable("date_format", "It is not a date.", allowed=allowed, fix=f"Write {_DATE}")
    first, second, year = (int(each) for each in found.groups())
    readings = []
    for month, day in dict.fromkeys(((second, first), (first, second))):
        try:
            readings.append(date(year, month, day))
        except ValueError:
            continue
    match readings:
        case [one, other]:
            return Unreadable(
                "ambiguous_date",
                f"It can be {_in_words(one)} or {_in_words(other)}.",
                allowed=allowed,
                fix=f"Write {one} or {other}, or declare the column's date format in a mapping"
                " file.",
            )
        case [one]:
            return Unreadable(
                "date_format",
                "It is not written as dates are.",
                allowed=allowed,
                fix=f"Write {one}, or declare the column's date format in a mapping file.",
            )
    return _no_such(text)


def _in_words(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1].capitalize()} {day.year}"


def typed_date(cell: Any) -> str:
    """A date as a spreadsheet program typed it."""
    match cell:
        case datetime():
            if cell.time() != time():
                raise _time_in_date(cell.date().isoformat())
            return _plausible(cell.date()).isoformat()
        case date():
            return _plausible(cell).isoformat()
    raise Unreadable(
        "date_format",
        "It is a number, a time or a truth value, and not a date.",
        allowed=_DATE,
        fix="Format the column as a date and type the value again.",
    )


def moment_reader(declared: DateFormat | None, zone: ZoneInfo | None) -> ReadText:
    """How texts are read where a moment belongs; `zone` is that of moments without one."""

    @lru_cache(maxsize=4096)
    def read(text: str) -> str:
        if _ISO_MOMENT(text) is not None:
            try:
                moment = datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
            except ValueError:
                raise _no_such(text) from None
            return _utc(moment, zone)
        if _ISO_DATE(text) is not None:
            raise _time_missing(text)
        found = declared.read(text) if declared is not None else None
        if declared is not None and found is not None:
            if not declared.has_time:
                raise _time_missing(found.date().isoformat())
            return _utc(found, zone)
        raise _odd_date(text, declared, _MOMENT)

    return read


def typed_moment(zone: ZoneInfo | None) -> ReadTyped:
    """How cells that a spreadsheet program typed are read where a moment belongs."""

    def read(cell: Any) -> str:
        match cell:
            case datetime():
                return _utc(cell, zone)
            case date():
                raise _time_missing(cell.isoformat())
        raise Unreadable(
            "date_format",
            "It is a number, a time or a truth value, and not a date and time.",
            allowed=_MOMENT,
            fix="Format the column as a date and time and type the value again.",
        )

    return read


def _time_missing(day: str) -> Unreadable:
    return Unreadable(
        "time_missing",
        "It holds no time.",
        allowed=_MOMENT,
        fix=f"Write {day}T09:30:00Z with the right time.",
    )


def _utc(moment: datetime, zone: ZoneInfo | None) -> str:
    """The moment in UTC as the API writes it (API, conventions)."""
    if moment.tzinfo is None:
        moment = _placed(moment, zone)
    _plausible(moment.date())
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _placed(moment: datetime, zone: ZoneInfo | None) -> datetime:
    if zone is None:
        raise Unreadable(
            "no_time_zone",
            "It does not say its time zone.",
            allowed=_MOMENT,
            fix=f"Write {moment.isoformat()}Z if it is UTC, or declare the column's timezone in a"
            " mapping file.",
        )
    first, second = moment.replace(tzinfo=zone), moment.replace(tzinfo=zone, fold=1)
    if second.utcoffset() != first.utcoffset():
        raise Unreadable(
            "clock_change",
            f"The clocks of {zone.key} change then: it comes twice, or not at all.",
            allowed=_MOMENT,
            fix="Write the time in UTC, with a Z behind it.",
        )
    return first

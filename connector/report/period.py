"""Periods of the report: months, quarters and years, up to today."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta

from connector.errors import Misused, UnknownName

PERIOD_DEFAULT = "last-month"

_WRITTEN = re.compile(r"([12]\d{3})(?:-(?:(0[1-9]|1[0-2])|[Qq]([1-4])))?")
_LENGTHS = {"month": 1, "quarter": 3, "year": 12}
_WORDS = {f"{which}-{noun}": noun for noun in _LENGTHS for which in ("this", "last")}
_EXAMPLES = ("2026-10", "2026-Q3", "2026")


@dataclass(frozen=True, slots=True)
class Period:
    """Calendar month, quarter or year; `days` is the number of days so far if it is not over."""

    begins: date
    months: int
    days: int | None = None

    @property
    def ends(self) -> date:
        """Last day of the period, or today if it is not over."""
        last = _add_months(self.begins, self.months) - timedelta(days=1)
        return last if self.days is None else min(last, self.begins + timedelta(self.days - 1))

    @property
    def previous(self) -> Period:
        """Period of the same length before this one; as many days of it if this is not over."""
        return replace(self, begins=_add_months(self.begins, -self.months))

    @property
    def name(self) -> str:
        """Name of the period, as in October 2026, Q3 2026 or 1 July to 7 August 2026."""
        if self.days is not None:
            return f"{self.begins.day} {self.begins:%B} to {self.ends.day} {self.ends:%B %Y}"
        quarter = f"Q{self.ends.month // 3} {self.ends.year}"
        return {1: f"{self.begins:%B %Y}", 3: quarter}.get(self.months, str(self.ends.year))


def parse_period(text: str, today: date) -> Period:
    """Return the period that the user names, up to today if it is not over.

    Args:
        text: A calendar period such as 2026-10, 2026-Q3 or 2026, or last-month, this-year.
        today: Last day of the data.

    Raises:
        UnknownName: The text is not a period.
        Misused: The period is in the future.
    """
    found = _parse_calendar_period(text, today)
    if found.begins > today:
        raise Misused(
            f"{found.name} has not begun: the data ends on {today}",
            action="Give a period that has begun. Without --period, the report is about the "
            "previous calendar month.",
        )
    is_over = found.ends < today
    return found if is_over else replace(found, days=(today - found.begins).days + 1)


def _parse_calendar_period(text: str, today: date) -> Period:
    """Return the whole period of a text such as 2026-Q3 or last-month."""
    if noun := _WORDS.get(text):
        months = _LENGTHS[noun]
        begins = today.replace(month=(today.month - 1) // months * months + 1, day=1)
        found = Period(begins, months)
        return found if text.startswith("this") else found.previous
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise UnknownName("period", text, (*_EXAMPLES, *_WORDS))
    year, month, quarter = match.groups()
    if month:
        return Period(date(int(year), int(month), 1), 1)
    if quarter:
        return Period(date(int(year), int(quarter) * 3 - 2, 1), 3)
    return Period(date(int(year), 1, 1), 12)


def _add_months(day: date, months: int) -> date:
    """Return the first day of the month this number of months after a month's first day."""
    place = day.year * 12 + day.month - 1 + months
    return date(place // 12, place % 12 + 1, 1)

"""Periods of the report: months, quarters and years, up to today."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from connector.errors import Misused, UnknownName

PERIOD_DEFAULT = "last-month"
COMPARED_DEFAULT = ("previous", "year-before")
COMPARED_MAX = 2
"""Maximum number of compared periods, limited by the height of a card."""

_WRITTEN = re.compile(r"([12]\d{3})(?:-(?:(0[1-9]|1[0-2])|[Qq]([1-4])))?")
_LENGTHS = {"month": 1, "quarter": 3, "year": 12}
_WORDS = {f"{which}-{noun}": noun for noun in _LENGTHS for which in ("this", "last")}
_EXAMPLES = ("2026-10", "2026-Q3", "2026")


@dataclass(frozen=True, slots=True)
class ReportPeriod:
    """Calendar month, quarter or year; `days` is the number of days so far if it is not over."""

    begins: date
    months: int
    days: int | None = None

    @property
    def ends(self) -> date:
        """Last day of the period, or today if it is not over."""
        last = _add_months(self.begins, self.months) - timedelta(days=1)
        return last if self.days is None else min(last, self.begins + timedelta(self.days - 1))

    def earlier(self, months: int) -> ReportPeriod:
        """Return the same period this number of months earlier."""
        return replace(self, begins=_add_months(self.begins, -months))

    @property
    def name(self) -> str:
        """Name of the period, as in October 2026, or 1 to 7 October 2026."""
        return self._format_name("%B")

    @property
    def short_name(self) -> str:
        """Short name, as in Oct 2026."""
        return self._format_name("%b")

    def _format_name(self, month_format: str) -> str:
        """Return the name; `month_format` is %B for full names of months, %b for short ones."""
        begins, ends = self.begins, self.ends
        if self.days is not None:
            first = f"{begins.day}" if begins.month == ends.month else f"{begins:1 {month_format}}"
            return f"{first} to {ends.day} {ends:{month_format} %Y}"
        quarter = f"Q{ends.month // 3} {ends.year}"
        return {1: f"{begins:{month_format} %Y}", 3: quarter}.get(self.months, str(ends.year))

    @property
    def noun(self) -> str:
        """Kind of period: "month", "quarter" or "year"."""
        return next(noun for noun, months in _LENGTHS.items() if months == self.months)


def parse_period(text: str, today: date) -> ReportPeriod:
    """Return the period that the user names, up to today if it is not over.

    Raises `UnknownName` for an invalid period, and `Misused` for a period in the future.
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


def parse_compared_periods(
    texts: Sequence[str], period: ReportPeriod, today: date
) -> tuple[ReportPeriod, ...]:
    """Return the distinct periods to compare `period` with. Default: the previous and a year
    before.

    Raises `UnknownName` for an invalid period, and `Misused` for another length or too many
    periods.
    """
    found: list[ReportPeriod] = []
    for text in texts or COMPARED_DEFAULT:
        if text in COMPARED_DEFAULT:
            each = period.earlier(period.months if text == "previous" else 12)
        else:
            each = replace(_parse_calendar_period(text, today, COMPARED_DEFAULT), days=period.days)
        if each.months != period.months:
            raise Misused(
                f"{each.name} is a {each.noun}, but {period.name} is a {period.noun}; compare"
                " periods of the same length",
                action=f"Give another {period.noun}, or one of {', '.join(COMPARED_DEFAULT)}.",
            )
        if each not in (*found, period):
            found.append(each)
    if len(found) > COMPARED_MAX:
        raise Misused(
            f"{len(found)} periods are given to compare with, but the maximum is {COMPARED_MAX}",
            action=f"Give --compare {COMPARED_MAX} times at most.",
        )
    return tuple(found)


def _parse_calendar_period(text: str, today: date, others: Sequence[str] = ()) -> ReportPeriod:
    """Return the whole period of a text such as 2026-Q3 or last-month.

    Raises `UnknownName`, which lists `others` as allowed, too.
    """
    if noun := _WORDS.get(text):
        months = _LENGTHS[noun]
        begins = today.replace(month=(today.month - 1) // months * months + 1, day=1)
        return ReportPeriod(begins, months).earlier(0 if text.startswith("this") else months)
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise UnknownName("period", text, (*others, *_EXAMPLES, *_WORDS))
    year, month, quarter = match.groups()
    if month:
        return ReportPeriod(date(int(year), int(month), 1), 1)
    if quarter:
        return ReportPeriod(date(int(year), int(quarter) * 3 - 2, 1), 3)
    return ReportPeriod(date(int(year), 1, 1), 12)


def _add_months(day: date, months: int) -> date:
    """Return the first day of the month this number of months after a month's first day."""
    place = day.year * 12 + day.month - 1 + months
    return date(place // 12, place % 12 + 1, 1)

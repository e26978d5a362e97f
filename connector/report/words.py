"""Values as a reader meets them: counts, shares, days, amounts, dates. None is a dash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from connector.words import counted

Kind = Literal["text", "count", "share", "days", "amount", "day", "month", "moment", "flag"]
"""How a column's values are written; all but text, day, month, moment and flag are figures."""

FIGURES = frozenset(("count", "share", "days", "amount"))
"""The kinds that are aligned as figures."""

NOTHING = "–"  # noqa: RUF001 # a dash as wide as a digit
_SHORT_AGE = timedelta(hours=48)


def count(value: float | Decimal) -> str:
    """A whole number, as in 1,234."""
    return f"{value:,.0f}"


def share(value: float | Decimal) -> str:
    """A part of one as a percentage; rounding makes nothing of something, or all of less, never."""
    percent = float(value) * 100
    if 0 < percent < 0.1:
        return "under 0.1%"
    if 99.5 <= percent < 100:
        return f"{min(percent, 99.9):.1f}%"
    return f"{percent:.0f}%" if percent >= 10 or percent == round(percent) else f"{percent:.1f}%"


def days(value: float | Decimal) -> str:
    """A number of days: with a decimal below 10, whole above."""
    text = f"{value:.1f}" if value < 10 else f"{value:,.0f}"
    return text.removesuffix(".0")


def amount(value: float | Decimal) -> str:
    """Money without its currency, in whole units."""
    return f"{value:,.0f}"


def money(currency: str, value: float | Decimal) -> str:
    """Money with its currency code, as in GBP 12,300."""
    return f"{currency} {amount(value)}"


def day(value: date) -> str:
    """A day, as in 7 May 2026."""
    return f"{value.day} {value:%B %Y}"


def month(value: date) -> str:
    """A month, as in May 2026."""
    return f"{value:%B %Y}"


def moment(value: datetime) -> str:
    """A moment in UTC, as in 7 May 2026, 14:03 UTC."""
    shown = value.astimezone(UTC)
    return f"{day(shown)}, {shown:%H:%M} UTC"


def age(value: timedelta) -> str:
    """A length of time in its largest sensible unit: minutes, hours, or days from two on."""
    if value < timedelta(hours=1):
        return counted(max(0, round(value / timedelta(minutes=1))), "minute")
    if value < _SHORT_AGE:
        return counted(round(value / timedelta(hours=1)), "hour")
    return counted(round(value / timedelta(days=1)), "day")


def of(part: int, whole: int, noun: str = "") -> str:
    """A part of a whole with its share, as in 3 of 12 jobs (25%)."""
    text = f"{part:,} of {counted(whole, noun) if noun else f'{whole:,}'}"
    return f"{text} ({share(part / whole)})" if whole else text


def capital(text: str) -> str:
    """The text with its first letter large, unless it begins with the name of a column."""
    first = text.split(" ", maxsplit=1)[0]
    return text if "_" in first or "." in first.rstrip(".") else text[:1].upper() + text[1:]


def plain(name: str) -> str:
    """A stored value in words: new_lead as new lead."""
    return name.replace("_", " ")


def _flag(value: bool) -> str:
    return "yes" if value else "no"


_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "text": str,
    "count": count,
    "share": share,
    "days": days,
    "amount": amount,
    "day": day,
    "month": month,
    "moment": moment,
    "flag": _flag,
}


def written(kind: Kind, value: Any) -> str:
    """The value as its kind is written; a dash where there is none."""
    return NOTHING if value is None or value == "" else _WRITERS[kind](value)

"""Formatting of values: rounding never shows 0% or 100% for other shares."""

from __future__ import annotations

from datetime import date, timedelta

from connector.report import figure as words
from connector.report.published import month_starts


def test_a_share_is_0_or_100_percent_only_if_exact() -> None:
    values = (0, 1, 0.12, 0.005, 0.0001, 0.999, 0.99999, 0.05, 1.5)
    shown = "0%, 100%, 12%, 0.5%, under 0.1%, 99.9%, 99.9%, 5%, 150%"

    assert shown == ", ".join(map(words.format_share, values))


def test_values_are_formatted_by_their_type_and_name() -> None:
    row = {"a": None, "b": 0, "c": "", "placement_rate": 0.5, "days_left": 2.5, "fee": 1234.4}
    moments = {"is_on": True, "month_start": date(2026, 5, 1), "on": date(2026, 5, 7)}
    table = words.FigureTable("All", "mart", dict.fromkeys((*row, *moments), ""), [row | moments])

    assert [
        *(words.NOTHING, "0", words.NOTHING, "50%", "2.5", "1,234"),
        *("yes", "May 2026", "7 May 2026"),
    ] == [text for _, text in table.cells()[0]]
    assert table.is_numeric_column("fee")
    assert not table.is_numeric_column("on")


def test_a_share_of_zero_records_has_no_percentage() -> None:
    assert "0 of 0" == words.part_of_whole(0, 0)
    assert "1 of 4 jobs (25%)" == words.part_of_whole(1, 4, "job")


def test_an_age_is_shown_in_its_largest_sensible_unit() -> None:
    ages = [words.format_age(timedelta(hours=hours)) for hours in (0, 0.5, 1, 47, 60)]

    assert ["0 minutes", "30 minutes", "1 hour", "47 hours", "2 days"] == ages


def test_data_newer_than_the_clock_is_described_as_in_the_future() -> None:
    assert "2 hours old" == words.describe_age(timedelta(hours=2))
    assert "11 days in the future" == words.describe_age(timedelta(days=-11))


def test_months_continue_into_the_next_year() -> None:
    found = month_starts(date(2025, 11, 30), date(2026, 2, 1))

    assert [date(2025, 11, 1), date(2025, 12, 1), date(2026, 1, 1), date(2026, 2, 1)] == found

"""Money and contracts: fees by month and currency, and contracts that come to their end."""

from __future__ import annotations

from connector.errors import count_noun
from connector.report import charts
from connector.report.figure import Chart, Column, Figure, Section, Shown, Table, money, share
from connector.report.published import Published, Row, months, total

_MONTHS_BEFORE = 6
_MONTHS_AFTER = 12
_CURRENCIES_DRAWN = 4
_ROWS_MAX = 20
FORECAST_NEEDS = {
    "sum_fee_forecast": (
        *("month_start", "currency", "month_kind", "placements", "placements_with_fee"),
        *("fee_coverage", "fee", "confirmed_fee", "fee_from_booking", "fee_from_job"),
        *("fee_from_percentage", "reporting_fee", "reporting_currency"),
    )
}
"""The columns that `forecast_rows` reads."""

_BANDS = ("0-14", "15-30", "31-90", "later", "open")


def forecast_rows(published: Published) -> list[Row]:
    """Fees of the months around now, and of all later ones, by currency and month."""
    begins = ""
    if published.today is not None:
        present = f"date_trunc('month', DATE '{published.today}')"
        begins = f"OR month_start >= {present} - INTERVAL {_MONTHS_BEFORE} MONTH "
    return published.rows(
        "SELECT month_start, currency, month_kind, placements, placements_with_fee, fee_coverage, "
        "coalesce(fee, 0) AS fee, coalesce(confirmed_fee, 0) AS confirmed_fee, "
        "coalesce(fee, 0) - coalesce(confirmed_fee, 0) AS scheduled_fee, "
        "fee_from_booking, fee_from_job, fee_from_percentage, reporting_fee, reporting_currency "
        f"FROM marts.sum_fee_forecast WHERE month_kind <> 'past' {begins}"
        "ORDER BY month_start, currency"
    )


def coming(rows: list[Row]) -> dict[str, float]:
    """Fees of this month and later ones by currency, the largest first, without those of 0."""
    found: dict[str, float] = {}
    for row in rows:
        if row["month_kind"] != "past" and row["fee"]:
            found[row["currency"]] = found.get(row["currency"], 0.0) + float(row["fee"])
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def _forecast(published: Published) -> Shown | None:
    rows = forecast_rows(published)
    if not rows:
        return None
    ahead = coming(rows)
    placements = total(rows, "placements")
    missing = placements - total(rows, "placements_with_fee")
    table = Table(
        "Fees by month of the start and currency",
        "sum_fee_forecast",
        (
            Column("month_start", "Month", "month"),
            Column("currency", "Currency", "text"),
            Column("placements", "Placements"),
            Column("placements_with_fee", "With a fee"),
            Column("fee_coverage", "Coverage", "share"),
            Column("fee", "Fees", "amount"),
            Column("confirmed_fee", "Confirmed", "amount"),
            Column("fee_from_booking", "From booking", "amount"),
            Column("fee_from_job", "From job", "amount"),
            Column("fee_from_percentage", "From percentage", "amount"),
            Column("reporting_fee", "Converted", "amount"),
            Column("reporting_currency", "To", "text"),
        ),
        rows,
    )
    amounts = ", ".join(money(currency, fee) for currency, fee in ahead.items())
    return Shown(
        f"From this month on: {amounts}." if amounts else "No fee is known from this month on.",
        _by_currency(rows),
        (table,),
        (
            f"{share(missing / placements)} of placements ({missing:,} of {placements:,}) have no "
            "fee that is known, and count as nothing here.",
        )
        if missing
        else (),
    )


def _by_currency(rows: list[Row]) -> tuple[Chart, ...]:
    """A chart for each of the currencies with the most fees: amounts of two never share an axis."""
    fees: dict[str, float] = {}
    for row in rows:
        fees[row["currency"]] = fees.get(row["currency"], 0.0) + float(row["fee"])
    first = [currency for currency in sorted(fees, key=lambda each: -fees[each]) if fees[currency]]
    starts = [row["month_start"] for row in rows]
    drawn = months(min(starts), max(starts))[: _MONTHS_BEFORE + _MONTHS_AFTER]
    found = {(row["currency"], row["month_start"]): row for row in rows}
    nothing = {"confirmed_fee": 0, "scheduled_fee": 0}
    return tuple(
        charts.stacked(
            [
                {
                    "month": f"{month:%b %y}",
                    **{key: found.get((currency, month), nothing)[key] for key in nothing},
                }
                for month in drawn
            ],
            "month",
            {"confirmed_fee": "confirmed or begun", "scheduled_fee": "scheduled"},
            unit=f"fees in {currency}",
            is_upright=True,
        )
        for currency in first[:_CURRENCIES_DRAWN]
    )


def _ending(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT band, count(*) AS contracts, "
        "count(*) FILTER (next_booking_id IS NOT NULL) AS followed, "
        "count(*) FILTER (next_booking_id IS NULL) AS unfollowed, "
        "count(*) FILTER (is_extended) AS extended, count(*) FILTER (is_replaced) AS replaced, "
        "count(*) FILTER (ends_within_14_days) AS in_14, "
        "count(*) FILTER (ends_within_30_days) AS in_30, "
        "count(*) FILTER (ends_within_90_days) AS in_90 "
        "FROM marts.fct_contractors_ending GROUP BY band"
    )
    if not rows:
        return None
    by_band = {row["band"]: row for row in rows}
    ordered = [by_band[band] for band in _BANDS if band in by_band]
    bands = [{**row, "words": _band(row["band"])} for row in ordered]
    within = {days: total(rows, f"in_{days}") for days in (14, 30, 90)}
    parts = {"followed": "next booking known", "unfollowed": "nothing follows yet"}
    summary = Table(
        "Contracts by the days that are left",
        "fct_contractors_ending",
        (
            Column("words", "Ending", "text", of="band"),
            Column("contracts", "Contracts", of=""),
            Column("followed", "Next known", of="next_booking_id"),
            Column("extended", "Extended", of="is_extended"),
            Column("replaced", "Replaced", of="is_replaced"),
        ),
        bands,
    )
    return Shown(
        f"Ending within 14 days: {count_noun(within[14], 'contract')}; within 30: {within[30]:,}; "
        f"within 90: {within[90]:,}; of {total(rows, 'contracts'):,} that have not ended.",
        (charts.stacked(bands, "words", parts, unit="contracts"),),
        (summary, *_soon(published)),
    )


def _soon(published: Published) -> tuple[Table, ...]:
    rows = published.rows(
        "SELECT left(booking_id::VARCHAR, 8) AS booking, job_title, company_name, "
        "consultant_name, end_date, days_left, next_start_date, is_extended, is_replaced "
        "FROM marts.fct_contractors_ending WHERE ends_within_30_days "
        f"ORDER BY days_left, booking_id LIMIT {_ROWS_MAX}"
    )
    if not rows:
        return ()
    columns = (
        Column("booking", "Booking", "text", of="booking_id"),
        Column("job_title", "Job", "text"),
        Column("company_name", "Client", "text"),
        Column("consultant_name", "Consultant", "text"),
        Column("end_date", "Last day", "day"),
        Column("days_left", "Days left", "days"),
        Column("next_start_date", "Next begins", "day"),
        Column("is_replaced", "Replaced", "flag"),
    )
    caption = "The contracts that end first, within 30 days"
    return (Table(caption, "fct_contractors_ending", columns, rows, is_open=True),)


def _band(band: str) -> str:
    return {"later": "after 90 days", "open": "no end stated"}.get(band, f"in {band} days")


SECTION = Section(
    "fees",
    "Fees and contracts",
    "Amounts of different currencies are never added up; what is converted says so.",
    (
        Figure(
            "forecast",
            "Fee forecast",
            {**FORECAST_NEEDS, "fct_placements": ()},
            _forecast,
            "No placement starts in the months around now.",
            is_wide=True,
        ),
        Figure(
            "ending",
            "Contracts coming to their end",
            {
                "fct_contractors_ending": (
                    *("booking_id", "job_title", "company_name", "consultant_name", "end_date"),
                    *("days_left", "band", "ends_within_14_days", "ends_within_30_days"),
                    *("ends_within_90_days", "next_booking_id", "next_start_date", "is_extended"),
                    "is_replaced",
                )
            },
            _ending,
            "No contract is running or to come.",
            is_wide=True,
        ),
    ),
)

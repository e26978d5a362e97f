"""How long things take: in a stage, to fill a job, to hire a candidate; always as distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connector.report import charts
from connector.report.figure import Column, Figure, Section, Shown, Table, days, of, plain, share
from connector.report.published import Published, Row

_WIDTHS = (1, 2, 5, 7, 14, 30, 60, 90, 180, 365)
_BANDS_MAX = 10
_MEMBERS_MAX = 12

_QUANTILES = (
    Column("p10_days", "10%", "days"),
    Column("p25_days", "25%", "days"),
    Column("p50_days", "Median", "days"),
    Column("p75_days", "75%", "days"),
    Column("p90_days", "90%", "days"),
)
_QUANTILE_NAMES = tuple(column.key for column in _QUANTILES)


def _in_stages(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT stage, visits, ended_visits, measured_visits, measured_share, "
        f"{', '.join(_QUANTILE_NAMES)}, current_visits, current_p50_days "
        "FROM marts.sum_time_in_stage ORDER BY stage_order NULLS LAST, stage"
    )
    if not rows:
        return None
    shown = [{**row, "stage": plain(row["stage"])} for row in rows]
    measured = [row for row in shown if row["measured_visits"]]
    ended = sum(row["ended_visits"] for row in rows)
    known = sum(row["measured_visits"] for row in rows)
    table = Table(
        "Days in each stage",
        "sum_time_in_stage",
        (
            Column("stage", "Stage", "text"),
            Column("measured_visits", "Measured"),
            *_QUANTILES,
            Column("current_visits", "In it now"),
            Column("current_p50_days", "Median so far", "days"),
        ),
        shown,
    )
    finding = "No stay in a stage was seen from its beginning to its end yet."
    if measured:
        slowest = max(measured, key=lambda row: row["p50_days"])
        finding = (
            f"The slowest stage is {slowest['stage']}: half of the stays in it took at most "
            f"{days(slowest['p50_days'])} days."
        )
    missing = ended - known
    return Shown(
        finding,
        (charts.ranges(measured, "stage", unit="stays in a stage"),) if measured else (),
        (table,),
        (
            f"{share(missing / ended)} of stays that are over ({missing:,} of {ended:,}) are not "
            "measured, since nobody saw them begin, or they ended with a deletion.",
        )
        if missing
        else (),
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    """A length of time that has a mart of facts and one that sums it up.

    `about` are the things that last, `verb` is what happens in the end; `column` has the days of
    each fact, `whole` the number of things in the summary, `split` the dimension to show.
    """

    about: str
    verb: str
    facts: str
    summary: str
    column: str
    whole: str
    split: str

    def draw(self, published: Published) -> Shown | None:
        """The distribution of everything, in bands, and by the split and consultant."""
        rows = published.rows(
            f"SELECT dimension, member, {self.whole} AS counted, measured, measured_share, "
            f"{', '.join(_QUANTILE_NAMES)} FROM marts.{self.summary} "
            f"WHERE dimension IN ('all', '{self.split}', 'consultant') "
            "ORDER BY dimension, counted DESC, member"
        )
        everything = [row for row in rows if row["dimension"] == "all"]
        if not everything or not everything[0]["counted"]:
            return None
        (every,) = everything
        table = self._members(rows, every)
        counted, measured = every["counted"], every["measured"]
        missing = counted - measured
        coverage = (
            f"{share(missing / counted)} of {self.about} ({missing:,} of {counted:,}) are not "
            "measured.",
        )
        if not measured:
            finding = f"None of {counted:,} {self.about} is measured."
            return Shown(finding, (), (table,), coverage)
        bands = _bands(published, self.facts, self.column, float(every["p90_days"]))
        banded = Table(
            f"{self.about.capitalize()} by days",
            self.facts,
            (Column("band", "Days", "text", of=self.column), Column("number", "Number", of="")),
            bands,
        )
        across = f"days to {self.verb}, from"
        return Shown(
            f"Half of {self.about} took at most {days(every['p50_days'])} days to {self.verb}, "
            f"nine tenths at most {days(every['p90_days'])}: {of(measured, counted)} are measured.",
            (charts.uprights(bands, "begins", "number", unit=self.about, across=across),),
            (banded, table),
            coverage if missing else (),
        )

    def _members(self, rows: Sequence[Row], every: Row) -> Table:
        """The distribution of everything, by the split, and by the consultants with the most."""
        shown = [
            {**row, "member": plain(str(row["member"]))}
            for row in rows
            if row["dimension"] == self.split
        ]
        consultants = [row for row in rows if row["dimension"] == "consultant"][:_MEMBERS_MAX]
        return Table(
            f"{self.about.capitalize()}: days by {plain(self.split)} and consultant",
            self.summary,
            (
                Column("member", "Of", "text"),
                Column("counted", "Number", of=self.whole),
                Column("measured", "Measured"),
                *_QUANTILES,
            ),
            [{**every, "member": "All"}, *shown, *consultants],
        )


def _bands(published: Published, facts: str, column: str, p90: float) -> list[Row]:
    """Equal bands of days, the last one open: a few that took years must not flatten the rest."""
    reach = max(1.0, p90 * 1.25)
    width = next((each for each in _WIDTHS if reach / each <= _BANDS_MAX), _WIDTHS[-1])
    last = int(reach // width)
    found = published.rows(
        f"SELECT least(floor({column} / {width}), {last})::INTEGER AS place, "
        f"count(*) AS number FROM marts.{facts} WHERE is_measured GROUP BY place"
    )
    numbers = {row["place"]: row["number"] for row in found}
    highest = last if last in numbers else max(numbers)
    return [
        {
            "begins": f"{place * width}",
            "band": _band(place, width, is_open=place == last),
            "number": numbers.get(place, 0),
        }
        for place in range(min(0, *numbers), highest + 1)
    ]


def _band(place: int, width: int, *, is_open: bool) -> str:
    begins, ends = place * width, (place + 1) * width - 1
    if is_open:
        return f"{begins}+"
    return f"{begins}" if begins == ends else f"{begins}-{ends}"


_FILLED = _Measured(
    about="filled openings",
    verb="fill",
    facts="fct_time_to_fill",
    summary="sum_time_to_fill",
    column="days_to_fill",
    whole="filled",
    split="employment_type",
)
_HIRED = _Measured(
    about="placements",
    verb="hire",
    facts="fct_time_to_hire",
    summary="sum_time_to_hire",
    column="days_to_hire",
    whole="placements",
    split="booking_type",
)

_SUMMARY = ("dimension", "member", "measured", "measured_share", *_QUANTILE_NAMES)

SECTION = Section(
    "time",
    "Time",
    "Distributions, not averages: the median beside the quick tenth and the slow tenth. What is "
    "not over yet is left out, so read it beside how many are waiting.",
    (
        Figure(
            "time-in-stage",
            "Time in stage",
            {
                "sum_time_in_stage": (
                    *("stage", "stage_order", "visits", "ended_visits", "measured_visits"),
                    *("measured_share", *_QUANTILE_NAMES, "current_visits", "current_p50_days"),
                ),
                "fct_time_in_stage": (),
            },
            _in_stages,
            "No candidate was seen in any stage yet.",
            is_wide=True,
        ),
        Figure(
            "time-to-fill",
            "Time to fill a job",
            {
                "fct_time_to_fill": ("is_measured", "days_to_fill"),
                "sum_time_to_fill": (*_SUMMARY, "filled"),
            },
            _FILLED.draw,
            "No job was filled yet.",
        ),
        Figure(
            "time-to-hire",
            "Time to hire a candidate",
            {
                "fct_time_to_hire": ("is_measured", "days_to_hire"),
                "sum_time_to_hire": (*_SUMMARY, "placements"),
            },
            _HIRED.draw,
            "No candidate was placed yet.",
        ),
    ),
)

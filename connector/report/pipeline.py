"""Candidates and jobs: how far they come, and how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connector.errors import count_noun
from connector.report import charts
from connector.report.figure import (
    Drawing,
    Figure,
    FigureTable,
    Section,
    capital,
    count,
    days,
    figure,
    headed,
    lacking,
    money,
    of,
    plain,
    tabled_figure,
)
from connector.report.published import PublishedFile, Row, months, total

# -- Candidates ------------------------------------------------------------------------------------

_DECIDED_MIN = 5
"""A rate of fewer decisions than these says nothing about a stage."""

_MONTHS = 12

_SKIPPING = (
    "SELECT count(DISTINCT candidate_id) FROM (SELECT candidate_id, "
    "max(stage_order) AS furthest, list(stage_order) AS observed "
    "FROM marts.fct_stage_conversion GROUP BY candidate_id) AS c "
    "JOIN (SELECT DISTINCT stage_order FROM marts.sum_stage_conversion) AS s "
    "ON s.stage_order < c.furthest AND NOT list_contains(c.observed, s.stage_order)"
)
"""Candidates who were seen in a later stage and never in an earlier one, each once."""


@tabled_figure(
    "stages",
    "Candidates by stage",
    {"fct_pipeline_candidates": "stage stage_order is_active days_in_stage is_fully_read"},
    "SELECT replace(stage, '_', ' ') AS stage, count(*) AS candidates, "
    "count(*) FILTER (is_active) AS active, count(*) FILTER (NOT is_fully_read) AS listed, "
    "quantile_cont(days_in_stage, 0.5) AS days_in_stage FROM marts.fct_pipeline_candidates AS c "
    "GROUP BY c.stage, stage_order ORDER BY stage_order NULLS LAST, candidates DESC",
    caption="Candidates by stage",
    headings=headed(
        "stage Stage; candidates Candidates; days_in_stage Median days in the stage so far"
    ),
    empty="No candidates are loaded yet.",
)
def _stages(rows: list[Row]) -> Drawing:
    active, everybody = total(rows, "active"), total(rows, "candidates")
    told = "have only summary data so far: their source and consultant are not known yet."
    return Drawing(
        f"{of(active, everybody, 'candidate')} are active: in an open stage, or paused.",
        (charts.bars(rows, "stage", "candidates", unit="candidates by stage"),),
        lacking(total(rows, "listed"), everybody, "candidates", told),
    )


@tabled_figure(
    "funnel",
    "Conversion by stage",
    {
        "sum_stage_conversion": "group_by stage stage_order entered advanced arrived lost "
        "in_progress deleted decided conversion_rate decided_rate",
        "fct_stage_conversion": "candidate_id stage_order",
    },
    "SELECT * REPLACE (replace(stage, '_', ' ') AS stage), advanced + arrived AS further, "
    f"({_SKIPPING}) AS skipping, "
    "(SELECT count(DISTINCT candidate_id) FROM marts.fct_stage_conversion) AS everybody "
    "FROM marts.sum_stage_conversion WHERE group_by = 'all' ORDER BY stage_order",
    caption="From each stage to a later one",
    headings=headed(
        "stage Stage; entered Candidates; advanced Advanced; arrived At the end; in_progress "
        "Not decided; lost Lost; deleted Deleted; conversion_rate Of all; decided_rate Of decided"
    ),
    empty="No candidate has been in a stage of the pipeline yet.",
)
def _funnel(rows: list[Row]) -> Drawing | None:
    if not total(rows, "entered"):
        return None
    parts = {
        "further": "advanced, or at the end",
        "lost": "lost",
        "in_progress": "not decided yet",
        "deleted": "deleted",
    }
    skipped, everybody = rows[0]["skipping"], rows[0]["everybody"]
    passed = (
        f"{of(skipped, everybody, 'candidate')} were seen in a later stage but not in every "
        "earlier one: they passed it between two pulls, or before the first."
    )
    return Drawing(
        _narrowest(rows),
        (charts.stacked(rows, "stage", parts, unit="candidates in the stage"),),
        (passed,) if skipped else (),
    )


def _narrowest(rows: Sequence[Row]) -> str:
    """Sentence on the stage that loses the largest part of its decided candidates."""
    told = [row for row in rows if row["decided"] >= _DECIDED_MIN and not row["arrived"]]
    if not told:
        first = rows[0]
        return f"{of(first['advanced'], first['entered'])} candidates in {first['stage']} advanced."
    row = min(told, key=lambda each: each["decided_rate"])
    return (
        f"{capital(row['stage'])} loses most: {of(row['lost'], row['decided'])} decided candidates "
        "dropped out."
    )


@figure(
    "offers",
    "Offers and their outcomes",
    {
        "sum_offer_acceptance": "group_by group_name offers accepted declined pending "
        "candidate_deleted decided acceptance_rate accepted_offer_not_observed"
    },
    empty="No offer was observed yet.",
    is_wide=True,
)
def _offers(published: PublishedFile) -> Drawing | None:
    rows = published.rows(
        "SELECT * REPLACE (CASE group_name WHEN 'all' THEN 'All months' WHEN 'not_observed' THEN "
        "'Before the first pull' ELSE strftime(try_cast(group_name || '-01' AS DATE), '%B %Y') END "
        "AS group_name), try_cast(o.group_name || '-01' AS DATE) AS begins "
        "FROM marts.sum_offer_acceptance AS o WHERE group_by IN ('all', 'month') "
        "QUALIFY row_number() OVER (PARTITION BY group_by, begins IS NULL ORDER BY begins DESC) "
        f"<= {_MONTHS} ORDER BY group_by = 'all', begins NULLS LAST"
    )
    if not rows or not rows[-1]["offers"]:
        return None
    *groups, whole = rows
    table = FigureTable(
        "Offers by the month in which they were made",
        "sum_offer_acceptance",
        headed(
            "group_name Month; offers Offers; accepted Accepted; declined Declined; "
            "pending Pending; candidate_deleted Candidate deleted; "
            "acceptance_rate Accepted of decided"
        ),
        rows,
    )
    parts = {"accepted": "accepted", "declined": "declined", "pending": "pending"}
    dated = {row["begins"]: row for row in groups if row["begins"]}
    old = int(total([row for row in groups if not row["begins"]], "offers"))
    nothing = dict.fromkeys(parts, 0)
    last = max(filter(None, (*dated, published.today)), default=None)
    shown = [
        {**dated.get(month, nothing), "month": f"{month:%b %y}"}
        for month in (months(min(dated), last)[-_MONTHS:] if dated and last else ())
    ]
    decided = "No offer is decided yet"
    if whole["decided"]:
        decided = f"{of(whole['accepted'], whole['decided'], 'decided offer')} were accepted"
    unseen = whole["accepted_offer_not_observed"]
    told = "were made before the first pull and have no month."
    more = (f"{count(unseen)} more acceptances have no observed offer.",) if unseen else ()
    return Drawing(
        f"{decided}; pending: {whole['pending']:,}.",
        (charts.stacked(shown, "month", parts, unit="offers", is_upright=True),) if shown else (),
        ((f"{of(old, whole['offers'], 'offer')} {told}",) if old else ()) + more,
        (table,),
    )


CANDIDATES = Section(
    "candidates",
    "Candidates",
    "Each person counts once, whatever jobs they were considered for: a candidate's status says "
    "nothing about which job it was for.",
    (_stages, _funnel, _offers),
)


# -- Jobs ------------------------------------------------------------------------------------------

_ROWS_MAX = 10

JOBS_BY_AGE = (
    "FROM (VALUES (1, '0-14'), (2, '15-30'), (3, '31-60'), (4, '61-90'), (5, 'over 90')) "
    "AS bands(place, age_band) FULL JOIN marts.fct_job_ageing USING (age_band) "
    "GROUP BY place, age_band ORDER BY place NULLS LAST"
)
"""Open jobs by the band of their age, with the bands that have none."""


_PLACED = (
    "SELECT count(DISTINCT p.candidate_id) FROM marts.fct_placements AS p LEFT JOIN "
    "(SELECT DISTINCT candidate_id, job_id FROM marts.fct_interviews WHERE outcome = 'held') AS i "
    "ON i.candidate_id = p.candidate_id AND i.job_id = p.job_id"
)
"""Placed candidates, beside the interviews held with them for the same job."""


@tabled_figure(
    "met",
    "From interview to placement",
    {
        "sum_job_funnel": "group_by group_name jobs jobs_interviewed placements "
        "candidate_job_pairs_interviewed candidate_job_pairs_interviewed_again "
        "candidate_job_pairs_placed candidate_job_pairs_placed_after_interview "
        "interview_to_placement_rate",
        "fct_job_funnel": "",
        "fct_placements": "candidate_id job_id",
        "fct_interviews": "candidate_id job_id outcome",
    },
    "SELECT * REPLACE (if(group_by = 'all', 'All', group_name) AS group_name), "
    f"({_PLACED}) AS placed, ({_PLACED} WHERE i.candidate_id IS NULL) AS unmet "
    "FROM marts.sum_job_funnel AS f WHERE group_by IN ('all', 'consultant') "
    "ORDER BY group_by = 'all', candidate_job_pairs_interviewed DESC, placements DESC, "
    "f.group_name",
    caption="From interview to placement, by the job's consultant",
    headings=headed(
        "group_name Consultant; jobs Jobs; jobs_interviewed Jobs with an interview held; "
        "candidate_job_pairs_interviewed Pairs interviewed; candidate_job_pairs_interviewed_again "
        "Twice or more; candidate_job_pairs_placed_after_interview Pairs placed after; placements "
        "Placements; interview_to_placement_rate Interview to placement"
    ),
    empty="No jobs are loaded yet.",
)
def _met(rows: list[Row]) -> Drawing | None:
    whole = rows[-1]
    if not whole["jobs"]:
        return None
    steps = [
        {"step": "interviewed", "pairs": whole["candidate_job_pairs_interviewed"]},
        {"step": "twice or more", "pairs": whole["candidate_job_pairs_interviewed_again"]},
        {"step": "placed after", "pairs": whole["candidate_job_pairs_placed_after_interview"]},
    ]
    after = whole["candidate_job_pairs_placed_after_interview"]
    interviewed = whole["candidate_job_pairs_interviewed"]
    told = "have no recorded interview for a job they were placed on."
    return Drawing(
        f"{of(whole['jobs_interviewed'], whole['jobs'], 'job')} had an interview; "
        f"{of(after, interviewed)} pairs of candidate and job were placed after an interview.",
        (charts.bars(steps, "step", "pairs", unit="pairs of candidate and job"),),
        (f"{of(whole['unmet'], whole['placed'], 'placed candidate')} {told}",)
        if whole["unmet"]
        else (),
    )


@figure(
    "ageing",
    "How long jobs have been open",
    {
        "fct_job_ageing": "job_id job_title job_status company_name consultant_name age_days "
        "age_band bookings days_since_last_booking"
    },
    empty="No job is open.",
)
def _ageing(published: PublishedFile) -> Drawing | None:
    rows = published.rows(
        "SELECT age_band, count(job_id) AS jobs, "
        "count(*) FILTER (job_status = 'published') AS listed, "
        "count(*) FILTER (job_status <> 'published') AS held, "
        f"count(*) FILTER (bookings = 0) AS without {JOBS_BY_AGE}"
    )
    if not total(rows, "jobs"):
        return None
    oldest = published.rows(
        f"FROM marts.fct_job_ageing ORDER BY age_days DESC NULLS LAST, job_id LIMIT {_ROWS_MAX}"
    )
    by_age = FigureTable(
        "Open jobs by age in days",
        "fct_job_ageing",
        headed(
            "age_band Age in days; listed Published; held On hold; jobs Jobs; without Nothing "
            "booked"
        ),
        rows,
    )
    by_job = FigureTable(
        f"The {count_noun(len(oldest), 'job')} that have been open longest",
        "fct_job_ageing",
        headed(
            "job_title Job; company_name Client; consultant_name Consultant; age_days Days open; "
            "bookings Bookings; days_since_last_booking Days without a booking"
        ),
        oldest,
    )
    without, jobs = total(rows, "without"), total(rows, "jobs")
    parts = {"listed": "published", "held": "on hold"}
    return Drawing(
        f"{of(without, jobs, 'open job')} have nothing booked on them.",
        (charts.stacked(rows, "age_band", parts, unit="open jobs"),),
        tables=(by_age, by_job),
    )


@tabled_figure(
    "worth",
    "Possible fees of open jobs",
    {
        "fct_pipeline_jobs": "currency positions_open expected_fee pipeline_value reporting_value "
        "reporting_currency"
    },
    "SELECT currency, count(*) AS jobs, sum(positions_open) AS positions_open, "
    "count(pipeline_value) AS expected_fee, sum(pipeline_value) AS pipeline_value, "
    "sum(reporting_value) AS reporting_value, max(reporting_currency) AS reporting_currency "
    "FROM marts.fct_pipeline_jobs GROUP BY currency ORDER BY jobs DESC, currency",
    caption="Possible fees of open jobs, by currency",
    headings=headed(
        "currency Currency; jobs Open jobs; positions_open Positions open; expected_fee With a "
        "known fee; pipeline_value Fees; reporting_value Converted; reporting_currency To"
    ),
    is_open=True,
    empty="No job is open.",
)
def _worth(rows: list[Row]) -> Drawing:
    jobs, unvalued = total(rows, "jobs"), total(rows, "jobs") - total(rows, "expected_fee")
    whole = total(rows, "reporting_value")
    code = next((row["reporting_currency"] for row in rows if row["reporting_value"]), "")
    worth = (
        f"; {money(code, whole)} possible fees, for currencies with an exchange rate"
        if whole
        else ""
    )
    positions = count(total(rows, "positions_open"))
    return Drawing(
        f"Positions open: {positions}, on {count_noun(jobs, 'job')}{worth}.",
        coverage=lacking(unvalued, jobs, "open jobs", "have no known fee."),
    )


@figure(
    "clients",
    "Jobs marked filled, by client",
    {
        "sum_client_fill_rate": "company_id company_name is_company_deleted "
        "jobs open_jobs closed_jobs "
        "jobs_marked_filled decided_jobs cancelled_jobs marked_filled_rate position_placed_rate",
        "fct_company_counters": "platform_count is_comparable difference",
    },
    empty="No job was marked filled, closed or cancelled yet.",
)
def _clients(published: PublishedFile) -> Drawing | None:
    rows = published.rows(
        "SELECT * REPLACE (company_name || if(is_company_deleted, ' (deleted)', '') "
        "AS company_name) FROM marts.sum_client_fill_rate AS c "
        "ORDER BY decided_jobs DESC, jobs DESC, c.company_name"
    )
    filled, decided = total(rows, "jobs_marked_filled"), total(rows, "decided_jobs")
    if not decided:
        return None
    first = [row for row in rows if row["decided_jobs"]][:_ROWS_MAX]
    first.sort(key=lambda row: -row["marked_filled_rate"])
    table = FigureTable(
        f"The {count_noun(len(first), 'client')} with the most decided jobs",
        "sum_client_fill_rate",
        headed(
            "company_name Client; open_jobs Open; jobs_marked_filled Marked filled; closed_jobs "
            "Closed; cancelled_jobs Cancelled; marked_filled_rate Marked filled of decided; "
            "position_placed_rate Positions with a placement"
        ),
        first,
    )
    chart = charts.bars(
        first,
        "company_name",
        "marked_filled_rate",
        unit="jobs marked filled",
        text=lambda row: f"{row['jobs_marked_filled']:,} of {row['decided_jobs']:,}",
        most=1,
    )
    counted = published.row(
        "SELECT count(*) FILTER (difference <> 0) AS differing, count(difference) AS compared, "
        "count(*) FILTER (platform_count IS NOT NULL AND NOT is_comparable) AS old "
        "FROM marts.fct_company_counters"
    )
    told = (
        f"{of(counted['differing'], counted['compared'], 'comparable counter')} of the platform "
        "differ from the loaded records."
    )
    old = (
        f"{counted['old']:,} counters are not comparable: the company was last read before one of "
        "its jobs or bookings changed."
    )
    return Drawing(
        f"{of(filled, decided, 'decided job')} are marked filled, over "
        f"{count_noun(sum(1 for row in rows if row['company_id']), 'client')}.",
        (chart,),
        ((told,) if counted["differing"] else ()) + ((old,) if counted["old"] else ()),
        (table,),
    )


JOBS = Section(
    "jobs",
    "Jobs",
    "Each vacancy counts once, and a candidate once for each job. Candidates meet jobs only in "
    "bookings.",
    (_met, _ageing, _worth, _clients),
)


# -- Time ------------------------------------------------------------------------------------------

_WIDTHS = (1, 2, 5, 7, 14, 30, 60, 90, 180, 365)
_BANDS_MAX = 10
_CALENDAR = (0, 7, 14, 30, 60, 90, 180, 365, 730)
"""Bands of a week to two years, for days of which a few are very long."""
_MEMBERS_MAX = 12

_QUANTILES = {
    "p10_days": "10th percentile",
    "p25_days": "25th percentile",
    "p50_days": "Median",
    "p75_days": "75th percentile",
    "p90_days": "90th percentile",
}


@figure(
    "time-in-stage",
    "Time in stage",
    {
        "sum_time_in_stage": "stage stage_order stage_kind is_active visits exits_observed "
        "p50_at_risk current_visits current_p50_days visits_may_contain_gap "
        f"{' '.join(_QUANTILES)}",
        "sum_stage_survival": "",
    },
    empty="No candidate has been in any stage yet.",
    is_wide=True,
)
def _in_stages(published: PublishedFile) -> Drawing | None:
    rows = published.rows(
        "SELECT * REPLACE (replace(stage, '_', ' ') AS stage) FROM marts.sum_time_in_stage AS s "
        "ORDER BY stage_order NULLS LAST, s.stage"
    )
    if not rows:
        return None
    whole = FigureTable(
        "Days in each stage",
        "sum_time_in_stage",
        {"stage": "Stage", "exits_observed": "Exits", **_QUANTILES},
        rows,
    )
    # Nobody waits to leave the last stage, or one for the lost.
    last = max((row["stage_order"] for row in rows if row["stage_order"]), default=None)
    left = [
        row
        for row in rows
        if row["stage_kind"] != "lost" and (last is None or row["stage_order"] != last)
    ]
    waiting = FigureTable(
        "Time until leaving, and time so far",
        "sum_time_in_stage",
        headed(
            "stage Stage; p50_days Median days; p50_at_risk Candidates at the median; "
            "current_visits Still there; current_p50_days Median days so far"
        ),
        left,
        is_open=True,
    )
    told = "changed between two pulls: the candidate may have left the stage and returned."
    hiding = total(rows, "visits_may_contain_gap")
    return Drawing(
        _slowest(rows),
        (charts.ranges(left, "stage", unit="stays in a stage"),),
        lacking(hiding, total(rows, "visits"), "stays", told),
        (waiting, whole),
    )


def _slowest(rows: Sequence[Row]) -> str:
    """Sentence on the stages where people stay longest, and have waited longest."""
    under_way = [row for row in rows if row["is_active"]]
    known = [row for row in under_way if row["p50_days"] is not None]
    finding = "Too few candidates left any stage to estimate a median."
    if known:
        slowest = max(known, key=lambda row: row["p50_days"])
        name, median = capital(slowest["stage"]), days(slowest["p50_days"])
        finding = f"{name} is the slowest stage: median {median} days."
    if waiting := [row for row in under_way if row["current_visits"]]:
        longest = max(waiting, key=lambda row: row["current_p50_days"])
        finding += (
            f" {capital(longest['stage'])} waits longest: median "
            f"{days(longest['current_p50_days'])} days "
            f"so far ({count_noun(longest['current_visits'], 'candidate')})."
        )
    return finding


@dataclass(frozen=True, slots=True)
class _TimeTo:
    """Time until something ends, which has a mart of facts and one that sums it up.

    `about` are the things that last, `verb` is what happens in the end; `whole` is the column with
    the number of things in the summary, `group_by` the one to show, `waiting` says who is not
    in it.
    """

    about: str
    verb: str
    whole: str
    group_by: str
    waiting: str = ""

    def figure(self, title: str, empty: str) -> Figure:
        """The figure of all such lengths of time."""
        columns = f"group_by group_name measured {' '.join(_QUANTILES)} {self.whole}"
        facts = f"is_measured days_to_{self.verb}"
        if self.waiting:
            columns += " openings_open open_p50_days"
        needs = {f"fct_time_to_{self.verb}": facts, f"sum_time_to_{self.verb}": columns}
        return Figure(f"time-to-{self.verb}", title, needs, self._draw, empty)

    def _draw(self, published: PublishedFile) -> Drawing | None:
        """The distribution of everything, in bands, and by the group and consultant."""
        rows = published.rows(
            f"FROM marts.sum_time_to_{self.verb} ORDER BY {self.whole} DESC, group_name"
        )
        whole = next((row for row in rows if row["group_by"] == "all"), None)
        if whole is None or not whole[self.whole]:
            return None
        table = self._members(whole, rows)
        number, measured = whole[self.whole], whole["measured"]
        coverage = lacking(number - measured, number, self.about, "have no known days.")
        if self.waiting and whole["openings_open"]:
            waited = f"median {days(whole['open_p50_days'])} days so far."
            coverage += (f"{whole['openings_open']:,} {self.waiting}: {waited}",)
        if not measured:
            finding = f"No days are known for {number:,} {self.about}."
            return Drawing(finding, coverage=coverage, tables=(table,))
        bands = self._bands(published, float(whole["p90_days"]))
        banded = FigureTable(
            f"{self.about.capitalize()} by days",
            f"fct_time_to_{self.verb}",
            {f"days_to_{self.verb}": "Days", "number": "Number"},
            bands,
        )
        across = f"days to {self.verb}, from"
        return Drawing(
            f"Median {days(whole['p50_days'])} days to {self.verb}, 90th percentile "
            f"{days(whole['p90_days'])} days ({of(measured, number)} {self.about}).",
            (charts.uprights(bands, "begins", "number", unit=self.about, across=across),),
            coverage,
            (banded, table),
        )

    def _members(self, whole: Row, rows: list[Row]) -> FigureTable:
        """The distribution of all, by the group, and by consultant."""
        shown = [
            {**row, "group_name": plain(str(row["group_name"]))}
            for row in rows
            if row["group_by"] == self.group_by
        ]
        consultants = [row for row in rows if row["group_by"] == "consultant"][:_MEMBERS_MAX]
        return FigureTable(
            f"{self.about.capitalize()}: days by {plain(self.group_by)} and consultant",
            f"sum_time_to_{self.verb}",
            {"group_name": "Of", self.whole: "Number", "measured": "Measured", **_QUANTILES},
            [{**whole, "group_name": "All"}, *shown, *consultants],
        )

    def _bands(self, published: PublishedFile, p90: float) -> list[Row]:
        """Bands of days that spread the values best; the last is open."""
        column = f"days_to_{self.verb}"
        found = published.rows(
            f"SELECT {column}::INTEGER AS days, count(*) AS number "
            f"FROM marts.fct_time_to_{self.verb} WHERE is_measured GROUP BY ALL"
        )
        reach = max(1.0, p90 * 1.25)
        width = next((each for each in _WIDTHS if reach / each <= _BANDS_MAX), _WIDTHS[-1])
        equal = [place * width for place in range(int(reach // width) + 1)]

        def banded(begins: list[int]) -> list[Row]:
            ends = [*begins[1:], None]
            rows: list[Row] = [
                {
                    "begins": f"{begin}",
                    column: _band(begin, end),
                    "number": sum(
                        row["number"]
                        for row in found
                        if begin <= row["days"] and (end is None or row["days"] < end)
                    ),
                }
                for begin, end in zip(begins, ends, strict=True)
            ]
            while not rows[-1]["number"] and len(rows) > 1:
                rows.pop()
            return rows

        choices = [banded(equal), banded(list(_CALENDAR))]
        return min(choices, key=lambda rows: max(row["number"] for row in rows))


def _band(begins: int, ends: int | None) -> str:
    if ends is None:
        return f"{begins}+"
    return f"{begins}" if ends == begins + 1 else f"{begins}-{ends - 1}"


TIME = Section(
    "time",
    "Time",
    "Medians and percentiles. In stages, candidates who still wait count for as long as they were "
    "watched. Of jobs and placements, only completed times are included: compare them with the "
    "jobs that are still open.",
    (
        _in_stages,
        _TimeTo(
            "filled openings",
            "fill",
            "openings_filled",
            "employment_type",
            "more openings are still open and not included",
        ).figure("Time to fill a job", "No job was filled yet."),
        _TimeTo("placements", "hire", "placements", "booking_type").figure(
            "Time to hire a candidate", "No candidate was placed yet."
        ),
    ),
)

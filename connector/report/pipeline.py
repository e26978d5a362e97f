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


@tabled_figure(
    "stages",
    "Where candidates stand",
    {"fct_pipeline_candidates": "stage stage_order is_active days_in_stage is_hydrated"},
    "SELECT replace(stage, '_', ' ') AS stage, count(*) AS candidates, "
    "count(*) FILTER (is_active) AS active, count(*) FILTER (NOT is_hydrated) AS listed, "
    "quantile_cont(days_in_stage, 0.5) AS days_in_stage FROM marts.fct_pipeline_candidates AS c "
    "GROUP BY c.stage, stage_order ORDER BY stage_order NULLS LAST, candidates DESC",
    caption="Candidates by stage",
    headings=headed("stage Stage; candidates Candidates; days_in_stage Median days in it so far"),
    empty="No candidates have landed yet.",
)
def _stages(rows: list[Row]) -> Drawing:
    active, everybody = total(rows, "active"), total(rows, "candidates")
    told = "were only listed so far: their source and consultant are not known yet."
    return Drawing(
        f"{of(active, everybody, 'candidate')} are active: in an open stage, or paused.",
        (charts.bars(rows, "stage", "candidates", unit="candidates by stage"),),
        lacking(total(rows, "listed"), everybody, "candidates", told),
    )


@tabled_figure(
    "funnel",
    "How far candidates went",
    {
        "sum_stage_conversion": "group_by stage stage_order entered advanced arrived lost "
        "in_progress deleted decided conversion_rate decided_rate inferred"
    },
    "SELECT * REPLACE (replace(stage, '_', ' ') AS stage), advanced + arrived AS further "
    "FROM marts.sum_stage_conversion WHERE group_by = 'all' ORDER BY stage_order",
    caption="From each stage further on",
    headings=headed(
        "stage Stage; entered Seen in it; advanced Went further; arrived At the end; in_progress "
        "Not decided; lost Lost; deleted Deleted; conversion_rate Of all; decided_rate Of decided"
    ),
    empty="No candidate was seen in a stage of the pipeline yet.",
)
def _funnel(rows: list[Row]) -> Drawing | None:
    if not total(rows, "entered"):
        return None
    parts = {
        "further": "went further, or is at the end",
        "lost": "lost",
        "in_progress": "not decided",
        "deleted": "deleted",
    }
    unseen = total(rows, "inferred")
    passed = (
        f"Candidates seen further on and never in the stage, over all stages: {count(unseen)}. "
        "They passed it between two looks, or before the first."
    )
    return Drawing(
        _narrowest(rows),
        (charts.stacked(rows, "stage", parts, unit="candidates seen in the stage"),),
        (passed,) if unseen else (),
    )


def _narrowest(rows: Sequence[Row]) -> str:
    """The stage where the smallest part of those decided goes further."""
    told = [row for row in rows if row["decided"] >= _DECIDED_MIN and not row["arrived"]]
    if not told:
        first = rows[0]
        return f"{of(first['advanced'], first['entered'])} seen in {first['stage']} went further."
    row = min(told, key=lambda each: each["decided_rate"])
    return (
        f"The narrowest place is {row['stage']}: {of(row['advanced'], row['decided'])} of those "
        "decided went further."
    )


@figure(
    "offers",
    "Offers and what became of them",
    {
        "sum_offer_acceptance": "group_by group_name offers accepted declined pending "
        "candidate_deleted decided acceptance_rate accepted_offer_not_observed"
    },
    empty="No offer was seen yet.",
    is_wide=True,
)
def _offers(published: PublishedFile) -> Drawing | None:
    rows = published.rows(
        "SELECT * REPLACE (CASE group_name WHEN 'all' THEN 'All months' WHEN 'not_observed' THEN "
        "'Older than the mirror' ELSE group_name END AS group_name), "
        "try_cast(o.group_name || '-01' AS DATE) AS begins "
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
    told = "are older than the mirror, so that no month is theirs."
    more = (f"Acceptances without an offer that was seen: {count(unseen)} more.",) if unseen else ()
    return Drawing(
        f"{decided}; pending: {whole['pending']:,}.",
        (charts.stacked(shown, "month", parts, unit="offers", is_upright=True),) if shown else (),
        lacking(old, whole["offers"], "offers", told) + more,
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


@tabled_figure(
    "met",
    "From interview to placement",
    {
        "sum_job_funnel": "group_by group_name jobs jobs_interviewed placements "
        "candidate_job_pairs_interviewed candidate_job_pairs_interviewed_again "
        "candidate_job_pairs_placed candidate_job_pairs_placed_after_interview "
        "interview_to_placement_rate",
        "fct_job_funnel": "",
    },
    "SELECT * REPLACE (if(group_by = 'all', 'All', group_name) AS group_name) "
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
    empty="No jobs have landed yet.",
)
def _met(rows: list[Row]) -> Drawing | None:
    whole = rows[-1]
    if not whole["jobs"]:
        return None
    steps = [
        {"step": "interviewed", "pairs": whole["candidate_job_pairs_interviewed"]},
        {"step": "interviewed again", "pairs": whole["candidate_job_pairs_interviewed_again"]},
        {"step": "placed afterwards", "pairs": whole["candidate_job_pairs_placed_after_interview"]},
    ]
    placed = whole["candidate_job_pairs_placed"]
    after = whole["candidate_job_pairs_placed_after_interview"]
    interviewed = whole["candidate_job_pairs_interviewed"]
    unmet = f"{of(placed - after, placed)} placements of a candidate on a job have no interview."
    return Drawing(
        f"{of(whole['jobs_interviewed'], whole['jobs'], 'job')} had an interview; "
        f"{of(after, interviewed)} pairs of candidate and job were placed after an interview.",
        (charts.bars(steps, "step", "pairs", unit="pairs of candidate and job"),),
        (unmet,) if placed > after else (),
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
            "bookings Bookings; days_since_last_booking Days since the last"
        ),
        oldest,
    )
    without, jobs = total(rows, "without"), total(rows, "jobs")
    parts = {"listed": "published", "held": "on hold"}
    return Drawing(
        f"{of(without, jobs, 'open job')} have nothing booked on them.",
        (charts.stacked(rows, "age_band", parts, unit="open jobs, by days"),),
        tables=(by_age, by_job),
    )


@tabled_figure(
    "worth",
    "What open jobs may still earn",
    {
        "fct_pipeline_jobs": "currency positions_open expected_fee pipeline_value reporting_value "
        "reporting_currency"
    },
    "SELECT currency, count(*) AS jobs, sum(positions_open) AS positions_open, "
    "count(pipeline_value) AS expected_fee, sum(pipeline_value) AS pipeline_value, "
    "sum(reporting_value) AS reporting_value, max(reporting_currency) AS reporting_currency "
    "FROM marts.fct_pipeline_jobs GROUP BY currency ORDER BY jobs DESC, currency",
    caption="What open jobs may still earn, by currency",
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
    worth = f"; what has a rate may earn {money(code, whole)}" if whole else ""
    positions = count(total(rows, "positions_open"))
    return Drawing(
        f"Positions open: {positions}, on {count_noun(jobs, 'job')}{worth}.",
        coverage=lacking(unvalued, jobs, "open jobs", "have no known fee."),
    )


@figure(
    "clients",
    "Jobs marked filled, by client",
    {
        "sum_client_fill_rate": "company_name is_company_deleted jobs open_jobs closed_jobs "
        "jobs_marked_filled decided_jobs cancelled_jobs marked_filled_rate position_placed_rate",
        "fct_company_counters": "counter platform_count our_count difference",
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
        "SELECT count(*) FILTER (difference <> 0) AS differing, count(difference) AS counters "
        "FROM marts.fct_company_counters"
    )
    told = "differ from what landed."
    return Drawing(
        f"{of(filled, decided, 'decided job')} are marked filled, over "
        f"{count_noun(len(rows), 'client')}.",
        (chart,),
        lacking(counted["differing"], counted["counters"], "the platform's own counters", told),
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
_MEMBERS_MAX = 12

_QUANTILES = {
    "p10_days": "10%",
    "p25_days": "25%",
    "p50_days": "Median",
    "p75_days": "75%",
    "p90_days": "90%",
}


@figure(
    "time-in-stage",
    "Time in stage",
    {
        "sum_time_in_stage": "stage stage_order stage_kind visits exits_observed p50_at_risk "
        f"current_visits current_p50_days visits_may_contain_gap {' '.join(_QUANTILES)}",
        "sum_stage_survival": "",
    },
    empty="No candidate was seen in any stage yet.",
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
        {"stage": "Stage", "exits_observed": "Seen to leave", **_QUANTILES},
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
        "Who leaves, and who waits",
        "sum_time_in_stage",
        headed(
            "stage Stage; p50_days Median days; p50_at_risk Watched so long; current_visits There "
            "now; current_p50_days Their median so far"
        ),
        left,
        is_open=True,
    )
    told = "were changed between two looks, and may hide that somebody left and came back."
    hiding = total(rows, "visits_may_contain_gap")
    return Drawing(
        _slowest(rows),
        (charts.ranges(left, "stage", unit="stays in a stage"),),
        lacking(hiding, total(rows, "visits"), "stays", told),
        (waiting, whole),
    )


def _slowest(rows: Sequence[Row]) -> str:
    """Sentence on the stages where people stay longest, and have waited longest."""
    under_way = [row for row in rows if row["stage_kind"] in ("open", "paused")]
    known = [row for row in under_way if row["p50_days"] is not None]
    finding = "Too few were seen to leave any stage to say how long half of them stay."
    if known:
        slowest = max(known, key=lambda row: row["p50_days"])
        finding = (
            f"Of the stages that enough were seen to leave, {slowest['stage']} is the slowest: "
            f"half stay at most {days(slowest['p50_days'])} days."
        )
    if waiting := [row for row in under_way if row["current_visits"]]:
        longest = max(waiting, key=lambda row: row["current_p50_days"])
        finding += (
            f" Those in {longest['stage']} have waited longest: half of "
            f"{count(longest['current_visits'])} for {days(longest['current_p50_days'])} days or "
            "more."
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
        coverage = lacking(number - measured, number, self.about, "are not measured.")
        if self.waiting and whole["openings_open"]:
            waited = f"half of them for {days(whole['open_p50_days'])} days or more."
            coverage += (f"{whole['openings_open']:,} {self.waiting}: {waited}",)
        if not measured:
            finding = f"None of {number:,} {self.about} is measured."
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
            f"Half of {self.about} took at most {days(whole['p50_days'])} days to {self.verb}, "
            f"nine tenths at most {days(whole['p90_days'])}: {of(measured, number)} are measured.",
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
        """Equal bands of days; the last is open, lest a few years flatten the rest."""
        reach = max(1.0, p90 * 1.25)
        width = next((each for each in _WIDTHS if reach / each <= _BANDS_MAX), _WIDTHS[-1])
        last = int(reach // width)
        found = published.rows(
            f"SELECT least(floor(days_to_{self.verb} / {width}), {last})::INTEGER AS place, "
            f"count(*) AS number FROM marts.fct_time_to_{self.verb} WHERE is_measured "
            "GROUP BY place"
        )
        numbers = {row["place"]: row["number"] for row in found}
        highest = last if last in numbers else max(numbers)
        return [
            {
                "begins": f"{place * width}",
                f"days_to_{self.verb}": _band(place * width, width, is_open=place == last),
                "number": numbers.get(place, 0),
            }
            for place in range(min(0, *numbers), highest + 1)
        ]


def _band(begins: int, width: int, *, is_open: bool) -> str:
    if is_open:
        return f"{begins}+"
    return f"{begins}" if width == 1 else f"{begins}-{begins + width - 1}"


TIME = Section(
    "time",
    "Time",
    "Distributions, not averages: the median beside the quick tenth and the slow tenth. In stages, "
    "whoever still waits counts for as long as they were watched; of jobs and placements, only "
    "what has ended is here, so read it beside the jobs that are open.",
    (
        _in_stages,
        _TimeTo(
            "filled openings",
            "fill",
            "openings_filled",
            "employment_type",
            "more openings wait to be filled, and are not in it",
        ).figure("Time to fill a job", "No job was filled yet."),
        _TimeTo("placements", "hire", "placements", "booking_type").figure(
            "Time to hire a candidate", "No candidate was placed yet."
        ),
    ),
)

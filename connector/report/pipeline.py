"""Figures on candidates and jobs: stages that they reach, and durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connector.report import charts
from connector.report.figure import Chart, ExtraTable, Figure, Section, parse_headings, value_words
from connector.report.published import PublishedFile, Row, month_starts

# -- Candidates ------------------------------------------------------------------------------------

_DECIDED_MIN = 5
"""Smallest number of decisions for which the rate of a stage is shown."""

_MONTHS = 12

_STAGES = Figure(
    key="stages",
    title="Candidates by stage",
    mart="fct_pipeline_candidates",
    sql="SELECT replace(stage, '_', ' ') AS stage, count(*) AS candidates, "
    "count(*) FILTER (is_active) AS active, count(*) FILTER (NOT is_fully_read) AS listed, "
    "quantile_cont(days_in_stage, 0.5) AS days_in_stage FROM marts.fct_pipeline_candidates AS c "
    "GROUP BY c.stage, stage_order ORDER BY stage_order NULLS LAST, candidates DESC",
    headings=parse_headings(
        "stage Stage; candidates Candidates; days_in_stage Median days in the stage so far"
    ),
    caption="Candidates by stage",
    findings=("{active/candidates candidate} are active: in an open stage, or paused.",),
    notes=(
        "{listed/candidates candidate} have only summary data so far: their source and consultant "
        "are not known yet.",
    ),
    text_if_empty="No candidates are loaded yet.",
    chart=lambda _, rows: [
        charts.bar_chart(rows, "stage", "candidates", unit="candidates by stage")
    ],
)

_FUNNEL = Figure(
    key="funnel",
    title="Conversion by stage",
    mart="sum_stage_conversion",
    # Candidates who skipped a stage were seen in a later stage and never in this one.
    sql="WITH seen AS (SELECT candidate_id, max(stage_order) AS furthest, list(stage_order) AS "
    "observed FROM marts.fct_stage_conversion GROUP BY candidate_id), rates AS (SELECT * REPLACE "
    "(replace(stage, '_', ' ') AS stage), advanced + arrived AS further, "
    f"decided >= {_DECIDED_MIN} AND arrived = 0 AS is_rated "
    "FROM marts.sum_stage_conversion WHERE group_by = 'all') "
    "SELECT *, (SELECT count(*) FROM seen) AS the_everybody, "
    "(SELECT count(DISTINCT candidate_id) FROM seen JOIN (SELECT DISTINCT stage_order FROM "
    "marts.sum_stage_conversion) AS s ON s.stage_order < furthest "
    "AND NOT list_contains(observed, s.stage_order)) AS the_skipping, "
    "arg_min(stage, decided_rate) FILTER (is_rated) OVER () AS the_worst, "
    "arg_min(lost, decided_rate) FILTER (is_rated) OVER () AS the_lost, "
    "arg_min(decided, decided_rate) FILTER (is_rated) OVER () AS the_decided, "
    "arg_min(stage, stage_order) OVER () AS the_first, "
    "arg_min(advanced, stage_order) OVER () AS the_advanced, "
    "arg_min(entered, stage_order) OVER () AS the_entered FROM rates ORDER BY stage_order",
    headings=parse_headings(
        "stage Stage; entered Candidates; advanced Advanced; arrived In the last stage; "
        "in_progress Not decided; lost Lost; deleted Deleted; conversion_rate Advanced, % of all; "
        "decided_rate Advanced, % of decided"
    ),
    caption="Candidates who advanced from each stage to a later one",
    findings=(
        "{the_worst} loses most: {the_lost/the_decided decided candidate} dropped out.",
        "{the_advanced/the_entered candidate} in {the_first} advanced.",
    ),
    notes=(
        "{the_skipping/the_everybody candidate} were seen in a later stage but not in every "
        "earlier one: they passed the earlier stage between two pulls, or before the first pull.",
    ),
    text_if_empty="No candidate has been in a stage of the pipeline yet.",
    counted_column="entered",
    chart=lambda _, rows: [
        charts.stacked_bar_chart(
            rows,
            "stage",
            {
                "further": "advanced, or reached the last stage",
                "lost": "lost",
                "in_progress": "not decided yet",
                "deleted": "deleted",
            },
            unit="candidates in the stage",
        )
    ],
)


def _chart_offers_by_month(published: PublishedFile, rows: Sequence[Row]) -> Sequence[Chart]:
    """Return a chart of offers by month and answer; no chart if no offer has a date."""
    parts = {"accepted": "accepted", "declined": "declined", "pending": "pending"}
    dated = {row["begins"]: row for row in rows if row["begins"]}
    if not dated:
        return ()
    last = max(filter(None, (*dated, published.today)))
    nothing = dict.fromkeys(parts, 0)
    shown = [
        {**dated.get(month, nothing), "month": f"{month:%b %y}"}
        for month in month_starts(min(dated), last)[-_MONTHS:]
    ]
    return [charts.stacked_bar_chart(shown, "month", parts, unit="offers", is_upright=True)]


_OFFERS = Figure(
    key="offers",
    title="Offers and their outcomes",
    mart="sum_offer_acceptance",
    sql="SELECT * REPLACE (CASE group_name WHEN 'all' THEN 'All months' WHEN 'not_observed' THEN "
    "'Before the first pull' ELSE strftime(try_cast(group_name || '-01' AS DATE), '%B %Y') END "
    "AS group_name), try_cast(o.group_name || '-01' AS DATE) AS begins, "
    "sum(offers) FILTER (group_by = 'month' AND begins IS NULL) OVER () AS the_old, "
    "max(offers) FILTER (group_by = 'all') OVER () AS the_offers "
    "FROM marts.sum_offer_acceptance AS o WHERE group_by IN ('all', 'month') "
    "QUALIFY row_number() OVER (PARTITION BY group_by, begins IS NULL ORDER BY begins DESC) "
    f"<= {_MONTHS} ORDER BY group_by = 'all', begins NULLS LAST",
    headings=parse_headings(
        "group_name Month; offers Offers; accepted Accepted; declined Declined; pending Pending; "
        "candidate_deleted Candidate deleted; acceptance_rate Share accepted"
    ),
    caption="Offers by the month in which they were made",
    findings=(
        "{accepted/decided decided offer} were accepted; pending: {pending}.",
        "{accepted/decided decided offer} were accepted; pending: 0.",
        "No offer is accepted yet; pending: {pending}.",
    ),
    notes=(
        "{the_old/the_offers offer} were made before the first pull and have no month.",
        "{accepted_offer_not_observed} more acceptances have no observed offer.",
    ),
    text_if_empty="No offer was observed yet.",
    counted_column="offers",
    has_total=True,
    chart=_chart_offers_by_month,
    is_wide=True,
)

CANDIDATES = Section(
    "candidates",
    "Candidates",
    "Each person counts once, even if considered for several jobs: a candidate's status does not "
    "name a job.",
    (_STAGES, _FUNNEL, _OFFERS),
)


# -- Jobs ------------------------------------------------------------------------------------------

_ROWS_MAX = 10

JOBS_BY_AGE = (
    "FROM (VALUES (1, '0-14'), (2, '15-30'), (3, '31-60'), (4, '61-90'), (5, 'over 90')) "
    "AS bands(place, age_band) FULL JOIN marts.fct_job_ageing USING (age_band) "
    "GROUP BY place, age_band ORDER BY place NULLS LAST"
)
"""Query of open jobs by age band, including empty bands."""


_PLACED = (
    "SELECT count(DISTINCT p.candidate_id) FROM marts.fct_placements AS p LEFT JOIN "
    "(SELECT DISTINCT candidate_id, job_id FROM marts.fct_interviews WHERE outcome = 'held') AS i "
    "ON i.candidate_id = p.candidate_id AND i.job_id = p.job_id WHERE p.is_placement"
)
"""Query of placed candidates, and their interviews for the same job."""

_PAIRS = {
    "candidate_job_pairs_interviewed": "interviewed",
    "candidate_job_pairs_interviewed_again": "twice or more",
    "candidate_job_pairs_placed_after_interview": "placed after",
}

_MET = Figure(
    key="met",
    title="From interview to placement",
    mart="sum_job_funnel",
    further_marts=("fct_job_funnel",),
    sql="SELECT * REPLACE (if(group_by = 'all', 'All', group_name) AS group_name), "
    f"({_PLACED}) AS the_placed, ({_PLACED} AND i.candidate_id IS NULL) AS the_unmet "
    "FROM marts.sum_job_funnel AS f WHERE group_by IN ('all', 'consultant') "
    "ORDER BY group_by = 'all', candidate_job_pairs_interviewed DESC, placements DESC, "
    "f.group_name",
    headings=parse_headings(
        "group_name Consultant; jobs Jobs; jobs_interviewed Jobs with an interview held; "
        "candidate_job_pairs_interviewed Pairs interviewed; candidate_job_pairs_interviewed_again "
        "Twice or more; candidate_job_pairs_placed_after_interview Pairs placed after; placements "
        "Placements; interview_to_placement_rate Interview to placement"
    ),
    caption="From interview to placement, by the job's consultant",
    findings=(
        "{jobs_interviewed/jobs job} had an interview; "
        "{candidate_job_pairs_placed_after_interview/candidate_job_pairs_interviewed pair} of "
        "candidate and job were placed after an interview.",
    ),
    notes=(
        "{the_unmet/the_placed placed candidate} have no recorded interview for a job they were "
        "placed on.",
    ),
    text_if_empty="No jobs are loaded yet.",
    counted_column="jobs",
    has_total=True,
    chart=lambda _, rows: [
        charts.bar_chart(
            [{"step": word, "pairs": rows[-1][column]} for column, word in _PAIRS.items()],
            "step",
            "pairs",
            unit="pairs of candidate and job",
        )
    ],
)

_AGEING = Figure(
    key="ageing",
    title="How long jobs have been open",
    mart="fct_job_ageing",
    sql="SELECT age_band, count(job_id) AS jobs, "
    "count(*) FILTER (job_status = 'published') AS listed, "
    "count(*) FILTER (job_status <> 'published') AS held, "
    f"count(*) FILTER (bookings = 0) AS without {JOBS_BY_AGE}",
    headings=parse_headings(
        "age_band Age in days; listed Published; held On hold; jobs Jobs; without Nothing booked"
    ),
    caption="Open jobs by age in days",
    findings=("{without/jobs open job} have nothing booked on them.",),
    text_if_empty="No job is open.",
    counted_column="jobs",
    chart=lambda _, rows: [
        charts.stacked_bar_chart(
            rows, "age_band", {"listed": "published", "held": "on hold"}, unit="open jobs"
        )
    ],
    more=(
        ExtraTable(
            "The {rows job} that have been open longest",
            "fct_job_ageing",
            "FROM marts.fct_job_ageing ORDER BY age_days DESC NULLS LAST, job_id "
            f"LIMIT {_ROWS_MAX}",
            parse_headings(
                "job_title Job; company_name Client; consultant_name Consultant; age_days Days "
                "open; bookings Bookings; days_since_last_booking Days without a booking"
            ),
        ),
    ),
)

_WORTH = Figure(
    key="worth",
    title="Possible fees of open jobs",
    mart="fct_pipeline_jobs",
    sql="SELECT currency, count(*) AS jobs, sum(positions_open) AS positions_open, "
    "count(*) - count(pipeline_value) AS unvalued, "
    "count(pipeline_value) AS expected_fee, sum(pipeline_value) AS pipeline_value, "
    "sum(reporting_value) AS reporting_value, max(reporting_currency) AS reporting_currency "
    "FROM marts.fct_pipeline_jobs GROUP BY currency ORDER BY jobs DESC, currency",
    headings=parse_headings(
        "currency Currency; jobs Open jobs; positions_open Positions open; expected_fee With a "
        "known fee; pipeline_value Fees; reporting_value Converted; reporting_currency To"
    ),
    caption="Possible fees of open jobs, by currency",
    findings=(
        "Positions open: {positions_open}, on {jobs job}; {reporting_value@reporting_currency} "
        "possible fees, for currencies with an exchange rate.",
        "Positions open: {positions_open}, on {jobs job}.",
    ),
    notes=("{unvalued/jobs open job} have no known fee.",),
    text_if_empty="No job is open.",
    is_open=True,
)

_CLIENTS = Figure(
    key="clients",
    title="Jobs marked filled, by client",
    mart="sum_client_fill_rate",
    sql="WITH counters AS (SELECT count(*) FILTER (difference <> 0) AS differing, "
    "count(difference) AS compared, "
    "count(*) FILTER (platform_count IS NOT NULL AND NOT is_comparable) AS old "
    "FROM marts.fct_company_counters), clients AS ("
    "SELECT * REPLACE (company_name || if(is_company_deleted, ' (deleted)', '') "
    "AS company_name), sum(jobs_marked_filled) OVER () AS the_filled, "
    "sum(decided_jobs) OVER () AS the_decided, count(company_id) OVER () AS the_clients, "
    "differing AS the_differing, compared AS the_compared, old AS the_old "
    "FROM marts.sum_client_fill_rate AS c, counters "
    f"ORDER BY decided_jobs DESC, jobs DESC, c.company_name LIMIT {_ROWS_MAX}) "
    "FROM clients WHERE decided_jobs > 0 ORDER BY marked_filled_rate DESC, decided_jobs DESC, "
    "jobs DESC, company_name",
    headings=parse_headings(
        "company_name Client; open_jobs Open; jobs_marked_filled Marked filled; closed_jobs "
        "Closed; cancelled_jobs Cancelled; marked_filled_rate Share marked filled; "
        "position_placed_rate Positions with a placement"
    ),
    caption="The {rows client} with the most decided jobs",
    findings=("{the_filled/the_decided decided job} are marked filled, at {the_clients client}.",),
    notes=(
        "{the_differing/the_compared comparable count} that the platform shows for a client differ "
        "from the number of loaded records.",
        "{the_old} counts are not comparable: the company was last read before one of its jobs "
        "or bookings changed.",
    ),
    text_if_empty="No job was marked filled, closed or cancelled yet.",
    chart=lambda _, rows: [
        charts.bar_chart(
            rows,
            "company_name",
            "marked_filled_rate",
            unit="jobs marked filled",
            text=lambda row: f"{row['jobs_marked_filled']:,} of {row['decided_jobs']:,}",
            maximum=1,
        )
    ],
)

JOBS = Section(
    "jobs",
    "Jobs",
    "Each job counts once, and a candidate counts once for each job. Only bookings connect "
    "candidates with jobs.",
    (_MET, _AGEING, _WORTH, _CLIENTS),
)


# -- Time ------------------------------------------------------------------------------------------

_WIDTHS = (1, 2, 5, 7, 14, 30, 60, 90, 180, 365)
_BANDS_MAX = 10
_CALENDAR = (0, 7, 14, 30, 60, 90, 180, 365, 730)
"""Band limits from a week to two years, for durations with a few very long ones."""
_MEMBERS_MAX = 12

_QUANTILES = {
    "p10_days": "10th percentile",
    "p25_days": "25th percentile",
    "p50_days": "Median",
    "p75_days": "75th percentile",
    "p90_days": "90th percentile",
}

# No one leaves the last stage or a stage of lost candidates.
_STAYS = (
    "SELECT * REPLACE (replace(stage, '_', ' ') AS stage), "
    "stage_kind <> 'lost' AND (max(stage_order) OVER () IS NULL "
    "OR stage_order IS DISTINCT FROM max(stage_order) OVER ()) AS is_left, "
    "is_active AND current_visits > 0 AS is_waited_in, "
    "upper(s.stage[1]) || replace(s.stage[2:], '_', ' ') AS named, "
    "arg_max(named, p50_days) FILTER (is_active) OVER () AS the_slowest, "
    "max(p50_days) FILTER (is_active) OVER () AS the_slowest_days, "
    "arg_max(named, current_p50_days) FILTER (is_waited_in) OVER () AS the_longest, "
    "max(current_p50_days) FILTER (is_waited_in) OVER () AS the_longest_days, "
    "arg_max(current_visits, current_p50_days) FILTER (is_waited_in) OVER () AS the_waiting "
    "FROM marts.sum_time_in_stage AS s"
)
_BY_STAGE = "ORDER BY stage_order NULLS LAST, stage"

_IN_STAGES = Figure(
    key="time-in-stage",
    title="Time in stage",
    mart="sum_time_in_stage",
    further_marts=("sum_stage_survival",),
    sql=f"FROM ({_STAYS}) {_BY_STAGE}",
    headings={"stage": "Stage", "exits_observed": "Exits", **_QUANTILES},
    caption="Days in each stage",
    findings=(
        "{the_slowest} is the slowest stage: median {the_slowest_days} days. {the_longest} waits "
        "longest: median {the_longest_days} days so far ({the_waiting candidate}).",
        "{the_slowest} is the slowest stage: median {the_slowest_days} days.",
        "Too few candidates left any stage to estimate a median. {the_longest} waits longest: "
        "median {the_longest_days} days so far ({the_waiting candidate}).",
        "Too few candidates left any stage to estimate a median.",
    ),
    notes=(
        "{visits_may_contain_gap/visits stay} changed between two pulls: the candidate may have "
        "left the stage and returned.",
    ),
    text_if_empty="No candidate has been in any stage yet.",
    chart=lambda _, rows: [
        charts.range_chart(
            [row for row in rows if row["is_left"]], "stage", unit="stays in a stage"
        )
    ],
    more=(
        ExtraTable(
            "Time until leaving, and time so far",
            "sum_time_in_stage",
            f"FROM ({_STAYS}) WHERE is_left {_BY_STAGE}",
            parse_headings(
                "stage Stage; p50_days Median days; p50_at_risk Candidates at the median; "
                "current_visits Still there; current_p50_days Median days so far"
            ),
            is_open=True,
        ),
    ),
    is_wide=True,
)


_SPREAD = ", ".join(
    f"round(quantile_cont(days_to_hire, {part}), 2) AS {name}"
    for name, part in zip(_QUANTILES, (0.1, 0.25, 0.5, 0.75, 0.9), strict=True)
)
_TIMES: Mapping[str, tuple[str, str, str]] = {
    "fill": (
        "sum_time_to_fill",
        "marts.sum_time_to_fill",
        "marts.fct_time_to_fill WHERE is_measured",
    ),
    "hire": (
        "fct_placements",
        "(SELECT CASE WHEN grouping(booking_type) = 0 THEN 'booking_type' "
        "WHEN grouping(consultant_id) = 0 THEN 'consultant' ELSE 'all' END AS group_by, "
        "coalesce(booking_type, consultant_name, 'all') AS group_name, count(*) AS placements, "
        f"count(days_to_hire) AS measured, {_SPREAD} FROM marts.fct_placements WHERE is_placement "
        "GROUP BY GROUPING SETS ((), (booking_type), (consultant_id, consultant_name)))",
        "marts.fct_placements WHERE is_placement AND days_to_hire IS NOT NULL",
    ),
}
"""For each event the mart, the query of its groups, and that of the events with known days."""


def _count_by_band(published: PublishedFile, event: str) -> Sequence[Row]:
    """Return the number of events in each band of days, with the bands that spread them best.

    The last band has no end.
    """
    column = f"days_to_{event}"
    _, groups, events = _TIMES[event]
    found = published.query_rows(
        f"SELECT {column}::INTEGER AS days, count(*) AS number, "
        f"(SELECT max(p90_days) FROM {groups} WHERE group_by = 'all') AS p90 "
        f"FROM {events} GROUP BY ALL"
    )
    if not found:
        return ()
    reach = max(1.0, float(found[0]["p90"] or 0) * 1.25)
    width = next((each for each in _WIDTHS if reach / each <= _BANDS_MAX), _WIDTHS[-1])

    def banded(begins: Sequence[int]) -> list[Row]:
        rows: list[Row] = []
        for begin, end in zip(begins, [*begins[1:], None], strict=True):
            inside = [r for r in found if begin <= r["days"] and (end is None or r["days"] < end)]
            name = f"{begin}+" if end is None else f"{begin}-{end - 1}"
            name = f"{begin}" if end == begin + 1 else name
            number = sum(row["number"] for row in inside)
            rows.append({"begins": f"{begin}", column: name, "number": number})
        while not rows[-1]["number"] and len(rows) > 1:
            rows.pop()
        return rows

    equal = banded([place * width for place in range(int(reach // width) + 1)])
    return min(equal, banded(_CALENDAR), key=lambda rows: max(row["number"] for row in rows))


def _days_until_figure(
    event: str, title: str, *, noun: str, whole: str, group_by: str, empty: str, waiting: str = ""
) -> Figure:
    """Return the figure of the days until an event, by band, by `group_by` and by consultant.

    `whole` is the column with the number of events, and `waiting` are columns on open cases.
    """
    columns = f"{whole} measured p50_days p90_days {waiting}".split()
    constants = ", ".join(f"max({n}) FILTER (group_by = 'all') OVER () AS the_{n}" for n in columns)
    place = f"list_position(['all', '{group_by}', 'consultant'], s.group_by)"
    waits = "{the_openings_open} more openings are still open and not included: median "
    return Figure(
        key=f"time-to-{event}",
        title=title,
        mart=_TIMES[event][0],
        further_marts=("fct_time_to_fill",) if event == "fill" else (),
        sql="SELECT * REPLACE (CASE group_by WHEN 'all' THEN 'All' WHEN 'consultant' THEN "
        f"group_name ELSE replace(group_name, '_', ' ') END AS group_name), {constants}, "
        f"the_{whole} - the_measured AS the_unmeasured FROM {_TIMES[event][1]} AS s "
        f"WHERE {place} > 0 QUALIFY s.group_by <> 'consultant' OR row_number() OVER ("
        f"PARTITION BY s.group_by ORDER BY {whole} DESC, s.group_name) <= {_MEMBERS_MAX} "
        f"ORDER BY {place}, {whole} DESC, s.group_name",
        headings={"group_name": "Of", whole: "Number", "measured": "Measured", **_QUANTILES},
        caption=f"{noun.capitalize()}s: days by {value_words(group_by)} and consultant",
        findings=(
            f"Median {{the_p50_days}} days to {event}, 90th percentile {{the_p90_days}} days "
            f"({{the_measured/the_{whole} {noun}}}).",
            f"No days are known for {{the_{whole}}} {noun}s.",
        ),
        notes=(
            f"{{the_unmeasured/the_{whole} {noun}}} have no known days.",
            *([waits + "{the_open_p50_days} days so far."] if waiting else ()),
        ),
        text_if_empty=empty,
        counted_column=f"the_{whole}",
        chart=lambda published, _: [
            charts.column_chart(
                rows, "begins", "number", unit=f"{noun}s", across=f"days to {event}, from"
            )
            for rows in [_count_by_band(published, event)]
            if rows
        ],
        more=(
            ExtraTable(
                f"{noun.capitalize()}s by days",
                "fct_placements" if event == "hire" else "fct_time_to_fill",
                lambda published: _count_by_band(published, event),
                {f"days_to_{event}": "Days", "number": "Number"},
            ),
        ),
    )


TIME = Section(
    "time",
    "Time",
    "Times are medians and percentiles. In stages, candidates who are still there count with their "
    "time so far. For jobs and placements, only completed times count: compare them with the jobs "
    "that are still open.",
    (
        _IN_STAGES,
        _days_until_figure(
            "fill",
            "Time to fill a job",
            noun="filled opening",
            whole="openings_filled",
            group_by="employment_type",
            empty="No job was filled yet.",
            waiting="openings_open open_p50_days",
        ),
        _days_until_figure(
            "hire",
            "Time to hire a candidate",
            noun="placement",
            whole="placements",
            group_by="booking_type",
            empty="No candidate was placed yet.",
        ),
    ),
)

"""The jobs' part of the funnel: who was met for each job, how old jobs are, which are filled."""

from __future__ import annotations

from connector.errors import count_noun
from connector.report import charts
from connector.report.figure import Column, Figure, Section, Shown, Table, count, of, share
from connector.report.published import Published, total

_ROWS_MAX = 10


def _met(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT dimension, member, jobs, jobs_with_interview, jobs_with_placement, interviewed, "
        "interviewed_again, placed, placed_after_interview, placements, "
        "interview_to_placement_rate, interviews_per_placement FROM marts.sum_job_funnel "
        "WHERE dimension IN ('all', 'consultant') "
        "ORDER BY dimension, interviewed DESC, placements DESC, member"
    )
    everything = [row for row in rows if row["dimension"] == "all"]
    if not total(everything, "jobs"):
        return None
    (whole,) = everything
    steps = [
        {"step": step, "pairs": whole[column], "text": count(whole[column])}
        for step, column in (
            ("interviewed", "interviewed"),
            ("interviewed again", "interviewed_again"),
            ("placed after it", "placed_after_interview"),
        )
    ]
    consultants = [row for row in rows if row["dimension"] == "consultant"]
    table = Table(
        "From interview to placement, by the job's consultant",
        "sum_job_funnel",
        (
            Column("member", "Consultant", "text"),
            Column("jobs", "Jobs"),
            Column("jobs_with_interview", "With interview"),
            Column("interviewed", "Interviewed"),
            Column("interviewed_again", "Again"),
            Column("placed_after_interview", "Placed after it"),
            Column("placements", "Placements"),
            Column("interview_to_placement_rate", "Interview to placement", "share"),
        ),
        [*consultants, {**whole, "member": "All"}],
    )
    direct = whole["placed"] - whole["placed_after_interview"]
    return Shown(
        f"{of(whole['jobs_with_interview'], whole['jobs'], 'job')} had an interview; "
        f"{of(whole['placed_after_interview'], whole['interviewed'])} interviewed were placed.",
        (charts.bars(steps, "step", "pairs", "text", unit="candidates, once for each job"),),
        (table,),
        (
            f"{share(direct / whole['placed'])} of those placed ({direct:,} of "
            f"{whole['placed']:,}) had no interview that is on record.",
        )
        if direct
        else (),
    )


def _ages(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT age_band, count(*) AS jobs, count(*) FILTER (job_status = 'published') AS listed, "
        "count(*) FILTER (job_status <> 'published') AS held, "
        "count(*) FILTER (bookings = 0) AS without, min(age_days) AS youngest "
        "FROM marts.fct_job_ageing GROUP BY age_band ORDER BY youngest"
    )
    if not rows:
        return None
    oldest = published.rows(
        "SELECT job_title, company_name, consultant_name, opened_on, age_days, bookings, "
        "days_without_booking FROM marts.fct_job_ageing "
        f"ORDER BY age_days DESC NULLS LAST, job_id LIMIT {_ROWS_MAX}"
    )
    jobs, without = total(rows, "jobs"), total(rows, "without")
    parts = {"listed": "published", "held": "on hold"}
    bands = Table(
        "Open jobs by age in days",
        "fct_job_ageing",
        (
            Column("age_band", "Age in days", "text"),
            Column("listed", "Published", of=""),
            Column("held", "On hold", of=""),
            Column("jobs", "Jobs", of=""),
            Column("without", "Nothing booked", of=""),
        ),
        rows,
    )
    longest = Table(
        f"The {count_noun(len(oldest), 'job')} that have been open longest",
        "fct_job_ageing",
        (
            Column("job_title", "Job", "text"),
            Column("company_name", "Client", "text"),
            Column("consultant_name", "Consultant", "text"),
            Column("age_days", "Days open", "days"),
            Column("bookings", "Bookings"),
            Column("days_without_booking", "Days since the last", "days"),
        ),
        oldest,
    )
    return Shown(
        f"{of(without, jobs, 'open job')} have nothing booked on them.",
        (charts.stacked(rows, "age_band", parts, unit="open jobs, by days"),),
        (bands, longest),
    )


def _clients(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT company_name, jobs, open_jobs, filled_jobs, closed_jobs, cancelled_jobs, "
        "decided_jobs, job_fill_rate, decided_positions, positions_filled, position_fill_rate, "
        "jobs_not_landed FROM marts.sum_client_fill_rate "
        "ORDER BY decided_jobs DESC, jobs DESC, company_name"
    )
    decided = total(rows, "decided_jobs")
    if not decided:
        return None
    first = [row for row in rows if row["decided_jobs"]][:_ROWS_MAX]
    shown = [{**row, "text": f"{row['filled_jobs']:,} of {row['decided_jobs']:,}"} for row in first]
    table = Table(
        f"Fill rate of the {count_noun(len(first), 'client')} with the most decided jobs",
        "sum_client_fill_rate",
        (
            Column("company_name", "Client", "text"),
            Column("open_jobs", "Open"),
            Column("filled_jobs", "Filled"),
            Column("closed_jobs", "Closed"),
            Column("cancelled_jobs", "Cancelled"),
            Column("job_fill_rate", "Filled of decided", "share"),
            Column("position_fill_rate", "Positions filled", "share"),
        ),
        first,
    )
    missing = sum(max(0, row["jobs_not_landed"] or 0) for row in rows)
    return Shown(
        f"{of(total(rows, 'filled_jobs'), decided, 'decided job')} were filled, over "
        f"{count_noun(len(rows), 'client')}.",
        (charts.bars(shown, "company_name", "job_fill_rate", "text", unit="jobs filled", most=1),),
        (table,),
        (f"The platform's own counters show {count_noun(missing, 'job')} more.",)
        if missing
        else (),
    )


def _worth(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT currency, count(*) AS jobs, sum(positions_open) AS positions, "
        "count(pipeline_value) AS valued, sum(pipeline_value) AS value, "
        "sum(reporting_value) AS reporting_value, max(reporting_currency) AS reporting_currency "
        "FROM marts.fct_pipeline_jobs GROUP BY currency ORDER BY jobs DESC, currency"
    )
    jobs = total(rows, "jobs")
    if not jobs:
        return None
    unvalued = jobs - total(rows, "valued")
    table = Table(
        "What open jobs may still earn, by currency",
        "fct_pipeline_jobs",
        (
            Column("currency", "Currency", "text"),
            Column("jobs", "Open jobs", of=""),
            Column("positions", "Positions open", of="positions_open"),
            Column("valued", "With a known fee", of="expected_fee"),
            Column("value", "Fees", "amount", of="pipeline_value"),
            Column("reporting_value", "Converted", "amount"),
            Column("reporting_currency", "To", "text"),
        ),
        rows,
        is_open=True,
    )
    return Shown(
        f"Positions open: {count(total(rows, 'positions'))}, on {count_noun(jobs, 'job')}.",
        (),
        (table,),
        (f"{share(unvalued / jobs)} of open jobs ({unvalued:,} of {jobs:,}) have no known fee.",)
        if unvalued
        else (),
    )


SECTION = Section(
    "jobs",
    "Jobs",
    "Each vacancy counts once, and a candidate once for each job. Candidates meet jobs only in "
    "bookings.",
    (
        Figure(
            "met",
            "From interview to placement",
            {
                "sum_job_funnel": (
                    *("dimension", "member", "jobs", "jobs_with_interview", "interviewed"),
                    *("jobs_with_placement", "interviewed_again", "placed", "placements"),
                    *("placed_after_interview", "interview_to_placement_rate"),
                    "interviews_per_placement",
                ),
                "fct_job_funnel": (),
            },
            _met,
            "No jobs have landed yet.",
        ),
        Figure(
            "ageing",
            "How long jobs have been open",
            {
                "fct_job_ageing": (
                    *("job_id", "job_title", "job_status", "company_name", "consultant_name"),
                    *("opened_on", "age_days", "age_band", "bookings", "days_without_booking"),
                )
            },
            _ages,
            "No job is open.",
        ),
        Figure(
            "worth",
            "What open jobs may still earn",
            {
                "fct_pipeline_jobs": (
                    *("currency", "positions_open", "expected_fee", "pipeline_value"),
                    *("reporting_value", "reporting_currency"),
                )
            },
            _worth,
            "No job is open.",
        ),
        Figure(
            "clients",
            "Fill rate by client",
            {
                "sum_client_fill_rate": (
                    *("company_name", "jobs", "open_jobs", "filled_jobs", "closed_jobs"),
                    *("cancelled_jobs", "decided_jobs", "job_fill_rate", "decided_positions"),
                    *("positions_filled", "position_fill_rate", "jobs_not_landed"),
                )
            },
            _clients,
            "No job was filled, closed or cancelled yet.",
        ),
    ),
)


# -- Leads -----------------------------------------------------------------------------------------
# Leads: which sources bring those that are converted, and what status they have.


_DRAWN_MAX = 12
_UNKNOWN = "unmapped"


def _by_source(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT dimension, member, leads, converted, lost, conversion_rate, converted_with_date, "
        "p50_days_to_convert FROM marts.sum_lead_conversion "
        "WHERE dimension IN ('all', 'source_group') ORDER BY dimension, leads DESC, member"
    )
    everything = [row for row in rows if row["dimension"] == "all"]
    if not total(everything, "leads"):
        return None
    (whole,) = everything
    groups = [
        {**row, "text": f"{row['converted']:,} of {row['leads']:,}"}
        for row in rows
        if row["dimension"] == "source_group" and row["leads"]
    ]
    table = Table(
        "Leads by the group of their source",
        "sum_lead_conversion",
        (
            Column("member", "Source group", "text"),
            Column("leads", "Leads"),
            Column("converted", "Converted"),
            Column("lost", "Lost"),
            Column("conversion_rate", "Converted of all", "share"),
            Column("p50_days_to_convert", "Median days", "days"),
        ),
        [*groups, {**whole, "member": "All"}],
    )
    undated = whole["converted"] - whole["converted_with_date"]
    return Shown(
        f"At the least {of(whole['converted'], whole['leads'], 'lead')} are converted.",
        (
            charts.bars(
                groups[:_DRAWN_MAX], "member", "conversion_rate", "text", unit="leads converted"
            ),
        )
        if groups
        else (),
        (table,),
        (f"{of(undated, whole['converted'])} conversions have no date.",) if undated else (),
    )


def _by_status(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT member, sum(leads)::BIGINT AS leads, sum(converted)::BIGINT AS converted, "
        "sum(lost)::BIGINT AS lost, sum(converted) / nullif(sum(leads), 0) AS conversion_rate "
        "FROM marts.sum_lead_conversion WHERE dimension = 'lead_status' "
        "GROUP BY member ORDER BY leads DESC, member"
    )
    everything = int(total(rows, "leads"))
    if not everything:
        return None
    known = [row for row in rows if row["member"] != _UNKNOWN]
    unknown = everything - int(total(known, "leads"))
    most = (known or rows)[0]
    table = Table(
        "Leads by their status",
        "sum_lead_conversion",
        (
            Column("member", "Status", "text"),
            Column("leads", "Leads"),
            Column("converted", "Converted"),
            Column("lost", "Lost"),
            Column("conversion_rate", "Converted of all", "share"),
        ),
        rows,
    )
    drawn = [{**row, "text": count(row["leads"])} for row in rows[:_DRAWN_MAX]]
    return Shown(
        f"{most['member']} is the status of {of(most['leads'], everything, 'lead')}.",
        (charts.bars(drawn, "member", "leads", "text", unit="leads"),),
        (table,),
        (
            f"{of(unknown, everything, 'lead')} have a status that the seed lead_statuses does not "
            "know.",
        )
        if unknown
        else (),
    )


BY_SOURCE = Figure(
    "leads",
    "Leads and their conversion",
    {
        "sum_lead_conversion": (
            *("dimension", "member", "leads", "converted", "lost", "conversion_rate"),
            *("converted_with_date", "p50_days_to_convert"),
        ),
        "fct_lead_conversion": (),
    },
    _by_source,
    "No leads have landed yet.",
)
"""Leads by the group of their source."""

BY_STATUS = Figure(
    "lead_statuses",
    "Leads by status",
    {
        "sum_lead_conversion": (
            *("dimension", "member", "leads", "converted", "lost"),
            "conversion_rate",
        ),
        "fct_lead_conversion": (),
    },
    _by_status,
    "No leads have landed yet.",
)
"""Leads by the status that the agency has given them."""

"""What the report shows: eight tiles for the period, and cards in sections.

A tile or card is a query on one mart, whose comment is its definition. Queries may use `$begins`
and `$ends`, the first and last day of the period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["bars", "months", "table"]


@dataclass(frozen=True, slots=True)
class Tile:
    """One number of the period, and of the period before.

    Attributes:
        label: Heading.
        mart: Mart whose comment defines it.
        sql: Query of the columns `value` and, for amounts, `currency`: one row, or one for each
            currency.
    """

    label: str
    mart: str
    sql: str


@dataclass(frozen=True, slots=True)
class Card:
    """One chart or table.

    Attributes:
        title: Heading.
        mart: Mart whose comment defines it.
        sql: Query whose first column is a label. A chart draws the second column; a table shows
            all. Column names are the headings. `share` in a name means a rate.
        kind: Bars, columns by month, or a table.
        empty: Sentence that is shown instead if there are no rows.
    """

    title: str
    mart: str
    sql: str
    kind: Kind = "table"
    empty: str = "Nothing to show."


_IN_PERIOD = "BETWEEN $begins AND $ends"
_LAST_YEAR = "BETWEEN date_trunc('month', $ends::DATE) - INTERVAL 12 MONTH AND $ends"
_NOT_NAMED = "coalesce({}, '(unknown)')"

TILES: Sequence[Tile] = (
    Tile(
        "Placements", "fct_placements",
        "SELECT count(*) AS value FROM marts.fct_placements"
        f" WHERE is_placement AND placed_on {_IN_PERIOD}",
    ),
    Tile(
        "Placement fees", "fct_placements",
        "SELECT sum(fee) AS value, currency FROM marts.fct_placements"
        f" WHERE is_placement AND placed_on {_IN_PERIOD} AND fee IS NOT NULL"
        " GROUP BY currency ORDER BY value DESC",
    ),
    Tile(
        "Placements that fell off", "fct_placements",
        "SELECT count(*) AS value FROM marts.fct_placements"
        f" WHERE is_fall_off AND cancelled_on {_IN_PERIOD}",
    ),
    Tile(
        "Contract billings", "sum_months",
        "SELECT sum(billings) AS value, currency FROM marts.sum_months"
        f" WHERE month_start {_IN_PERIOD} AND billings > 0 GROUP BY currency ORDER BY value DESC",
    ),
    Tile(
        "Interviews held", "fct_bookings",
        "SELECT count(*) AS value FROM marts.fct_bookings"
        f" WHERE counts_as = 'interview_held' AND start_date {_IN_PERIOD}",
    ),
    Tile(
        "Jobs opened", "fct_job_openings",
        "SELECT count(DISTINCT job_id) AS value FROM marts.fct_job_openings"
        f" WHERE opened_on {_IN_PERIOD}",
    ),
    Tile(
        "Candidates added", "fct_candidates",
        "SELECT count(*) AS value FROM marts.fct_candidates"
        f" WHERE created_at::DATE {_IN_PERIOD}",
    ),
    Tile(
        "Leads added", "fct_leads",
        "SELECT count(*) AS value FROM marts.fct_leads"
        f" WHERE created_at::DATE {_IN_PERIOD}",
    ),
)  # fmt: skip
"""The eight tiles, in order."""

SECTIONS: Sequence[tuple[str, Sequence[Card]]] = (
    (
        "Placements and fees",
        (
            Card(
                "Placements by month", "fct_placements",
                "SELECT placed_month AS month, count(*) AS placements FROM marts.fct_placements"
                f" WHERE is_placement AND placed_on {_LAST_YEAR} GROUP BY ALL ORDER BY month",
                "months",
            ),
            Card(
                "Fees by month and currency", "sum_months",
                "SELECT month_start AS month, currency, placements_started AS placements,"
                " placements_with_fee AS \"placements with a fee\", fee"
                " FROM marts.sum_months WHERE placements_started > 0 AND month_start >= $begins"
                " ORDER BY month, currency LIMIT 18",
                empty="No placement begins in the period or later.",
            ),
            Card(
                "Placements that fell off, by month of the start", "fct_placements",
                "SELECT date_trunc('month', start_date)::DATE AS month,"
                " count(*) AS \"placements and fall-offs\","
                " count(*) FILTER (is_fall_off) AS \"fell off\","
                " count(*) FILTER (is_fall_off AND is_within_90_days) AS \"within 90 days\","
                " count(*) FILTER (is_fall_off) / count(*) AS \"fall-off share\""
                " FROM marts.fct_placements WHERE (is_placement OR is_fall_off)"
                f" AND start_date {_LAST_YEAR} GROUP BY ALL ORDER BY month DESC",
            ),
            Card(
                "Offers by team", "fct_offers",
                f"SELECT {_NOT_NAMED.format('team')} AS team, count(*) AS offers,"
                " count(*) FILTER (is_accepted) AS accepted,"
                " count(*) FILTER (offer_outcome = 'declined') AS declined,"
                " count(*) FILTER (offer_outcome = 'pending') AS pending,"
                " count(*) FILTER (is_accepted) / nullif(count(*) FILTER (is_answered), 0)"
                " AS \"acceptance share\" FROM marts.fct_offers"
                " WHERE offer_outcome <> 'accepted_offer_not_observed'"
                " GROUP BY 1 ORDER BY offers DESC, 1",
                empty="No candidate has the stage of an offer in the observed history.",
            ),
        ),
    ),
    (
        "Contracts",
        (
            Card(
                "Contract billings by month and currency", "sum_months",
                "SELECT month_start AS month, currency, contracts,"
                " working_days AS \"working days\", billings FROM marts.sum_months"
                " WHERE contracts > 0 AND month_start >= $begins ORDER BY month, currency LIMIT 18",
                empty="No contract runs in the period or later.",
            ),
            Card(
                "Contracts that end within 30 days", "fct_contracts",
                "SELECT coalesce(job_title, '(unknown)') AS job, company_name AS client,"
                " consultant_name AS consultant, end_date AS \"end date\", days_left AS days"
                " FROM marts.fct_contracts WHERE ends_within_30_days AND next_booking_id IS NULL"
                " ORDER BY days_left, job LIMIT 15",
                empty="No contract ends within 30 days without a next one.",
            ),
        ),
    ),
    (
        "Candidates",
        (
            Card(
                "Active candidates by stage", "fct_candidates",
                "SELECT replace(stage, '_', ' ') AS stage, count(*) AS candidates"
                " FROM marts.fct_candidates WHERE is_active"
                " GROUP BY stage, stage_order ORDER BY stage_order",
                "bars",
            ),
            Card(
                "Median days in a stage", "sum_time_in_stage",
                "SELECT replace(stage, '_', ' ') AS stage, p50_days AS days"
                " FROM marts.sum_time_in_stage WHERE p50_days IS NOT NULL ORDER BY stage_order",
                "bars", "No stay in a stage was observed from its beginning to its end yet.",
            ),
            Card(
                "Days to hire, by type of contract", "fct_placements",
                "SELECT replace(booking_type, '_', ' ') AS \"type\", count(*) AS placements,"
                " count(days_to_hire) AS measured, median(days_to_hire) AS \"median days\""
                f" FROM marts.fct_placements WHERE is_placement AND placed_on {_LAST_YEAR}"
                " GROUP BY ALL ORDER BY placements DESC",
            ),
        ),
    ),
    (
        "Jobs",
        (
            Card(
                "Open jobs by age in days", "dim_jobs",
                "SELECT age_band AS age, count(*) AS jobs FROM marts.dim_jobs WHERE is_open"
                " GROUP BY age_band ORDER BY min(age_days)",
                "bars", "No job is open.",
            ),
            Card(
                "Median days to fill, by employment type", "fct_job_openings",
                f"SELECT {_NOT_NAMED.format('employment_type')} AS \"employment type\","
                " count(*) FILTER (opening_outcome IN ('filled', 'partly_filled')) AS filled,"
                " count(days_to_fill) AS measured, median(days_to_fill) AS \"median days\","
                " count(days_open) AS \"open\" FROM marts.fct_job_openings"
                " GROUP BY 1 ORDER BY filled DESC, 1",
            ),
            Card(
                "Open jobs with nothing booked for 30 days", "dim_jobs",
                "SELECT job_title AS job, company_name AS client, consultant_name AS consultant,"
                " days_since_last_booking AS days FROM marts.dim_jobs"
                " WHERE days_since_last_booking >= 30 ORDER BY days DESC, job LIMIT 15",
                empty="Every open job had a booking within 30 days.",
            ),
        ),
    ),
    (
        "Consultants",
        (
            Card(
                "Goals of the period", "sum_goal_attainment",
                "SELECT group_name AS \"name\", month_start AS month,"
                " replace(measure, '_', ' ') AS measure, target, actual,"
                " attainment AS \"attained share\" FROM marts.sum_goal_attainment"
                f" WHERE month_start {_IN_PERIOD} ORDER BY month, name, measure LIMIT 40",
                empty="The seed goals has no goal for the period.",
            ),
            Card(
                "Load today", "dim_people",
                "SELECT person_name AS consultant,"
                " open_jobs AS \"open jobs\", active_candidates AS \"active candidates\","
                " interviews_to_come AS \"interviews to come\","
                " running_contracts AS \"running contracts\""
                " FROM marts.dim_people ORDER BY open_jobs DESC, consultant LIMIT 20",
            ),
        ),
    ),
    (
        "Sources and leads",
        (
            Card(
                "Sources of candidates added in the last year", "sum_source_effectiveness",
                f"SELECT {_NOT_NAMED.format('source_group')} AS source,"
                " sum(candidates)::BIGINT AS candidates,"
                " sum(candidates_placed)::BIGINT AS placed,"
                " sum(candidates_placed) / nullif(sum(candidates), 0) AS \"placed share\""
                f" FROM marts.sum_source_effectiveness WHERE created_month {_LAST_YEAR}"
                " GROUP BY ALL HAVING sum(candidates) > 0"
                " ORDER BY placed DESC, candidates DESC LIMIT 15",
            ),
            Card(
                "Leads by month of creation", "fct_leads",
                "SELECT created_month AS month, count(*) AS leads,"
                " count(*) FILTER (is_converted) AS converted, count(*) FILTER (is_lost) AS lost,"
                " count(*) FILTER (is_converted) / count(*) AS \"converted share\""
                f" FROM marts.fct_leads WHERE created_month {_LAST_YEAR}"
                " GROUP BY ALL ORDER BY month DESC",
            ),
        ),
    ),
    (
        "Quality of the data",
        (
            Card(
                "How much is known", "data_quality",
                "SELECT about AS \"what\", covered AS known, total, coverage AS \"known share\""
                " FROM marts.data_quality WHERE resource IS NULL AND total > 0"
                " ORDER BY coverage, about",
            ),
            Card(
                "How recent the copy is", "data_quality",
                "SELECT replace(resource, '_', ' ') AS resource, total AS records,"
                " pending, proven_at AS \"verified until\" FROM marts.data_quality"
                " WHERE resource IS NOT NULL ORDER BY resource",
            ),
        ),
    ),
)  # fmt: skip
"""Cards of the report by section, in order."""

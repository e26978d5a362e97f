"""Marts of jobs, placements, fees and contracts have the figures that were computed by hand."""

from __future__ import annotations

from tests.models.marts.world import BuiltWorld


def test_fct_placements_has_the_bookings_that_are_not_cancelled(jobs_world: BuiltWorld) -> None:
    assert [
        # Over, but a placement all the same; created before it starts.
        ("c-over", "rob", 1, "2025-11-20", "booking", "none", None, "GBP"),
        # Created on 5 January, before it starts.
        ("c-mia", "mia", 1, "2026-01-05", "booking", "none", None, "GBP"),
        ("p-quin", "quin", 1, "2026-01-09", "booking", "booking", 1000, None),
        ("p-lee", "lee", 1, "2026-01-10", "booking", "none", None, "USD"),
        ("c-hal", "hal", 1, "2026-01-12", "booking", "none", None, "GBP"),
        ("p-hal", "hal", 2, "2026-01-19", "offer_accepted_date", "booking", 5000, "GBP"),
        # 10 % of 50,000.
        ("p-ivy", "ivy", 1, "2026-02-02", "offer_accepted_date", "job_percentage", 5000, "GBP"),
        # Only listed: its fee is unknown, although the job has one.
        ("c-pat", "pat", 1, "2026-02-05", "booking", "unread", None, None),
        ("p-oli", "oli", 1, "2026-02-08", "booking", "booking", 900, "USD"),
        ("p-kit", "kit", 1, "2026-02-10", "offer_accepted_date", "job", 7000, "EUR"),
        ("c-mia-2", "mia", 2, "2026-03-01", "booking", "none", None, "GBP"),
        ("c-ned", "ned", 1, "2026-03-01", "booking", "none", None, "GBP"),
    ] == jobs_world.query_tuples(
        "SELECT booking_id, candidate_id, placement_number, placed_on, placed_on_source, "
        "fee_source, fee, currency FROM marts.fct_placements WHERE is_placement "
        "ORDER BY placed_on, booking_id"
    )


def test_fees_of_different_currencies_are_not_added(jobs_world: BuiltWorld) -> None:
    columns = (
        *("month_kind", "placements_started", "placements_with_fee", "fee_coverage", "fee"),
        *("confirmed_fee", "permanent_fee", "reporting_fee"),
    )

    # p-hal 5,000, confirmed and stated; p-ivy 5,000, scheduled and 10 %.
    assert ["current", 2, 2, 1, 10000, 5000, 10000, 10000] == jobs_world.read_row(
        "marts.sum_months", "month_start = '2026-03-01' AND currency = 'GBP'", *columns
    )
    # p-kit: 7,000 euros at 0.8.
    assert ["future", 1, 1, 1, 7000, 7000, 7000, 5600] == jobs_world.read_row(
        "marts.sum_months", "month_start = '2026-04-01' AND currency = 'EUR'", *columns
    )
    # p-oli: dollars have no rate, and rescheduled is not confirmed.
    assert ["past", 1, 1, 1, 900, None, 900, None] == jobs_world.read_row(
        "marts.sum_months", "month_start = '2026-02-01' AND currency = 'USD'", *columns
    )
    # p-quin has a fee, c-pat was only listed; the currency of both is unknown.
    assert ["past", 2, 1, 0.5, 1000, 1000, 1000, None] == jobs_world.read_row(
        "marts.sum_months", "month_start = '2026-02-01' AND currency IS NULL", *columns
    )


def test_data_quality_counts_records_without_needed_values(jobs_world: BuiltWorld) -> None:
    assert [
        # hal, ivy and kit of those five; dollars and the unknown have no rate.
        ("fees_with_exchange_rate", 3, 5, 2, 0.6),
        ("placements_with_currency", 10, 12, 2, 0.833),
        ("placements_with_fee", 5, 12, 7, 0.417),
        ("placements_with_offer_date", 3, 12, 9, 0.25),
    ] == jobs_world.query_tuples(
        "SELECT check_name, covered, total, missing, round(coverage, 3) FROM marts.data_quality "
        "WHERE check_name LIKE 'fees%' OR check_name LIKE 'placements%' ORDER BY check_name"
    )


def test_each_reopening_of_a_job_starts_a_new_opening(jobs_world: BuiltWorld) -> None:
    columns = (
        *(
            "opening_outcome",
            "opened_on",
            "opened_basis",
            "filled_on",
            "fill_basis",
            "placements_in_opening",
        ),
        *("days_to_fill", "days_to_fill_min", "days_to_fill_max", "working_days_to_fill"),
    )

    # 3 November to 8 January: 66 days. It was seen to be open on 5 January, filled on the 12th: 63
    # to 70. From Monday 3 November nine weeks lead to Monday 5 January, 45 working days; with
    # Tuesday to Thursday 48, less 1 January.
    assert [
        *("filled", "2025-11-03", "published_at", "2026-01-08", "status", 0),
        *(66, 63, 70, 47),
    ] == jobs_world.read_row("marts.fct_job_openings", "opening_id = 'reopened:1'", *columns)
    # 20 January to kit's offer on 10 February: 21 days; three weeks of five days, less 2 February.
    assert [
        *("filled", "2026-01-20", "reopened", "2026-02-10", "offer_accepted_date", 1),
        *(21, 21, 21, 14),
    ] == jobs_world.read_row("marts.fct_job_openings", "opening_id = 'reopened:2'", *columns)


def test_a_job_with_several_positions_is_filled_by_its_first_placement(
    jobs_world: BuiltWorld,
) -> None:
    # Published on Monday 5 January; hal on the 19th, two weeks of five days, and ivy after him.
    assert [3, 2, "partly_filled", "2026-01-19", 14, 10, None, None] == jobs_world.read_row(
        "marts.fct_job_openings",
        "job_id = 'multi'",
        *("positions", "placements_in_opening", "opening_outcome", "filled_on", "days_to_fill"),
        *("working_days_to_fill", "fully_filled_on", "days_to_fill_all"),
    )


def test_openings_without_a_known_fill_date_have_no_days_to_fill(jobs_world: BuiltWorld) -> None:
    assert [
        # oli on 8 February, published on 15 December.
        ("closed", "filled", "booking", 55),
        # mia's contract of 5 January, on the day of publication; rob's of 20 November is before it.
        ("contract", "filled", "booking", None),
        ("contract-2", "filled", "booking", 55),
        # lee's booking of 10 January, published on 1 December; no pull observed the change.
        ("filled", "filled", "booking", 40),
        # pat's contract; without a detail the date of publication is unknown.
        ("listed", "filled", "booking", None),
        ("shut", "cancelled", None, None),
    ] == jobs_world.query_tuples(
        "SELECT job_id, opening_outcome, fill_basis, days_to_fill FROM marts.fct_job_openings "
        "WHERE job_id NOT IN ('multi', 'reopened') ORDER BY job_id"
    )


def test_jobs_have_the_candidates_who_were_interviewed_and_placed(jobs_world: BuiltWorld) -> None:
    columns = (
        *("interviews_held", "interviews_to_come", "interviews_cancelled"),
        *("candidates_interviewed", "candidates_interviewed_again", "candidates_placed"),
        "candidates_placed_after_interview",
    )

    # hal and rob twice each, rob's second to come, ivy's cancelled; hal and ivy placed.
    assert [3, 1, 1, 2, 1, 2, 1] == jobs_world.read_row(
        "marts.dim_jobs", "job_id = 'multi'", *columns
    )
    assert [0, 0, 0, 0, 0, 0, 0] == jobs_world.read_row(
        "marts.dim_jobs", "job_id = 'draft'", *columns
    )
    # All jobs: hal and rob on multi, kit on reopened; of the three, hal and kit were placed. Quin's
    # job is gone, and quin's placement still counts.
    assert [9, 10, 4, 3, 2, 12] == jobs_world.read_row(
        "marts.dim_jobs",
        "true",
        *("count_if(is_live)", "count(*)", "sum(interviews_held)", "sum(candidates_interviewed)"),
        *("sum(candidates_placed_after_interview)", "sum(placements)"),
    )
    assert ["unknown job", False, False, None, 1] == jobs_world.read_row(
        "marts.dim_jobs",
        "NOT is_live",
        *("job_title", "is_open", "is_decided", "positions_open", "placements"),
    )


def test_open_jobs_have_the_possible_fees_of_their_open_positions(jobs_world: BuiltWorld) -> None:
    # 10 % of 50,000 for the third position; rob's next interview is on 10 March.
    assert [3, 2, 1, "2026-03-10", "job_percentage", 5000, 5000] == jobs_world.read_row(
        "marts.dim_jobs",
        "job_id = 'multi'",
        *("positions", "placements_in_opening", "positions_open"),
        "strftime(next_interview_at, '%Y-%m-%d')",
        *("expected_fee_source", "pipeline_value", "reporting_value"),
    )
    assert [("contract",), ("contract-2",), ("listed",), ("multi",)] == jobs_world.query_tuples(
        "SELECT job_id FROM marts.dim_jobs WHERE positions_open IS NOT NULL ORDER BY job_id"
    )


def test_ending_contracts_show_extension_next_booking_and_replacement(
    jobs_world: BuiltWorld,
) -> None:
    shown = (
        *("booking_id", "days_left", "band", "first_end_date", "extensions", "corrections"),
        *("is_extended", "next_booking_id", "is_redeployed", "replacement_booking_id"),
    )
    assert [
        # Until 16 March, moved there from the 2nd on 27 February; then hal works for multi.
        ("c-hal", 10, "0-14", "2026-03-02", 1, 0, True, "p-hal", True, "c-ned"),
        ("c-pat", 14, "0-14", "2026-03-20", 0, 0, False, None, False, None),
        # Until 5 April, corrected before it began; ned takes over on the 7th, mia goes elsewhere.
        ("c-mia", 30, "15-30", "2026-04-10", 0, 1, False, "c-mia-2", True, "c-ned"),
        ("c-ned", 90, "31-90", "2026-06-04", 0, 0, False, None, False, None),
        # 6 March to 31 December; c-over ended yesterday and is not here.
        ("c-mia-2", 300, "later", "2026-12-31", 0, 0, False, None, False, None),
    ] == jobs_world.query_tuples(
        f"SELECT {', '.join(shown)} FROM marts.fct_contracts WHERE band IS NOT NULL "
        "ORDER BY days_left, booking_id"
    )
    # 14 days from Friday 6 to Friday 20 March are ten working days.
    assert [10, True, True, True] == jobs_world.read_row(
        "marts.fct_contracts",
        "booking_id = 'c-pat'",
        *("working_days_left", "ends_within_14_days", "ends_within_30_days"),
        "ends_within_90_days",
    )


def test_open_jobs_have_their_days_since_opening_and_last_activity(jobs_world: BuiltWorld) -> None:
    assert [
        # 5 January to 6 March; ned's contract was entered on 1 March.
        ("contract", 60, "31-60", 5),
        ("contract-2", 60, "31-60", 5),
        # Only listed: since its creation on 1 November, with pat's contract of 5 February.
        ("listed", 125, "over 90", 29),
        ("multi", 60, "31-60", 5),
    ] == jobs_world.query_tuples(
        "SELECT job_id, age_days, age_band, days_since_last_booking FROM marts.dim_jobs "
        "WHERE age_days IS NOT NULL ORDER BY job_id"
    )


def test_clients_have_rates_of_filled_jobs_and_positions(jobs_world: BuiltWorld) -> None:
    columns = (
        *("jobs", "open_jobs", "jobs_marked_filled", "closed_jobs", "closed_jobs_with_placement"),
        *("cancelled_jobs", "decided_jobs", "marked_filled_rate", "decided_positions"),
        *("positions_placed", "position_placed_rate", "placements", "api_jobs_count"),
    )

    # Filled: filled; cancelled: shut. lee fills one of two positions. In all: hal and ivy on multi,
    # lee, hal, mia, ned and rob on contract, mia on contract-2. The platform counts a seventh job.
    assert [6, 3, 1, 0, 0, 1, 2, 0.5, 2, 1, 0.5, 8, 7] == jobs_world.read_row(
        "marts.dim_companies", "company_id = 'acme'", *columns
    )
    # Filled: reopened by kit; closed: closed, with oli. quin's job is gone.
    assert [2, 0, 1, 1, 1, 0, 2, 0.5, 2, 2, 1, 3, 2] == jobs_world.read_row(
        "marts.dim_companies", "company_id = 'beta'", *columns
    )
    assert [1, 1, 0, 0, 0, 0, 0, None, 0, 0, None, 1, None] == jobs_world.read_row(
        "marts.dim_companies", "company_id = 'none'", *columns
    )


def test_activity_is_counted_for_the_assigned_consultant(jobs_world: BuiltWorld) -> None:
    columns = (
        *("jobs_added", "interviews_booked", "interviews_held", "placements"),
        *("placements_with_reporting_fee", "reporting_fee"),
    )

    # Ada: three interviews of multi entered on 6 January and held that month, p-hal of the 19th.
    assert [0, 3, 3, 1, 1, 5000] == jobs_world.read_row(
        "marts.sum_consultant_activity",
        "period = 'month' AND period_start = '2026-01-01' AND consultant_name = 'Ada'",
        *columns,
    )
    # In the week of Monday 12 January the three were held.
    assert [0, 0, 3, 0, 0, None] == jobs_world.read_row(
        "marts.sum_consultant_activity",
        "period = 'week' AND period_start = '2026-01-12' AND consultant_name = 'Ada'",
        *columns,
    )
    # Ben: kit is placed in February, and the booking has no consultant: 7,000 euros at 0.8.
    assert [0, 0, 0, 1, 1, 5600] == jobs_world.read_row(
        "marts.sum_consultant_activity",
        "period = 'month' AND period_start = '2026-02-01' AND consultant_name = 'Ben'",
        *columns,
    )


def test_companies_and_consultants_have_counts_and_names(jobs_world: BuiltWorld) -> None:
    assert ["Ada"] == jobs_world.read_row(
        "marts.dim_companies", "company_id = 'acme'", "account_manager_name"
    )
    # Ada: multi, and of the bookings p-hal and p-ivy.
    assert ["Ada", "North", True, 1, 1, 2] == jobs_world.read_row(
        "marts.dim_people",
        "person_id = 'u1'",
        *("person_name", "team", "is_mapped", "jobs", "companies", "bookings"),
    )
    assert [("2026-02-01", True, False), ("2026-02-02", False, False)] == jobs_world.query_tuples(
        "SELECT day, is_weekend, is_working_day FROM marts.dim_days "
        "WHERE day IN ('2026-02-01', '2026-02-02') ORDER BY day"
    )


def test_days_since_record_are_of_the_first_placement_of_a_candidate(
    jobs_world: BuiltWorld,
) -> None:
    assert [
        ("c-hal", 376, None),  # 1 January 2025 to 12 January 2026; no interview for that job
        ("c-mia", 0, None),
        ("c-mia-2", None, None),  # the second placement
        ("c-ned", 28, None),  # 1 February to 1 March
        ("c-over", None, None),  # rob was created after it
        ("c-pat", 4, None),
        ("p-hal", None, 7),  # the second placement; first interviewed on 12 January
        ("p-ivy", 28, None),  # 5 January to 2 February; her interview was cancelled
        ("p-kit", 15, 13),  # 26 January to 10 February; interviewed on 28 January
        ("p-lee", None, None),  # created ten days after
        ("p-oli", 7, None),
        ("p-quin", None, None),  # deleted
    ] == jobs_world.query_tuples(
        "SELECT booking_id, days_since_record, days_to_hire FROM marts.fct_placements "
        "ORDER BY booking_id"
    )

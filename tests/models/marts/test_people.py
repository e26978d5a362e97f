"""Marts of candidates, leads and freshness have the figures that were computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.models.marts.world import BuiltWorld, ModelWorld


def test_visits_have_the_interval_between_two_pulls(people_world: BuiltWorld) -> None:
    shown = ("entered_after", "entered_at", "entered_before", "left_after", "left_at")
    columns = ", ".join(f"strftime({each}, '%m-%d') AS {each}" for each in shown)

    assert [
        ("new_lead", None, "screening", "01-06", "01-06", "01-12", "01-12", "01-15"),
        ("screening", "new_lead", "interviewing", "01-12", "01-15", "01-19", "01-19", "01-23"),
        ("interviewing", "screening", "offer_made", "01-19", "01-23", "01-26", "01-26", "02-02"),
        ("offer_made", "interviewing", "placed", "01-26", "02-02", "02-09", "02-09", "02-20"),
        ("placed", "offer_made", None, "02-09", "02-20", "03-02", None, None),
    ] == people_world.query_tuples(
        f"SELECT stage, previous_stage, next_stage, {columns} FROM marts.fct_candidate_stages "
        "WHERE candidate_id = 'ann' ORDER BY visit_number"
    )


def test_days_in_stage_have_lower_and_upper_bounds(people_world: BuiltWorld) -> None:
    assert [
        # Bounds are rounded outwards, and a look is a second long. 6 to 15 January; seen once, on
        # the 12th; at most from the 6th to the 19th.
        ("ann", 1, 9, 0, 13.01, True),
        # 15 to 23 January; seen on the 19th; at most from the 12th to the 26th.
        ("ann", 2, 8, 0, 14.01, True),
        # 7 to 21 January; seen on the 12th and 19th; at most from the 7th to the 26th.
        ("bob", 1, 14, 6.99, 19.01, True),
        # 21 January to 16 February; seen on 26 January and 9 February; at most 19 January on.
        ("bob", 2, 26, 13.99, 42.01, True),
        # No pull observed when cat entered screening.
        ("cat", 1, 40, 0, 621.01, False),
        # A deletion is no change of status: 8 to 26 January, and it measures nothing.
        ("dan", 1, 18, 0, 18.01, False),
        # Now is 6 March at 00:00: 13 days and 15 hours from 20 February at 09:00, at least those
        # since the second of 2 March at 09:00, at most those since 9 February at 09:00.
        ("ann", 5, 13.63, 3.62, 24.63, False),
        # Only listed: no updated_at, so 12 January, the first pull with it, is the best date.
        ("eve", 1, 52.63, 52.62, 55.63, False),
    ] == people_world.query_tuples(
        "SELECT candidate_id, visit_number, days_at_least, days_min, days_max, is_measured "
        "FROM marts.fct_time_in_stage WHERE (candidate_id, visit_number) IN "
        "(('ann', 1), ('ann', 2), ('bob', 1), ('bob', 2), ('cat', 1), ('dan', 1), ('ann', 5), "
        "('eve', 1)) ORDER BY visit_number = 5 OR candidate_id = 'eve', visit_number = 5 DESC, "
        "candidate_id, visit_number"
    )


def test_time_in_stage_has_survival_curves_and_percentiles(people_world: BuiltWorld) -> None:
    columns = (
        *("visits", "ended_visits", "measured_visits", "measured_share"),
        *("visits_started_before_mirror", "exits_observed", "p50_at_risk", "current_visits"),
    )

    def survival_curve(stage: str) -> list[tuple[Any, ...]]:
        return people_world.query_tuples(
            "SELECT days, at_risk, exits, round(survival_probability, 3) "
            f"FROM marts.sum_stage_survival WHERE stage = '{stage}' ORDER BY days"
        )

    # ann was seen after 6 days and left after 9, bob after 5 and 14: one of two, then the other.
    assert [2, 2, 2, 1, 0, 2, 2, 0] == people_world.read_row(
        "marts.sum_time_in_stage", "stage = 'new_lead'", *columns
    )
    assert [(9, 2, 1, 0.5), (14, 1, 1, 0)] == survival_curve("new_lead")
    # ann left after 8 days, when bob and dan were there as well: two thirds stay. Until 26 dan was
    # deleted, and bob leaves alone, while cat was first seen after 35: the estimate ends.
    assert [4, 4, 2, 0.5, 1, 1, None, 0] == people_world.read_row(
        "marts.sum_time_in_stage", "stage = 'screening'", *columns
    )
    assert [(8, 3, 1, 0.667)] == survival_curve("screening")
    # eve is still there when two of four leave after 10 days, and gus after 11.
    assert [4, 3, 3, 1, 0, 3, 4, 1] == people_world.read_row(
        "marts.sum_time_in_stage", "stage = 'interviewing'", *columns
    )
    assert [(10, 4, 2, 0.5), (11, 2, 1, 0.25)] == survival_curve("interviewing")


def test_stage_conversion_counts_each_candidate_once(people_world: BuiltWorld) -> None:
    assert [
        # ann and bob advanced. Seen further on only: cat, dan, eve, fay, gus.
        ("new_lead", 2, 2, 0, 0, 0, 0, 1, 1, 5),
        # ann and cat advanced, bob is rejected, dan deleted: 2 of 4, of those decided 2 of 3.
        ("screening", 4, 2, 0, 1, 0, 1, 0.5, 0.667, 3),
        # cat; ann was submitted between two pulls, as were perhaps eve, fay and gus.
        ("submitted", 1, 1, 0, 0, 0, 0, 1, 1, 4),
        # ann, fay and gus advanced, eve is still there. cat was offered without being seen here.
        ("interviewing", 4, 3, 0, 0, 1, 0, 0.75, 1, 1),
        # ann advanced, cat withdrew, fay waits.
        ("offer_made", 3, 1, 0, 1, 1, 0, 0.333, 0.5, 1),
        # gus waits; ann was placed without being seen here.
        ("offer_accepted", 1, 0, 0, 0, 1, 0, 0, None, 1),
        # No candidate advances from the last stage: no rate.
        ("placed", 1, 0, 1, 0, 0, 0, None, None, 0),
    ] == people_world.query_tuples(
        "SELECT stage, entered, advanced, arrived, lost, in_progress, deleted, "
        "round(conversion_rate, 3), round(decided_rate, 3), inferred "
        "FROM marts.sum_stage_conversion WHERE group_by = 'all' ORDER BY stage_order"
    )
    # Candidates in later stages have passed: 7, 7, 5, 5, 4, 2 and 1 candidates reached the stages.
    # Beyond screening went five of seven, beyond interviewing four of five, beyond the offer ann
    # and gus of four; of the two who accepted, ann is placed.
    assert [
        ("new_lead", 7, 7, 1),
        ("screening", 7, 5, 0.714),
        ("submitted", 5, 5, 1),
        ("interviewing", 5, 4, 0.8),
        ("offer_made", 4, 2, 0.5),
        ("offer_accepted", 2, 1, 0.5),
        ("placed", 1, 0, None),
    ] == people_world.query_tuples(
        "SELECT stage, reached_total, advanced_total, round(pass_through_rate, 3) "
        "FROM marts.sum_stage_conversion WHERE group_by = 'all' ORDER BY stage_order"
    )
    # Of Ben's candidates bob is lost in screening; dan was his until deleted.
    assert [1, 0, 1] == people_world.read_row(
        "marts.sum_stage_conversion",
        "group_by = 'consultant' AND group_name = 'Ben' AND stage = 'screening'",
        *("entered", "advanced", "lost"),
    )


def test_offers_are_counted_as_accepted_declined_or_pending(people_world: BuiltWorld) -> None:
    assert [
        # ann accepted, cat withdrew, fay was held and offered again: 1 of 2 that are decided.
        ("all", 3, 1, 1, 1, 2, 0.5, 1),
        # cat's of 22 and fay's of 16 January; gus accepted an unobserved offer on the 17th.
        ("2026-01", 2, 0, 1, 1, 1, 0, 1),
        # ann's of 2 February.
        ("2026-02", 1, 1, 0, 0, 1, 1, 0),
    ] == people_world.query_tuples(
        "SELECT group_name, offers, accepted, declined, pending, decided, acceptance_rate, "
        "accepted_offer_not_observed FROM marts.sum_offer_acceptance "
        "WHERE group_by IN ('all', 'month') ORDER BY group_name = 'all' DESC, group_name"
    )
    # Nothing is decided: there is no rate.
    assert [1, 0, None] == people_world.read_row(
        "marts.sum_offer_acceptance",
        "group_by = 'source_group' AND group_name = 'Job board'",
        *("offers", "decided", "acceptance_rate"),
    )


def test_pipeline_shows_only_candidates_that_are_not_deleted(people_world: BuiltWorld) -> None:
    assert [
        ("ann", "placed", "won", False, "linkedin", "Social network", "Ada", True),
        ("bob", "rejected", "lost", False, "referral", "Referral", "Ben", True),
        ("cat", "withdrawn", "lost", False, "not stated", "not stated", "Ada", True),
        ("eve", "interviewing", "open", True, "unread", "unread", "unassigned", False),
        ("fay", "offer_made", "open", True, "job board", "Job board", "Ben", True),
        ("gus", "offer_accepted", "won", False, "linkedin", "Social network", "Ada", True),
    ] == people_world.query_tuples(
        "SELECT candidate_id, stage, stage_kind, is_active, source, source_group, "
        "consultant_name, is_fully_read FROM marts.fct_pipeline_candidates ORDER BY candidate_id"
    )


def test_converted_leads_name_the_proof_of_their_conversion(people_world: BuiltWorld) -> None:
    assert [
        # Gone, and it counts as a lead all the same.
        ("gone", None, None, "New", "Referral"),
        ("listed", None, None, "unmapped", "unmapped"),
        ("lost", None, None, "Lost", "not stated"),
        ("open", None, None, "New", "Social network"),
        # Pushed on 10 February at 09:00, created on 31 January at 09:00.
        ("pushed", "pushed", 10, "New", "Referral"),
        # Gone, but converted by us on 12 February.
        ("pushed-and-gone", "pushed", 12, "New", "Referral"),
        # The answer says 25 February; created on the 5th.
        ("recorded", "record", 20, "New", "Referral"),
        # Its status is called won, and nothing says since when.
        ("won", "status", None, "Won", "Referral"),
    ] == people_world.query_tuples(
        "SELECT lead_id, evidence, days_to_convert, lead_status_name, source_group "
        "FROM marts.fct_lead_conversion ORDER BY lead_id"
    )
    # 4 of 8 are converted, 3 with a date: 10, 12 and 20 days.
    assert [8, 4, 1, 0.5, 3, 12] == people_world.read_row(
        "marts.fct_lead_conversion",
        "true",
        *("count(*)", "count_if(is_converted)", "count_if(is_lost)", "avg(is_converted::int)"),
        *("count(days_to_convert)", "median(days_to_convert)"),
    )
    assert [1] == people_world.read_row(
        "marts.fct_lead_conversion", "lead_id = 'pushed'", "consultations"
    )


def test_sources_have_hires_and_conversion_rates(people_world: BuiltWorld) -> None:
    assert [
        # ann and gus; the lead "open". Neither candidate has an interview or a placement.
        ("linkedin", "Social network", 2, 0, 0, 0, 1, 0, 0),
        ("referral", "Referral", 1, 0, 0, 0, 5, 4, 0.8),
        # No candidates: no rate of hires.
        ("xing", "unmapped", 0, 0, None, 0, 1, 0, 0),
    ] == people_world.query_tuples(
        "SELECT source, source_group, sum(candidates), sum(candidates_placed), "
        "sum(candidates_placed) / nullif(sum(candidates), 0), sum(placements), "
        "sum(leads), sum(leads_converted), sum(leads_converted) / nullif(sum(leads), 0) "
        "FROM marts.sum_source_effectiveness "
        "WHERE source IN ('linkedin', 'referral', 'xing') GROUP BY ALL ORDER BY source"
    )


def test_data_freshness_has_rows_age_and_requests(people_world: BuiltWorld) -> None:
    # Six live (eve was only listed and waits), and dan deleted. Of three runs two began in
    # the month from 15 February on: 7 + 5 requests. The reading that is longest ago is that of gus,
    # on 19 January at 09:00: 45 days and 15 hours before now.
    assert [6, 5, 1, 0.833, 1, 1, 0, 5, 12, 45.63, 3] == people_world.read_row(
        "marts.data_freshness",
        "resource = 'candidates'",
        *(
            "current_rows",
            "fully_read",
            "summary_only",
            "round(fully_read_share, 3)",
            "deleted",
            "pending",
        ),
        *("hours_behind", "requests_last_run", "requests_this_month", "oldest_read_age_days"),
        "anomalies",
    )
    # A run that never came to leads says nothing of them.
    assert [6, None, 0] == people_world.read_row(
        "marts.data_freshness",
        "resource = 'leads'",
        *("current_rows", "last_outcome", "requests_this_month"),
    )


def test_fields_missing_in_lists_keep_the_values_of_the_last_detail(tmp_path: Path) -> None:
    world = ModelWorld(tmp_path)
    world.write_seed("lead_statuses", "id,name,outcome", "s1,New,open")
    created = {"created": "2026-01-06 09:00"}
    lead = {**created, "lead_status_id": "s1", "assigned_to": "u1", "status": "lead"}
    ann = {**created, "status": "offer_accepted", "first_name": "Ann"}
    world.load_details("2026-01-12 09:00", leads={"l1": lead}, candidates={"ann": ann})
    shown = {"status": "offer_made", "first_name": "Anne"}
    world.load_list_items(
        "2026-01-19 09:00", leads={"l1": {"status": "prospect"}}, candidates={"ann": shown}
    )
    world.mark_verified("2026-01-20 09:00")
    built = world.build()

    assert () == built.built.blocking
    assert [("prospect", "New", "u1")] == built.query_tuples(
        "SELECT lead_state, lead_status_name, consultant_id FROM marts.fct_lead_conversion"
    )
    assert [("offer_accepted", True)] == built.query_tuples(
        "SELECT stage, is_current FROM marts.fct_candidate_stages"
    )

"""Marts of candidates, leads and freshness have the figures that were computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
        ("eve", 1, 0.0, 0.0, 55.63, False),
    ] == people_world.query_tuples(
        "SELECT candidate_id, visit_number, days_at_least, days_min, days_max, is_measured "
        "FROM marts.fct_candidate_stages WHERE (candidate_id, visit_number) IN "
        "(('ann', 1), ('ann', 2), ('bob', 1), ('bob', 2), ('cat', 1), ('dan', 1), ('ann', 5), "
        "('eve', 1)) ORDER BY visit_number = 5 OR candidate_id = 'eve', visit_number = 5 DESC, "
        "candidate_id, visit_number"
    )


def test_time_in_stage_has_survival_curves_and_percentiles(people_world: BuiltWorld) -> None:
    columns = (
        *("visits", "ended_visits", "measured_visits", "measured_share"),
        *("visits_started_before_mirror", "exits_observed", "p25_at_risk", "p50_at_risk"),
        *("p75_at_risk", "current_visits"),
    )

    # ann was seen after 6 days and left after 9, bob after 5 and 14: one of two, then the other.
    assert [2, 2, 2, 1, 0, 2, 2, 2, 1, 0] == people_world.read_row(
        "marts.sum_time_in_stage", "stage = 'new_lead'", *columns
    )
    # ann left after 8 days, when bob and dan were there as well: two thirds stay. Until 26 dan was
    # deleted, and bob leaves alone, while cat was first seen after 35: the estimate ends.
    assert [4, 4, 2, 0.5, 1, 1, 3, None, None, 0] == people_world.read_row(
        "marts.sum_time_in_stage", "stage = 'screening'", *columns
    )
    # Two of three leave after 10 days, and gus after 11. Only a list has shown eve.
    assert [4, 3, 3, 1, 1, 3, 3, 3, 1, 1] == people_world.read_row(
        "marts.sum_time_in_stage", "stage = 'interviewing'", *columns
    )


def test_stage_outcomes_count_each_candidate_once(people_world: BuiltWorld) -> None:
    def outcomes(where: str) -> list[tuple[Any, ...]]:
        named = ("advanced", "arrived", "lost", "in_progress", "deleted")
        counts = (f"count_if(stage_outcome = '{each}')" for each in named)
        return people_world.query_tuples(
            f"SELECT stage, count(*), {', '.join(counts)} FROM marts.fct_candidate_stages "
            f"WHERE is_first_visit AND stage_outcome IS NOT NULL AND {where} "
            "GROUP BY stage, stage_order ORDER BY stage_order"
        )

    assert [
        # ann and bob advanced.
        ("new_lead", 2, 2, 0, 0, 0, 0),
        # ann and cat advanced, bob is rejected, dan deleted.
        ("screening", 4, 2, 0, 1, 0, 1),
        # cat; ann was submitted between two pulls, as were perhaps eve, fay and gus.
        ("submitted", 1, 1, 0, 0, 0, 0),
        # ann, fay and gus advanced, eve is still there. cat was offered without being seen here.
        ("interviewing", 4, 3, 0, 0, 1, 0),
        # ann advanced, cat withdrew, fay waits.
        ("offer_made", 3, 1, 0, 1, 1, 0),
        # gus waits; ann was placed without being seen here.
        ("offer_accepted", 1, 0, 0, 0, 1, 0),
        ("placed", 1, 0, 1, 0, 0, 0),
    ] == outcomes("true")
    # Of Ben's candidates bob is lost in screening; dan was his until deleted.
    assert [("screening", 1, 0, 0, 1, 0, 0)] == outcomes(
        "consultant_name = 'Ben' AND stage = 'screening'"
    )


def test_offers_are_accepted_declined_or_pending(people_world: BuiltWorld) -> None:
    assert [
        # fay was held and offered again, gus accepted an unobserved offer.
        ("ann", "2026-02-01", "accepted", True, True),
        ("cat", "2026-01-01", "declined", True, False),
        ("fay", "2026-01-01", "pending", False, False),
        ("gus", None, "accepted_offer_not_observed", False, False),
    ] == people_world.query_tuples(
        "SELECT candidate_id, offered_month, offer_outcome, is_answered, is_accepted "
        "FROM marts.fct_offers ORDER BY candidate_id"
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
        "consultant_name, is_fully_read FROM marts.fct_candidates ORDER BY candidate_id"
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
        "FROM marts.fct_leads ORDER BY lead_id"
    )
    # 4 of 8 are converted, 3 with a date: 10, 12 and 20 days.
    assert [8, 4, 1, 0.5, 3, 12] == people_world.read_row(
        "marts.fct_leads",
        "true",
        *("count(*)", "count_if(is_converted)", "count_if(is_lost)", "avg(is_converted::int)"),
        *("count(days_to_convert)", "median(days_to_convert)"),
    )
    assert [1] == people_world.read_row("marts.fct_leads", "lead_id = 'pushed'", "consultations")


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


def test_data_quality_has_the_age_of_each_copy(people_world: BuiltWorld) -> None:
    # Six live (eve was only listed and waits), and dan deleted. The reading that is longest ago is
    # that of gus, on 19 January at 09:00.
    assert [6, 5, 1, 0.833, 1, 1, 0, "2026-01-19 09:00"] == people_world.read_row(
        "marts.data_quality",
        "resource = 'candidates'",
        *("total", "covered", "missing", "round(coverage, 3)", "deleted", "pending"),
        *("hours_behind", "strftime(oldest_read_at, '%Y-%m-%d %H:%M')"),
    )
    # A run that never came to leads says nothing of them.
    assert [6, None] == people_world.read_row(
        "marts.data_quality", "resource = 'leads'", "total", "last_outcome"
    )


@pytest.mark.slow
def test_a_list_changes_no_field_of_a_record_that_was_read(tmp_path: Path) -> None:
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

    assert () == built.built.failed("error")
    assert [("lead", "New", "u1")] == built.query_tuples(
        "SELECT lead_state, lead_status_name, consultant_id FROM marts.fct_leads"
    )
    assert [("offer_accepted", True)] == built.query_tuples(
        "SELECT stage, is_current FROM marts.fct_candidate_stages"
    )

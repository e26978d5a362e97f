"""Marts of each day, of statuses, journeys, probations and goals, each on a staged case."""

from __future__ import annotations

from typing import Any

from tests.models.marts.world import BORN, ModelWorld, build_models, make_january_booking


def test_each_day_counts_who_enters_leaves_and_is_in_a_stage(world: ModelWorld) -> None:
    new = {"created": "2026-02-02 09:00", "status": "screening"}
    world.load_details("2026-02-01 09:00", candidates={"old": {**BORN, "status": "placed"}})
    world.load_details("2026-02-02 10:00", candidates={"ann": new, "bob": new})
    world.load_details(
        "2026-02-05 09:00",
        candidates={"ann": {"status": "submitted", "updated": "2026-02-04 09:00"}},
    )
    world.load_deletions("2026-02-06 09:00", candidates=("bob",))
    shown = build_models(world, "fct_pipeline_days")

    days = "SELECT stage, day, entered, initial, exited, deleted, end_of_day_count"
    assert [
        # The first pull found old in its stage.
        ("placed", "2026-02-01", 0, 1, 0, 0, 1),
        ("screening", "2026-02-02", 2, 0, 0, 0, 2),
        ("screening", "2026-02-04", 0, 0, 1, 0, 1),
        ("screening", "2026-02-06", 0, 0, 0, 1, 0),
        ("submitted", "2026-02-04", 1, 0, 0, 0, 1),
    ] == shown.query_tuples(
        f"{days} FROM marts.fct_pipeline_days "
        "WHERE entered + initial + exited + deleted > 0 ORDER BY stage, day"
    )
    # Days without a change have the number of the day before.
    assert [("screening", 2), ("screening", 1), ("submitted", 1)] == shown.query_tuples(
        "SELECT stage, end_of_day_count FROM marts.fct_pipeline_days WHERE (stage, day) IN "
        "(('screening', '2026-02-03'), ('screening', '2026-02-05'), ('submitted', '2026-03-05')) "
        "ORDER BY stage, day"
    )


def test_a_job_has_a_visit_for_each_status_until_the_next_or_its_deletion(
    world: ModelWorld,
) -> None:
    job = {"created": "2026-02-01 09:00", "status": "published"}
    world.load_details("2026-02-01 10:00", jobs={"kept": job, "gone": {**job, **BORN}})
    filled = {"status": "filled", "updated": "2026-02-03 09:00"}
    world.load_details("2026-02-05 09:00", jobs={"kept": filled})
    world.load_deletions("2026-02-08 09:00", jobs=("gone",))
    shown = build_models(world, "fct_job_statuses")

    assert [
        ("gone", 1, "published", "06-01", "02-08", "deletion"),
        ("kept", 1, "published", "02-01", "02-03", "change"),
        ("kept", 2, "filled", "02-03", None, None),
    ] == shown.query_tuples(
        "SELECT job_id, visit_number, job_status, strftime(entered_at, '%m-%d') AS entered, "
        "strftime(left_at, '%m-%d') AS ended, left_by FROM marts.fct_job_statuses "
        "ORDER BY job_id, visit_number"
    )


def test_a_candidate_shows_the_way_from_submission_to_placement(world: ModelWorld) -> None:
    def met(day: str, status: str, job: str) -> dict[str, Any]:
        return make_january_booking(
            *("interview", f"{day}T09:00:00Z", status), candidate_id="ann", job_id=job
        )

    world.load_details("2026-01-05 09:00", candidates={"ann": {**BORN, "status": "screening"}})
    world.load_details(
        "2026-01-13 09:00",
        candidates={"ann": {"status": "submitted", "updated": "2026-01-12 09:00"}},
        bookings={
            "before": met("2026-01-08", "completed", "a"),
            "after": met("2026-01-16", "completed", "b"),
            "again": met("2026-01-20", "completed", "b"),
            "to-come": met("2026-03-10", "scheduled", "b"),
            "placed": make_january_booking(
                *("permanent", "2026-02-02T09:00:00Z", "confirmed"),
                candidate_id="ann",
                job_id="b",
                offer_accepted_date="2026-01-22",
            ),
        },
    )
    shown = build_models(world, "fct_candidates", "fct_bookings")

    assert [
        ("after", "interview_held", 1, True),
        ("again", "interview_held", 2, True),
        # For another job.
        ("before", "interview_held", 1, False),
        ("placed", "placement", None, None),
        # After the placement.
        ("to-come", "interview_to_come", 3, False),
    ] == shown.query_tuples(
        "SELECT booking_id, counts_as, interview_number, is_followed_by_placement "
        "FROM marts.fct_bookings ORDER BY booking_id"
    )
    assert ["01-12", "01-16", 4, 3, 1, 2] == shown.read_row(
        *("marts.fct_candidates", "true", "strftime(submitted_at, '%m-%d')"),
        "strftime(interviewed_after_submission_at, '%m-%d')",
        *("days_submitted_to_interview", "interviews_held", "interviews_to_come"),
        "jobs_interviewed_for",
    )
    assert ["01-08", "01-20", "03-10", 1, "2026-01-22", "01-20"] == shown.read_row(
        *("marts.fct_candidates", "true", "strftime(first_interview_at, '%m-%d')"),
        *("strftime(last_interview_at, '%m-%d')", "strftime(next_interview_at, '%m-%d')"),
        *("placements", "first_placed_on", "strftime(last_activity_at, '%m-%d')"),
    )


def test_a_probation_is_running_passed_failed_or_not_started(world: ModelWorld) -> None:
    def placed(start: str, months: int | None) -> dict[str, Any]:
        return make_january_booking(
            *("permanent", f"{start}T09:00:00Z", "confirmed"),
            candidate_id=start,
            probation_period_months=months,
        )

    world.load_details(
        "2026-01-06 09:00",
        bookings={
            "passed": placed("2026-01-05", 2),
            "running": placed("2026-01-05", 3),
            "failed": placed("2026-01-05", 6),
            "not-started": placed("2026-03-02", 3),
            "none": placed("2026-01-05", None),
        },
    )
    off = {"status": "cancelled", "updated": "2026-02-16 12:00"}
    world.load_details("2026-02-17 09:00", bookings={"failed": off, "not-started": off})
    shown = build_models(world, "fct_placements")

    assert [
        ("failed", "2026-07-05", "failed", "cancelled_after_start"),
        ("none", None, None, "started"),
        ("not-started", "2026-06-02", "not_started", "cancelled_before_start"),
        ("passed", "2026-03-05", "passed", "started"),
        ("running", "2026-04-05", "running", "started"),
    ] == shown.query_tuples(
        "SELECT booking_id, probation_end_on, probation_state, placement_outcome "
        "FROM marts.fct_placements ORDER BY booking_id"
    )


def test_goals_are_compared_with_the_activity_of_their_month(world: ModelWorld) -> None:
    world.write_seed("people", "id,name,team", "u1,Ada,North", "u2,Ben,North")
    world.write_seed(
        *("goals", "consultant_id,team,month,measure,target"),
        "u1,,2026-02-15,candidates_added,4",
        ",North,2026-02-01,candidates_added,3",
        "u1,,2026-03-01,candidates_added,0",
        "nobody,,2026-02-01,placements,1",
    )
    people = {
        name: {"created": "2026-02-03 09:00", "status": "screening", "assigned_to": owner}
        for name, owner in (("a", "u1"), ("b", "u1"), ("c", "u2"))
    }
    late = {"created": "2026-03-01 09:00", "status": "screening", "assigned_to": "u2"}
    world.load_details("2026-03-02 09:00", candidates={**people, "late": late})
    shown = build_models(world, "sum_goal_attainment")

    assert [
        (None, "North", "2026-02-01", 3, 3, 1, True, True),
        ("nobody", None, "2026-02-01", 1, 0, 0, False, True),
        ("u1", "North", "2026-02-01", 4, 2, 0.5, False, True),
        ("u1", "North", "2026-03-01", 0, 0, None, True, False),
    ] == shown.query_tuples(
        "SELECT group_id, team, month_start, target, actual, attainment, is_reached, is_over "
        "FROM marts.sum_goal_attainment ORDER BY group_id NULLS FIRST, month_start"
    )

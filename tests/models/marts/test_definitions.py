"""Definitions that a director relies on, each on a staged case with its right value."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.marts.world import BORN, ModelWorld, build_models, make_january_booking


def make_booking(kind: str, begins: str, ends: str | None, **fields: Any) -> dict[str, Any]:
    """Return a confirmed booking of Ann for a job between two dates."""
    return make_january_booking(
        *(kind, f"{begins}T09:00:00Z", "confirmed"),
        **{
            "candidate_id": "ann",
            "job_id": "job",
            "end_datetime": f"{ends}T17:00:00Z" if ends else None,
            **fields,
        },
    )


def test_a_reopened_job_has_all_its_positions_open(world: ModelWorld) -> None:
    job = {**BORN, "status": "published", "positions_available": 2, "placement_fee": 1000}
    world.load_details(
        "2026-01-12 09:00",
        jobs={"job": {**job, "published_at": "2025-11-03T09:00:00Z"}},
        bookings={"old": make_booking("permanent", "2026-01-05", None)},
    )
    for day, status in (("2026-01-20", "filled"), ("2026-02-10", "published")):
        world.load_details(
            f"{day} 10:00", jobs={"job": {"status": status, "updated": f"{day} 09:00"}}
        )
    shown = build_models(world, "dim_jobs")

    assert [1, 2, 2000] == shown.read_row(
        "marts.dim_jobs", "is_open", "placements", "positions_open", "pipeline_value"
    )


def test_a_cancelled_contract_is_billed_until_the_day_it_was_cancelled(world: ModelWorld) -> None:
    world.load_details(
        "2026-01-06 09:00",
        bookings={
            "ran": make_booking("contract", "2026-01-05", "2026-06-30", day_rate=600),
            "never": make_booking(
                "contract",
                "2026-05-04",
                "2026-06-30",
                candidate_id="bob",
                placement_fee=700,
                day_rate=600,
            ),
        },
    )
    off = {"status": "cancelled", "updated": "2026-02-16 12:00", "cancellation_reason": " Budget "}
    world.load_details("2026-02-17 09:00", bookings={"ran": off, "never": off})
    shown = build_models(world, "fct_contract_months", "fct_contracts")

    # Monday 5 January to Monday 16 February: 31 working days.
    assert [("ran", 31, 18600)] == shown.query_tuples(
        "SELECT booking_id, sum(working_days), sum(billings) FROM marts.fct_contract_months "
        "GROUP BY booking_id"
    )
    assert [
        ("never", "cancelled_before_start", "2026-02-16", -77, False, "Budget", 700),
        ("ran", "cancelled_after_start", "2026-02-16", 42, True, "Budget", None),
    ] == shown.query_tuples(
        "SELECT booking_id, placement_outcome, cancelled_on, days_from_start, is_within_90_days, "
        "cancellation_reason, fee FROM marts.fct_placements WHERE is_fall_off ORDER BY booking_id"
    )


def test_a_second_booking_within_30_days_is_an_extension(world: ModelWorld) -> None:
    fee = {"placement_fee": 5000, "day_rate": 100}
    world.load_details(
        "2026-01-06 09:00",
        bookings={
            "first": make_booking("contract", "2026-01-05", "2026-01-16", **fee),
            # From Wednesday of the second week: three days are already billed.
            "second": make_booking("contract", "2026-01-14", "2026-01-23", **fee),
            "third": make_booking("contract", "2026-02-22", "2026-02-27", **fee),
            "too-late": make_booking("contract", "2026-03-30", "2026-04-30", **fee),
            "other-job": make_booking("contract", "2026-01-19", "2026-01-20", job_id="b", **fee),
        },
    )
    shown = build_models(world, "fct_contract_months", "sum_months", "fct_contracts")

    assert [
        ("first", True, False, 5000),
        ("other-job", True, False, 5000),
        ("second", False, True, None),
        ("third", False, True, None),
        ("too-late", True, False, 5000),
    ] == shown.query_tuples(
        "SELECT booking_id, is_placement, is_extension, fee FROM marts.fct_placements "
        "ORDER BY booking_id"
    )
    assert [3, 15000] == shown.read_row(
        "(SELECT sum(placements_started) AS n, sum(fee) AS fee FROM marts.sum_months)", "true", "*"
    )
    assert [("first", 1000), ("second", 500), ("third", 500)] == shown.query_tuples(
        "SELECT booking_id, billings FROM marts.fct_contract_months "
        "WHERE booking_id IN ('first', 'second', 'third') ORDER BY booking_id"
    )
    assert [("first", "extended"), ("other-job", "none"), ("second", "extended")] == (
        shown.query_tuples(
            "SELECT booking_id, ended_with FROM marts.fct_contracts "
            "WHERE booking_id IN ('first', 'second', 'other-job') ORDER BY booking_id"
        )
    )


def test_an_open_ended_contract_is_billed_until_its_extension_begins(world: ModelWorld) -> None:
    world.load_details(
        "2026-01-06 09:00",
        bookings={
            "open": make_booking("contract", "2026-01-05", None, day_rate=100),
            "more": make_booking("contract", "2026-01-12", "2026-01-16", day_rate=200),
        },
    )
    shown = build_models(world, "fct_contract_months")

    assert [("more", 1000), ("open", 500)] == shown.query_tuples(
        "SELECT booking_id, billings FROM marts.fct_contract_months ORDER BY booking_id"
    )


def test_a_stated_contract_value_outranks_the_day_rate(world: ModelWorld) -> None:
    world.load_details(
        "2026-01-06 09:00",
        bookings={
            # 20 working days in January, 20 in February and 2 in March: 10,000 in all.
            "fixed": make_booking(
                "contract", "2026-01-05", "2026-03-03", day_rate=600, contract_value=10000
            ),
            "rate": make_booking(
                "contract", "2026-01-05", "2026-01-09", day_rate=600, candidate_id="bob"
            ),
            "open": make_booking(
                "contract", "2026-03-02", None, contract_value=10000, candidate_id="cat"
            ),
        },
    )
    shown = build_models(world, "sum_months")

    assert [
        ("fixed", "2026-01-01", "contract_value", 4761.9),
        ("fixed", "2026-02-01", "contract_value", 4761.91),
        ("fixed", "2026-03-01", "contract_value", 476.19),
        ("open", "2026-03-01", None, None),
        ("rate", "2026-01-01", "day_rate", 3000),
    ] == shown.query_tuples(
        "SELECT booking_id, month_start, billings_basis, billings "
        "FROM marts.fct_contract_months ORDER BY ALL"
    )


def test_ended_contracts_show_what_followed_them(world: ModelWorld) -> None:
    ended = ("contract", "2026-01-05", "2026-01-30")

    def contract_of(who: str, job: str) -> dict[str, Any]:
        return make_booking(*ended, candidate_id=who, job_id=job)

    world.load_details(
        "2026-02-20 09:00",
        bookings={
            **{f"{who}-1": contract_of(who, who) for who in ("ext", "perm", "moved", "left")},
            "gone-1": contract_of("gone", "kept"),
            "ext-2": make_booking("contract", "2026-02-02", None, candidate_id="ext", job_id="ext"),
            "perm-2": make_booking(
                "permanent", "2026-02-09", None, candidate_id="perm", job_id="perm"
            ),
            "moved-2": make_booking(
                "contract", "2026-02-09", None, candidate_id="moved", job_id="new"
            ),
            "gone-2": make_booking(
                "contract", "2026-02-02", None, candidate_id="next", job_id="kept"
            ),
        },
    )
    shown = build_models(world, "fct_contracts")

    assert [
        ("ext-1", "extended"),
        ("gone-1", "replaced"),
        ("left-1", "none"),
        ("moved-1", "redeployed"),
        ("perm-1", "made_permanent"),
    ] == shown.query_tuples(
        "SELECT booking_id, ended_with FROM marts.fct_contracts "
        "WHERE contract_state = 'ended' ORDER BY booking_id"
    )
    # A contract that is made permanent is a placement of its own.
    assert [True, True] == shown.read_row(
        "(SELECT bool_and(is_placement) AS a, count(*) = 2 AS b FROM marts.fct_placements "
        "WHERE candidate_id = 'perm')",
        *("true", "a", "b"),
    )


def test_days_to_hire_count_from_submission_or_first_interview(world: ModelWorld) -> None:
    new = {"created": "2026-01-05 09:00", "status": "screening"}
    world.load_details("2026-01-05 10:00", candidates={"ann": new, "bob": new, "cat": new})
    world.load_details(
        "2026-01-13 09:00",
        candidates={"ann": {"status": "submitted", "updated": "2026-01-12 09:00"}},
    )
    accepted = {"offer_accepted_date": "2026-02-02"}
    world.load_details(
        "2026-02-10 09:00",
        bookings={
            **{
                f"i-{who}": make_booking("interview", "2026-01-19", None, candidate_id=who)
                for who in ("ann", "bob")
            },
            **{
                f"p-{who}": make_booking(
                    "permanent", "2026-03-02", None, candidate_id=who, **accepted
                )
                for who in ("ann", "bob", "cat")
            },
        },
    )
    shown = build_models(world, "fct_placements")

    # From the submission on 12 January, from the interview on 19 January; the record is of the 5th.
    assert [
        ("ann", 21, "submission", 28),
        ("bob", 14, "interview", 28),
        ("cat", None, None, 28),
    ] == shown.query_tuples(
        "SELECT candidate_id, days_to_hire, days_to_hire_basis, days_since_record "
        "FROM marts.fct_placements ORDER BY candidate_id"
    )


def test_an_opening_with_some_placements_is_partly_filled(world: ModelWorld) -> None:
    job = {**BORN, "status": "published", "published_at": "2025-11-03T09:00:00Z"}
    world.load_details(
        "2026-01-12 09:00",
        jobs={
            "some": {**job, "positions_available": 2},
            "all": {**job, "positions_available": 1},
            "marked": {**job, "positions_available": 2, "status": "filled"},
        },
        bookings={
            f"p-{name}": make_booking("permanent", "2026-01-05", None, job_id=name)
            for name in ("some", "all", "marked")
        },
    )
    shown = build_models(world, "fct_job_openings")

    assert [("all", "filled"), ("marked", "filled"), ("some", "partly_filled")] == (
        shown.query_tuples(
            "SELECT job_id, opening_outcome FROM marts.fct_job_openings ORDER BY job_id"
        )
    )


def test_a_lead_is_converted_in_its_first_version_that_is_won(world: ModelWorld) -> None:
    world.write_seed("lead_statuses", "id,name,outcome", "s1,New,open", "s2,Won,won")
    lead = {**BORN, "status": "lead", "lead_status_id": "s1"}
    won = {"lead_status_id": "s2"}
    world.load_details(
        "2026-01-12 09:00",
        leads={"won": lead, "active": lead, "old": {**lead, **won}, "open": lead},
    )
    world.load_details(
        "2026-01-19 09:00",
        leads={
            "won": {**won, "updated": "2026-01-15 12:00"},
            "active": {"status": "active", "updated": "2026-01-16 12:00"},
        },
    )
    world.load_details(
        "2026-01-26 09:00", leads={"won": {"source": "fair", "updated": "2026-01-25 12:00"}}
    )
    shown = build_models(world, "fct_leads")

    day = "strftime(converted_{0}, '%m-%d %H:%M') AS converted_{0}"
    assert [
        ("active", "01-12 09:00", "01-16 12:00", "01-19 09:00"),
        # It was won before the first pull.
        ("old", None, None, None),
        ("open", None, None, None),
        ("won", "01-12 09:00", "01-15 12:00", "01-19 09:00"),
    ] == shown.query_tuples(
        f"SELECT lead_id, {', '.join(day.format(at) for at in ('after', 'at', 'before'))} "
        "FROM marts.fct_leads ORDER BY lead_id"
    )


@pytest.mark.slow
def test_a_total_is_the_same_wherever_it_is_shown(world: ModelWorld) -> None:
    fee = {"placement_fee": 1000}
    world.write_seed("exchange_rates", "currency,rate,reporting_currency", "GBP,1,GBP")
    paid = {**BORN, "status": "published", "salary_currency": "GBP", "assigned_to": "u1"}
    world.load_details(
        "2026-01-12 09:00",
        candidates={name: {**BORN, "status": "placed"} for name in ("ann", "gone")},
        companies={"acme": {**BORN, "name": "Acme"}},
        jobs={"kept": {**paid, "company_id": "acme"}, "deleted": {**paid, "company_id": "lost"}},
        bookings={
            "known": make_booking("permanent", "2026-01-05", None, job_id="kept", **fee),
            "no-job": make_booking("permanent", "2026-01-05", None, job_id="deleted", **fee),
            "no-candidate": make_booking(
                "permanent", "2026-01-05", None, job_id="kept", candidate_id="gone", **fee
            ),
            "no-company": make_booking("permanent", "2026-01-05", None, job_id=None, **fee),
            "lost": make_booking("contract", "2026-01-05", None, company_id="lost", job_id="kept"),
            "met": make_booking("interview", "2026-01-05", None, job_id="deleted"),
        },
    )
    world.load_deletions("2026-01-19 09:00", jobs=("deleted",), candidates=("gone",))
    # `build_models` asserts that no audit finds a difference.
    shown = build_models(world)

    assert [("deleted", 1), ("kept", 3), ("none", 1)] == shown.query_tuples(
        "SELECT job_id, placements FROM marts.dim_jobs ORDER BY job_id"
    )
    assert [("Acme", 2, 2000), ("no company", 2, None), ("unknown company", 1, None)] == (
        shown.query_tuples(
            "SELECT company_name, placements, reporting_fee FROM marts.dim_companies ORDER BY ALL"
        )
    )
    assert [("not stated", 4), ("unknown", 1)] == shown.query_tuples(
        "SELECT source, sum(placements) FROM marts.sum_source_effectiveness GROUP BY 1 ORDER BY 1"
    )
    assert [("unassigned", 0, 0), ("user u1", 1, 1)] == shown.query_tuples(
        "SELECT person_name, jobs, running_contracts FROM marts.dim_people ORDER BY person_name"
    )


@pytest.mark.slow
def test_an_amount_of_which_no_part_is_known_is_null(world: ModelWorld) -> None:
    world.load_details(
        "2026-01-12 09:00",
        jobs={"job": {**BORN, "status": "published", "assigned_to": "u1"}},
        candidates={"ann": {**BORN, "status": "placed", "source": "fair"}},
        bookings={
            "p": make_booking("permanent", "2026-01-05", None),
            "c": make_booking("contract", "2026-01-05", "2026-01-30", candidate_id="bob"),
        },
    )
    shown = build_models(world)

    for mart, where, columns in (
        ("sum_months", "true", ("placements_started", "fee", "billings")),
        ("sum_source_effectiveness", "source = 'fair'", ("placements", "reporting_fee")),
        (
            "sum_consultant_activity",
            "period = 'week' AND placements > 0",
            ("placements", "reporting_fee"),
        ),
        ("dim_companies", "true", ("placements", "reporting_fee")),
        ("dim_people", "open_jobs = 1", ("open_jobs", "reporting_value")),
        ("dim_jobs", "is_live", ("placements", "expected_fee", "pipeline_value")),
    ):
        count, *amounts = shown.read_row(f"marts.{mart}", where, *columns)
        assert count, mart
        assert [None] * len(amounts) == amounts, mart

"""Landing, history and staging of the two worlds agree, and no mart loses or repeats a row."""

from __future__ import annotations

from connector.catalog import CATALOG
from tests.models.marts.world import BuiltWorld

RULES = {
    "times are in order": """
        SELECT id FROM history.{0}
        WHERE _began_after > _valid_from OR _valid_to < _valid_from
            OR _valid_from > _hydrated_at + INTERVAL 1 SECOND OR _hydrated_at IS NULL
    """,
    "versions follow each other": """
        SELECT id FROM history.{0}
        WINDOW in_order AS (PARTITION BY id ORDER BY _version)
        QUALIFY _version <> 1 + coalesce(lag(_version) OVER in_order, 0)
            OR (_version > 1 AND lag(_valid_to) OVER in_order IS NULL)
            OR lag(_valid_to) OVER in_order > _valid_from
    """,
    "staging keeps every live row": """
        SELECT live, staged
        FROM (SELECT count(*) AS live FROM landing.{0} WHERE _deleted_at IS NULL),
            (SELECT count(*) AS staged FROM staging.{1})
        WHERE live <> staged
    """,
}
"""Queries of records that break a rule, for each resource and its staging view."""

ROWS = {
    "dim_jobs WHERE is_live": "staging.stg_jobs",
    "dim_jobs WHERE is_open": "staging.stg_jobs WHERE is_open",
    "dim_companies WHERE created_at IS NOT NULL": "staging.stg_known_companies",
    "dim_candidates": "staging.stg_candidates",
    "fct_leads WHERE NOT is_deleted": "staging.stg_leads",
    "fct_bookings": "staging.stg_bookings",
    "fct_placements": "staging.stg_placements",
    "fct_contracts": "staging.stg_placements WHERE booking_type = 'contract'",
    "fct_candidates": "staging.stg_candidates",
}
"""Marts, and the rows that each of them has exactly once."""

STAGED = """
    SELECT {0}_id FROM staging.stg_{0}_versions
    WHERE began_after > valid_from OR valid_from > began_before + INTERVAL 1 SECOND
        OR ended_after > ended_before OR (valid_to IS NULL) <> (ended_by IS NULL)
        OR (valid_to IS NULL) <> (ended_before IS NULL)
"""
"""Versions in staging whose times are not in order."""

OVERLAPPING = """
    SELECT candidate_id FROM marts.fct_candidate_stages
    QUALIFY entered_at < lag(coalesce(left_at, 'infinity')) OVER (
        PARTITION BY candidate_id ORDER BY visit_number
    )
"""


def assert_intact(world: BuiltWorld) -> None:
    """Assert that the history is in order, and that each mart has its rows."""
    for name, rule in RULES.items():
        for resource in CATALOG.values():
            assert [] == world.query(rule.format(resource.name, resource.view)), (
                name,
                resource.name,
            )
    for mart, origin in ROWS.items():
        counts = f"(SELECT count(*) FROM marts.{mart}), (SELECT count(*) FROM {origin})"
        ((found, expected),) = world.query_tuples(f"SELECT {counts}")
        assert expected == found, mart
    for name in ("job", "candidate", "booking", "lead"):
        assert [] == world.query(STAGED.format(name)), name
    assert [] == world.query(OVERLAPPING)


def test_staged_history_and_marts_are_intact(
    jobs_world: BuiltWorld, people_world: BuiltWorld
) -> None:
    assert_intact(jobs_world)
    assert_intact(people_world)

"""No mart loses or repeats a row."""

from __future__ import annotations

import pytest

from tests.models.marts.world import BuiltWorld

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


@pytest.mark.slow
def test_a_mart_has_the_rows_of_its_staging_view(
    jobs_world: BuiltWorld, people_world: BuiltWorld
) -> None:
    for world in (jobs_world, people_world):
        assert () == world.built.failed("error")
        for mart, origin in ROWS.items():
            counts = f"(SELECT count(*) FROM marts.{mart}), (SELECT count(*) FROM {origin})"
            ((found, expected),) = world.query_tuples(f"SELECT {counts}")
            assert expected == found, mart

"""Without any record, every model exists with no rows or zeros, and every check passes."""

from __future__ import annotations

from connector.catalog import CATALOG
from tests.models.marts.world import BuiltWorld

_STANDS_ALONE = frozenset(("dim_days", "data_quality"))
"""Marts with rows of their own: the calendar, one for each resource, one for each question."""


def test_every_check_passes_on_an_empty_warehouse(empty_world: BuiltWorld) -> None:
    assert [] == [check for check in empty_world.built.checks if check.failing]


def test_marts_of_an_empty_warehouse_have_no_rows_or_zeros(empty_world: BuiltWorld) -> None:
    unexpected = []
    for mart in (each for each in empty_world.built.models if each.schema == "marts"):
        rows = empty_world.query(f"SELECT * FROM {mart.schema}.{mart.name}")
        for row in rows if mart.name not in _STANDS_ALONE else []:
            values = {
                key: value for key, value in row.items() if key not in ("group_by", "group_name")
            }
            if "all" != row.get("group_by") or any(value for value in values.values()):
                unexpected.append((mart.name, row))

    assert [] == unexpected


def test_personal_columns_of_candidates_are_only_in_dim_candidates_and_fct_leads(
    empty_world: BuiltWorld,
) -> None:
    personal = [each.name for each in CATALOG["candidates"].detail_fields if each.personal]

    assert personal
    assert [] == empty_world.query(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'marts' "
        f"AND table_name NOT IN ('dim_candidates', 'fct_leads') "
        f"AND column_name IN {tuple(personal)}"
    )


def test_coverage_and_freshness_of_an_empty_warehouse_are_zero_or_null(
    empty_world: BuiltWorld,
) -> None:
    assert [(0, 0, None)] == empty_world.query_tuples(
        "SELECT DISTINCT covered, total, coverage FROM marts.data_quality"
    )
    assert [(0, None, None, 0)] == empty_world.query_tuples(
        "SELECT DISTINCT total, coverage, hours_behind, pending "
        "FROM marts.data_quality WHERE resource IS NOT NULL"
    )
    assert 7 == len(
        empty_world.query("SELECT resource FROM marts.data_quality WHERE resource IS NOT NULL")
    )


def test_as_of_is_null_in_an_empty_warehouse(empty_world: BuiltWorld) -> None:
    assert [None, None, "nothing", None] == empty_world.read_row(
        "staging.as_of", "true", "as_of_at", "as_of_date", "basis", "all_proven_at"
    )

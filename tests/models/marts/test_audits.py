"""Each audit finds the fault that it is made for, and no other audit does.

A fault is planted in a valid file and removed after the test: in the landing, in the history, or in
the tables of models.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from connector.models.project import SHIPPED_FOLDER
from tests.models.marts.world import BuiltWorld

FAULTS: Mapping[str, str] = {
    "company_counters": "UPDATE marts.dim_companies "
    "SET jobs = api_jobs_count + 1, is_comparable = true",
    "content_values": """
        INSERT INTO landing.content_type_fields (id, _content_type_id, field_key, field_type)
            VALUES ('f1', 't1', 'size', 'number');
        INSERT INTO landing.content_items (id, _content_type_id, fields)
            VALUES ('x1', 't1', '{"size": "large"}')
    """,
    "copy_is_fresh: unverified": """
        UPDATE marts.data_quality SET total = 1, proven_at = NULL
    """,
    "copy_is_fresh: details": "UPDATE marts.data_quality SET missing = 1, total = 19",
    "copy_is_fresh: total": """
        UPDATE marts.data_quality
        SET last_proven = true, api_total = total + 1, rows_last_run = total;
        INSERT INTO sync.bookmarks (resource, parent, is_total_exact)
        SELECT resource, '', true FROM marts.data_quality WHERE resource IS NOT NULL
    """,
    "copy_is_intact: twice": """
        INSERT INTO landing.jobs SELECT * FROM landing.jobs WHERE id = 'shut'
    """,
    "copy_is_intact: no version": "DELETE FROM history.jobs WHERE id = 'shut'",
    "dates_are_in_order": "UPDATE marts.fct_placements SET end_date = start_date - 1",
    "money_adds_up: rates": "INSERT INTO seeds.exchange_rates VALUES ('CHF', 1, 'EUR')",
    "money_adds_up: fees": "UPDATE marts.sum_months SET fee = fee + 0.01 WHERE currency = 'EUR'",
    "rates_lie_between": "UPDATE marts.dim_companies SET marked_filled_rate = 1.01",
    "totals_agree": "UPDATE marts.sum_consultant_activity SET placements = placements + 1",
    "seeds_are_complete: currencies": "DELETE FROM seeds.exchange_rates; "
    "UPDATE marts.fct_placements SET reporting_currency = NULL",
    "seeds_are_complete: lead statuses": "INSERT INTO landing.leads "
    "(id, lead_status_id) VALUES ('l', 's9')",
    "seeds_are_complete: people": "UPDATE marts.dim_people SET is_mapped = false",
    "seeds_are_complete: sources": "UPDATE marts.dim_sources SET source_group = 'unmapped'",
}
"""SQL by audit, and case, that plants a fault in the file of `jobs_world` for the audit to find."""

SOUND: Mapping[str, str] = {
    "copy_is_fresh: details": """
        UPDATE marts.data_quality SET missing = 1, total = 20
        WHERE proven_at IS NOT NULL
    """
}
"""What the audit just about allows, where that file has more than that."""

AUDITS = sorted(path.stem for path in (SHIPPED_FOLDER / "audits").glob("*.sql"))


def test_every_shipped_audit_has_a_fault_that_tests_it() -> None:
    assert AUDITS == sorted({case.partition(":")[0] for case in FAULTS})


@pytest.mark.parametrize("case", FAULTS)
def test_an_audit_counts_a_planted_fault(jobs_world: BuiltWorld, case: str) -> None:
    name = case.partition(":")[0]
    audit = next(each for each in jobs_world.project.checks if each.name == name)
    query = f"SELECT count(*) FROM ({audit.sql}\n)"  # our own
    connection = jobs_world.connection

    def found() -> int:
        return int(connection.execute(query).fetchall()[0][0])

    at_first = found()
    connection.execute("BEGIN")
    try:
        connection.execute(SOUND.get(case, ""))
        before = found()
        connection.execute(FAULTS[case])
        planted = found()
    finally:
        connection.execute("ROLLBACK")

    assert planted > before
    assert at_first == found()
    assert 0 == at_first or "warn" == audit.severity
    assert 0 == before or case not in SOUND

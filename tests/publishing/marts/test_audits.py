"""Each audit finds the fault that it is made for, and no other audit does.

A fault is planted in a valid file and removed after the test: in the landing, in the history, or in
the tables of models.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from connector.publishing.project import shipped_folder
from tests.publishing.marts.world import BuiltWorld

FAULTS: Mapping[str, str] = {
    "company_counters_agree": "UPDATE marts.fct_company_counters SET difference = 1",
    "content_values_that_do_not_fit": """
        INSERT INTO landing.content_type_fields (id, _content_type_id, field_key, field_type)
            VALUES ('f1', 't1', 'size', 'number');
        INSERT INTO landing.content_items (id, _content_type_id, fields)
            VALUES ('x1', 't1', '{"size": "large"}')
    """,
    "dates_are_in_order": "UPDATE marts.fct_placements SET end_date = start_date - 1",
    "details_are_read": "UPDATE marts.data_freshness SET summary_only = 1, current_rows = 19",
    "exchange_rates_share_a_currency": "INSERT INTO seeds.exchange_rates VALUES ('CHF', 1, 'EUR')",
    "fees_add_up": "UPDATE marts.sum_fee_forecast SET fee = fee + 0.01 WHERE currency = 'EUR'",
    "fees_have_a_currency": "UPDATE marts.fct_placements SET currency = NULL",
    "history_agrees_with_landing": "DELETE FROM history.jobs WHERE id = 'shut'",
    "history_moments_are_in_order": """
        UPDATE history.bookings SET _observed_to = _observed_from - INTERVAL 1 SECOND
        WHERE id = 'p-hal'
    """,
    "history_versions_follow_each_other": """
        UPDATE history.jobs SET _valid_to = _valid_to + INTERVAL 1 SECOND
        WHERE id = 'reopened' AND _version = 1
    """,
    "landing_agrees_with_the_api": """
        UPDATE marts.data_freshness
        SET last_proven = true, api_total = current_rows + 1, rows_last_run = current_rows
    """,
    "landing_has_one_row_per_id": """
        INSERT INTO landing.jobs SELECT * FROM landing.jobs WHERE id = 'shut'
    """,
    "marts_keep_every_row": "DELETE FROM marts.fct_placements WHERE booking_id = 'p-hal'",
    "mirror_is_fresh": "UPDATE marts.data_freshness SET current_rows = 1, proven_at = NULL",
    "rates_lie_between_zero_and_one": "UPDATE marts.sum_job_funnel "
    "SET interview_to_placement_rate = 1.01 WHERE group_by = 'all'",
    "stages_do_not_overlap": """
        INSERT INTO marts.fct_candidate_stages BY NAME
            SELECT 'hal' AS candidate_id, 1 AS visit_number, true AS is_current, NOW() AS entered_at
            UNION ALL SELECT 'hal', 2, true, NOW()
    """,
    "staging_keeps_every_live_row": """
        CREATE OR REPLACE VIEW staging.stg_leads AS
            SELECT * FROM landing.leads WHERE _hydrated_at IS NOT NULL;
        INSERT INTO landing.leads (id) VALUES ('listed')
    """,
    "unmapped_currencies": "DELETE FROM seeds.exchange_rates; "
    "UPDATE marts.fct_placements SET reporting_currency = NULL",
    "unmapped_lead_statuses": "INSERT INTO landing.leads (id, lead_status_id) VALUES ('l', 's9')",
    "unmapped_people": "UPDATE marts.dim_people SET is_mapped = false",
    "unmapped_sources": "UPDATE marts.dim_sources SET source_group = 'unmapped'",
}
"""SQL by audit that plants a fault in the file of `jobs_world`, which the audit must find."""

SOUND: Mapping[str, str] = {
    "details_are_read": "UPDATE marts.data_freshness SET summary_only = 1, current_rows = 20",
    "placements_have_fees": """
        UPDATE marts.sum_coverage SET missing = 2, total = 20
        WHERE question = 'placements_with_fee'
    """,
}
"""What the audit just about allows, where that file has more than that."""

AUDITS = sorted(path.stem for path in (shipped_folder() / "audits").glob("*.sql"))


def test_every_shipped_audit_has_a_fault_that_tests_it() -> None:
    assert AUDITS == sorted(FAULTS)


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_counts_a_planted_fault(jobs_world: BuiltWorld, name: str) -> None:
    audit = next(each for each in jobs_world.project.audits if each.name == name)
    query = f"SELECT count(*) FROM ({audit.query.sql}\n)"  # our own
    connection = jobs_world.connection

    def found() -> int:
        return int(connection.execute(query).fetchall()[0][0])

    at_first = found()
    connection.execute("BEGIN")
    try:
        connection.execute(SOUND.get(name, ""))
        before = found()
        connection.execute(FAULTS[name])
        planted = found()
    finally:
        connection.execute("ROLLBACK")

    assert planted > before
    assert at_first == found()
    assert 0 == at_first or "warn" == audit.severity
    assert 0 == before or name not in SOUND

"""Retention rules: strict parsing, preview counts, and erasure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connector.errors import ConnectorError, Misused, SettingsError, UnknownName
from connector.privacy.retention import apply_retention, parse_rules
from connector.settings.layers import Setting
from connector.settings.model import load_settings
from tests.privacy.populated_agency import (
    EMAIL,
    NOW,
    PopulatedAgency,
    copy_populated_agency,
    find_traces,
)

MARCH = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "cutoff"),
    [
        ("30 days after updated_at", datetime(2026, 3, 1, 12, 0, tzinfo=UTC)),
        ("1 months after created_at", datetime(2026, 2, 28, 12, 0, tzinfo=UTC)),
        ("2 years after _deleted_at", datetime(2024, 3, 31, 12, 0, tzinfo=UTC)),
        (
            "24 months after updated_at where status in rejected, withdrawn"
            " and employment_type in permanent",
            datetime(2024, 3, 31, 12, 0, tzinfo=UTC),
        ),
    ],
)
def test_a_retention_rule_is_parsed(written: str, cutoff: datetime) -> None:
    (rule,) = parse_rules({"candidates": written}, "connector.toml")

    assert written == str(rule)
    assert cutoff == rule.cutoff(MARCH)


@pytest.mark.parametrize(
    ("resource", "written", "error"),
    [
        ("candidates", "after two years", SettingsError),
        ("candidates", "0 days after updated_at", SettingsError),
        ("candidates", "2 weeks after updated_at", UnknownName),
        ("candidates", "2 years after birthday", UnknownName),
        ("candidates", "2 years after date_of_birth", UnknownName),
        ("candidates", "2 years after updated_at where status in gone", UnknownName),
        ("candidates", "2 years after updated_at where source in fair", UnknownName),
        ("candidates", "2 years after updated_at where status", SettingsError),
        ("jobs", "2 years after updated_at", UnknownName),
    ],
)
def test_an_invalid_retention_rule_is_refused(
    resource: str, written: str, error: type[ConnectorError]
) -> None:
    with pytest.raises(error, match=f"retention.*{'' if resource == 'jobs' else resource}"):
        parse_rules({resource: written}, "connector.toml")


def test_retention_rules_come_from_the_project_file(tmp_path: Path) -> None:
    (tmp_path / "connector.toml").write_text(
        "[retention]\nleads = '1 years after updated_at'\n"
        "[accounts.acme]\n[accounts.acme.retention]\nleads = '2 years after updated_at'\n"
        "[accounts.globex]\n",
        encoding="utf-8",
    )

    assert ["1 years", "2 years"] == [
        load_settings({"account": name}, {}, tmp_path).retention.value["leads"][:7]
        for name in ("globex", "acme")
    ]
    (tmp_path / "connector.toml").write_text("retention = 'two years'\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="a table of rules"):
        load_settings({}, {}, tmp_path)


def set_retention_rules(agency: PopulatedAgency, **rules: str) -> PopulatedAgency:
    """Replace the agency's retention rules by these, by resource. Returns the agency."""
    agency.settings = replace(agency.settings, retention=Setting(rules, "connector.toml"))
    return agency


@pytest.mark.slow
def test_retention_erases_expired_people_except_placed_ones(tmp_path: Path) -> None:
    agency = set_retention_rules(
        copy_populated_agency(tmp_path), candidates="1 days after created_at"
    )
    ids = {id for (id,) in agency.query_work_file("SELECT id FROM landing.candidates")}
    placed = {
        id
        for (id,) in agency.query_work_file(
            "SELECT id FROM landing.candidates WHERE status IN ('placed', 'offer_accepted') OR "
            "employment_status = 'placed' OR id IN (SELECT candidate_id FROM landing.bookings "
            "WHERE booking_type IN ('contract', 'permanent') AND status NOT IN "
            "('draft', 'cancelled'))"
        )
    }
    held = list(find_traces(agency.folder, EMAIL))

    (due,) = apply_retention(agency.settings, now=lambda: NOW).due
    assert (ids - placed, len(placed)) == (set(due.ids), due.placed)
    assert 0 < len(placed) < len(ids)
    assert held == list(find_traces(agency.folder, EMAIL))

    done = apply_retention(agency.settings, applies=True, limit=2, now=lambda: NOW)

    assert done.erased is not None
    (receipt,) = done.erased.receipts
    assert () == receipt.left
    erased = {
        id
        for (id,) in agency.query_work_file(
            "SELECT id FROM landing.candidates WHERE last_name IS NULL"
        )
    }
    assert set(due.ids[:2]) == erased
    (after,) = apply_retention(agency.settings, now=lambda: NOW).due
    assert ids - placed - erased == set(after.ids)


def test_retention_without_rules_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(Misused) as raised:
        apply_retention(load_settings({}, {}, tmp_path))

    assert "[retention]" in raised.value.action

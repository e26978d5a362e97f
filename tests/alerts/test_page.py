"""The page of alerts is equal to the table in the code."""

from __future__ import annotations

from connector.operations.findings import (
    ALERTS,
    BY_CODE,
    CLOCK_SECONDS_MAX,
    COMPARED_MAX,
    COMPARED_MIN,
    COST_FACTOR,
    COST_REQUESTS_MIN,
    SLOW_FACTOR,
)
from connector.settings.values import KINDS
from tests.catalog.document import list_quoted_words, parse_tables
from tests.repository import ROOT

PAGE = (ROOT / "docs" / "ALERTS.md").read_text(encoding="utf-8")


def test_the_alerts_page_lists_every_alert_as_declared() -> None:
    table = next(t for t in parse_tables(PAGE) if t.header[0] == "Alert")
    rows = [
        (list_quoted_words(row["Alert"])[0], row["Kind"], row["About"], row["Next action"])
        for row in table.rows_as_dicts()
    ]

    assert [(each.code, each.kind, each.about, each.action) for each in ALERTS.values()] == rows


def test_the_alerts_page_states_the_thresholds_of_the_code() -> None:
    text = " ".join(PAGE.split())

    assert f"{COST_FACTOR} times the median" in text
    assert f"at least {COST_REQUESTS_MIN} requests more" in text
    assert f"{COMPARED_MIN} to {COMPARED_MAX} pulls" in text
    assert f"{SLOW_FACTOR} times the median" in text
    assert f"{CLOCK_SECONDS_MAX // 60} minutes" in text


def test_every_alert_has_a_known_kind_and_an_action() -> None:
    assert set(KINDS) == {each.kind for each in ALERTS.values()}
    for each in ALERTS.values():
        assert not each.over.endswith(".")
        assert each.action == BY_CODE or each.action.endswith(".")

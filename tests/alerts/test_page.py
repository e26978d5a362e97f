"""The page of alerts is equal to what is declared, and every alert can be decided."""

from __future__ import annotations

import inspect

from connector.operations import findings
from connector.operations.alerts import ALERTS, BY_CODE
from connector.operations.findings import (
    CLOCK_SECONDS_MAX,
    COST_FACTOR,
    COST_PULLS_MAX,
    COST_PULLS_MIN,
    COST_REQUESTS_MIN,
    SLOW_FACTOR,
)
from connector.settings.values import KINDS
from tests.catalog.document import quoted, read_tables
from tests.repository import ROOT

PAGE = (ROOT / "docs" / "ALERTS.md").read_text(encoding="utf-8")


def test_page_lists_every_alert_as_it_is_declared() -> None:
    table = next(t for t in read_tables(PAGE) if t.header[0] == "Alert")
    rows = [
        (quoted(row["Alert"])[0], row["Kind"], row["About"], row["Meaning"], row["Next action"])
        for row in table.records()
    ]

    assert [
        (each.code, each.kind, each.about, each.meaning, each.action) for each in ALERTS.values()
    ] == rows


def test_page_states_the_rules_as_they_are() -> None:
    told = " ".join(PAGE.split())

    assert f"{COST_FACTOR} times the median" in told
    assert f"at least {COST_REQUESTS_MIN} requests more" in told
    assert f"at least {COST_PULLS_MIN} and at most {COST_PULLS_MAX} pulls" in told
    assert f"{SLOW_FACTOR} times the median" in told
    assert f"{CLOCK_SECONDS_MAX // 60} minutes" in told


def test_every_alert_can_be_decided_and_says_something() -> None:
    text = inspect.getsource(findings)

    assert [] == [code for code in ALERTS if f'Subject("{code}"' not in text]
    assert set(KINDS) == {each.kind for each in ALERTS.values()}
    for each in ALERTS.values():
        assert each.meaning.endswith(".")
        assert not each.over.endswith(".")
        assert each.action == BY_CODE or each.action.endswith(".")

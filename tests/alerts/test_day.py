"""A day of three accounts with a moved clock: the alerts that arrive are exactly those listed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from connector.operations.alert_check import check_alerts
from connector.warehouse import warehouse
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.runs import Publication
from tests.alerts import agency as agency_module
from tests.alerts.agency import Agency, Clock, settings_of
from tests.alerts.receivers import Receiver

MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
NEXT_CYCLE = datetime(2026, 12, 1, tzinfo=UTC)
BETWEEN = ((2, 20), (9, 20), (9, 40), (22, 20))
"""Checks besides those at every full hour."""

EXPECTED = {
    # Published late at night against checks that block; candidates unproven at nine, while the
    # webhook is down, so that only the end of the problem is reported when it is up again.
    "acme": [
        ("02:20", "opened", "publication_failed", ""),
        ("03:00", "ended", "publication_failed", ""),
        ("10:00", "ended", "not_proven", "candidates"),
    ],
    # Its key is refused all day, which says why nothing is proven 26 hours later as well.
    "globex": [("00:00", "opened", "pull_failed", "")],
    # Its month is spent at noon.
    "initech": [("12:00", "opened", "quota_spent", "")],
}


@pytest.fixture
def open_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work files stay open from their first use to the end: opening each some fifty times is what
    a day would cost.
    """
    held: dict[Path, duckdb.DuckDBPyConnection] = {}
    with ExitStack() as stack:

        @contextmanager
        def once(path: Path, **options: bool) -> Iterator[duckdb.DuckDBPyConnection]:
            if path not in held:
                held[path] = stack.enter_context(open_file(path))
            yield held[path]

        for module in (warehouse, agency_module):
            monkeypatch.setattr(module, "open_file", once)
        yield


def publish(agency: Agency, name: str, outcome: str) -> None:
    """Write down a publication that ends now."""
    failed = () if outcome == "published" else ("unique_fct_jobs_id",)
    now = agency.clock.now
    row = Publication(name, now, ended_at=now, outcome=outcome, failed_checks=failed)
    if outcome == "refused":
        said = "nothing was published: 1 check has failed: unique_fct_jobs_id (2 rows)"
        row = Publication(
            *(name, now),
            ended_at=now,
            outcome=outcome,
            failed_checks=failed,
            error_code="publishing_refused",
            message=said,
        )
    agency.publish(row)


def hour_of(agencies: dict[str, Agency], hour: int) -> None:
    """The pulls of an hour."""
    agencies["acme"].pull(
        "partial" if hour == 9 else "done",
        unlike={"candidates": {"outcome": "partial", "proven": False, "message": "it moved"}}
        if hour == 9
        else {},
    )
    if hour == 3:
        publish(agencies["acme"], "b", "published")
    refused = "GET /jobs was answered 401: Annabel Quist is not known"
    agencies["globex"].pull("failed", requests=1, error_code="unauthorized", message=refused)
    if hour == 12:
        agencies["initech"].quota_ends(NEXT_CYCLE)
    if hour < 12:
        agencies["initech"].pull()
    else:
        spent = {"requests": 0, "error_code": "quota_spent", "message": "the month is spent"}
        agencies["initech"].pull("stopped", **spent)  # type: ignore[arg-type]


@pytest.mark.usefixtures("open_files")
def test_alerts_of_a_day_are_exactly_these(tmp_path: Path) -> None:
    clock = Clock(MIDNIGHT - timedelta(hours=4))
    with Receiver() as webhook:
        agencies = {
            name: Agency(
                settings_of(tmp_path, name, alert_webhook=webhook.address), clock, ("candidates",)
            )
            for name in EXPECTED
        }
        for agency in agencies.values():
            agency.pull()
        publish(agencies["acme"], "first", "published")
        clock.now = MIDNIGHT
        late = []
        for hour, minute in sorted([*((hour, 0) for hour in range(24)), *BETWEEN]):
            clock.now = MIDNIGHT + timedelta(hours=hour, minutes=minute)
            if minute == 0:
                hour_of(agencies, hour)
                if hour == 9:
                    webhook.go_down()
                if hour == 10:
                    webhook.go_up()
            if (hour, minute) == (2, 20):
                agencies["acme"].pull(command="dagster")
                publish(agencies["acme"], "a", "refused")
            for agency in agencies.values():
                done = check_alerts(agency.settings, now=clock)
                late += [clock.now] * bool(done.failures)
        received, bodies = webhook.received, b"".join(webhook.bodies)

    for name, expected in EXPECTED.items():
        mine = [each for each in received if each["account"] == name]
        assert expected == [
            (each["at"][11:16], each["change"], each["code"], each["about"] or "") for each in mine
        ]
        assert all(each["title"] and each["happened"] for each in mine)
    assert sum(map(len, EXPECTED.values())) == len(received)
    assert len(received) == len({each["id"] for each in received})
    # Every check tries while it is down, and no check fails since it is up.
    assert ["09:00", "09:20", "09:40"] == [f"{each:%H:%M}" for each in late]
    assert b"Annabel" not in bodies
    (refused,) = [each for each in received if each["code"] == "pull_failed"]
    assert "globex: pull failed (API key rejected, 401)" == refused["title"]
    assert "GET /jobs was answered 401." == refused["happened"]
    assert "Check CONNECTOR_API_KEY" in refused["action"]

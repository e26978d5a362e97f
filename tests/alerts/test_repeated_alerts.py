"""What is not well: each alert is due when its page says so, and not before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from connector.errors import NotAWarehouse
from connector.ledger.alert_states import AlertRecord
from connector.ledger.journal_reads import Doubt, PushHealth, PushRun
from connector.ledger.ledger import LedgerStatus
from connector.ledger.quota import Month, Period
from connector.operations.alerts import Seen, Subject, Trouble
from connector.operations.findings import (
    FileSnapshot,
    JobRun,
    look,
    of_clock,
    of_cost,
    of_month,
    of_pulls,
    of_pushes,
    of_silence,
    of_speed,
    sight_of,
)
from connector.settings.values import read_age
from connector.warehouse.runs import Health, Publication, ResourceRun, Run
from tests.alerts.agency import DONE, START, settings_of

AGE = read_age("26h")


def run(hours: float, outcome: str | None = "done", requests: int = 10, **unlike: object) -> Run:
    """A run that began so many hours before the start."""
    began = START - timedelta(hours=hours)
    made = Run(f"run-{hours:g}", "pull", began, began, outcome, requests=requests)
    return replace(made, **unlike)  # type: ignore[arg-type] # of a test


def health(
    *runs: Run,
    resources: Mapping[str, ResourceRun] | None = None,
    publications: tuple[Publication, ...] = (),
    scrubs: Mapping[str, int] | None = None,
) -> Health:
    """A health with these runs, newest first; resources are of the newest."""
    done = {name: (runs[0].run_id, each) for name, each in (resources or {}).items()}
    first = runs[-1].started_at if runs else None
    return Health(runs, scrubs or {}, first, done, {}, publications)


def month_of(limit: int | None, used: int = 500, forecast: int | None = None) -> LedgerStatus:
    """A month of November in which so many requests are used."""
    period = Period(START.date().replace(day=1), START.date().replace(month=12, day=1))
    return LedgerStatus(Month(period, used, limit, 50), 30, forecast, None, None, ())


def seen(found: Seen) -> dict[str, Trouble | None]:
    """What is seen, by the names of its subjects."""
    return {":".join(filter(None, subject)): finding for subject, finding in found}


def bad(found: Seen) -> list[str]:
    """The subjects that are not well."""
    return [name for name, finding in seen(found).items() if finding is not None]


# -- pulls ----------------------------------------------------------------------------------------


def test_a_pull_fails_since_the_first_of_those_in_a_row() -> None:
    last = run(1, "failed", error_code="unreachable", message="no connection could be made")
    runs = (last, run(2, "interrupted"), run(3, "failed"), run(4))

    found = seen(of_pulls(health(*runs), ()))["pull_failed"]

    assert found is not None
    assert START - timedelta(hours=3) == found.since
    assert ("failed", "interrupted", "unreachable") == found.causes
    assert "the last 3 pulls failed (the API cannot be reached)" == found.title
    assert "No connection could be made." == found.happened
    assert "Check CONNECTOR_BASE_URL" in found.action


def test_a_run_under_way_says_nothing_and_one_that_was_cut_off_does() -> None:
    runs = (run(1, None), run(2))

    assert [] == bad(of_pulls(health(*runs), {"run-1"}))
    found = seen(of_pulls(health(*runs), ()))["pull_failed"]
    assert found is not None
    assert "pull was interrupted" == found.title


def test_a_pull_that_was_stopped_before_its_first_request_tells_nothing() -> None:
    assert {} == seen(of_pulls(health(run(1, "stopped", 0)), ()))
    assert {"pull_failed": None} == seen(of_pulls(health(run(1, "stopped", 7)), ()))


def test_one_cause_is_told_once() -> None:
    """A resource that failed with what ended the run is not told of, and neither is a pull that
    failed because it could not publish.
    """
    gone = replace(DONE, outcome="failed", proven=False, error_code="unreachable", message="gone")
    failed = run(1, "failed", error_code="unreachable", message="gone")
    refused = Publication(
        *("p", START), run_id="run-1", outcome="refused", error_code="publishing_refused"
    )
    unpublished = run(1, "failed", error_code="publishing_refused")

    found = health(failed, resources={"jobs": gone})
    assert ["pull_failed"] == bad(of_pulls(found, ()))
    # A later pull of something else has ended well, and mends nothing of this resource.
    later = replace(found, runs=(run(0.5), *found.runs))
    assert ["not_proven:jobs"] == bad(of_pulls(later, ()))
    by_publication = of_pulls(health(unpublished, publications=(refused,)), ())
    assert ["publication_failed"] == bad(by_publication)


@pytest.mark.parametrize(
    ("unlike", "expected"),
    [
        ({}, []),
        ({"outcome": "partial", "proven": False, "message": "it moved"}, ["not_proven:jobs"]),
        ({"outcome": "skipped", "proven": False, "error_code": "forbidden"}, ["not_proven:jobs"]),
        ({"outcome": "stopped", "proven": False}, []),
        ({"outcome": "done", "proven": False, "message": "only these"}, []),
        (
            {"outcome": "partial", "proven": False, "anomalies": {"mass_deletion": 1}},
            ["deletions_refused:jobs"],
        ),
    ],
)
def test_resources(unlike: Mapping[str, object], expected: list[str]) -> None:
    """What is not proven, refused or odd is told by resource; what was stopped, or asked for by
    its ids, is not; lateness is allowed for by itself.
    """
    done = replace(DONE, **unlike)  # type: ignore[arg-type] # of a test

    assert expected == bad(of_pulls(health(run(1, "partial"), resources={"jobs": done}), ()))


def test_scope_that_is_missing_is_named() -> None:
    done = replace(DONE, outcome="skipped", proven=False, error_code="forbidden")

    found = seen(of_pulls(health(run(1, "partial"), resources={"jobs": done}), ()))

    assert found["not_proven:jobs"] is not None
    assert "Give the key the scope 'jobs.read'" in found["not_proven:jobs"].action


@pytest.mark.parametrize(
    ("last", "before", "is_dear"),
    [
        (10, [10] * 8, False),
        (109, [10] * 8, False),
        (110, [10] * 8, True),
        (110, [10] * 4, False),
        (300, [100] * 8, False),
        (301, [100] * 8, True),
        (301, [5000] + [100] * 8, True),
    ],
)
def test_cost_is_held_against_the_median(last: int, before: list[int], is_dear: bool) -> None:
    found = health(*(run(n, requests=n_of) for n, n_of in enumerate([last, *before])))

    assert (["cost_rising"] if is_dear else []) == bad(of_cost(found, (), month_of(10_000)))
    assert [] == bad(of_cost(found, (), month_of(100_000)))
    assert [] == bad(of_cost(found, (), month_of(None)))


def test_scrubs_budgets_and_other_commands_are_no_cost_to_compare() -> None:
    usual = [run(n + 1, requests=10) for n in range(8)]
    scrubbed = health(run(0, requests=400), *usual, scrubs={"run-0": 390})

    for each in (
        scrubbed,
        health(run(0, requests=400, command="sweep"), *usual),
        health(run(0, requests=400, budget=400), *usual),
    ):
        assert [] == bad(of_cost(each, (), month_of(1000)))


def test_checks_that_warn_are_named_while_the_file_has_findings() -> None:
    warned = Publication(
        *("p", START),
        ended_at=START,
        outcome="published",
        failed_checks=("a_b", "c_d"),
        failed_rows=(3, 1),
        failed_samples=("id-7", None),
    )
    found = seen(of_pulls(health(run(1), publications=(warned,)), ()))

    assert found["checks_warn"] is not None
    assert "2 data checks have warnings" == found["checks_warn"].title
    assert "a_b: 3 rows (for example id-7); c_d: 1 row." == found["checks_warn"].happened
    assert None is found["publication_failed"]


# -- pushes ---------------------------------------------------------------------------------------


def batch(hours: float, outcome: str | None, refused: int = 0, **unlike: object) -> PushRun:
    """The last run at a file, so many hours before the start."""
    began = START - timedelta(hours=hours)
    made = PushRun(f"b-{hours:g}", "leads", began, began, outcome, None, None, refused)
    return replace(made, **unlike)  # type: ignore[arg-type] # of a test


@pytest.mark.parametrize(
    ("pushed", "is_under_way", "expected"),
    [
        (PushHealth(), False, []),
        (PushHealth((batch(1, "done"),)), False, []),
        (PushHealth((batch(1, "failed"), batch(2, "done", 2))), False, ["push_failed"]),
        (PushHealth((batch(1, None), batch(2, "done"))), False, ["push_failed"]),
        (PushHealth((batch(1, None), batch(2, "done"))), True, []),
        (PushHealth((batch(1, "partial", 3),)), False, ["rows_rejected:leads"]),
        (
            PushHealth((batch(1, "done"), batch(2, "partial", 3, resource="jobs"))),
            False,
            ["rows_rejected:jobs"],
        ),
        (PushHealth((batch(1, "done"), batch(2, "partial", 3))), False, []),
        (PushHealth(held=Doubt(2, START)), True, ["rows_in_doubt"]),
        (PushHealth(open=Doubt(2, START)), False, ["rows_in_doubt"]),
        (PushHealth(open=Doubt(2, START)), True, []),
    ],
)
def test_pushes(pushed: PushHealth, is_under_way: bool, expected: list[str]) -> None:
    """A push that failed or was cut off, rows that its last push of a resource left behind, and
    rows in doubt are told; those that a push is at work at are not.
    """
    assert expected == bad(of_pushes(pushed, is_under_way=is_under_way))


# -- the month ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "limit", "forecast", "expected"),
    [
        (500, None, 9000, {"quota_spent": False, "quota_forecast": False}),
        (500, 1000, 1001, {"quota_spent": False, "quota_forecast": True}),
        (500, 1000, 1000, {"quota_spent": False}),
        (500, 1000, 950, {"quota_spent": False, "quota_forecast": False}),
        (500, 1000, None, {"quota_spent": False}),
        (950, 1000, 1200, {"quota_spent": True}),
    ],
)
def test_month(
    used: int, limit: int | None, forecast: int | None, expected: dict[str, bool]
) -> None:
    """A forecast above the plan is told, and is well again only clearly below it; a month of which
    only the people's part is left is spent, and then no forecast is needed.
    """
    found = seen(of_month(month_of(limit, used, forecast)))

    assert expected == {name: each is not None for name, each in found.items()}


# -- the API --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "title"),
    [
        (0.0, None),
        (-300.0, None),
        (301.0, "this machine's clock is 5 minutes ahead of the API's"),
        (-2 * 86_400.0, "this machine's clock is 2 days behind the API's"),
    ],
)
def test_a_wrong_clock_is_measured_against_the_servers(ahead: float, title: str | None) -> None:
    found = seen(of_clock(ahead))["clock_wrong"]

    assert title == (found and found.title)
    assert {} == seen(of_clock(None))


@pytest.mark.parametrize(
    ("seconds", "requests", "waited", "is_slow"),
    [(67.0, 35, 0.0, True), (67.0, 5, 0.0, False), (30.0, 35, 0.0, False), (67.0, 35, 60.0, False)],
)
def test_a_slow_api_is_reported_by_the_time_of_a_request(
    seconds: float, requests: int, waited: float, is_slow: bool
) -> None:
    usual = [run(n + 1, requests=10, seconds=1.0) for n in range(6)]
    last = run(0, requests=requests, seconds=seconds, waited_seconds=waited)

    assert (["api_slow"] if is_slow else []) == bad(of_speed(health(last, *usual), ()))
    assert [] == bad(of_speed(health(last, *usual[:4]), ()))


# -- silence --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ({"jobs": 26.0, "leads": None}, None),
        ({"jobs": 26.1, "leads": 1.0}, "No proven pull of jobs is younger than 26h"),
        ({"jobs": 27.0, "leads": 90.0}, "No proven pull of jobs, leads is younger than 26h"),
    ],
)
def test_silence_is_the_age_of_the_oldest_proof(
    hours: dict[str, float | None], expected: str | None
) -> None:
    proven = {n: START - timedelta(hours=h) if h else None for n, h in hours.items()}
    found = seen(of_silence(replace(health(), proven_at=proven), START, AGE))["silent"]

    assert expected == (found and found.happened.partition(":")[0])


def test_first_pull_has_time_and_none_at_all_has_not() -> None:
    assert {} == seen(of_silence(health(run(25, "failed")), START, AGE))
    assert ["silent"] == bad(of_silence(health(run(27, "failed")), START, AGE))
    assert ["silent"] == bad(of_silence(None, START, AGE))


# -- files and jobs -------------------------------------------------------------------------------


def test_a_file_that_cannot_be_read_is_told_and_the_rest_stays_unknown(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    settings.make_folder()
    (settings.folder / "work.duckdb").write_bytes(b"not a database" * 1000)

    sight = sight_of(look(settings, START))

    assert {Subject("files_unusable"), Subject("settings_wrong")} == set(sight)
    assert None is sight[Subject("settings_wrong")]
    found = sight[Subject("files_unusable")]
    assert found is not None
    assert NotAWarehouse.action == found.action


def test_a_job_is_told_only_where_the_connector_wrote_nothing_down() -> None:
    """A failed job of Dagster is an alert of its own where no run was recorded since it began."""
    job = JobRun("nightly_pull", "d-1", START - timedelta(hours=2), failed=True)
    silent = FileSnapshot(START, AGE, health(run(3)), None, None, None)
    recorded = FileSnapshot(START, AGE, health(run(1.9, "failed")), None, None, None)

    assert sight_of(silent, [job])[Subject("job_failed", "nightly_pull")] is not None
    assert None is sight_of(recorded, [job])[Subject("job_failed", "nightly_pull")]
    assert (
        None
        is sight_of(silent, [replace(job, failed=False)])[Subject("job_failed", "nightly_pull")]
    )
    assert Subject("job_failed", "nightly_pull") not in sight_of(silent)
    stands = AlertRecord(
        *("job_failed", "nightly_pull", job.started_at, START, "opened", START),
        *("job failed", "It failed.", "Look."),
    )
    mended = replace(recorded, alerts=(stands,))
    assert None is sight_of(mended)[Subject("job_failed", "nightly_pull")]
    assert Subject("job_failed", "nightly_pull") not in sight_of(replace(silent, alerts=(stands,)))

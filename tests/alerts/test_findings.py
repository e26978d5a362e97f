"""Conditions of alerts: each alert is due exactly under the conditions in docs/ALERTS.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from connector.errors import NotAWarehouse, WarehouseError
from connector.errors_api import AnswerBroken, TryAgain, Unreachable
from connector.ledger.alert_states import AlertRecord
from connector.ledger.journal_records import PushHealth, PushRun, UnknownRows
from connector.ledger.ledger import LeaseOwner, Ledger, LedgerStatus
from connector.ledger.quota import BillingPeriod, MonthUse
from connector.operations.findings import (
    AccountProblem,
    FileSnapshot,
    JobRun,
    action_when_scheduled,
    find_problems,
    read_snapshot,
    remove_api_text,
)
from connector.settings.values import parse_age
from connector.warehouse.runs import Publication, ResourceRun, Run, RunHealth
from tests.alerts.agency import DONE, START, RecordedAccount, load_account_settings
from tests.support.clock import Clock

AGE = parse_age("26h")


def make_run(
    hours_ago: float, outcome: str | None = "done", requests: int = 10, **overrides: Any
) -> Run:
    """Return a pull run that started `hours_ago` before START; `overrides` replaces its fields."""
    began = START - timedelta(hours=hours_ago)
    made = Run(f"run-{hours_ago:g}", "pull", began, began, outcome, requests=requests)
    return replace(made, **overrides)


def make_health(
    *runs: Run,
    resources: Mapping[str, ResourceRun] | None = None,
    publications: tuple[Publication, ...] = (),
    scrubs: Mapping[str, int] | None = None,
) -> RunHealth:
    """Return the health of these runs, newest first. The resources are results of the newest run;
    `scrubs` counts reverified records by resource.
    """
    done = {name: (runs[0].run_id, each) for name, each in (resources or {}).items()}
    first = runs[-1].started_at if runs else START
    return RunHealth(runs, scrubs or {}, first, done, {}, publications)


def make_quota(limit: int | None, used: int = 500, forecast: int | None = None) -> LedgerStatus:
    """Return the ledger's status in November for these requests."""
    period = BillingPeriod(START.date().replace(day=1), START.date().replace(month=12, day=1))
    return LedgerStatus(MonthUse(period, used, limit, 50), 30, forecast, None, None, ())


def find_problems_by_subject(
    health: RunHealth | None = None, **snapshot: Any
) -> dict[str, AccountProblem | None]:
    """Return the problem of each checked subject, None without one. `snapshot` sets fields of
    `FileSnapshot`.
    """
    made = FileSnapshot(START, AGE, health or make_health(), **snapshot)
    return {":".join(filter(None, subject)): each for subject, each in find_problems(made).items()}


def find_problem_subjects(health: RunHealth | None = None, **snapshot: Any) -> list[str]:
    """Return the subjects that have problems."""
    return [
        name
        for name, each in find_problems_by_subject(health, **snapshot).items()
        if each is not None
    ]


# -- pulls -----------------------------------------------------------------------------------------


def test_a_pull_failure_starts_at_the_first_of_the_consecutive_failures() -> None:
    last = make_run(1, "failed", error_code="unreachable", message="no connection could be made")
    found = find_problems_by_subject(
        make_health(last, make_run(2, "interrupted"), make_run(3, "failed"), make_run(4))
    )["pull_failed"]

    assert found is not None
    assert START - timedelta(hours=3) == found.since
    assert ("failed", "interrupted", "unreachable") == found.causes
    assert "the last 3 pulls failed (the API cannot be reached)" == found.title
    assert "No connection could be made." == found.happened
    assert "Check CONNECTOR_BASE_URL and the network. The next pull tries again." == found.action


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("GET /jobs was answered 401: Annabel Quist", ("GET /jobs was answered 401.", "401")),
        ("GET /jobs was answered with HTML", ("GET /jobs was answered with HTML.", "")),
        ("'a' is none. Did you mean 'b'?", ("'a' is none. Did you mean 'b'?", "")),
        ("api_key is empty", ("api_key is empty.", "")),
        (None, ("", "")),
    ],
)
def test_texts_of_the_api_are_removed_from_messages(
    message: str | None, expected: tuple[str, str]
) -> None:
    assert expected == remove_api_text(message)


def test_only_an_interrupted_run_is_reported_and_not_a_running_one(tmp_path: Path) -> None:
    settings, clock = load_account_settings(tmp_path), Clock(START)
    begun = RecordedAccount(settings, clock).record_pull(
        "done", overrides={"jobs": {"proven": False}}
    )
    owner = LeaseOwner.of_this_process(begun.run_id, "pull")
    with Ledger(settings.folder) as ledger, pytest.MonkeyPatch.context() as patch:
        cut = replace(make_health(), runs=(replace(begun, outcome=None),))
        patch.setattr("connector.warehouse.warehouse.Warehouse.health", lambda _: cut)
        ledger.take_lease("pull", owner, clock.now)
        under_way = read_snapshot(settings, clock.now)
        ledger.release_lease("pull", begun.run_id)
        found = dict(find_problems(read_snapshot(settings, clock.now)))[("pull_failed", "")]  # type: ignore[index]

    assert () == under_way.runs
    assert found is not None
    assert "pull interrupted" == found.title


def test_a_pull_stopped_before_its_first_request_leaves_the_alert_unchanged() -> None:
    assert "pull_failed" not in find_problems_by_subject(make_health(make_run(1, "stopped", 0)))
    assert None is find_problems_by_subject(make_health(make_run(1, "stopped", 7)))["pull_failed"]


def test_one_cause_is_reported_under_one_subject_only() -> None:
    """A resource has no separate alert if the same error ended the run. A pull has none if it
    failed because publishing failed.
    """
    gone = replace(DONE, outcome="failed", proven=False, error_code="unreachable", message="gone")
    failed = make_run(1, "failed", error_code="unreachable", message="gone")
    refused = Publication(
        *("p", START), run_id="run-1", outcome="refused", error_code="publishing_refused"
    )
    unpublished = make_run(1, "failed", error_code="publishing_refused")

    found = make_health(failed, resources={"jobs": gone})
    assert ["pull_failed"] == find_problem_subjects(found)
    # A later pull of another resource succeeded, which does not resolve this alert.
    assert ["not_proven:jobs"] == find_problem_subjects(
        replace(found, runs=(make_run(0.5), *found.runs))
    )
    assert ["publication_failed"] == find_problem_subjects(
        make_health(unpublished, publications=(refused,))
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
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
def test_unverified_resources_and_refused_deletions_are_reported_per_resource(
    fields: Mapping[str, Any], expected: list[str]
) -> None:
    done = replace(DONE, **fields)

    assert expected == find_problem_subjects(
        make_health(make_run(1, "partial"), resources={"jobs": done})
    )


@pytest.mark.parametrize(
    ("last", "before", "is_reported"),
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
def test_rising_cost_is_reported_by_comparison_with_the_median(
    last: int, before: list[int], is_reported: bool
) -> None:
    found = make_health(*(make_run(n, requests=n_of) for n, n_of in enumerate([last, *before])))

    assert (["cost_rising"] if is_reported else []) == find_problem_subjects(
        found, quota=make_quota(10_000)
    )
    assert [] == find_problem_subjects(found, quota=make_quota(100_000))
    assert [] == find_problem_subjects(found, quota=make_quota(None))


def test_reverification_limited_runs_and_other_commands_do_not_count_as_rising_cost() -> None:
    usual = [make_run(n + 1, requests=10) for n in range(8)]
    for each in (
        make_health(make_run(0, requests=400), *usual, scrubs={"run-0": 390}),
        make_health(make_run(0, requests=400, command="sweep"), *usual),
        make_health(make_run(0, requests=400, budget=400), *usual),
    ):
        assert [] == find_problem_subjects(each, quota=make_quota(1000))


@pytest.mark.parametrize(
    ("seconds", "requests", "waited", "is_slow"),
    [(67.0, 35, 0.0, True), (67.0, 5, 0.0, False), (30.0, 35, 0.0, False), (67.0, 35, 60.0, False)],
)
def test_a_slow_api_is_reported_by_the_seconds_per_request(
    seconds: float, requests: int, waited: float, is_slow: bool
) -> None:
    usual = [make_run(n + 1, requests=10, seconds=1.0) for n in range(6)]
    last = make_run(0, requests=requests, seconds=seconds, waited_seconds=waited)

    assert (["api_slow"] if is_slow else []) == find_problem_subjects(make_health(last, *usual))
    assert [] == find_problem_subjects(make_health(last, *usual[:4]))


# -- pushes ----------------------------------------------------------------------------------------


def make_push_run(
    hours_ago: float, outcome: str | None, refused: int = 0, **overrides: Any
) -> PushRun:
    """Return a push run that started `hours_ago` before START; `overrides` replaces its fields."""
    began = START - timedelta(hours=hours_ago)
    made = PushRun(f"b-{hours_ago:g}", "leads", began, began, outcome, None, None, refused)
    return replace(made, **overrides)


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        (PushHealth(), []),
        (PushHealth((make_push_run(1, "done"),)), []),
        (PushHealth((make_push_run(1, "failed"), make_push_run(2, "done", 2))), ["push_failed"]),
        (PushHealth((make_push_run(1, None), make_push_run(2, "done"))), ["push_failed"]),
        (PushHealth((make_push_run(1, "partial", 3),)), ["rows_rejected:leads"]),
        (
            PushHealth((make_push_run(1, "done"), make_push_run(2, "partial", 3, resource="jobs"))),
            ["rows_rejected:jobs"],
        ),
        (PushHealth((make_push_run(1, "done"), make_push_run(2, "partial", 3))), []),
        (PushHealth(held=UnknownRows(2, START)), ["rows_in_doubt"]),
        (PushHealth(open=UnknownRows(2, START)), ["rows_in_doubt"]),
    ],
)
def test_push_failures_rejected_rows_and_unknown_rows_are_reported(
    pushed: PushHealth, expected: list[str]
) -> None:
    assert expected == find_problem_subjects(pushes=pushed, quota=make_quota(None))


def test_the_action_for_a_failed_push_does_not_mention_the_next_pull() -> None:
    failed = PushHealth((make_push_run(1, "failed", error_code="no_answer", message="no answer"),))
    found = find_problems_by_subject(pushes=failed)["push_failed"]

    assert found is not None
    assert TryAgain.action == found.action


# -- quota, clock, silence -------------------------------------------------------------------------


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
def test_a_quota_forecast_near_the_limit_leaves_the_alert_unchanged(
    used: int, limit: int | None, forecast: int | None, expected: dict[str, bool]
) -> None:
    found = find_problems_by_subject(quota=make_quota(limit, used, forecast))

    assert expected == {n: e is not None for n, e in found.items() if n.startswith("quota")}


@pytest.mark.parametrize(
    ("ahead", "title"),
    [
        (0.0, None),
        (-300.0, None),
        (301.0, "this machine's clock is 5 minutes ahead of the API's"),
        (-2 * 86_400.0, "this machine's clock is 2 days behind the API's"),
    ],
)
def test_a_clock_that_differs_from_the_servers_by_over_five_minutes_is_reported(
    ahead: float, title: str | None
) -> None:
    found = find_problems_by_subject(ahead_seconds=ahead)["clock_wrong"]

    assert title == (found and found.title)
    assert "clock_wrong" not in find_problems_by_subject()


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ({"jobs": 26.0, "leads": None}, None),
        ({"jobs": 26.1, "leads": 1.0}, "Not verified for more than 26h: jobs"),
        ({"jobs": 27.0, "leads": 90.0}, "Not verified for more than 26h: jobs, leads"),
    ],
)
def test_silence_is_reported_by_the_oldest_verification(
    hours: dict[str, float | None], expected: str | None
) -> None:
    proven = {n: START - timedelta(hours=h) if h else None for n, h in hours.items()}
    found = find_problems_by_subject(replace(make_health(), proven_at=proven))["silent"]

    assert expected == (found and found.happened.partition(" (since")[0])


def test_silence_is_reported_a_day_after_the_first_run_or_immediately_without_one() -> None:
    assert "silent" not in find_problems_by_subject(make_health(make_run(25)))
    assert ["silent"] == find_problem_subjects(make_health(make_run(27)))
    assert ["silent"] == find_problem_subjects(replace(make_health(), first_run_at=None))


# -- files and jobs --------------------------------------------------------------------------------


def test_an_unreadable_file_is_reported_and_other_subjects_stay_unchecked(tmp_path: Path) -> None:
    settings = load_account_settings(tmp_path)
    settings.make_folder()
    (settings.folder / "work.duckdb").write_bytes(b"not a database" * 1000)

    problems = {
        subject.code: found
        for subject, found in find_problems(read_snapshot(settings, START)).items()
    }

    assert {"files_unusable", "settings_wrong"} == set(problems)
    assert None is problems["settings_wrong"]
    assert problems["files_unusable"] is not None
    assert NotAWarehouse.action == problems["files_unusable"].action


def test_actions_mention_the_next_pull_instead_of_running_the_command_again() -> None:
    for action in (
        TryAgain.action,
        Unreachable.action,
        AnswerBroken.action,
        WarehouseError.codes["disk_full"],
    ):
        assert "ommand again" in action
        assert "ommand again" not in action_when_scheduled(action)
        assert "next pull" in action_when_scheduled(action)


def test_a_failed_job_is_reported_only_if_the_connector_recorded_no_run() -> None:
    job = JobRun("pull", "d-1", START - timedelta(hours=2), failed=True)
    silent, recorded = make_health(make_run(3)), make_health(make_run(1.9, "failed"))

    assert find_problems_by_subject(silent, jobs=[job])["job_failed:pull"] is not None
    assert None is find_problems_by_subject(recorded, jobs=[job])["job_failed:pull"]
    assert (
        None
        is find_problems_by_subject(silent, jobs=[replace(job, failed=False)])["job_failed:pull"]
    )
    assert "job_failed:pull" not in find_problems_by_subject(silent)
    stands = AlertRecord(
        *("job_failed", "pull", job.started_at, START, "opened", START),
        *("job failed", "It failed.", "Look."),
    )
    assert None is find_problems_by_subject(recorded, alerts=[stands])["job_failed:pull"]
    assert "job_failed:pull" not in find_problems_by_subject(silent, alerts=[stands])

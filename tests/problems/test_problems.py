"""Each problem as a pure function of the state: when it is found, and its cause."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from connector.operations.problems import AccountState, find_problems
from connector.settings.values import parse_age
from connector.state.lock import Holder
from connector.state.row import Row
from connector.state.runs import Backup, Publication, ResourceRun, Run, RunHealth
from tests.problems.agency import DONE

NOW = datetime(2026, 12, 10, 9, 0, tzinfo=UTC)
NIGHT = datetime(2026, 12, 10, 2, 15, tzinfo=UTC)
DAY = timedelta(days=1)


def make_run(days: int = 0, outcome: str | None = "done", error_code: str | None = None) -> Run:
    """Return a pull of the night this number of days ago."""
    at = NIGHT - days * DAY
    return Run(f"run-{days}", "pull", at, at, outcome, 1.0, error_code=error_code)


def make_publication(days: int = 0, outcome: str | None = "published") -> Publication:
    """Return the publication of the night this number of days ago."""
    at = NIGHT - days * DAY
    return Publication(f"p-{days}", at, f"run-{days}", at, at, outcome)


def make_state(
    runs: tuple[Run, ...] = (make_run(),),
    publications: tuple[Publication, ...] = (make_publication(),),
    results: tuple[ResourceRun, ...] = (DONE,),
    verified: datetime | None = NIGHT,
) -> AccountState:
    """Return the state after these runs and publications, the newest first."""
    health = RunHealth(
        runs=runs,
        first_run_at=runs[-1].started_at if runs else None,
        resources={each.resource: (runs[0].run_id, each) for each in results if runs},
        publications=publications,
    )
    return AccountState(NOW, parse_age("26h"), health, verified={"jobs": verified})


def list_keys(state: AccountState) -> list[str]:
    """Return the keys of the problems."""
    return [each.key for each in find_problems(state)]


def test_a_good_night_and_an_account_that_never_ran_have_no_problem() -> None:
    assert [] == list_keys(make_state())
    assert [] == list_keys(AccountState(NOW, parse_age("26h")))


@pytest.mark.parametrize(
    ("run", "keys"),
    [
        (make_run(outcome="failed", error_code="unauthorized"), ["pull_failed:unauthorized"]),
        (make_run(outcome=None), ["pull_failed:killed"]),
        (make_run(outcome="stopped"), []),
    ],
)
def test_a_failed_or_killed_pull_is_a_problem_and_a_stopped_one_is_not(
    run: Run, keys: list[str]
) -> None:
    assert keys == list_keys(make_state((run, make_run(1))))


def test_pulls_that_fail_in_a_row_are_one_problem_since_the_first() -> None:
    runs = tuple(make_run(days, "failed", "unreachable") for days in range(3))

    (found,) = find_problems(make_state((*runs, make_run(3))))

    assert "the last 3 pulls failed" == found.title
    assert NIGHT - 2 * DAY == found.since


def test_a_resource_that_was_not_verified_is_a_problem() -> None:
    partial = replace(DONE, proven=False, outcome="partial", error_code="answer_broken")

    assert ["pull_failed:jobs-answer_broken"] == list_keys(make_state(results=(partial,)))


def test_publications_that_are_killed_each_night_are_found_although_every_pull_succeeds() -> None:
    runs = tuple(make_run(days) for days in range(40))
    killed = [make_publication(days, None if days == 0 else "interrupted") for days in range(40)]
    publications = (*killed, make_publication(40))

    state = make_state(runs, publications[:10], verified=NIGHT - 40 * DAY)

    assert ["publication_failed:killed", "data_old"] == list_keys(state)


def test_the_age_is_that_of_the_published_file_and_not_of_the_pull() -> None:
    old = make_state(verified=NOW - timedelta(hours=27))

    assert ["data_old"] == list_keys(old)
    assert [] == list_keys(make_state(verified=NOW - timedelta(hours=26)))


def test_a_published_file_that_is_missing_is_a_problem() -> None:
    assert ["unusable:published_missing"] == list_keys(replace(make_state(), verified=None))


def test_rows_whose_answer_was_lost_are_a_problem() -> None:
    held = Row(2, "jobs", state="held", moved_at=NIGHT)
    lost = [held, replace(held, number=3), Row(4, "jobs", state="sent", moved_at=NOW)]

    (found,) = find_problems(replace(make_state(), unconfirmed=lost))

    assert ("rows_unconfirmed", NIGHT) == (found.code, found.since)
    assert found.title.startswith("3 pushed rows")


@pytest.mark.parametrize(
    ("days", "last", "keys"),
    [
        ([], None, []),
        ([0, 1, 2], None, []),
        ([1, 2, 3], None, []),
        ([3, 4, 5], None, ["backup_failed:old"]),
        ([10, 17, 24], None, []),
        ([15, 22, 29], None, ["backup_failed:old"]),
        ([1, 2], Backup(NIGHT), ["backup_failed:failed"]),
        ([1, 2], Backup(NIGHT, NIGHT, message="/b: no space"), ["backup_failed:failed"]),
    ],
)
def test_a_failed_or_old_backup_is_a_problem_if_backups_are_made(
    days: list[int], last: Backup | None, keys: list[str]
) -> None:
    made = [Backup(NIGHT - each * DAY, NIGHT, "/b", 1) for each in days]
    state = replace(make_state(), backups=[*([last] if last else []), *made])

    assert keys == list_keys(state)
    if last and last.ended_at is None:
        assert [] == list_keys(replace(state, holder=Holder("backup", 1, NIGHT)))

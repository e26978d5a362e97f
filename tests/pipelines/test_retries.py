"""Retries: only temporary errors are retried."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.instance.runs.run_domain import RunDomain

from connector.catalog import CATALOG
from connector.client.client import Client
from connector.pulls.report import PullReport
from connector.pulls.run import pull
from connector.sandbox.faults import Status
from connector.sandbox.server import Sandbox
from pipelines import accounts
from pipelines import landing as module
from pipelines.accounts import Account
from pipelines.landing import landing_assets
from tests.pipelines.running import COUNTS, KEY, KEYS, PUBLISHED, UNNAMED, make_account, published
from tests.support.clock import Time
from tests.support.processes import OtherProcess, shorten_wait
from tests.support.recorded import last_publications

LEADS = KEYS["leads"]


@pytest.fixture
def skip_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let retries of a step and waits of the client take no time."""
    monkeypatch.setattr(accounts, "RETRY_SECONDS", (0, 0))
    time = Time()
    connect = partial(Client, clock=time.monotonic, sleep=time.wait)
    monkeypatch.setattr(module, "pull", partial(pull, connect=connect))


def materialize_landing(
    account: Account, instance: dg.DagsterInstance | None = None, **options: Any
) -> dg.ExecuteInProcessResult:
    """Materialize all resources and the published file. A failure does not raise."""
    return dg.materialize(
        [landing_assets(UNNAMED), published],
        resources={"account": account},
        instance=instance,
        raise_on_error=False,
        **options,
    )


def count_events(result: dg.ExecuteInProcessResult, kind: dg.DagsterEventType) -> int:
    """Return the number of events of a kind."""
    return len(result.filter_events(lambda event: event.event_type is kind))


def act_after_first_pull(act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the pull of the assets by one that calls `act` after its first time."""
    whole: Callable[..., Any] = vars(module)["pull"]
    calls: list[PullReport] = []

    async def pull_and_act(*given: Any, **named: Any) -> PullReport:
        report: PullReport = await whole(*given, **named)
        if not calls:
            act()
        calls.append(report)
        return report

    monkeypatch.setattr(module, "pull", pull_and_act)


@pytest.mark.slow
@pytest.mark.usefixtures("skip_waits")
def test_a_retry_pulls_again_and_publishes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        sandbox.faults.add(Status(503), path="/api/v1/leads*", times=None)
        act_after_first_pull(sandbox.faults.clear, monkeypatch)
        result = materialize_landing(make_account(sandbox.base_url, tmp_path))

    assert result.success
    assert 1 == count_events(result, dg.DagsterEventType.STEP_UP_FOR_RETRY)
    keys = [event.asset_key for event in result.get_asset_materialization_events()]
    assert sorted([*KEYS.values(), PUBLISHED]) == sorted(key for key in keys if key)
    assert 1 == len(last_publications(tmp_path, 5))


@pytest.mark.usefixtures("skip_waits")
@pytest.mark.parametrize("cause", ["wrong key", "spent month", "another process"])
def test_errors_that_need_user_action_are_not_retried(
    tmp_path: Path, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = OtherProcess(tmp_path) if cause == "another process" else None
    shorten_wait(monkeypatch)
    with Sandbox(
        counts=COUNTS,
        keys={KEY: ("*",)},
        monthly_limit=5 if cause == "spent month" else None,
        behaviours={"month_reset": "month"},
    ) as sandbox:
        key = "another" if cause == "wrong key" else KEY
        result = materialize_landing(make_account(sandbox.base_url, tmp_path, key))
        sent = len(sandbox.log)
    if other is not None:
        other.kill()

    assert not result.success
    assert 0 == count_events(result, dg.DagsterEventType.STEP_UP_FOR_RETRY)
    assert (sent == 0) == (cause == "another process")


@pytest.mark.slow
def test_a_run_from_failure_skips_loaded_resources(tmp_path: Path) -> None:
    scopes = [f"{each.scope}.read" for each in CATALOG.values() if each.name != "leads"]
    keys: dict[str, Any] = {KEY: scopes, "with-leads": ("*",)}
    with Sandbox(counts=COUNTS, keys=keys) as sandbox, dg.DagsterInstance.ephemeral() as instance:
        first = materialize_landing(make_account(sandbox.base_url, tmp_path), instance)
        run = instance.get_run_by_id(first.run_id)
        assert run is not None
        assert run.execution_plan_snapshot_id is not None
        plan = instance.get_execution_plan_snapshot(run.execution_plan_snapshot_id)
        again, _ = RunDomain(instance).get_keys_to_reexecute(first.run_id, plan)
        before = len(sandbox.log)
        second = materialize_landing(
            make_account(sandbox.base_url, tmp_path, "with-leads"), instance, selection=list(again)
        )
        resources = {each.path.split("/")[3] for each in sandbox.log[before:]}

    assert (False, True) == (first.success, second.success)
    # The first run published without leads; the retry publishes again.
    assert {"marts"} <= {each.path[0] for each in again}
    assert {LEADS} == {each for each in again if each.path[0] == LEADS.path[0]}
    assert {"leads"} == resources
    published_in = [
        each.asset_key == PUBLISHED for each in second.get_asset_materialization_events()
    ]
    assert 1 == sum(published_in)

"""The push job and the inbox sensor in real runs: sent rows, records, and moved files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from connector.sandbox.server import Sandbox
from connector.warehouse.warehouse import Warehouse
from pipelines import sensors
from pipelines.accounts import Account
from pipelines.definitions import definitions
from pipelines.pushes import NAME
from tests.pipelines.running import API_KEYS, KEY, inbox_sensor, make_account, read_failure_reason

HEADINGS = "first_name,last_name,email,employment_type,date_of_birth\n"
GOOD = HEADINGS + "Annabel,Quist,annabel@example.com,permanent,1980-02-03\n"
BAD = GOOD + "Boris,Rayleigh,two@example.com three@example.com,permanent,03/04/1981\n"
PERSONAL = (
    "Annabel",
    "Quist",
    "annabel@",
    "Boris",
    "Rayleigh",
    "two@",
    "three@",
    "03/04/1981",
    "1981-0",
    "April",
)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """Sandbox without candidates, with a known key."""
    with Sandbox(counts={}, keys={KEY: ("*",)}) as made:
        yield made


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    """Data folder with an inbox for candidates."""
    (tmp_path / "data" / "inbox" / "candidates").mkdir(parents=True)
    return tmp_path / "data"


def run_push_job(
    account: Account, instance: dg.DagsterInstance, request: dg.RunRequest | dict[str, Any]
) -> dg.ExecuteInProcessResult:
    """Run the push job with a configuration or the sensor's request. A failure does not raise."""
    if isinstance(request, dg.RunRequest):
        config, tags = dict(request.run_config), request.tags
    else:
        config, tags = {"ops": {"push_file": {"config": request}}}, {}
    return definitions.resolve_job_def(NAME).execute_in_process(
        instance=instance,
        resources={"account": account},
        run_config=config,
        tags=tags,
        raise_on_error=False,
    )


def read_output_metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """Return the metadata of the only output of a successful run."""
    (event,) = [each for each in result.all_events if each.is_successful_output]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def read_stored_run(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> str:
    """Return everything that Dagster stores of the run."""
    (kept,) = instance.get_run_records(dg.RunsFilter(run_ids=[result.run_id]))
    return f"{kept} {[str(each) for each in instance.all_logs(result.run_id)]}"


def run_inbox_sensor(
    account: Account, instance: dg.DagsterInstance, cursor: str | None
) -> tuple[dg.RunRequest | None, str, str | None]:
    """Run the sensor once. Returns its request, its skip message, and its next cursor."""
    with dg.build_sensor_context(
        instance=instance,
        cursor=cursor,
        resources={"account": account},
        sensor_name=inbox_sensor.name,
    ) as context:
        result = inbox_sensor(context)
    assert isinstance(result, dg.SensorResult)
    requests = result.run_requests or []
    skipped = result.skip_reason.skip_message if result.skip_reason else ""
    return (requests[0] if requests else None), str(skipped), result.cursor


def run_inbox_sensor_twice(
    account: Account, instance: dg.DagsterInstance
) -> tuple[dg.RunRequest | None, str]:
    """Run the sensor twice. Returns the request and the skip message of the second run."""
    *_, cursor = run_inbox_sensor(account, instance, None)
    request, skipped, _ = run_inbox_sensor(account, instance, cursor)
    return request, skipped


def test_rejected_rows_are_reported_without_failing_the_run(
    sandbox: Sandbox, data_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (data_folder / "people.csv").write_text(BAD, encoding="utf-8")
    config = {
        "resource": "candidates",
        "file": "people.csv",
        "mode": "create",
        "apply": True,
        "pull": False,
    }
    with dg.DagsterInstance.ephemeral() as instance:
        ran = run_push_job(make_account(sandbox.base_url, data_folder), instance, config)
        kept = read_stored_run(instance, ran)
    shown_on = capfd.readouterr()
    kept = f"{kept} {shown_on.out} {shown_on.err}"

    assert ran.success
    shown = read_output_metadata(ran)
    assert ("partial", 2, 1, 1) == tuple(
        shown[name] for name in ("outcome", "rows", "rows/created", "rows/invalid")
    )
    assert len(sandbox.log) == shown["requests"]
    assert 1 == len(sandbox.store.records("candidates"))
    assert Path(shown["report"]) == data_folder / "people.report.csv"
    assert Path(shown["report"]).exists()
    assert len(shown["batch"]) > 5
    assert 1 == shown["problems/several_emails"]
    assert "Some rows need corrections: 1 created, 1 invalid." in kept
    assert [] == [each for each in (*PERSONAL, KEY) if each in kept]
    files = (each for each in data_folder.parent.rglob("*") if each.is_file())
    assert [] == [each for each in files if KEY.encode() in each.read_bytes()]


def test_a_job_pushes_the_rows_of_a_query(
    sandbox: Sandbox, instance: dg.DagsterInstance, data_folder: Path
) -> None:
    (data_folder / "people.csv").write_text(GOOD, encoding="utf-8")
    Warehouse(data_folder).prepare()
    with duckdb.connect(str(data_folder / "recruitment.duckdb")) as published:
        published.execute(f"CREATE TABLE people AS FROM read_csv('{data_folder}/people.csv')")
    here = make_account(sandbox.base_url, data_folder)
    config = {"resource": "candidates", "mode": "create", "apply": True, "pull": False}
    results = [
        definitions.resolve_job_def("push_from_query").execute_in_process(
            instance=instance,
            resources={"account": here},
            run_config={"ops": {"push_query": {"config": {**config, "query": query}}}},
            raise_on_error=False,
        )
        for query in (
            "from people",
            "select title as email from landing.jobs limit 0",
            "from missing",
        )
    ]
    pushed = read_output_metadata(results[0])

    assert {"rows/created": 1, "rows": 1}.items() <= pushed.items()
    assert ["annabel@example.com"] == [
        each["email"] for each in sandbox.store.records("candidates").values()
    ]
    assert results[1].success
    assert "the query failed: Table with name missing does not exist." in read_failure_reason(
        results[2]
    )
    assert [] == [
        e for e in PERSONAL if e in "".join(read_stored_run(instance, r) for r in results)
    ]
    observed = {
        each.asset_key
        for each in results[0].all_events
        if each.event_type is dg.DagsterEventType.ASSET_OBSERVATION
    }
    assert {API_KEYS["candidates"]} == observed


def test_an_unknown_option_or_an_invalid_value_fails_the_run_with_the_option(
    sandbox: Sandbox, instance: dg.DagsterInstance, data_folder: Path
) -> None:
    (data_folder / "people.csv").write_text(GOOD, encoding="utf-8")
    here = make_account(sandbox.base_url, data_folder)
    for options, reason in (
        ({"mode": "create", "aply": True}, "unknown option 'aply' of a push; allowed are mode,"),
        ({"mode": "create", "apply": "yes"}, "apply: "),
        ({"apply": True}, "mode: "),
    ):
        config = {"resource": "candidates", "file": "people.csv", **options}
        assert reason in read_failure_reason(run_push_job(here, instance, config))
    assert [] == sandbox.log


def test_the_inbox_sensor_is_stopped_and_works_without_settings(
    instance: dg.DagsterInstance,
) -> None:
    assert dg.DefaultSensorStatus.STOPPED == inbox_sensor.default_status
    request, skipped, _ = run_inbox_sensor(
        Account(environ={"CONNECTOR_ACCOUNT": "UPPER"}), instance, None
    )
    assert request is None
    assert "CONNECTOR_ACCOUNT" in skipped


def test_a_failed_push_run_is_repeated_later(
    sandbox: Sandbox,
    instance: dg.DagsterInstance,
    data_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = data_folder / "inbox" / "candidates" / "people.csv"
    file.write_text(GOOD, encoding="utf-8")
    here = make_account(sandbox.base_url, data_folder)
    request, _ = run_inbox_sensor_twice(here, instance)
    assert request is not None
    file.rename(data_folder / "away.csv")
    failed = run_push_job(here, instance, request)
    (data_folder / "away.csv").rename(file)
    resting, skipped = run_inbox_sensor_twice(here, instance)
    monkeypatch.setattr(sensors, "RETRY_SECONDS", 0)
    again, _ = run_inbox_sensor_twice(here, instance)
    assert again is not None
    done = run_push_job(here, instance, again)

    assert not failed.success
    assert "no longer exists" in read_failure_reason(failed)
    assert resting is None
    assert "Files that wait for another attempt after a failed run: 1." in skipped
    assert "previewed" == read_output_metadata(done)["outcome"]
    assert ["done"] == [each.name for each in file.parent.iterdir()]
    assert [] == sandbox.log

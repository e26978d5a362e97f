"""The push job and the inbox's sensor, run for real: what is sent, recorded, and put away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from connector.sandbox.server import Sandbox
from connector.warehouse.warehouse import Warehouse
from pipelines import jobs, sensors
from pipelines.accounts import Account
from pipelines.definitions import definitions
from pipelines.graph import API_KEYS, INBOX_KEYS
from pipelines.pushes import NAME, push_from_query_of
from tests.pipelines.running import KEY, UNNAMED, account, inbox_sensor
from tests.pipelines.test_secrecy import files_with

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
    """An agency without candidates, whose key is planted."""
    with Sandbox(counts={}, keys={KEY: ("*",)}) as made:
        yield made


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """A Dagster that keeps nothing once it is closed."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The data folder, with an inbox for candidates."""
    (tmp_path / "data" / "inbox" / "candidates").mkdir(parents=True)
    return tmp_path / "data"


def run_push_job(
    account: Account, instance: dg.DagsterInstance, asked: dg.RunRequest | dict[str, Any]
) -> dg.ExecuteInProcessResult:
    """Run the job as it is configured, or as the sensor asks; nothing is raised."""
    if isinstance(asked, dg.RunRequest):
        config, tags = dict(asked.run_config), asked.tags
    else:
        config, tags = {"ops": {"push_file": {"config": asked}}}, {}
    return definitions.resolve_job_def(NAME).execute_in_process(
        instance=instance,
        resources={"account": account},
        run_config=config,
        tags=tags,
        raise_on_error=False,
    )


def read_metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """The metadata of a run that succeeded."""
    (event,) = [each for each in result.all_events if each.is_successful_output]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def failure_reason(result: dg.ExecuteInProcessResult) -> str:
    """Why a run failed."""
    (event,) = result.get_step_failure_events()
    failure = event.step_failure_data.user_failure_data
    assert failure is not None
    return str(failure.description)


def logged(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> str:
    """Everything that Dagster keeps of the run."""
    (kept,) = instance.get_run_records(dg.RunsFilter(run_ids=[result.run_id]))
    return f"{kept} {[str(each) for each in instance.all_logs(result.run_id)]}"


def look_into_inbox(
    account: Account, instance: dg.DagsterInstance, cursor: str | None
) -> tuple[dg.RunRequest | None, str, str | None]:
    """Run the sensor; returns its requests, its reason to skip, and its cursor."""
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


def requested_at_second_look(
    account: Account, instance: dg.DagsterInstance
) -> tuple[dg.RunRequest | None, str]:
    """Return the requests of the sensor's second run."""
    *_, cursor = look_into_inbox(account, instance, None)
    asked, skipped, _ = look_into_inbox(account, instance, cursor)
    return asked, skipped


def test_rejected_rows_are_told_and_fail_nothing(
    sandbox: Sandbox, store: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (store / "people.csv").write_text(BAD, encoding="utf-8")
    config = {
        "resource": "candidates",
        "file": "people.csv",
        "mode": "create",
        "apply": True,
        "pull": False,
    }
    with dg.DagsterInstance.ephemeral() as instance:
        ran = run_push_job(account(sandbox.base_url, store), instance, config)
        kept = logged(instance, ran)
    shown_on = capfd.readouterr()
    kept = f"{kept} {shown_on.out} {shown_on.err}"

    assert ran.success
    shown = read_metadata(ran)
    assert ("partial", 2, 1, 1) == tuple(
        shown[name] for name in ("outcome", "rows", "rows/created", "rows/invalid")
    )
    assert len(sandbox.log) == shown["requests"]
    assert 1 == len(sandbox.store.records("candidates"))
    assert Path(shown["report"]) == store / "people.report.csv"
    assert Path(shown["report"]).exists()
    assert len(shown["batch"]) > 5
    lines = [each.data for each in shown["problems_table"].records]
    assert {(3, "several_emails", "email"), (3, "ambiguous_date", "date_of_birth")} == {
        (line["row"], line["code"], line["column"]) for line in lines
    }
    assert all(line["message"] and line["fix"] for line in lines)
    assert "Some rows need corrections: 1 created, 1 invalid." in kept
    assert [] == [each for each in (*PERSONAL, KEY) if each in kept]
    assert [] == files_with(KEY, store.parent)


def test_preview_sends_nothing(sandbox: Sandbox, instance: dg.DagsterInstance, store: Path) -> None:
    (store / "people.csv").write_text(GOOD, encoding="utf-8")
    config = {"resource": "candidates", "file": "people.csv", "mode": "create"}
    shown = read_metadata(run_push_job(account(sandbox.base_url, store), instance, config))

    assert ("previewed", 1, 0, 2) == tuple(
        shown[name] for name in ("outcome", "rows/create", "requests", "requests_planned")
    )
    assert [] == sandbox.log


def test_what_cannot_be_meant_fails_with_a_sentence(
    sandbox: Sandbox, instance: dg.DagsterInstance, store: Path
) -> None:
    wrong = {
        "gone.csv does not exist. Check the name and the folder.": {"file": "gone.csv"},
        "'content_types' is not a resource that can be pushed.": {"resource": "content_types"},
        "people.csv no longer exists": {"file": "../../people.csv", "inbox_digest": "0" * 64},
        "map.toml does not exist": {"mapping_file": "map.toml"},
        "'semicolon' is not a decimal sign.": {"decimal": "semicolon"},
        "'DD/DD' is not a date format": {"date_format": "DD/DD"},
        "'guess' is not a policy for unconfirmed rows.": {"unconfirmed": "guess"},
    }
    asked = {"resource": "candidates", "file": "people.csv", "mode": "create"}
    for expected, config in wrong.items():
        ran = run_push_job(account(sandbox.base_url, store), instance, {**asked, **config})
        assert not ran.success
        assert expected in failure_reason(ran)
    assert [] == sandbox.log


def test_rows_of_a_query_are_pushed_by_an_asset_that_no_schedule_runs(
    sandbox: Sandbox, instance: dg.DagsterInstance, store: Path
) -> None:
    (store / "people.csv").write_text(GOOD, encoding="utf-8")
    Warehouse(store).prepare()
    with duckdb.connect(str(store / "recruitment.duckdb")) as published:
        published.execute(f"CREATE TABLE people AS FROM read_csv('{store}/people.csv')")
    here = account(sandbox.base_url, store)
    config = {"resource": "candidates", "mode": "create", "apply": True, "pull": False}
    results = [
        dg.materialize(
            [push_from_query_of(UNNAMED)],
            instance=instance,
            resources={"account": here},
            run_config={"ops": {"push_from_query": {"config": {**config, "query": query}}}},
            raise_on_error=False,
        )
        for query in (
            "from people",
            "select title as email from landing.jobs limit 0",
            "from nobody",
        )
    ]
    pushed, empty = (
        result.asset_materializations_for_node("push_from_query")[0].metadata
        for result in results[:2]
    )

    assert {"rows/created": 1, "rows": 1}.items() <= {n: v.value for n, v in pushed.items()}.items()
    assert ["annabel@example.com"] == [
        each["email"] for each in sandbox.store.records("candidates").values()
    ]
    assert {"rows": 0} == {name: value.value for name, value in empty.items()}
    assert "failed at line 1, column 6: Table with name nobody" in failure_reason(results[2])
    assert [] == [e for e in PERSONAL if e in "".join(logged(instance, r) for r in results)]
    observed = {
        each.asset_key
        for each in results[0].all_events
        if each.event_type is dg.DagsterEventType.ASSET_OBSERVATION
    }
    assert {API_KEYS["candidates"]} == observed
    for name in jobs.PULLING:
        selected = definitions.resolve_job_def(name).asset_layer.selected_asset_keys
        assert dg.AssetKey("push_from_query") not in selected


def test_refused_key_fails_without_being_shown(
    sandbox: Sandbox, instance: dg.DagsterInstance, store: Path
) -> None:
    wrong = "planted-wrong-key-5b1d"
    (store / "people.csv").write_text(GOOD, encoding="utf-8")
    config = {"resource": "candidates", "file": "people.csv", "mode": "create", "apply": True}
    ran = run_push_job(account(sandbox.base_url, store, wrong), instance, config)

    assert not ran.success
    assert "401" in failure_reason(ran)
    assert "generate a new key" in failure_reason(ran)
    assert wrong not in logged(instance, ran)
    assert [] == files_with(wrong, store.parent)


def test_sensor_is_off_and_needs_no_settings(instance: dg.DagsterInstance) -> None:
    assert dg.DefaultSensorStatus.STOPPED == inbox_sensor.default_status
    asked, skipped, _ = look_into_inbox(
        Account(environ={"CONNECTOR_ACCOUNT": "UPPER"}), instance, None
    )
    assert asked is None
    assert "CONNECTOR_ACCOUNT" in skipped


def test_settled_file_is_pushed_once_and_put_away(
    sandbox: Sandbox, instance: dg.DagsterInstance, store: Path
) -> None:
    folder, here = (store / "inbox" / "candidates", account(sandbox.base_url, store))
    (folder / "push.toml").write_text('mode = "upsert"\nmatch = ["email"]\napply = true\n')
    (folder / "people.csv").write_text(GOOD, encoding="utf-8")
    (folder / "link.csv").symlink_to(folder / "people.csv")

    first, skipped, cursor = look_into_inbox(here, instance, None)
    asked, _, cursor = look_into_inbox(here, instance, cursor)
    same, _, cursor = look_into_inbox(here, instance, cursor)
    assert asked is not None
    other = instance.create_run_for_job(
        definitions.resolve_job_def(NAME),
        run_config=dict(asked.run_config),
        status=dg.DagsterRunStatus.STARTED,
    )
    meanwhile, under_way, cursor = look_into_inbox(here, instance, cursor)
    instance.report_run_canceled(other)
    ran = run_push_job(here, instance, asked)
    after, nothing, _ = look_into_inbox(here, instance, cursor)

    assert [None, None, None] == [first, meanwhile, after]
    assert ("'link.csv' is not a regular file" in skipped, other.run_id in under_way) == (
        True,
        True,
    )
    assert nothing.startswith("No new files.")
    assert same is not None
    assert asked.run_key == same.run_key
    assert ("done", 1) == (read_metadata(ran)["outcome"], read_metadata(ran)["rows/created"])
    observed = {
        each.asset_key: each.asset_observation_data.asset_observation.metadata
        for each in ran.all_events
        if each.event_type is dg.DagsterEventType.ASSET_OBSERVATION
    }
    assert {API_KEYS["candidates"], INBOX_KEYS["candidates"]} == set(observed)
    assert 1 == observed[API_KEYS["candidates"]]["rows/created"].value
    assert 1 == len(sandbox.store.records("candidates"))
    assert {"push.toml", "link.csv", "done"} == {each.name for each in folder.iterdir()}
    kept = [Path(read_metadata(ran)[name]) for name in ("put_away", "report")]
    assert sorted(kept) == sorted((folder / "done").iterdir())


def test_run_that_failed_is_repeated_later(
    sandbox: Sandbox, instance: dg.DagsterInstance, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = store / "inbox" / "candidates" / "people.csv"
    file.write_text(GOOD, encoding="utf-8")
    here = account(sandbox.base_url, store)
    asked, _ = requested_at_second_look(here, instance)
    assert asked is not None
    file.rename(store / "away.csv")
    failed = run_push_job(here, instance, asked)
    (store / "away.csv").rename(file)
    resting, skipped = requested_at_second_look(here, instance)
    monkeypatch.setattr(sensors, "RETRY_SECONDS", 0)
    again, _ = requested_at_second_look(here, instance)
    assert again is not None
    done = run_push_job(here, instance, again)

    assert not failed.success
    assert "no longer exists" in failure_reason(failed)
    assert resting is None
    assert "Files that wait for another attempt after a failed run: 1." in skipped
    assert asked.run_key != again.run_key
    assert "previewed" == read_metadata(done)["outcome"]
    assert ["done"] == [each.name for each in file.parent.iterdir()]
    assert [] == sandbox.log

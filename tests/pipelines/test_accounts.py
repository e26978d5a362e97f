"""Accounts as partitions: each run belongs to one account and does not affect others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from connector.sandbox.server import Sandbox
from pipelines.accounts import Account, Accounts
from pipelines.definitions import define
from pipelines.pushes import NAME as PUSH
from pipelines.schedules import INTRADAY, NIGHTLY
from pipelines.sensors import create_inbox_sensor
from tests.pipelines.running import COUNTS, KEYS, PUBLISHED, read_failure_reason
from tests.support.agency import differences

ACCOUNTS = """
models = "off"

[accounts.acme]
base_url = "{acme}"
api_key_file = "acme.key"

[accounts.glo-bex]
base_url = "{globex}"
api_key_file = "globex.key"
billing_day = 9

[accounts.initech]
base_url = "{acme}"
api_key_file = "gone.key"

[accounts.umbrella]
base_ur = "{acme}"
"""
"""Two accounts that are well; one whose key is missing, and one whose table is wrong."""

NAMES = ("acme", "glo-bex", "initech", "umbrella")


@pytest.fixture
def sandboxes() -> Iterator[dict[str, Sandbox]]:
    """Server for each valid account, with its own candidates and key."""
    with (
        Sandbox(counts=COUNTS, seed=1, keys={"key-of-acme": ("*",)}) as acme,
        Sandbox(counts={**COUNTS, "jobs": 9}, seed=2, keys={"key-of-globex": ("*",)}) as globex,
    ):
        yield {"acme": acme, "glo-bex": globex}


def write_project(
    folder: Path, acme_url: str = "https://a.example", globex_url: str = ""
) -> Account:
    """Write a project file with four accounts; two are valid and have these addresses."""
    text = ACCOUNTS.format(acme=acme_url, globex=globex_url or acme_url)
    (folder / "connector.toml").write_text(text, encoding="utf-8")
    for name in ("acme", "globex"):
        (folder / f"{name}.key").write_text(f"key-of-{name}\n", encoding="utf-8")
        (folder / f"{name}.key").chmod(0o600)
    return Account(environ={}, cwd=folder)


def test_each_account_is_a_partition_of_every_asset(tmp_path: Path) -> None:
    made = define(write_project(tmp_path))
    found = {spec.partitions_def for spec in made.resolve_all_asset_specs()}
    checks = [
        spec.partitions_def
        for each in made.assets or ()
        if isinstance(each, ASSETS)
        for spec in each.check_specs
    ]
    jobs = [made.resolve_job_def(name).partitions_def for name in (NIGHTLY, INTRADAY, PUSH)]

    assert checks
    for each in (*found, *checks, *jobs):
        assert each is not None
        assert list(NAMES) == list(each.get_partition_keys())


ASSETS = dg.AssetsDefinition


@pytest.mark.slow
def test_each_run_reads_only_its_own_account(tmp_path: Path, sandboxes: dict[str, Sandbox]) -> None:
    account = write_project(tmp_path, *(each.base_url for each in sandboxes.values()))
    made = define(account)
    with dg.DagsterInstance.ephemeral() as instance:
        results = {
            name: made.resolve_job_def(INTRADAY).execute_in_process(
                instance=instance, partition_key=name, raise_on_error=False
            )
            for name in NAMES
        }
        recorded = {
            name: instance.get_materialized_partitions(key)
            for name, key in (("jobs", KEYS["jobs"]), ("published", PUBLISHED))
        }
        (event,) = instance.fetch_materializations(
            dg.AssetRecordsFilter(KEYS["jobs"], asset_partitions=["glo-bex"]), limit=5
        ).records

    assert {"acme": True, "glo-bex": True, "initech": False, "umbrella": False} == {
        name: result.success for name, result in results.items()
    }
    assert {"acme", "glo-bex"} == recorded["jobs"] == recorded["published"]
    for name, sandbox in sandboxes.items():
        data = tmp_path / "data" / name
        assert [] == differences(sandbox, data / "recruitment.duckdb")
        assert (data / "state.sqlite").is_file()
        assert {200} == {each.status for each in sandbox.log}
        assert {name} == {
            event.partition for event in results[name].get_asset_materialization_events()
        }
    checks = {
        (name, each.partition)
        for name in sandboxes
        for each in results[name].get_asset_check_evaluations()
    }
    assert {(name, name) for name in sandboxes} == checks
    assert event.asset_materialization is not None
    assert 9 == event.asset_materialization.metadata["dagster/row_count"].value
    assert "api_key_file (from connector.toml [accounts.initech]) must be a file that can be" in (
        read_failure_reason(results["initech"])
    )
    assert (
        "'base_ur' is not a setting of connector.toml [accounts.umbrella]"
        in read_failure_reason(results["umbrella"])
    )
    assert 9 == account.settings("glo-bex").billing_day


def test_an_invalid_project_file_fails_runs_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "connector.toml").write_text("[accounts.acme", encoding="utf-8")
    account = Account(environ={}, cwd=tmp_path)

    assert define(account).resolve_job_def(NIGHTLY).partitions_def is None
    with pytest.raises(dg.Failure, match=r"connector\.toml is not valid TOML"):
        account.settings()


def test_the_sensor_watches_the_inboxes_of_all_accounts(tmp_path: Path) -> None:
    account = write_project(tmp_path)
    for name in ("acme", "glo-bex"):
        inbox = tmp_path / "data" / name / "inbox" / "candidates"
        inbox.mkdir(parents=True)
        (inbox / "people.csv").write_text("first_name,last_name\nA,B\n", encoding="utf-8")
    sensor = create_inbox_sensor(Accounts.read(account))
    with dg.DagsterInstance.ephemeral() as instance:

        def run_sensor(cursor: str | None) -> dg.SensorResult:
            with dg.build_sensor_context(
                instance=instance, resources={"account": account}, cursor=cursor
            ) as context:
                result = sensor(context)
            assert isinstance(result, dg.SensorResult)
            return result

        first = run_sensor(None)
        second = run_sensor(first.cursor)

    assert "umbrella: 'base_ur' is not a setting" in str(first.skip_reason)
    assert ["acme", "glo-bex"] == [each.partition_key for each in second.run_requests or ()]

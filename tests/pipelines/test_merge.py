"""The connector's assets in another team's Dagster project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from connector.sandbox.server import Sandbox
from pipelines.component import PublishedFile, RecruitmentConnectorComponent
from pipelines.definitions import define
from tests.pipelines.running import COUNTS, KEY, make_account

JOBS = dg.AssetKey(["crm", "marts", "dim_jobs"])


@pytest.mark.slow
def test_another_project_reads_a_mart_with_a_prefix_and_without_schedules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dg.asset(deps=[JOBS], automation_condition=dg.AutomationCondition.eager())
    def jobs_board(published: dg.ResourceParam[Any]) -> dg.MaterializeResult[None]:
        with published.connect() as connection:
            (count,) = connection.execute("SELECT count(*) FROM marts.dim_jobs").fetchone()
        return dg.MaterializeResult(metadata={"dagster/row_count": count})

    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        account = make_account(sandbox.base_url, tmp_path)
        for name, value in account.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("CONNECTOR_MODELS", "on")
        theirs = dg.Definitions(
            assets=[jobs_board],
            resources={"published": PublishedFile()},
            executor=dg.in_process_executor,
        )
        made = dg.Definitions.merge(theirs, define(key_prefix="crm", schedules=False))
        with dg.DagsterInstance.ephemeral() as instance:
            night = made.resolve_job_def("intraday_pull").execute_in_process(instance=instance)
            everything = made.resolve_implicit_global_asset_job_def()
            whole = everything.execute_in_process(instance=instance)

    assert night.success
    assert [] == [*(made.schedules or ()), *(made.sensors or ())]
    keys = {spec.key for spec in made.resolve_all_asset_specs()}
    assert {"crm", "jobs_board"} == {key.path[0] for key in keys}
    # "Materialize all" includes the board, and writes nothing to the platform.
    (board,) = whole.asset_materializations_for_node("jobs_board")
    assert COUNTS["jobs"] == board.metadata["dagster/row_count"].value
    assert {"GET"} == {each.method for each in sandbox.log}


def test_five_lines_of_yaml_add_the_assets(tmp_path: Path) -> None:
    folder = tmp_path / "crm"
    folder.mkdir()
    (folder / "defs.yaml").write_text(
        "type: pipelines.component.RecruitmentConnectorComponent\n"
        "attributes:\n  key_prefix: [crm]\n  schedules: false\n  folder: .\n"
    )
    (folder / "connector.toml").write_text("[accounts.acme]\n[accounts.globex]\n")
    component = RecruitmentConnectorComponent(
        key_prefix=["crm"], schedules=False, folder=str(folder)
    )
    made = component.build_defs(dg.ComponentTree.for_test().load_context)
    specs = {each.key: each for each in made.resolve_all_asset_specs()}

    partitions = specs[JOBS].partitions_def
    assert partitions is not None
    assert ["acme", "globex"] == list(partitions.get_partition_keys())

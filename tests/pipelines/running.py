"""Runs of the definitions against a sandbox in this process, and their records in Dagster."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import dagster as dg

from connector.catalog import CATALOG
from connector.pushes.report import ORDER
from pipelines.accounts import Account, Accounts
from pipelines.landing import landing_assets
from pipelines.models import model_assets
from pipelines.sensors import create_inbox_sensor
from tests.support.command import variables

COUNTS = {
    "jobs": 4,
    "candidates": 7,
    "companies": 2,
    "bookings": 5,
    "leads": 3,
    "content_types": 2,
    "content_items": 4,
}
"""A very small agency: one page of each resource."""

KEYS = {name: dg.AssetKey(["landing", name]) for name in CATALOG}
API_KEYS = {name: dg.AssetKey(["recruitment_api", name]) for name in CATALOG}
INBOX_KEYS = {name: dg.AssetKey(["inbox", name]) for name in ORDER}
PUBLISHED = dg.AssetKey(["published"])

UNNAMED = Accounts.read(Account(environ={}, cwd=Path(os.devnull)))
"""The newcomer's case: no account is named."""

landing, published = landing_assets(UNNAMED), model_assets(UNNAMED)[0]
inbox_sensor = create_inbox_sensor(UNNAMED)

KEY = "planted-key-91d3b7"
"""Key that tests search in places where it must not be."""


@dataclass(frozen=True)
class FinishedRun:
    """Result of a materialization: its assets and checks by asset name, and its error, if any."""

    success: bool
    materialized: dict[str, dg.AssetMaterialization]
    checks: dict[str, dg.AssetCheckEvaluation]
    failure_reason: str


@contextmanager
def open_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Open a Dagster instance that stores everything in the folder."""
    if not (home / "history").exists():
        shutil.copytree(_make_template_home().name, home, dirs_exist_ok=True)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@cache
def _make_template_home() -> tempfile.TemporaryDirectory[str]:
    """Return a Dagster home without runs. Copying it is faster than creating one."""
    home = tempfile.TemporaryDirectory(prefix="dagster-home-")
    Path(home.name, "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    with dg.DagsterInstance.from_config(home.name):
        return home


def make_account(base_url: str, folder: Path, key: str = KEY) -> Account:
    """Return the account of the server at this address, with its data in the folder."""
    environ = variables(base_url, folder, key)
    return Account(environ=environ, cwd=folder)


def materialize_resources(
    account: Account,
    names: Sequence[str] = (),
    *,
    selection: dg.AssetSelection | None = None,
    instance: dg.DagsterInstance | None = None,
) -> FinishedRun:
    """Materialize the landing of the named resources, of all, or of a selection. Failures do not
    raise.
    """
    chosen = [KEYS[name] for name in names] or None
    result = dg.materialize(
        [landing],
        selection=selection if selection is not None else chosen,
        resources={"account": account},
        instance=instance,
        raise_on_error=False,
    )
    landed = [
        event.step_materialization_data.materialization
        for event in result.get_asset_materialization_events()
    ]
    return FinishedRun(
        success=result.success,
        materialized={each.asset_key.path[-1]: each for each in landed},
        checks={each.asset_key.path[-1]: each for each in result.get_asset_check_evaluations()},
        failure_reason="" if result.success else read_failure_reason(result),
    )


def read_failure_reason(result: dg.ExecuteInProcessResult) -> str:
    """Return the message of the first step that failed."""
    failure = result.get_step_failure_events()[0].step_failure_data.user_failure_data
    assert failure is not None
    return str(failure.description)

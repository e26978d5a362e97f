"""The definitions load without settings and warnings, and contain every asset."""

from __future__ import annotations

import os
import subprocess
import sys

import dagster as dg

from pipelines.definitions import definitions
from pipelines.schedules import NIGHTLY
from tests.pipelines.running import API_KEYS, INBOX_KEYS, KEYS, PUBLISHED
from tests.repository import ROOT


def read_environ_without_settings() -> dict[str, str]:
    """Return the environment without settings of the connector."""
    return {name: v for name, v in os.environ.items() if not name.startswith("CONNECTOR_")}


def test_definitions_load_without_settings_and_without_warnings() -> None:
    program = (
        "from pipelines.definitions import definitions\n"
        "definitions.resolve_job_def('nightly_pull')\n"
        "keys = {spec.key.path[0] for spec in definitions.resolve_all_asset_specs()}\n"
        "print({'landing', 'published'} <= keys)"
    )
    loaded = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        env=read_environ_without_settings(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "True\n", "") == (loaded.returncode, loaded.stdout, loaded.stderr)


def test_the_asset_graph_starts_at_the_inbox_and_ends_at_the_report() -> None:
    graph = definitions.resolve_asset_graph()

    def parents(key: dg.AssetKey) -> set[dg.AssetKey]:
        return set(graph.get(key).parent_keys)

    assert {INBOX_KEYS["candidates"]} == parents(API_KEYS["candidates"])
    assert {API_KEYS["candidates"]} == parents(KEYS["candidates"])
    assert {PUBLISHED} == parents(dg.AssetKey("report"))
    outside = {*API_KEYS.values(), *INBOX_KEYS.values(), dg.AssetKey("report")}
    unrecorded = graph.external_asset_keys - outside
    assert outside < graph.external_asset_keys
    assert {"staging", "seeds"} == {key.path[0] for key in unrecorded}


def test_the_published_file_depends_on_every_other_asset() -> None:
    job = definitions.resolve_job_def(NIGHTLY)
    graph = definitions.resolve_asset_graph()
    keys = graph.materializable_asset_keys

    assert keys == job.asset_layer.executable_asset_keys
    assert keys - {PUBLISHED} == dg.AssetSelection.assets(PUBLISHED).upstream().resolve(graph) & (
        keys - {PUBLISHED}
    )

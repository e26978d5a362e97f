"""The definitions load without settings and warnings."""

from __future__ import annotations

import os
import subprocess
import sys

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

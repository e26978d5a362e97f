"""A pull that finds nothing loads neither a feature that is not set up nor the build of models."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.support.command import call, variables

PULL = """
import sys
from connector.cli import main
try:
    main(["pull"])
finally:
    print("\\n".join(sys.modules), file=sys.stderr)
"""
UNUSED = (
    *("connector.publishing.build", "connector.publishing.lakehouse"),
    *("connector.publishing.project_loader", "connector.publishing.pseudonymize"),
    *("connector.privacy", "connector.pushes", "connector.spreadsheet"),
    *("connector.warehouse.persons", "dagster", "jinja2", "numpy", "openpyxl", "pandas"),
    *("phonenumbers", "sqlglot", "yaml"),
)


@pytest.mark.slow
def test_a_pull_that_finds_nothing_loads_only_the_pull(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 1}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data", sandbox.key)
        environ["CONNECTOR_MODELS"] = "on"
        assert 0 == call(["pull"], environ).status
        done = subprocess.run(
            [sys.executable, "-c", PULL],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=True,
        )

    loaded = done.stderr.splitlines()
    assert "Nothing to publish" in done.stderr
    assert "connector.publishing.publication" in loaded
    assert [] == [each for each in loaded if each.startswith(UNUSED)]

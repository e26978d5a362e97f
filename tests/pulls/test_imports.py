"""Commands load only the modules that they use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.support.command import call, variables

COMMAND = """
import sys
from connector.cli import main
try:
    main(sys.argv[1:])
finally:
    print("\\n".join(sys.modules), file=sys.stderr)
"""
UNUSED = (
    "connector.publishing.build",
    *("connector.publishing.project_loader", "connector.publishing.pseudonymize"),
    *("connector.privacy", "connector.pushes", "connector.spreadsheet"),
    *("connector.warehouse.persons", "dagster", "jinja2", "numpy", "openpyxl", "pandas"),
    *("phonenumbers", "sqlglot", "yaml"),
)


@pytest.mark.slow
def test_a_pull_without_changes_imports_only_modules_of_the_pull(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 1}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data", sandbox.key)
        environ["CONNECTOR_MODELS"] = "on"
        assert 0 == call(["pull"], environ).status
        loaded = run_and_list_modules("pull", environ)
        loaded_by_status = run_and_list_modules("status", environ)

    assert "Nothing to publish: recruitment.duckdb is up to date." in loaded
    assert "connector.publishing.publication" in loaded
    assert [] == [each for each in loaded if each.startswith(UNUSED)]
    assert "connector.cli.status" in loaded_by_status
    unused = (*UNUSED, "connector.client.client", "httpx")
    assert [] == [each for each in loaded_by_status if each.startswith(unused)]


def run_and_list_modules(command: str, environ: dict[str, str]) -> list[str]:
    """Run the command, and return its lines on standard error: messages and loaded modules."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, command],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.splitlines()

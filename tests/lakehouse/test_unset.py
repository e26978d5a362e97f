"""A pull without a lakehouse does not import it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from connector.sandbox.server import Sandbox
from tests.cli.calling import variables
from tests.repository import ROOT

PULL = """
import sys
from connector.cli import main

try:
    main(["pull", "jobs"])
finally:
    optional = "connector.publishing.lakehouse"
    imported = sorted(name for name in sys.modules if name.startswith(optional))
    print("imported:", *imported)
"""


def test_a_pull_without_a_lakehouse_does_not_import_it(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        environ = variables(sandbox.base_url, tmp_path, sandbox.key)
        done = subprocess.run(
            [sys.executable, "-c", PULL],
            check=True,
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
        )

    assert "imported:" == done.stdout.splitlines()[-1]
    assert (tmp_path / "recruitment.duckdb").exists()

"""A pull loads no module of a feature that is not set up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.support.command import variables

PULL = """
import sys
from connector.cli import main
try:
    main(["pull"])
finally:
    print("\\n".join(sys.modules), file=sys.stderr)
"""
OPTIONAL = (
    *("connector.publishing.lakehouse", "connector.publishing.pseudonymize"),
    *("connector.privacy", "connector.warehouse.persons"),
)


@pytest.mark.slow
def test_a_pull_loads_neither_lakehouse_nor_mask_nor_erasure(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 1}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data", sandbox.key)
        done = subprocess.run(
            [sys.executable, "-c", PULL],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=True,
        )

    loaded = done.stderr.splitlines()
    assert "connector.publishing.publication" in loaded
    assert [] == [each for each in loaded if each.startswith(OPTIONAL)]

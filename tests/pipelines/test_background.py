"""Dagster started by a script in the background."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT

pytestmark = pytest.mark.slow

SCRIPT = 'cd "$1"; shift; "$@" 2>&1 & echo "$!"; wait'


def test_dagster_in_the_background_stops_at_sigterm(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    command = (sys.executable, "-m", "pipelines", "--port", "0")
    with subprocess.Popen(
        ["/bin/sh", "-c", SCRIPT, "sh", str(ROOT), *command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DAGSTER_HOME": str(tmp_path)},
    ) as shell:
        assert shell.stdout is not None
        pid = int(shell.stdout.readline())
        line = ""
        while "Serving dagster-webserver" not in line:
            line = shell.stdout.readline()
            assert line, "it ended by itself"
        os.kill(pid, signal.SIGTERM)
        # Whatever holds the other end of the pipe has ended when it does.
        shell.communicate(timeout=60)

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)

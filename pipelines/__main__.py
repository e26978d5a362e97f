"""`dagster dev` that keeps its runs, and that ends on SIGINT and SIGTERM in the background too.

    python -m pipelines [OPTIONS OF dagster dev]

A shell starts background processes of a script with SIGINT ignored. Dagster passes this on to
SIGTERM, so `dagster dev &` would not end on either, and its servers would keep running.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path


def main() -> None:
    """Replace this process with `dagster dev`. Without DAGSTER_HOME, its runs are in .dagster/."""
    if "DAGSTER_HOME" not in os.environ:
        home, configuration = Path(".dagster").absolute(), Path("dagster.yaml")
        home.mkdir(exist_ok=True)
        if configuration.exists():
            shutil.copy(configuration, home)
        os.environ["DAGSTER_HOME"] = str(home)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Ignored and default signals survive exec; custom handlers do not.
    os.execv(sys.executable, [sys.executable, "-m", "dagster", "dev", *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    main()

"""`dagster dev` that ends on SIGINT and SIGTERM, even if it runs in the background.

    python -m pipelines [OPTIONS OF dagster dev]

A shell starts background processes of a script with SIGINT ignored. Dagster passes this on to
SIGTERM, so `dagster dev &` would not end on either, and its servers would keep running.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Replace this process with `dagster dev`, with the default signal handlers."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Ignored and default signals survive exec; custom handlers do not.
    os.execv(sys.executable, [sys.executable, "-m", "dagster", "dev", *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    main()

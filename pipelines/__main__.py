"""`dagster dev`, which ends on SIGINT and SIGTERM wherever it was started.

    python -m pipelines [OPTIONS OF dagster dev]

A shell starts what a script puts into the background with SIGINT ignored. Dagster hands that on to
SIGTERM, so that `dagster dev &` would end on neither, and its servers would outlive the script.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Become `dagster dev`, with the signals as a terminal gives them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # What is ignored or default stays so across this; a handler of ours would not.
    os.execv(sys.executable, [sys.executable, "-m", "dagster", "dev", *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    main()

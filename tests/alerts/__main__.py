"""Lives through the quarter, and writes what became of each incident into docs/ALERTS.md.

python -m tests.alerts
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.alerts.incidents import PLANS
from tests.alerts.quarter import BEGINS, ENDS, PAGE, rows_of, section, spend_quarter


def main() -> None:
    """Write the section anew."""
    rows = []
    for plan in PLANS:
        with tempfile.TemporaryDirectory() as folder:
            rows += rows_of(plan, spend_quarter(plan, Path(folder)))
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGINS)
    PAGE.write_text(before + section(rows) + rest.partition(ENDS)[2], encoding="utf-8")


if __name__ == "__main__":
    main()

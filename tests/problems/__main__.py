"""Write the messages of the nights to `nights.txt`: python -m tests.problems."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.problems.incidents import NIGHTS
from tests.problems.nights import QUIET, run_nights

MESSAGES = Path(__file__).with_name("nights.txt")
TITLE = (
    "What the operator of an account receives in each night. Written by python -m tests.problems."
)


def run_and_format_nights(folder: Path) -> Iterator[str]:
    """Run all nights in the folder. Yields the title, then each night with its messages."""
    yield TITLE
    for night, messages in run_nights(NIGHTS, folder):
        if messages or night.about != QUIET:
            yield f"{night.number}. {night.about}\n" + "\n\n".join(messages)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        MESSAGES.write_text(
            "\n\n## ".join(run_and_format_nights(Path(folder))) + "\n", encoding="utf-8"
        )

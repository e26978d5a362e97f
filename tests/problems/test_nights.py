"""Messages of the nights, compared with the table in `nights.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.problems.__main__ import MESSAGES, run_and_format_nights


@pytest.mark.slow
def test_each_night_sends_exactly_the_messages_in_nights_txt(tmp_path: Path) -> None:
    nights = MESSAGES.read_text(encoding="utf-8").split("\n## ")
    for expected, found in zip(nights, run_and_format_nights(tmp_path), strict=True):
        assert expected.strip() == found.strip(), "run python -m tests.problems"

"""Every message of the nights, word for word: `nights.txt` is the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.operations.findings import ALERTS
from tests.alerts.__main__ import MESSAGES, rendered


@pytest.mark.slow
def test_each_night_has_exactly_these_messages(tmp_path: Path) -> None:
    nights = MESSAGES.read_text(encoding="utf-8").split("\n## ")
    for expected, found in zip(nights, rendered(tmp_path), strict=True):
        assert expected.strip() == found.strip(), "run python -m tests.alerts"


def test_the_nights_have_every_alert() -> None:
    text = MESSAGES.read_text(encoding="utf-8")

    # The lakehouse has servers and tests of its own.
    assert {"lakehouse_behind"} == {code for code in ALERTS if f"Code: {code}" not in text}

"""What a run's log is told while long work goes on."""

from __future__ import annotations

import logging

import pytest

from pipelines.landing import SECONDS_BETWEEN, NowAndThen


def test_a_log_is_told_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    """Of a thousand things done in a minute, one is told for each span between two lines, the
    latest; of work that is done before the first span is over, none.
    """
    seconds = 0.0
    log = logging.getLogger("a run")
    with caplog.at_level(logging.DEBUG, "a run"):
        progress = NowAndThen(log, lambda: seconds)
        for done in range(1_001):
            seconds = done * 0.06
            progress.tell(f"{seconds:.2f}")

    told = [float(each.message) for each in caplog.records]
    assert told == pytest.approx([SECONDS_BETWEEN * n for n in range(1, len(told) + 1)], abs=1)
    assert len(told) in (11, 12)

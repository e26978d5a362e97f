"""Progress of long work in the log of a run."""

from __future__ import annotations

import logging

import pytest

from pipelines.landing import SECONDS_BETWEEN, ThrottledLog


def test_long_work_writes_progress_to_the_run_log_at_intervals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seconds = 0.0
    log = logging.getLogger("a run")
    with caplog.at_level(logging.DEBUG, "a run"):
        progress = ThrottledLog(log, lambda: seconds)
        for done in range(1_001):
            seconds = done * 0.06
            progress.log_line(f"{seconds:.2f}")

    logged = [float(each.message) for each in caplog.records]
    assert logged == pytest.approx([SECONDS_BETWEEN * n for n in range(1, len(logged) + 1)], abs=1)
    assert len(logged) in (11, 12)

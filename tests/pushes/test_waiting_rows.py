"""A row whose record may still appear waits, and the other rows are sent while it waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from connector.state.row import SETTLE_SECONDS_MIN
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    create_lead,
    make_conversion,
    make_creates,
    map_outcomes,
)
from tests.support.clock import Time

REQUESTS_MAX = 15
"""Budget that only a row which does not wait exceeds."""


def test_the_other_rows_are_sent_before_a_lost_one_is_looked_up_again(tmp_path: Path) -> None:
    time = Time()
    with Sandbox(clock=time.server_now) as sandbox:
        sandbox.faults.add(Drop("none"), method="POST", path=CANDIDATES)
        pusher = Pusher(sandbox, tmp_path, time, connections=1)
        report = pusher.push(make_creates(3), budget=REQUESTS_MAX)
        methods = [each.method for each in sandbox.log]

    assert {2: "held", 3: "created", 4: "created"} == map_outcomes(report)
    # The newest records before the push, the lost create and its look, the others, the second look.
    assert ["GET", "POST", "GET", "POST", "POST", "GET"] == methods
    assert SETTLE_SECONDS_MIN == pytest.approx(sum(time.waits), abs=2)


def test_a_lost_conversion_is_read_again_when_it_can_no_longer_take_effect(tmp_path: Path) -> None:
    time = Time()
    with Sandbox(clock=time.server_now) as sandbox:
        leads = [create_lead(sandbox, name) for name in ("ada", "bo")]
        sandbox.faults.add(Drop("none"), method="POST", path=f"*/{leads[0]}/convert")
        pusher = Pusher(sandbox, tmp_path, time, connections=1)
        rows = [make_conversion(number, id) for number, id in enumerate(leads, 2)]
        report = pusher.push(rows, budget=REQUESTS_MAX)
        reads = [each.path for each in sandbox.log].count(f"/api/v1/leads/{leads[0]}")

    assert "converted" == map_outcomes(report)[3]
    assert 3 == reads
    assert SETTLE_SECONDS_MIN == pytest.approx(sum(time.waits), abs=2)

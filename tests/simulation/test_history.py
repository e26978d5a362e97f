"""The history that a run stores, compared with the server's true history: every interval of every
version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from connector.warehouse import landing
from connector.warehouse.landing import StoredRow, Version
from connector.warehouse.stream import FoundDetail
from tests.seeds import seeds
from tests.simulation import history
from tests.simulation.run import run
from tests.simulation.scenario import SMALL
from tests.support.kill_points import IS_ALL
from tests.tiers import first_fast

LANDED = ("B", "E", "H", "killed-load", "content", "types", "clock")
"""Scenarios with deletions, ties, changes without a date, kills, dated lists, unsorted lists, and a
clock that steps.
"""


@pytest.mark.parametrize("name", first_fast(LANDED, 3))
def test_the_history_of_a_warehouse_follows_the_rules(name: str) -> None:
    verdicts = [run(name + SMALL, seed, with_warehouse=True) for seed in seeds(8 if IS_ALL else 1)]

    assert [] == [str(each) for each in verdicts if each.wrong]


def versions_follow_the_date_of_the_record(patch: pytest.MonkeyPatch) -> None:
    """A version begins at `updated_at`, even where the record was read unchanged later."""

    def start(updated_at: datetime | None, after: datetime | None, seen: datetime) -> datetime:
        return updated_at or seen

    patch.setattr(landing, "_start", start)


def versions_end_when_the_next_was_read(patch: pytest.MonkeyPatch) -> None:
    """A version begins when it was read first."""
    whole = landing.next_version

    def next_version(
        found: FoundDetail, row: StoredRow | None, last: Version | None, end: datetime | None
    ) -> Version:
        version = whole(found, row, last, end)
        began_after = found.served_at if last is not None else version.began_after
        return replace(version, began_after=began_after)

    patch.setattr(history, "next_version", next_version)


@pytest.mark.parametrize(
    ("ablation", "name"),
    [(versions_follow_the_date_of_the_record, "D"), (versions_end_when_the_next_was_read, "B")],
)
def test_a_fault_in_the_history_rules_is_detected(
    ablation: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ablation(monkeypatch)

    found = (wrong for seed in range(20) for wrong in run(name + SMALL, seed).wrong)
    assert any(each.startswith("history") for each in found)

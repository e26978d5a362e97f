"""The history that a run stores, compared with the server's true history: every interval of every
version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from connector.catalog.resource import Resource
from connector.warehouse import versions as edits
from connector.warehouse import versions as version
from connector.warehouse.versions import Version
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


def dates_count_as_exact(patch: pytest.MonkeyPatch) -> None:
    """The time of a response counts as the first instant of its second."""
    for module in (version, edits, history):
        patch.setattr(module, "SECOND", timedelta(0))
    patch.setattr(history, "SECOND", timedelta(seconds=1))


def details_complete_every_listed_version(patch: pytest.MonkeyPatch) -> None:
    """A detail completes a listed version even if the record changed since the list."""
    patch.setattr(Version, "is_outdated_by", lambda *_: False)
    whole = version.completed_version

    def completed(listed: Version, *rest: object) -> Version:
        done = whole(listed, *rest)  # type: ignore[arg-type]
        return replace(done, observed_from=listed.observed_from)

    patch.setattr(edits, "completed_version", completed)


def listed_versions_get_fields_of_the_last_detail(patch: pytest.MonkeyPatch) -> None:
    """A version begun by a list contains the unlisted fields of the last detail."""
    whole = edits.HistoryEdits.add_list_item

    def listed(self: edits.HistoryEdits, item: Resource, *rest: object) -> None:
        whole(self, item, *rest)  # type: ignore[arg-type]
        before = rest[-1]
        if item.id in self.begun and isinstance(before, edits.RecordState):
            begun, record = self.begun[item.id]
            mixed = self.declaration.record({**before.known_values, **record.raw})
            self.begun[item.id] = begun, mixed

    patch.setattr(edits.HistoryEdits, "add_list_item", listed)


@pytest.mark.parametrize(
    ("ablation", "name"),
    [
        (dates_count_as_exact, "B"),
        (details_complete_every_listed_version, "killed-load"),
        (listed_versions_get_fields_of_the_last_detail, "unsorted-updated"),
    ],
)
def test_a_fault_in_the_history_rules_is_detected(
    ablation: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ablation(monkeypatch)

    found = (wrong for seed in range(20) for wrong in run(name + SMALL, seed).wrong)
    assert any(each.startswith("history") for each in found)

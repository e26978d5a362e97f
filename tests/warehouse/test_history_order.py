"""No version ends before it begins, whatever the dates in the API's responses."""

from __future__ import annotations

import random

import pytest

from connector.warehouse.landing import HistoryTable
from connector.warehouse.stream import Commit, DeletionProof
from connector.warehouse.versions import VersionEnd
from connector.warehouse.warehouse import Warehouse
from tests.tiers import first_fast
from tests.warehouse.versions import (
    CANDIDATES,
    find_violations,
    make_detail,
    make_item,
    read_versions,
    timestamp_at,
)


def commit_candidates(warehouse: Warehouse, **changes: object) -> None:
    """Commit these fields of `Commit` for candidates."""
    warehouse.commit(CANDIDATES, Commit(**changes), "run", timestamp_at(99))  # type: ignore[arg-type]


def test_a_detail_with_an_earlier_date_does_not_end_a_version_too_early(
    warehouse: Warehouse,
) -> None:
    commit_candidates(warehouse, records=(make_detail("1", 5, 5.7, first_name="Ann", notes="a"),))
    commit_candidates(warehouse, items=(make_item("1", 7, first_name="Eve"),))
    commit_candidates(warehouse, records=(make_detail("1", 9, 5.2, first_name="Eve", notes="b"),))
    first, second = read_versions(warehouse)

    assert first["_valid_from"] == first["_valid_to"] == second["_valid_from"] == timestamp_at(5.7)
    assert [] == find_violations(warehouse)


@pytest.mark.parametrize("seed", first_fast(range(4)))
def test_responses_with_random_dates_keep_the_versions_in_order(
    seed: int, warehouse: Warehouse
) -> None:
    chance, now = random.Random(seed), 0.0
    for _ in range(40):
        now += chance.choice((0, 0, 1, 1, 2, 5))
        name = chance.choice("AB")
        updated = now + chance.uniform(-3, 1)
        match chance.randrange(5):
            case 0:
                commit_candidates(warehouse, gone={"1": DeletionProof(timestamp_at(now))})
            case 1 | 2:
                commit_candidates(warehouse, items=(make_item("1", now, first_name=name),))
            case _:
                notes = chance.choice("ab")
                found = make_detail("1", now, updated, first_name=name, notes=notes)
                commit_candidates(warehouse, records=(found,))

    assert [] == find_violations(warehouse)


def test_a_version_that_ends_before_its_start_is_not_committed(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_candidates(warehouse, records=(make_detail("1", 5, 5.7, first_name="Ann"),))
    whole = HistoryTable._end_versions

    def end_too_early(self: HistoryTable, endings: dict[str, VersionEnd], stored: object) -> None:
        too_early = {
            id: VersionEnd(timestamp_at(5), each.before, each.by) for id, each in endings.items()
        }
        whole(self, too_early, stored)  # type: ignore[arg-type]

    monkeypatch.setattr(HistoryTable, "_end_versions", end_too_early)
    with pytest.raises(AssertionError, match="would end before they began"):
        commit_candidates(warehouse, gone={"1": DeletionProof(timestamp_at(9))})

    assert [None] == [row["_valid_to"] for row in read_versions(warehouse)]

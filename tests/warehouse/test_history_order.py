"""History runs forward: no version ends before it begins, whatever the dates of its answers."""

from __future__ import annotations

import random

import pytest

from connector.warehouse.history import History
from connector.warehouse.pull_commands import Commit, DeletionProof
from connector.warehouse.versions import VersionEnd
from connector.warehouse.warehouse import Warehouse
from tests.tiers import first_fast
from tests.warehouse.versions import CANDIDATES, detail, item, moment, offences, versions


def commit(warehouse: Warehouse, **what: object) -> None:
    warehouse.commit(CANDIDATES, Commit(**what), "run", moment(99))  # type: ignore[arg-type]


def test_a_detail_with_an_earlier_date_ends_no_version_before_it_began(
    warehouse: Warehouse,
) -> None:
    commit(warehouse, records=(detail("1", 5, 5.7, first_name="Ann", notes="a"),))
    commit(warehouse, items=(item("1", 7, first_name="Eve"),))
    commit(warehouse, records=(detail("1", 9, 5.2, first_name="Eve", notes="b"),))
    first, second = versions(warehouse)

    assert first["_valid_from"] == first["_valid_to"] == second["_valid_from"] == moment(5.7)
    assert [] == offences(warehouse)


@pytest.mark.parametrize("seed", first_fast(range(4)))
def test_answers_of_any_dates_keep_the_order(seed: int, warehouse: Warehouse) -> None:
    chance, now = random.Random(seed), 0.0
    for _ in range(40):
        now += chance.choice((0, 0, 1, 1, 2, 5))
        name = chance.choice("AB")
        updated = now + chance.uniform(-3, 1)
        match chance.randrange(5):
            case 0:
                commit(warehouse, gone={"1": DeletionProof(moment(now))})
            case 1 | 2:
                commit(warehouse, items=(item("1", now, first_name=name),))
            case _:
                notes = chance.choice("ab")
                found = detail("1", now, updated, first_name=name, notes=notes)
                commit(warehouse, records=(found,))

    assert [] == offences(warehouse)


def test_a_version_that_would_end_before_it_began_is_not_committed(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(warehouse, records=(detail("1", 5, 5.7, first_name="Ann"),))
    whole = History._end_versions

    def early(self: History, endings: dict[str, VersionEnd], stored: object) -> None:
        too_early = {
            id: VersionEnd(moment(5), each.before, each.by) for id, each in endings.items()
        }
        whole(self, too_early, stored)  # type: ignore[arg-type]

    monkeypatch.setattr(History, "_end_versions", early)
    with pytest.raises(AssertionError, match="would end before they began"):
        commit(warehouse, gone={"1": DeletionProof(moment(9))})

    assert [None] == [row["_valid_to"] for row in versions(warehouse)]

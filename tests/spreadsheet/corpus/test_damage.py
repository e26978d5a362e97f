"""A damaged quote, delimiter or line end costs its own rows, and changes no value in silence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest

from tests.spreadsheet.corpus.damage import KINDS, TEXT, Damage, damages, faults, outcome

EVERY = 13
"""Of the damaged files, every thirteenth is in the fast tier: each kind in many places."""


def faults_of(folder: Path, some: Sequence[Damage]) -> list[str]:
    """The faults of every damaged file, with the damage."""
    path = folder / "people.csv"
    undamaged = outcome(path, TEXT)
    assert 4 == len(undamaged.sent)
    return [
        f"{damage}: {fault}"
        for damage in some
        for fault in faults(damage, outcome(path, damage.text), undamaged)
    ]


def test_damage_changes_no_value_in_silence_and_costs_its_own_rows(tmp_path: Path) -> None:
    some = list(islice(damages(), 0, None, EVERY))

    assert {*KINDS} == {each.kind for each in some}
    assert [] == faults_of(tmp_path, some)


@pytest.mark.slow
def test_damage_at_every_position_changes_no_value_in_silence(tmp_path: Path) -> None:
    every = list(damages())

    assert len(every) > 2_200
    assert [] == faults_of(tmp_path, every)

"""A damaged quote, delimiter or line end rejects only its rows and silently changes no value."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.seeds import SEED
from tests.spreadsheet.corpus.damage import (
    KINDS,
    TEXT,
    Damage,
    find_faults,
    iterate_damages,
    preview_text,
)

EVERY = 13
"""Every thirteenth damaged file is previewed, which includes each kind of damage."""


def find_all_faults(folder: Path, some: Sequence[Damage]) -> list[str]:
    """Preview all damaged files, and return their faults as texts."""
    path = folder / "people.csv"
    undamaged = preview_text(path, TEXT)
    assert 3 == len(undamaged.sent)
    return [
        f"{damage}: {fault}"
        for damage in some
        for fault in find_faults(damage, preview_text(path, damage.text), undamaged)
    ]


def test_damage_rejects_only_its_own_rows_and_silently_changes_no_value(tmp_path: Path) -> None:
    every = list(iterate_damages())
    some = every[SEED % EVERY :: EVERY]

    assert len(every) > 1_900
    assert {*KINDS} == {each.kind for each in some}
    assert [] == find_all_faults(tmp_path, some)

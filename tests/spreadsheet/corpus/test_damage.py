"""A damaged quote, delimiter or line end rejects only its rows and silently changes no value."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.seeds import SEED
from tests.spreadsheet.corpus.damage import KINDS, TEXT, find_faults, iterate_damages, preview_text
from tests.tiers import first_fast


@pytest.mark.parametrize("step", first_fast([13, 1]))
def test_damage_rejects_only_its_own_rows_and_silently_changes_no_value(
    tmp_path: Path, step: int
) -> None:
    path, every = tmp_path / "people.csv", list(iterate_damages())
    undamaged = preview_text(path, TEXT)
    assert (3, 10) == (len(undamaged.sent), len(KINDS))
    assert len(every) > 1_900
    faults = [
        f"{damage}: {fault}"
        for damage in every[SEED % step :: step]
        for fault in find_faults(damage, preview_text(path, damage.text), undamaged)
    ]
    assert [] == faults

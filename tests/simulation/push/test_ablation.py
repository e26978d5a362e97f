"""The simulator can see: a push that lacks one of its parts is found wrong, and soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.simulation.push import ablation
from tests.simulation.push.run import run

SEEDS = 100


@contextmanager
def _without(part: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        remove: Callable[[pytest.MonkeyPatch], None] = getattr(ablation, part)
        remove(patch)
        yield


@pytest.mark.parametrize(
    ("part", "name", "said"),
    [
        ("silence_is_taken_for_failure", "losses", "P5"),
        ("absence_is_believed_at_once", "retry", "P5"),
        ("nothing_is_written_ahead", "crashes", "P1"),
        ("what_was_cut_off_is_planned_again", "crashes", "P5"),
        ("other_rows_records_are_adopted", "siblings", "report"),
        ("rivals_are_not_asked", "nameless", "report"),
        ("likeness_is_enough", "alike", "report"),
        ("files_are_strangers", "other-file", "P2"),
        ("rows_are_strangers", "crashes", "P6"),
        ("every_row_is_another", "other-file", "P5"),
        ("rows_about_one_thing_go_at_once", "nameless", "report"),
        ("folders_are_strangers", "folders", "P5"),
        ("others_changes_are_overwritten", "edited", "conflict"),
        ("a_refusal_is_final", "retry-hidden-unique", "report"),
        ("the_body_is_written_anew", "quiet", "P8"),
    ],
)
def test_a_push_that_lacks_a_part_is_found_wrong(part: str, name: str, said: str) -> None:
    """Each part of the push is there for a reason that some seed shows, by its obligation."""
    with _without(part):
        found = any(said in run(name, seed).promises for seed in range(SEEDS))

    assert found


def test_every_ablation_is_tried() -> None:
    """A part that no test takes out would pass for one that is needed."""
    parts = {
        name
        for name, each in vars(ablation).items()
        if callable(each) and getattr(each, "__module__", "") == ablation.__name__
    }
    (mark,) = test_a_push_that_lacks_a_part_is_found_wrong.pytestmark  # type: ignore[attr-defined]

    assert parts == {part for part, *_ in mark.args[1]}

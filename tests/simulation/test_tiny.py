"""Every run of tiny worlds: unlike random seeds, they leave no case to chance."""

from __future__ import annotations

from functools import partial

import pytest

from tests.simulation.harness import Chooser, find_wrong_tapes, play_all_tapes
from tests.simulation.tiny import list_shapes, play

PARTS = 4
"""Number of tests that share the shapes."""


def _find_wrong_runs(landing: str, records: tuple[int, ...], part: int, *, pulls: int) -> list[str]:
    """Play the shapes of one part, and return the wrong runs."""
    every = [str(each) for each in list_shapes(records) if each.landing == landing]
    tiny_play = partial(play, mutations=2, pulls=pulls)
    return [line for shape in every[part::PARTS] for line in find_wrong_tapes(tiny_play, shape)[1]]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_two_mutations_at_any_steps_of_a_first_load_keep_the_promises(part: int) -> None:
    assert [] == _find_wrong_runs("empty", (1, 2), part, pulls=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_two_mutations_at_any_steps_of_two_pulls_keep_the_promises(part: int) -> None:
    assert [] == _find_wrong_runs("proven", (1, 2, 3), part, pulls=2)


def test_every_choice_of_a_tiny_run_is_explored_once() -> None:
    shape = "content_items-1-apart-apart-proven-stable"
    tapes = [tape for tape, _ in play_all_tapes(partial(play, mutations=1), shape)]

    assert len(set(tapes)) == len(tapes)
    # One gap: no change, a new record, a change, a deletion.
    assert 4 == len(tapes)


def test_a_tape_replays_its_run() -> None:
    shape = "candidates-2-apart-apart-proven-stable"
    first, second = list[str](), list[str]()
    play(shape, Chooser((1, 2)), first.append, mutations=2)
    play(shape, Chooser((1, 2)), second.append, mutations=2)

    assert first == second
    assert first

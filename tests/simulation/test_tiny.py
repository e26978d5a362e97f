"""Every run of tiny worlds: a promise that is kept here is not kept by luck of a seed."""

from __future__ import annotations

from functools import partial

import pytest

from tests.simulation.harness import Chooser, explore, find_wrong_tapes
from tests.simulation.tiny import PullShape, play, shapes
from tests.tiers import first_fast

PARTS = first_fast(range(8))
"""Shares of the shapes: the first is a fast test."""


def _wrong(every: list[PullShape], mutations: int, pulls: int) -> list[str]:
    tiny_play = partial(play, mutations=mutations, pulls=pulls)
    return [line for shape in every for line in find_wrong_tapes(tiny_play, str(shape))[1]]


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_two_mutations_in_any_gaps_of_a_first_load(part: int) -> None:
    every = [each for each in shapes((1, 2)) if each.landing == "empty"]

    assert [] == _wrong(every[part :: len(PARTS)], mutations=2, pulls=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_two_mutations_in_any_gaps_of_two_pulls(part: int) -> None:
    every = [each for each in shapes((1, 2, 3)) if each.landing == "proven"]

    assert [] == _wrong(every[part :: len(PARTS)], mutations=2, pulls=2)


def test_every_tape_is_played_once() -> None:
    shape = "content_items-1-apart-apart-proven-stable"
    tapes = [tape for tape, _ in explore(partial(play, mutations=1), shape)]

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

"""Tiny worlds, all of them: what holds here does not hold by luck of a seed."""

from __future__ import annotations

import pytest

from tests.simulation.tiny import Chooser, Shape, explore, play, shapes
from tests.tiers import first_fast

PARTS = first_fast(range(8))
"""Shares of the shapes: the first is a fast test."""


def _wrong(every: list[Shape], mutations: int, pulls: int) -> list[str]:
    return [
        f"{wrong} (replay: {command})"
        for shape in every
        for command, wrong in explore(shape, mutations, pulls=pulls)
        if wrong
    ]


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
    shape = Shape("content_items", 1, "apart", "apart", "proven", "stable")
    commands = [command for command, _ in explore(shape, 1)]

    assert len(set(commands)) == len(commands)
    # One gap: nothing, a new record, a change, a deletion.
    assert 4 == len(commands)


def test_a_tape_replays_its_run() -> None:
    shape = Shape("candidates", 2, "apart", "apart", "proven", "stable")
    first, second = list[str](), list[str]()
    play(shape, 2, Chooser((1, 2)), trace=first.append)
    play(shape, 2, Chooser((1, 2)), trace=second.append)

    assert first == second
    assert first

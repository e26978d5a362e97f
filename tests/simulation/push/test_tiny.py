"""Tiny files, all of their plays: what holds here does not hold by luck of a seed."""

from __future__ import annotations

import pytest

from tests.simulation.push.tiny import Shape, explore, play
from tests.simulation.tiny import Chooser
from tests.tiers import first_fast


def _wrong(shape: Shape) -> list[str]:
    return [f"{wrong} (replay: {command})" for command, wrong in explore(shape) if wrong]


@pytest.mark.parametrize(
    "shape",
    first_fast(
        [
            "update/hold/0/2",
            "create/retry/0/2",
            "afterwards/hold/1/0",
            "create+same/hold/1/0",
            "create+alike/hold/0/2",
            "create/hold/1/1",
            "convert/hold/1/1",
        ],
        5,
    ),
)
def test_every_play_of_a_tiny_file(shape: str) -> None:
    assert [] == _wrong(Shape.read(shape))


def test_every_tape_is_played_once() -> None:
    commands = [command for command, _ in explore(Shape(("create",), "hold", 0, 1))]

    assert len({*commands}) == len(commands)
    assert 1 + 3 + 2 * 3 == len(commands)


def test_a_tape_replays_its_play() -> None:
    shape = Shape(("create",), "hold", 1, 1)
    first, second = list[str](), list[str]()
    play(shape, Chooser((0, 0, 0, 1)), trace=first.append)
    play(shape, Chooser((0, 0, 0, 1)), trace=second.append)

    assert first == second
    assert first

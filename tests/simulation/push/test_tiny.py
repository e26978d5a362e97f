"""Tiny files, all of their plays: what holds here does not hold by luck of a seed."""

from __future__ import annotations

import pytest

from tests.simulation.push.tiny import Shape, explore, play
from tests.simulation.tiny import Chooser


def _wrong(shape: Shape) -> list[str]:
    return [f"{wrong} (replay: {command})" for command, wrong in explore(shape) if wrong]


@pytest.mark.parametrize(
    "shape",
    [
        "create/hold/1/1",
        "update/hold/0/2",
        "convert/hold/1/1",
        "create/retry-after-settle/0/2",
        "afterwards/hold/1/0",
        "create+same/hold/1/0",
        "create+alike/hold/0/2",
    ],
)
def test_every_play_of_a_tiny_file(shape: str) -> None:
    """So many deaths at any asks, and so many faults of any writes, with a late commit at once, in
    the middle or at the end of what is allowed: never two effects, never a wrong report.
    """
    assert [] == _wrong(Shape.read(shape))


def test_every_tape_is_played_once() -> None:
    """The exploration leaves nothing out: one write that is sent well, or meets one of five faults,
    of which two may come at three times.
    """
    commands = [command for command, _ in explore(Shape(("create",), "hold", 0, 1))]

    assert len({*commands}) == len(commands)
    assert 1 + 3 + 2 * 3 == len(commands)


def test_a_tape_replays_its_play() -> None:
    """What a failure prints is the play that failed."""
    shape = Shape(("create",), "hold", 1, 1)
    first, second = list[str](), list[str]()
    play(shape, Chooser((0, 0, 0, 1)), trace=first.append)
    play(shape, Chooser((0, 0, 0, 1)), trace=second.append)

    assert first == second
    assert first

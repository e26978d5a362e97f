"""Every play of tiny files: unlike random seeds, they leave no case to chance."""

from __future__ import annotations

import pytest

from tests.simulation.harness import Chooser, find_wrong_tapes, play_all_tapes
from tests.simulation.push.tiny import play
from tests.tiers import first_fast


@pytest.mark.parametrize(
    "shape",
    first_fast(
        [
            "update/0/2",
            "afterwards/1/0",
            "create+same/1/0",
            "create+alike/0/2",
            "create/1/1",
            "convert/1/1",
        ],
        5,
    ),
)
def test_every_possible_play_of_a_tiny_file_keeps_the_promises(shape: str) -> None:
    assert [] == find_wrong_tapes(play, shape)[1]


def test_every_choice_of_a_tiny_play_is_explored_once() -> None:
    tapes = [tape for tape, _ in play_all_tapes(play, "create/0/1")]

    assert len({*tapes}) == len(tapes)
    assert 1 + 3 + 2 * 3 == len(tapes)


def test_the_choices_of_a_play_reproduce_it() -> None:
    first, second = list[str](), list[str]()
    play("create/1/1", Chooser((0, 0, 0, 1)), first.append)
    play("create/1/1", Chooser((0, 0, 0, 1)), second.append)

    assert first == second
    assert first

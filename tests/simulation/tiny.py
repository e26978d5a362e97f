"""Tiny worlds, all of them: every mutation of every record in every gap between two requests.

A run asks a `Chooser` wherever something may happen. `explore` repeats it with every sequence of
answers, depth first, so that nothing within the bounds is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import product
from typing import Literal

from tests.simulation.checkers import Broken, differences, judge
from tests.simulation.mirror import Endless, Mirror
from tests.simulation.scenario import Scenario
from tests.simulation.world import World

LATENESS_SECONDS = 2.0
REQUEST_SECONDS = 0.6
REQUESTS_MAX = 200

_TINY = Scenario(
    "every tiny world",
    {"create": 1},
    records=0,
    per_page_max=2,
    precision="seconds",
    lateness_seconds=LATENESS_SECONDS,
    late_seconds_max=0.0,
)


@dataclass(frozen=True)
class Shape:
    """Where a tiny run begins. `landing` says what is landed: nothing, or everything as it is.

    `created` and `updated` say whether the records share their moments.
    """

    resource: Literal["candidates", "content_items"]
    records: int
    created: Literal["apart", "tied"]
    updated: Literal["apart", "tied"]
    landing: Literal["empty", "proven"]
    ties: Literal["stable", "random"]

    def __str__(self) -> str:
        return "-".join(
            (self.resource, str(self.records), self.created, self.updated, self.landing, self.ties)
        )


def shapes(records: Sequence[int]) -> list[Shape]:
    """Every beginning with so many records; ties where there are none are left out."""
    every = product(
        ("candidates", "content_items"),
        records,
        ("apart", "tied"),
        ("apart", "tied"),
        ("empty", "proven"),
        ("stable", "random"),
    )
    made = [Shape(*each) for each in every]  # type: ignore[arg-type]  # the values are as declared
    return [each for each in made if _differs_from_others(each)]


def _differs_from_others(shape: Shape) -> bool:
    is_tied = "tied" in (shape.created, shape.updated)
    return is_tied if shape.ties == "random" else True


class Chooser:
    """Answers every question of one run from a tape, and with 0 beyond its end."""

    def __init__(self, tape: Sequence[int] = ()) -> None:
        self._tape = tuple(tape)
        self.taken: list[tuple[int, int]] = []

    def pick(self, count: int) -> int:
        """One of 0 to `count` - 1."""
        place = len(self.taken)
        taken = self._tape[place] if place < len(self._tape) else 0
        self.taken.append((taken, count))
        return taken

    def following(self) -> tuple[int, ...] | None:
        """The tape of the next run, depth first; None after the last."""
        for place in range(len(self.taken) - 1, -1, -1):
            taken, count = self.taken[place]
            if taken + 1 < count:
                return (*(each for each, _ in self.taken[:place]), taken + 1)
        return None

    @property
    def tape(self) -> str:
        """What replays the run."""
        taken = [each for each, _ in self.taken]
        while taken and taken[-1] == 0:
            taken.pop()
        return ".".join(map(str, taken)) or "0"


class TinyWorld(World):
    """A world in which nothing is drawn: at each request the chooser says what happened before."""

    def __init__(self, shape: Shape, chooser: Chooser, mutations: int) -> None:
        super().__init__(0, replace(_TINY, resource=shape.resource, ties=shape.ties))
        self._chooser, self._left = chooser, 0
        created = self._moments(shape.records, shape.created)
        updated = self._moments(shape.records, shape.updated)
        for made, changed in zip(created, updated, strict=True):
            self.now = made
            self.churn.create(is_late_allowed=False)
            id = next(reversed(self.server.born))
            self.server.change((id,), {}, changed)
        self.now += timedelta(hours=1)
        self._left = mutations

    def _moments(self, count: int, spread: str) -> list[datetime]:
        step = timedelta(minutes=1) if spread == "apart" else timedelta(0)
        return [self.now + step * number for number in range(count)]

    def _send(self) -> datetime:
        sent_at = self.now
        self.requests += 1
        self.now += timedelta(seconds=REQUEST_SECONDS / 2)
        self.mutate()
        self.now += timedelta(seconds=REQUEST_SECONDS / 2)
        return sent_at

    def mutate(self) -> None:
        """Nothing, or a change or a deletion of any record, or a new one; as often as allowed."""
        if not self._left:
            return
        live = sorted(self.server.born)
        choice = self._chooser.pick(2 + 2 * len(live))
        if choice == 0:
            return
        self._left -= 1
        if choice == 1:
            self.churn.create(is_late_allowed=False)
        elif choice < 2 + len(live):
            self.churn.write(live[choice - 2])
        else:
            self.server.remove(live[choice - 2 - len(live)])

    def settle(self) -> None:
        """Nothing happens any more, and an hour passes."""
        self._left = 0
        self.now += timedelta(hours=1)


def play(
    shape: Shape,
    mutations: int,
    chooser: Chooser,
    *,
    pulls: int = 1,
    trace: Callable[[str], None] | None = None,
) -> str | None:
    """One run: pulls with mutations in their gaps, then a quiet one. Tells what is wrong."""
    world = TinyWorld(shape, chooser, mutations)
    mirror = Mirror(world, judge=judge)
    mirror.requests_max = REQUESTS_MAX
    mirror.trace = world.server.told = trace
    if shape.landing == "proven":
        mirror.adopt()
        world.now += timedelta(seconds=LATENESS_SECONDS * 2)
    try:
        for _ in range(pulls):
            mirror.pull()
        world.settle()
        ended = mirror.pull()
    except (Broken, Endless, AssertionError) as broken:
        return f"{type(broken).__name__} {broken}"
    found = differences(mirror)
    if found:
        return "; ".join(f"{promise}: {sorted(ids)}" for promise, ids in found.items())
    assert ended.pulled is not None
    return None if ended.pulled.is_proven else f"not proven: {ended.pulled.reason}"


def explore(shape: Shape, mutations: int, *, pulls: int = 1) -> Iterator[tuple[str, str | None]]:
    """Every run of that shape: what replays it, and what is wrong with it."""
    tape: tuple[int, ...] | None = ()
    while tape is not None:
        chooser = Chooser(tape)
        wrong = play(shape, mutations, chooser, pulls=pulls)
        yield (
            f"make simulate TINY={shape} DEPTH={mutations} PULLS={pulls} TAPE={chooser.tape}",
            wrong,
        )
        tape = chooser.following()

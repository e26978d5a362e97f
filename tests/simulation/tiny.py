"""Tiny worlds, every run: each mutation of each record in each gap between two requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from itertools import product
from typing import Literal

from tests.simulation.checkers import differences, judge
from tests.simulation.harness import Chooser, Trace, collect_failures
from tests.simulation.mirror import Mirror
from tests.simulation.scenario import PullScenario
from tests.simulation.world import PullWorld

LATENESS_SECONDS = 2.0
REQUEST_SECONDS = 0.6
REQUESTS_MAX = 200

_TINY = PullScenario(
    "every tiny world",
    {"create": 1},
    records=0,
    per_page_max=2,
    precision="seconds",
    lateness_seconds=LATENESS_SECONDS,
    late_seconds_max=0.0,
)


@dataclass(frozen=True)
class PullShape:
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
        return "-".join(str(getattr(self, each.name)) for each in fields(self))

    @classmethod
    def parse(cls, text: str) -> PullShape:
        """Parse a shape. Raises `KeyError`."""
        return {str(each): each for each in shapes((1, 2, 3, 4))}[text]


def shapes(records: Sequence[int]) -> list[PullShape]:
    """Every beginning with so many records; ties where there are none are left out."""
    every = product(
        ("candidates", "content_items"),
        records,
        ("apart", "tied"),
        ("apart", "tied"),
        ("empty", "proven"),
        ("stable", "random"),
    )
    made = [PullShape(*each) for each in every]  # type: ignore[arg-type]  # the values are as declared
    return [each for each in made if _differs_from_others(each)]


def _differs_from_others(shape: PullShape) -> bool:
    is_tied = "tied" in (shape.created, shape.updated)
    return is_tied if shape.ties == "random" else True


class TinyWorld(PullWorld):
    """A world in which nothing is drawn: at each request the chooser says what happened before."""

    def __init__(self, shape: PullShape, chooser: Chooser, mutations: int) -> None:
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
    shape: str, chooser: Chooser, trace: Trace | None = None, *, mutations: int = 3, pulls: int = 1
) -> str | None:
    """Pull with mutations in the gaps, then without; returns what is wrong."""
    start = PullShape.parse(shape)
    world = TinyWorld(start, chooser, mutations)
    mirror = Mirror(world, judge=judge)
    mirror.requests_max = REQUESTS_MAX
    mirror.trace = world.server.told = trace
    if start.landing == "proven":
        mirror.adopt()
        world.now += timedelta(seconds=LATENESS_SECONDS * 2)
    wrong: list[str] = []
    with collect_failures(wrong):
        for _ in range(pulls):
            mirror.pull()
        world.settle()
        ended = mirror.pull()
        wrong += [f"{promise}: {sorted(ids)}" for promise, ids in differences(mirror).items()]
        assert ended.pulled is not None
        if not wrong and not ended.pulled.is_proven:
            wrong.append(f"not proven: {ended.pulled.reason}")
    return "; ".join(wrong) or None

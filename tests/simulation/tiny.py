"""Every run of tiny worlds: each change of each record, in each gap between two requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from itertools import product
from typing import Literal

from tests.simulation.checkers import check_commit, find_differences
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
    """Initial state of a tiny run. With `landing="proven"`, all records are already loaded.

    Records are created and updated a minute `apart`, or all at the same time (`tied`).
    """

    resource: Literal["candidates", "content_items"]
    records: int
    created: Literal["apart", "tied"]
    updated: Literal["apart", "tied"]
    landing: Literal["empty", "proven"]
    ties: Literal["stable", "random"]

    def __str__(self) -> str:
        return "-".join(str(getattr(self, each.name)) for each in fields(self))


def list_shapes(records: Sequence[int]) -> list[PullShape]:
    """Return all shapes with these numbers of records; random ties only for tied records."""
    every = product(
        ("candidates", "content_items"),
        records,
        ("apart", "tied"),
        ("apart", "tied"),
        ("empty", "proven"),
        ("stable", "random"),
    )
    made = [PullShape(*each) for each in every]  # type: ignore[arg-type]  # the values are as declared
    return [
        each for each in made if each.ties == "stable" or "tied" in (each.created, each.updated)
    ]


SHAPES = {str(each): each for each in list_shapes((1, 2, 3, 4))}
"""Shapes by name, as `--tiny` takes them."""


class TinyWorld(PullWorld):
    """A world without chance: the chooser decides what changes during each request."""

    def __init__(self, shape: PullShape, chooser: Chooser, mutations: int) -> None:
        super().__init__(0, replace(_TINY, resource=shape.resource, ties=shape.ties))
        self._chooser, self._left = chooser, 0
        created = self._spread_times(shape.records, shape.created)
        updated = self._spread_times(shape.records, shape.updated)
        for made, changed in zip(created, updated, strict=True):
            self.now = made
            self.changes.create_record(is_late_allowed=False)
            id = next(reversed(self.server.created_at))
            self.server.change((id,), {}, changed)
        self.now += timedelta(hours=1)
        self._left = mutations

    def _spread_times(self, count: int, spread: str) -> list[datetime]:
        """Return `count` times from now on: a minute apart, or all equal."""
        step = timedelta(minutes=1) if spread == "apart" else timedelta(0)
        return [self.now + step * number for number in range(count)]

    def _send_request(self) -> datetime:
        """Let a request take its time, perhaps with a change. Return when it was sent."""
        sent_at = self.now
        self.requests += 1
        self.now += timedelta(seconds=REQUEST_SECONDS / 2)
        self.mutate()
        self.now += timedelta(seconds=REQUEST_SECONDS / 2)
        return sent_at

    def mutate(self) -> None:
        """Let the chooser change one record, create one, or do nothing, while changes are left."""
        if not self._left:
            return
        live = sorted(self.server.created_at)
        choice = self._chooser.pick(2 + 2 * len(live))
        if choice == 0:
            return
        self._left -= 1
        if choice == 1:
            self.changes.create_record(is_late_allowed=False)
        elif choice < 2 + len(live):
            self.changes.update_record(live[choice - 2])
        else:
            self.server.remove(live[choice - 2 - len(live)])

    def become_quiet(self) -> None:
        """Stop all changes, and let an hour pass."""
        self._left = 0
        self.now += timedelta(hours=1)


def play(
    shape: str, chooser: Chooser, trace: Trace | None = None, *, mutations: int = 3, pulls: int = 1
) -> str | None:
    """Play one tape: pulls with changes in the gaps, then one without changes.

    Returns what is wrong at the end, or None.
    """
    start = SHAPES[shape]
    world = TinyWorld(start, chooser, mutations)
    mirror = Mirror(world, check_commit=check_commit)
    mirror.requests_max = REQUESTS_MAX
    mirror.trace = world.server.trace = trace
    if start.landing == "proven":
        mirror.copy_server()
        world.now += timedelta(seconds=LATENESS_SECONDS * 2)
    wrong: list[str] = []
    with collect_failures(wrong):
        for _ in range(pulls):
            mirror.pull()
        world.become_quiet()
        ended = mirror.pull()
        wrong += [f"{promise}: {sorted(ids)}" for promise, ids in find_differences(mirror).items()]
        assert ended.pulled is not None
        if not wrong and not ended.pulled.is_proven:
            wrong.append(f"not proven: {ended.pulled.reason}")
    return "; ".join(wrong) or None

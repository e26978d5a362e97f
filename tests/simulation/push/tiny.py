"""Tiny files, all of their plays: every fate of every write, every death at every ask, every order
in which rows under way may go on.

A play asks a `Chooser` wherever something may happen. `explore` repeats it with every sequence of
answers, depth first, so that nothing within the bounds is left out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from connector.ledger.push_plan import DoubtPolicy, PushPlan
from connector.ledger.push_states import Operation, Task
from tests.simulation.push.checkers import Broken
from tests.simulation.push.pusher import Endless
from tests.simulation.push.run import Play, Verdict
from tests.simulation.push.scenario import Scenario, WriteFault
from tests.simulation.push.world import World
from tests.simulation.tiny import Chooser

FAULTS: tuple[WriteFault, ...] = ("unreachable", "dropped", "applied", "late", "late far")

_DELAYS = (0.0, 0.5, 1.0)
"""When a late commit comes: at once, in the middle of what is allowed, at its end."""

_DIGEST = "tiny" + "0" * 60


@dataclass(frozen=True)
class Shape:
    """What a tiny file holds, and how much may go wrong: so many deaths, so many faults."""

    rows: tuple[str, ...]
    policy: DoubtPolicy
    deaths: int
    faults: int

    def __str__(self) -> str:
        return f"{'+'.join(self.rows)}/{self.policy}/{self.deaths}/{self.faults}"

    @classmethod
    def read(cls, text: str) -> Shape:
        """The shape that a text names."""
        rows, policy, deaths, faults = text.split("/")
        assert policy in ("hold", "retry"), policy
        named: DoubtPolicy = "hold" if policy == "hold" else "retry"
        return cls(tuple(rows.split("+")), named, int(deaths), int(faults))


class Chosen:
    """Chance by a tape: what is likely to happen at all may happen, as long as there is some left
    of its kind.
    """

    def __init__(self, chooser: Chooser, deaths: int, faults: int) -> None:
        self._chooser, self.deaths, self.faults = chooser, deaths, faults

    def yes(self, share: float, kind: str = "") -> bool:
        """Whether it happens."""
        left = self.deaths if kind == "death" else self.faults
        if share <= 0 or left == 0 or not self._chooser.pick(2):
            return False
        if kind == "death":
            self.deaths -= 1
        else:
            self.faults -= 1
        return True

    def pick(self, count: int) -> int:
        """One of 0 to `count` - 1."""
        return self._chooser.pick(count) if count > 1 else 0

    def within(self, most: float) -> float:
        """Lengths that decide nothing are nothing."""
        return 0.0

    def delay(self, most: float) -> float:
        """When something late comes."""
        return most * _DELAYS[self._chooser.pick(len(_DELAYS))]


def play(
    shape: Shape, chooser: Chooser, *, trace: Callable[[str], None] | None = None
) -> str | None:
    """One play; tells what is wrong."""
    is_lead = "convert" in shape.rows
    faults = {name: 0.5 for name in FAULTS if shape.policy == "hold" or name != "late far"}
    scenario = Scenario(
        "every tiny file",
        faults,
        crashes=0.5,
        policy=shape.policy,
        connections=2,
        resource="leads" if is_lead else "candidates",
        operations=("create",),
    )
    world = World(0, scenario, Chosen(chooser, shape.deaths, shape.faults))
    world.told = trace
    tasks = tuple(_task(world, kind, number) for number, kind in enumerate(shape.rows, 2))
    world.pass_time(3600)
    plan = PushPlan(scenario.resource, "upsert", "tiny.csv", _DIGEST, tasks)
    try:
        Play(world, Verdict(str(shape), 1), plan).through()
    except (Broken, Endless, AssertionError, sqlite3.IntegrityError) as broken:
        return f"{type(broken).__name__} {broken}"
    return None


def explore(shape: Shape) -> Iterator[tuple[str, str | None]]:
    """Every play of that shape: what replays it, and what is wrong with it."""
    tape: tuple[int, ...] | None = ()
    while tape is not None:
        chooser = Chooser(tape)
        wrong = play(shape, chooser)
        yield f"python -m tests.simulation.push --tiny {shape} --tape {chooser.tape}", wrong
        tape = chooser.following()


def _task(world: World, kind: str, number: int) -> Task:
    """A row of that kind: what it does, and `x` for the same record as the row before."""
    fields: dict[str, Any] = {**world.bare(), "email": f"tiny{number}@example.com"}
    fields.pop("status")
    operation: Operation = "create"
    afterwards = {"status": "screening"} if kind == "afterwards" else {}
    identity = {"email": fields["email"]}
    if kind == "same":
        fields["email"] = identity["email"] = "tiny2@example.com"
    if kind == "alike":
        fields |= {"email": "tiny2@example.com", "phone": "020 9"}
        identity["email"] = "tiny2@example.com"
    if kind in ("create", "afterwards", "same", "alike"):
        return Task(
            number,
            operation,
            world.scenario.resource,
            fields,
            afterwards=afterwards,
            identity=identity,
        )
    id = world.insert(fields)
    if kind == "convert":
        return Task(number, "convert", world.scenario.resource, {}, record_id=id)
    assert kind == "update", kind
    task = Task(number, "update", world.scenario.resource, {"phone": "020 1"}, record_id=id)
    return replace(task, base={"phone": None})


SHAPES: tuple[Shape, ...] = (
    Shape(("create",), "hold", 2, 1),
    Shape(("create",), "hold", 1, 2),
    Shape(("afterwards",), "hold", 1, 1),
    Shape(("update",), "hold", 2, 1),
    Shape(("convert",), "hold", 2, 1),
    Shape(("create",), "retry", 1, 2),
    Shape(("create", "same"), "hold", 1, 1),
    Shape(("create", "alike"), "hold", 1, 1),
    Shape(("create", "update"), "hold", 1, 0),
)
"""Every shape that the command explores."""

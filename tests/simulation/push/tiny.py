"""Tiny files, every play: each fate of each write, each death and each order of parallel rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from connector.ledger.push_plan import DoubtPolicy, PushPlan
from connector.ledger.push_states import Operation, Task
from tests.simulation.harness import Chooser, Trace, Verdict
from tests.simulation.push.run import MODULE, push_plan
from tests.simulation.push.scenario import PushScenario, WriteFault
from tests.simulation.push.world import PushWorld

FAULTS: tuple[WriteFault, ...] = ("unreachable", "dropped", "applied", "late", "late far")

_DELAYS = (0.0, 0.5, 1.0)
"""When a late commit comes: at once, in the middle of what is allowed, at its end."""

_DIGEST = "tiny" + "0" * 60


@dataclass(frozen=True)
class PushShape:
    """Rows of a tiny file, and the number of deaths and faults that may happen."""

    rows: tuple[str, ...]
    policy: DoubtPolicy
    deaths: int
    faults: int

    @classmethod
    def parse(cls, text: str) -> PushShape:
        rows, policy, deaths, faults = text.split("/")
        assert policy in ("hold", "retry"), policy
        named: DoubtPolicy = "hold" if policy == "hold" else "retry"
        return cls(tuple(rows.split("+")), named, int(deaths), int(faults))


class TapeChance:
    """Chance by a tape: what is likely to happen at all may happen, as long as there is some left
    of its kind.
    """

    def __init__(self, chooser: Chooser, deaths: int, faults: int) -> None:
        self._chooser, self.deaths, self.faults = chooser, deaths, faults

    def yes(self, share: float, kind: str = "") -> bool:
        """Return True if it happens."""
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


def play(shape: str, chooser: Chooser, trace: Trace | None = None) -> str | None:
    """Play one file; returns what is wrong."""
    start = PushShape.parse(shape)
    faults = {name: 0.5 for name in FAULTS if start.policy == "hold" or name != "late far"}
    scenario = PushScenario(
        "every tiny file",
        faults,
        crashes=0.5,
        policy=start.policy,
        connections=2,
        resource="leads" if "convert" in start.rows else "candidates",
        operations=("create",),
    )
    world = PushWorld(0, scenario, TapeChance(chooser, start.deaths, start.faults))
    world.told = trace
    tasks = tuple(_task(world, kind, number) for number, kind in enumerate(start.rows, 2))
    world.pass_time(3600)
    verdict = Verdict(MODULE, shape, 1)
    plan = PushPlan(scenario.resource, "upsert", "tiny.csv", _DIGEST, tasks)
    push_plan(world, verdict, plan)
    return "; ".join(verdict.wrong) or None


def _task(world: PushWorld, kind: str, number: int) -> Task:
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


SHAPES = (
    "create/hold/2/1",
    "create/hold/1/2",
    "afterwards/hold/1/1",
    "update/hold/2/1",
    "convert/hold/2/1",
    "create/retry/1/2",
    "create+same/hold/1/1",
    "create+alike/hold/1/1",
    "create+update/hold/1/0",
)
"""Shapes that `--tiny all` explores."""

"""Every play of tiny files: each fate of each write, each kill, and each order of parallel rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from connector.state.journal import Plan
from connector.state.row import Row
from tests.simulation.harness import Chooser, Trace, Verdict
from tests.simulation.push.chance import Chance
from tests.simulation.push.run import MODULE, play_plan
from tests.simulation.push.scenario import PushScenario, WriteFault
from tests.simulation.push.world import PushWorld

FAULTS: tuple[WriteFault, ...] = ("unreachable", "dropped", "applied", "late", "late far")

_DELAYS = (0.0, 0.5, 1.0)
"""Delays of a late write, as shares of the maximum."""

_DIGEST = "tiny" + "0" * 60


@dataclass(frozen=True)
class PushShape:
    """Rows of a tiny file, and the numbers of kills and faults that may happen."""

    rows: tuple[str, ...]
    kills: int
    faults: int

    @classmethod
    def parse(cls, text: str) -> PushShape:
        """Parse a shape like `create+same/1/0`: rows, kills and faults."""
        rows, kills, faults = text.split("/")
        return cls(tuple(rows.split("+")), int(kills), int(faults))


class TapeChance(Chance):
    """Decisions of a tape. Events may happen while kills or faults of their kind are left."""

    def __init__(self, chooser: Chooser, kills: int, faults: int) -> None:
        self._chooser, self.kills, self.faults = chooser, kills, faults

    def happens(self, share: float, kind: str = "") -> bool:
        """Let the tape decide, if the event is possible and one of its kind is left."""
        left = self.kills if kind == "kill" else self.faults
        if share <= 0 or left == 0 or not self._chooser.pick(2):
            return False
        if kind == "kill":
            self.kills -= 1
        else:
            self.faults -= 1
        return True

    def pick(self, count: int) -> int:
        """Let the tape choose a number from 0 to `count` - 1."""
        return self._chooser.pick(count) if count > 1 else 0

    def pause(self, most: float) -> float:
        """Return 0: the length of a pause changes nothing in a tiny play."""
        return 0.0

    def commit_delay(self, most: float) -> float:
        """Let the tape choose the seconds by which a write is late: 0, half of `most` or all."""
        return most * _DELAYS[self._chooser.pick(len(_DELAYS))]


def play(shape: str, chooser: Chooser, trace: Trace | None = None) -> str | None:
    """Push one tiny file with the chooser's decisions; return what is wrong, or None."""
    start = PushShape.parse(shape)
    faults = dict.fromkeys(FAULTS, 0.5)
    scenario = PushScenario(
        "every tiny file",
        faults,
        crashes=0.5,
        connections=2,
        resource="leads" if "convert" in start.rows else "candidates",
        operations=("create",),
    )
    world = PushWorld(0, scenario, TapeChance(chooser, start.kills, start.faults))
    world.trace = trace
    tasks = tuple(_make_task(world, kind, number) for number, kind in enumerate(start.rows, 2))
    world.pass_time(3600)
    verdict = Verdict(MODULE, shape, 1)
    plan = Plan(scenario.resource, "upsert", "tiny.csv", _DIGEST, tasks)
    play_plan(world, verdict, plan)
    return "; ".join(verdict.wrong) or None


def _make_task(world: PushWorld, kind: str, number: int) -> Row:
    """Return a row of that kind; "same" and "alike" have the email address of the first row."""
    fields: dict[str, Any] = {**world.minimal_fields(), "email": f"tiny{number}@example.com"}
    fields.pop("status")
    afterwards = {"status": "screening"} if kind == "afterwards" else {}
    identity = {"email": fields["email"]}
    if kind == "same":
        fields["email"] = identity["email"] = "tiny2@example.com"
    if kind == "alike":
        fields |= {"email": "tiny2@example.com", "phone": "020 9"}
        identity["email"] = "tiny2@example.com"
    if kind in ("create", "afterwards", "same", "alike"):
        resource = world.scenario.resource
        return Row(number, resource, "create", None, fields, afterwards, identity=identity)
    id = world.insert_as_other_user(fields)
    if kind == "convert":
        return Row(number, world.scenario.resource, "convert", record_id=id)
    assert kind == "update", kind
    base = {"phone": None}
    return Row(
        number,
        world.scenario.resource,
        "update",
        fields={"phone": "020 1"},
        base=base,
        record_id=id,
    )


SHAPES = (
    "create/2/1",
    "create/1/2",
    "afterwards/1/1",
    "update/2/1",
    "convert/2/1",
    "create+same/1/1",
    "create+alike/1/1",
    "create+update/1/0",
)
"""Shapes that `--tiny all` explores."""

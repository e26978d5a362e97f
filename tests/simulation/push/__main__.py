"""Play simulated pushes on all cores.

`--scenario` and `--seed` replay one play, `--trace` prints its steps. `--tiny` plays every order of
events of a tiny file, `--tape` one of them. Exit status 1 if a play was wrong.
"""

from __future__ import annotations

import sys

from tests.simulation.harness import Simulator, command_parser, simulate
from tests.simulation.push.run import MODULE, run
from tests.simulation.push.scenario import SCENARIOS
from tests.simulation.push.tiny import SHAPES, play

PUSH = Simulator(
    MODULE,
    {name: each.about for name, each in SCENARIOS.items()},
    run,
    ("writes", "reads", "deaths", "created", "updated", "held"),
    SHAPES,
    play,
)

if __name__ == "__main__":
    sys.exit(simulate(PUSH, command_parser(MODULE, __doc__).parse_args()))

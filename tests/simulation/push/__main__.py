"""Play simulated pushes on all cores.

`--scenario` and `--seed` replay one play, `--trace` prints its steps. `--tiny` plays every order of
events of a tiny file, `--tape` one of them. Exit status 1 if a play was wrong.
"""

from __future__ import annotations

import sys

from tests.simulation.harness import Simulator, make_parser, run_command
from tests.simulation.push.run import MODULE, run
from tests.simulation.push.scenario import SCENARIOS
from tests.simulation.push.tiny import SHAPES, play

PUSH = Simulator(
    MODULE,
    {name: each.about for name, each in SCENARIOS.items()},
    run,
    ("writes", "reads", "kills", "created", "updated", "held"),
    SHAPES,
    play,
)

if __name__ == "__main__":
    sys.exit(run_command(PUSH, make_parser(MODULE, __doc__).parse_args()))

"""The program's functions that the simulators drive: the only place to edit when one is rewritten.

Each returns a generator of commands, or a coroutine that awaits `Perform` for each command. The
simulators look these names up at every call, so that a test can set another implementation.
"""

from __future__ import annotations

from connector.pulls.resource_pull import pull
from connector.pushes.row_steps import run_row

__all__ = ["pull", "run_row"]

"""The function that the push simulator drives: the only place to edit when it is rewritten.

It returns a generator of commands, or a coroutine that awaits `Perform` for each command. The
simulator looks the name up at every call, so that a test can set another implementation.
"""

from __future__ import annotations

from connector.pushes.row_steps import run_row

__all__ = ["run_row"]

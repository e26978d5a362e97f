"""A process that has everything imported and forks others, so that each of them begins at once.

The test talks to it in lines of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]


class ForkServer:
    """The process, while its `with` block lasts. It runs `serve` of the module, which reads a line
    at a time from its standard input until that ends.
    """

    def __init__(self, module: str) -> None:
        self._code = f"from {module} import serve; serve()"

    def __enter__(self) -> Self:
        kept = {n: v for n, v in os.environ.items() if not n.startswith("CONNECTOR_")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=kept,
        )
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def say(self, line: Any) -> None:
        """Tell it something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def heard(self) -> Any:
        """What it says next; waited for."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


def tell(line: Any) -> None:
    """Within the process: say something to the test."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def fork_for_each_line(live: Callable[[dict[str, Any], int], None]) -> None:
    """Within the process: fork a child for each line that comes, which prints to the descriptor
    that `live` is given; tell its id and how it ended.
    """
    for line in sys.stdin:
        # A pipe and no file: what is said must get out when the disk is full.
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            live(json.loads(line), theirs)
        os.close(theirs)
        tell({"pid": pid})
        with os.fdopen(ours, encoding="utf-8") as printed:
            said = printed.read()
        _, ended = os.waitpid(pid, 0)
        tell({"status": os.waitstatus_to_exitcode(ended), "said": said})

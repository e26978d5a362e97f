"""Sandboxes on a real socket, with a client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.sandbox.world import COUNTS, Open, ServedSandbox, open_sandbox


@pytest.fixture(scope="module")
def world() -> Iterator[ServedSandbox]:
    """A sandbox with records that tests only read."""
    with open_sandbox(counts=COUNTS) as world:
        yield world


@pytest.fixture
def open_world() -> Iterator[Open]:
    """Return a function that opens sandboxes with given options and closes them after the test."""
    with ExitStack() as stack:

        def open_one(**options: Any) -> ServedSandbox:
            return stack.enter_context(open_sandbox(**options))

        yield open_one

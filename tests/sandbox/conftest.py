"""Worlds to test against: a sandbox on a real socket, and a client that calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

# Before they are imported: their asserts are to explain themselves, as those of tests do.
pytest.register_assert_rewrite("tests.sandbox.list_switches", "tests.sandbox.write_switches")

from tests.sandbox.world import COUNTS, ServedSandbox, opened  # noqa: E402  # see above


@pytest.fixture(scope="module")
def world() -> Iterator[ServedSandbox]:
    """A seeded world that is only read."""
    with opened(counts=COUNTS) as world:
        yield world


@pytest.fixture
def open_world() -> Iterator[Callable[..., ServedSandbox]]:
    """Opens worlds with the options of `Sandbox`, and closes them after the test."""
    with ExitStack() as stack:

        def open_one(**options: Any) -> ServedSandbox:
            return stack.enter_context(opened(**options))

        yield open_one

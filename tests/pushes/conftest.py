"""Process of the tests of pushes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pushes.killable_push import PushForkServer


@pytest.fixture(scope="module")
def fork_server() -> Iterator[PushForkServer]:
    """Process from which all killed pushes and undos are forked."""
    with PushForkServer() as opened:
        yield opened

"""The webhook of the tests of alerts, and the accounts of the contract tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.conftest import account, server, world
from tests.problems.receivers import Receiver

__all__ = ["account", "receiver", "server", "world"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Webhook that accepts every message."""
    with Receiver() as made:
        yield made

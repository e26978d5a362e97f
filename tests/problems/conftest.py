"""The webhook of the tests of alerts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.problems.receivers import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Webhook that accepts every message."""
    with Receiver() as made:
        yield made

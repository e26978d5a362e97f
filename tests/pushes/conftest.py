"""Inbox and process of the tests of pushes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pushes.killable_push import PushForkServer


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """Empty candidates folder of the inbox."""
    folder = tmp_path / "data" / "inbox" / "candidates"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def fork_server() -> Iterator[PushForkServer]:
    """Process from which all killed pushes and undos are forked."""
    with PushForkServer() as opened:
        yield opened

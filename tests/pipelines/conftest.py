"""What tests of the pipelines share: Dagster does not wait for the disk, and an instance."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

import tests.pipelines.unsynced  # noqa: F401


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """In-memory Dagster instance."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made

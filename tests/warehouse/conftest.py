"""The empty warehouse of the tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.warehouse.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A warehouse with all tables and no records."""
    prepared = Warehouse(tmp_path)
    prepared.prepare()
    return prepared

"""The empty warehouse that the tests of this folder share."""

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

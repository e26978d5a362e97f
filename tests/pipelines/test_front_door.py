"""Public names of the package: each is the object of its module, and loads lazily."""

from __future__ import annotations

import subprocess
import sys

import pytest

import connector
from tests.repository import ROOT


@pytest.mark.parametrize("name", dir(connector))
def test_every_public_name_can_be_imported(name: str) -> None:
    assert type(connector) is not type(getattr(connector, name))


def test_unknown_public_names_raise_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'pul'"):
        _ = connector.pul  # type: ignore[attr-defined] # the point of the test


def test_settings_load_without_importing_the_warehouse() -> None:
    program = (
        "import sys; from connector import Settings, load_settings\n"
        "print(sorted({'duckdb', 'httpx', 'pyarrow'} & set(sys.modules)))"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert "[]\n" == loaded.stdout

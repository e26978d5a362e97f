"""The public names: each opens, is what its home holds, and loads no more than it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import connector
from tests.repository import ROOT


@pytest.mark.parametrize("name", dir(connector))
def test_every_public_name_opens(name: str) -> None:
    assert type(connector) is not type(getattr(connector, name))


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'pul'"):
        _ = connector.pul  # type: ignore[attr-defined] # the point of the test


def test_settings_load_without_the_warehouse() -> None:
    program = (
        "import sys; from connector import Settings, load_settings\n"
        "print(sorted({'duckdb', 'httpx', 'pyarrow'} & set(sys.modules)))"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert "[]\n" == loaded.stdout

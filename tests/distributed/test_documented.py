"""The settings of Dask in docs/DISTRIBUTED.md are settings that Dask has."""

from __future__ import annotations

from importlib import import_module

import dask
import pytest

from tests.distributed.documented import documented, name_of


@pytest.mark.parametrize("name", documented())
def test_a_documented_setting_is_one_of_dasks(name: str) -> None:
    import_module("distributed")  # It is what has the defaults.
    (defaults,) = (each for each in dask.config.defaults if "worker" in each.get("distributed", {}))

    default = dask.config.get(name_of(name), config=dict(defaults))

    assert str(default).lower() != documented()[name]


def test_settings_are_documented() -> None:
    assert len(documented()) >= 4

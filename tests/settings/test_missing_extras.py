"""Errors for missing packages name a working command: a lock file, or the wheel's extra."""

from __future__ import annotations

import shlex
from importlib.metadata import metadata
from pathlib import Path

import pytest

from connector import extras
from connector.extras import install_extra

EXTRAS = ("notify", "report")


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_error_for_a_missing_package_names_an_existing_lock(extra: str) -> None:
    *_, lock = shlex.split(install_extra(extra))

    assert Path(lock).is_file()


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_error_outside_a_project_folder_names_the_wheels_extra(
    extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "connector" / "system" / "extras.py"))
    *_, wheel = shlex.split(install_extra(extra))

    assert wheel.endswith(f"-py3-none-any.whl[{extra}]")
    assert extra in (metadata("recruitment-connector").get_all("Provides-Extra") or ())

"""The error for a missing package names a command that works: a lock, or the wheel's extra."""

from __future__ import annotations

import shlex
from importlib.metadata import metadata
from pathlib import Path

import pytest

from connector import extras
from connector.extras import install_extra

EXTRAS = ("keyring", "lakehouse", "metrics", "page", "report")


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_project_folder_has_the_lock_that_is_named(extra: str) -> None:
    *_, lock = shlex.split(install_extra(extra))

    assert Path(lock).is_file()


@pytest.mark.parametrize("extra", EXTRAS)
def test_without_a_project_folder_the_wheels_extra_is_named(
    extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "connector" / "system" / "extras.py"))
    *_, wheel = shlex.split(install_extra(extra))

    assert wheel.endswith(f"-py3-none-any.whl[{extra}]")
    assert extra in (metadata("recruitment-connector").get_all("Provides-Extra") or ())

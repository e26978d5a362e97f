"""Fixture of the tests of models: an account with three jobs and a small project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.account import Account


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    """Account with three jobs that pass all checks, and a small project of models."""
    made = Account(tmp_path)
    made.use_project(monkeypatch)
    return made

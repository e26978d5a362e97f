"""Fixtures of the publishing tests: a small project, and an account with two jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.agency import PublishingAccount
from tests.models.small import SmallProject


@pytest.fixture
def agency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublishingAccount:
    """Account with two jobs that pass all checks, and a small project of models."""
    made = PublishingAccount(tmp_path)
    made.use_project(monkeypatch)
    made.insert_rows("jobs", {"id": "j1", "title": "Nurse"}, {"id": "j2", "title": "Cook"})
    return made


@pytest.fixture
def small(tmp_path: Path) -> SmallProject:
    """A project of three models over three jobs, not yet built."""
    return SmallProject(tmp_path)

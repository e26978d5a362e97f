"""What the tests of publishing share: a small project, and an agency with two jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.publishing.agency import PublishingAccount
from tests.publishing.small import SmallProject


@pytest.fixture
def agency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublishingAccount:
    """An agency with two jobs that pass all checks."""
    made = PublishingAccount(tmp_path)
    made.use_project(monkeypatch)
    made.insert_rows("jobs", {"id": "j1", "title": "Nurse"}, {"id": "j2", "title": "Cook"})
    return made


@pytest.fixture
def small(tmp_path: Path) -> SmallProject:
    return SmallProject(tmp_path)

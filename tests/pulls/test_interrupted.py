"""A publication that fails keeps the old file."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from connector.errors import WarehouseError
from connector.models.publish import publish
from connector.sandbox.server import Sandbox
from tests.support.agency import published, pulled, settings_of
from tests.support.errors import has_code

COUNTS = {"candidates": 230, "jobs": 20, "content_types": 2, "content_items": 8}


def test_publishing_to_a_full_disk_fails_and_keeps_the_old_file(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 3}) as sandbox:
        pulled(sandbox, tmp_path, "jobs")
    settings = settings_of(sandbox, tmp_path)
    before = published(tmp_path).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    obeyed = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
        with pytest.raises(WarehouseError, match="disk is full", check=has_code("disk_full")):
            publish(settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, obeyed)

    assert before == published(tmp_path).read_bytes()
    assert [] == list(settings.folder.glob("*.publishing*"))

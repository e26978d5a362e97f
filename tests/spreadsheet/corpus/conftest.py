"""A data folder for previews of many files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from connector.settings import Settings
from connector.warehouse.queries import read_identity
from connector.warehouse.warehouse import Warehouse
from tests.pushes.pushing import make_template_folder
from tests.support.agency import settings_at


@pytest.fixture(scope="module")
def preview_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings of an account without records, whose work file stays open to save time."""
    folder = tmp_path_factory.mktemp("account")
    settings = settings_at("http://127.0.0.1:9", folder, "unused-key")
    shutil.copytree(make_template_folder(), settings.folder)
    warehouse = Warehouse(settings.folder)
    with warehouse.keep_open():
        warehouse.read(read_identity)
        yield settings

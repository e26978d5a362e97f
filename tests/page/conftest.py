"""Browser and server of the tests of the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from connector.sandbox.server import Sandbox

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; tests that need it are skipped if it is not installed."""
    if not os.access(CHROMIUM, os.X_OK):
        pytest.skip("chromium is not installed on this machine")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """Sandbox without candidates."""
    with Sandbox() as opened:
        yield opened

"""Browser and server of the tests of the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from connector.sandbox.server import Sandbox
from tests.page.serving import Server, User, serve

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


@pytest.fixture
def server(sandbox: Sandbox, tmp_path: Path) -> Iterator[Server]:
    """The page of an account of the sandbox."""
    with serve(sandbox, tmp_path) as served:
        yield served


@pytest.fixture
def ann(server: Server) -> Iterator[User]:
    """A user who signed in with the link."""
    with User(server) as user:
        yield user

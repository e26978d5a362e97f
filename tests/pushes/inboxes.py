"""Files for the inbox, and scans that find them unchanged."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from connector.pushes.inbox import DeliveryResult, Inbox, InboxScan, deliver
from connector.pushes.preview import PushFile
from connector.pushes.report import PushRunOptions
from tests.support.agency import settings_at

GOOD = "first_name,last_name,email,employment_type\nAnn,Lee,ann@example.com,permanent\n"
BAD = GOOD + "Bo,Ray,not an address,permanent\n"


def scan_twice(folder: Path) -> InboxScan:
    """Scan the inbox twice, so that its files count as unchanged. Returns the second scan."""
    inbox = Inbox(folder / "data")
    return inbox.scan(inbox.scan(None).state)


def list_names(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none if it does not exist."""
    return sorted(os.listdir(folder)) if folder.exists() else []


def preview_file(folder: Path, resource: str, name: str, digest: str) -> DeliveryResult:
    """Preview a file of the inbox without an API, and archive it."""
    settings = settings_at("http://127.0.0.1:9", folder, "nobody")
    file = PushFile(resource, Path(name), "create")
    return asyncio.run(deliver(settings, file, PushRunOptions(), digest=digest))

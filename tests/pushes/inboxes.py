"""Files for the inbox, and scans that find them unchanged."""

from __future__ import annotations

import os
from pathlib import Path

from connector.pushes.inbox import Inbox, InboxScan

GOOD = "first_name,last_name,email,employment_type\nAnn,Lee,ann@example.com,permanent\n"
BAD = GOOD + "Bo,Ray,not an address,permanent\n"


def scan_twice(folder: Path) -> InboxScan:
    """Scan the inbox twice, so that its files count as unchanged. Returns the second scan."""
    inbox = Inbox(folder / "data")
    return inbox.scan(inbox.scan(None).state)


def list_names(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none if it does not exist."""
    return sorted(os.listdir(folder)) if folder.exists() else []

"""What the tests of the inbox share: files to put in, and two looks that find them settled."""

from __future__ import annotations

import os
from pathlib import Path

from connector.pushes.inbox import Inbox, InboxScan

GOOD = "first_name,last_name,email,employment_type\nAnn,Lee,ann@example.com,permanent\n"
BAD = GOOD + "Bo,Ray,not an address,permanent\n"


def settled(folder: Path) -> InboxScan:
    """What is found after nothing has changed for two looks."""
    inbox = Inbox(folder / "data")
    return inbox.scan(inbox.scan(None).seen)


def names(folder: Path) -> list[str]:
    """What lies in a folder, if there is one."""
    return sorted(os.listdir(folder)) if folder.exists() else []

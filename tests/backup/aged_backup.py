"""What the tests of backups share: an agency that goes on after its backup was made."""

from __future__ import annotations

import asyncio
import csv
from datetime import UTC, datetime
from pathlib import Path

from connector.operations.backup import BackupResult, make_backup
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushReport, PushRunOptions, push
from connector.sandbox.server import Sandbox
from connector.settings.model import Settings
from tests.support.agency import pulled, settings_of

COUNTS = {
    "jobs": 3,
    "candidates": 8,
    "companies": 2,
    "bookings": 3,
    "leads": 3,
    "content_types": 1,
    "content_items": 2,
}
YESTERDAY = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
WRITES = ("POST", "PUT", "DELETE")


class Agency:
    """An account in a folder, and the platform that it is a copy of."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.settings: Settings = settings_of(sandbox, folder)
        self.data = self.settings.folder
        self.backups = folder / "backups"

    def pull(self) -> None:
        """Pull everything."""
        report = pulled(self.sandbox, self.folder)
        assert "done" == report.outcome, report.as_json()

    def back_up(self, **options: int) -> BackupResult:
        """Back the folder up, as of yesterday."""
        return make_backup(self.settings, self.backups, now=lambda: YESTERDAY, **options)

    def file(self, name: str, *emails: str) -> Path:
        """A spreadsheet of people."""
        path = self.folder / name
        with path.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("First name", "Last name", "Email", "Employment type"))
            rows.writerows(
                ("Ann", f"Lee {n}", email, "permanent") for n, email in enumerate(emails)
            )
        return path

    def push(self, path: Path, *, pulls: bool = True) -> PushReport:
        """Push a spreadsheet of people, and do it."""
        manner = PushRunOptions(applies=True, pulls=pulls, reports=False)
        asked = PushFile("candidates", path, mode="create")
        (report,) = asyncio.run(push(self.settings, [asked], manner))
        return report

    def churn(self) -> None:
        """What people do on the platform in a day."""
        first, second, *_ = sorted(self.sandbox.store.records("candidates"))
        self.sandbox.store.update("candidates", first, {"city": "Leeds"})
        self.sandbox.store.delete("candidates", second)
        job = sorted(self.sandbox.store.records("jobs"))[0]
        self.sandbox.store.delete("jobs", job)

    def writes(self) -> int:
        """How many writes the platform was sent."""
        return sum(each.method in WRITES for each in self.sandbox.log)

    def emails(self) -> list[str]:
        """The addresses of all candidates."""
        return sorted(e["email"] for e in self.sandbox.store.records("candidates").values())

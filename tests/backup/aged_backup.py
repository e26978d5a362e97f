"""Account with backups, whose server changes after them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from connector.operations.backup import make_backup
from connector.pushes.options import PushFile, PushOptions
from connector.sandbox.server import Sandbox
from tests.support.agency import SandboxAccount

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


class BackedUpAccount(SandboxAccount):
    """Account of a sandbox that writes its backups to the folder `backups`."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        super().__init__(sandbox, folder)
        self.backups = folder / "backups"

    def make_backup(self) -> Path:
        """Make a backup that is dated 20 November 2026."""
        made, _ = make_backup(self.settings, self.backups, now=lambda: YESTERDAY)
        return made

    def write_candidate_file(self, name: str, *emails: str) -> PushFile:
        """Write a CSV file with one candidate per email, and return the push that creates them."""
        rows = [
            {
                "First name": "Ann",
                "Last name": f"Lee {number}",
                "Email": email,
                "Employment type": "permanent",
            }
            for number, email in enumerate(emails)
        ]
        return PushOptions("create").push_file("candidates", self.write_csv(name, rows))

    def edit_server_records(self) -> None:
        """Change two candidates and delete a job on the server."""
        self.change_two_candidates()
        job = sorted(self.sandbox.store.records("jobs"))[0]
        self.sandbox.store.delete("jobs", job)

    def find_texts(self, *texts: str) -> list[str]:
        """Return the texts that a file of the account contains, in any letter case."""
        files = [each.read_bytes().lower() for each in self.data.rglob("*") if each.is_file()]
        return [text for text in texts if any(text.lower().encode() in each for each in files)]

    def count_writes(self) -> int:
        """Return the number of POST, PUT and DELETE requests that the server received."""
        return sum(each.method in WRITES for each in self.sandbox.log)

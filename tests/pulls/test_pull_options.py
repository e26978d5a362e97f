"""Options of a pull: re-verification, and accepted deletions."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

from connector.pulls.ports import PullOptions
from connector.pulls.report import PullReport
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.support.agency import differences, published, pulled, settings_of

COUNTS = {"candidates": 230, "content_types": 2, "content_items": 12}


def pull_with_options(
    sandbox: Sandbox, folder: Path, options: PullOptions, *names: str
) -> PullReport:
    """Pull the candidates, or the given resources, with these options."""
    settings = settings_of(sandbox, folder)
    return asyncio.run(pull(settings, names or ("candidates",), options=options))


def change_silently(sandbox: Sandbox, count: int) -> list[str]:
    """Change candidates without changing their `updated_at`."""
    records = sandbox.store.records("candidates")
    ids = sorted(records)[:count]
    for id in ids:
        stamp = datetime.fromisoformat(records[id]["updated_at"])
        sandbox.store.touch("candidates", id, {"notes": "silent"}, updated_at=stamp)
    return ids


def test_re_verification_requests_are_divided_by_resource_size(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path)
        report = pull_with_options(
            sandbox, tmp_path, PullOptions(verification_requests=60), "candidates", "content_items"
        )

        shares = {name: each.scrubs for name, each in report.resources.items()}
        assert 60 == sum(shares.values())
        assert shares["candidates"] > 10 * shares["content_items"] > 0


def test_many_deletions_are_applied_once_the_user_accepts_them(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        for id in sorted(sandbox.store.records("candidates"))[::4]:
            sandbox.store.delete("candidates", id)
        assert "partial" == pulled(sandbox, tmp_path, "candidates").outcome
        report = pull_with_options(sandbox, tmp_path, PullOptions(accepts_deletes=True))

        assert ("done", 58) == (report.outcome, report.resources["candidates"].deleted)
        assert [] == [each for each in differences(sandbox, published(tmp_path)) if "cand" in each]
        assert 2 == pulled(sandbox, tmp_path, "candidates").requests

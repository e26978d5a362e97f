"""The log of the work file is truncated, or one of its bytes is flipped. The images are copies of
the files right after a commit, as a crash leaves them.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from connector.pulls.report import Progress
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.seeds import SEED, seeded_random
from tests.support.agency import differences, published, settings_of
from tests.support.clock import pulled
from tests.support.command import call, variables
from tests.support.kill_points import SHARES, sample_points
from tests.tiers import first_fast

COUNTS = {"jobs": 30}
POINTS = 100


class CrashImageRecorder:
    """Copies the folder after each commit, including the log that is not yet in the file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.images: list[Path] = []

    def __call__(self, progress: Progress) -> None:
        """Copy the files as a crash would leave them."""
        if not progress.requests or progress.ended is not None:
            return
        image = self._folder / f"image-{len(self.images)}"
        (image / "data").mkdir(parents=True)
        # The state is copied when the pulls have ended.
        for each in (self._folder / "taken" / "data").glob("work.duckdb*"):
            shutil.copy(each, image / "data")
        self.images.append(image)


def make_crash_images(sandbox: Sandbox, folder: Path) -> list[Path]:
    """Load and pull changes; return copies of the folder after those commits that left a log."""
    photographer = CrashImageRecorder(folder)
    settings = settings_of(sandbox, folder / "taken")
    for _ in range(2):
        asyncio.run(pull(settings, ["jobs"], watch=photographer))
        for id in sorted(sandbox.store.records("jobs"))[:12]:
            sandbox.store.update("jobs", id, {"title": "Renamed"})
    images = [each for each in photographer.images if get_log_path(each).exists()]
    assert len(images) >= 4
    for image in images:
        for each in (folder / "taken" / "data").glob("state.sqlite*"):
            shutil.copy(each, image / "data")
    return images


def get_log_path(folder: Path) -> Path:
    """Return the path of the work file's log."""
    return folder / "data" / "work.duckdb.wal"


def truncate(log: bytes, at: int) -> bytes:
    """Return the log up to this position."""
    return log[:at]


def flip_byte(log: bytes, at: int) -> bytes:
    """Return the log with one byte inverted."""
    return log[:at] + bytes([log[at] ^ 0xFF]) + log[at + 1 :]


@pytest.mark.parametrize("share", first_fast(range(SHARES)))
@pytest.mark.parametrize("damage", first_fast([flip_byte, truncate]))
def test_a_pull_after_a_damaged_log_is_repaired_is_exact(
    tmp_path: Path, damage: Callable[[bytes, int], bytes], share: int
) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        images = make_crash_images(sandbox, tmp_path)
        outcomes = []
        for point in sample_points(range(POINTS), 3, share):
            outcomes.append(damage_and_recover(sandbox, tmp_path, images, damage, point))
        counts = {each: outcomes.count(each) for each in ("read", "repaired")}
        print(damage.__name__, counts)  # noqa: T201  # the figures are the point of trying every one
        assert {"read", "repaired"} >= set(outcomes)


def damage_and_recover(
    sandbox: Sandbox,
    folder: Path,
    images: Sequence[Path],
    damage: Callable[[bytes, int], bytes],
    point: int,
) -> str:
    """Damage a log at a random position, recover, and check that the copy is exact.

    Returns "read" if the log was still readable, or "repaired" if the log had to be moved away.
    """
    chance = seeded_random(f"{damage.__name__} {point}")
    image = images[point % len(images)]
    whole = get_log_path(image).read_bytes()
    at = chance.randrange(len(whole))
    details = f"{damage.__name__} {image.name} at {at} of {len(whole)}, seed {SEED}"
    tried = folder / "tried"
    shutil.rmtree(tried, ignore_errors=True)
    shutil.copytree(image, tried)
    damaged = damage(whole, at)
    get_log_path(tried).write_bytes(damaged)
    environ = variables(sandbox.base_url, tried / "data", sandbox.key)
    how = "read"
    if call(["status"], environ).status != 0:
        how = "repaired"
        called = call(["pull", "jobs"], environ)
        assert 1 == called.status, (details, called)
        assert "Move this log to another folder" in called.err, (details, called)
        assert damaged == get_log_path(tried).read_bytes(), details
        get_log_path(tried).rename(tried / "moved.wal")
    report = pulled(sandbox, tried, "jobs")
    assert "done" == report.outcome, (details, report.as_json())
    assert [] == differences(sandbox, published(tried)), details
    again = pulled(sandbox, tried, "jobs").resources["jobs"]
    assert (True, 0, 0) == (again.proven, again.new, again.changed), details
    return how

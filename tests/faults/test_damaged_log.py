"""The log beside the work file is cut, or bytes of it are flipped.

The images are those that a crash leaves: the files as they are right after a commit.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from connector.pulls.outcome import Progress
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


class Photographer:
    """Keeps the folder as it is after each commit, with the log that is not in the file yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.images: list[Path] = []

    def __call__(self, progress: Progress) -> None:
        """Copy the files as a crash would leave them."""
        if not progress.requests or progress.ended is not None:
            return
        image = self._folder / f"image-{len(self.images)}"
        (image / "data").mkdir(parents=True)
        # The work file alone: the ledger still says that this process is pulling.
        for each in (self._folder / "taken" / "data").glob("work.duckdb*"):
            shutil.copy(each, image / "data")
        self.images.append(image)


def photographs(sandbox: Sandbox, folder: Path) -> list[Path]:
    """The images of a first load and of a pull of changes, those with a log alone."""
    photographer = Photographer(folder)
    settings = settings_of(sandbox, folder / "taken")
    for _ in range(2):
        asyncio.run(pull(settings, ["jobs"], watch=photographer))
        for id in sorted(sandbox.store.records("jobs"))[:12]:
            sandbox.store.update("jobs", id, {"title": "Renamed"})
    images = [each for each in photographer.images if log_of(each).exists()]
    assert len(images) >= 4
    for image in images:
        for each in (folder / "taken" / "data").glob("ledger.sqlite*"):
            shutil.copy(each, image / "data")
    return images


def log_of(folder: Path) -> Path:
    """The log of the work file."""
    return folder / "data" / "work.duckdb.wal"


def others_of(folder: Path) -> set[str]:
    """Every file of the data folder but the work file and what belongs to it."""
    names = (each.name for each in (folder / "data").iterdir())
    return {name for name in names if not name.startswith("work.")}


def cut(log: bytes, at: int) -> bytes:
    """The log's beginning."""
    return log[:at]


def flipped(log: bytes, at: int) -> bytes:
    """The log with one byte inverted."""
    return log[:at] + bytes([log[at] ^ 0xFF]) + log[at + 1 :]


@pytest.mark.parametrize("share", first_fast(range(SHARES)))
@pytest.mark.parametrize("damage", first_fast([flipped, cut]))
def test_a_damaged_log_is_recovered_from(
    tmp_path: Path, damage: Callable[[bytes, int], bytes], share: int
) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        images = photographs(sandbox, tmp_path)
        outcomes = []
        for point in sample_points(range(POINTS), 3, share):
            outcomes.append(survive(sandbox, tmp_path, images, damage, point))
        told = (
            f"{damage.__name__}: {outcomes.count('read')} read, {outcomes.count('mended')} mended"
        )
        print(told)  # noqa: T201  # the figures are the point of trying every one
        assert {"read", "mended"} >= set(outcomes)


def survive(
    sandbox: Sandbox,
    folder: Path,
    images: Sequence[Path],
    damage: Callable[[bytes, int], bytes],
    point: int,
) -> str:
    """Damage a log at a place of the point's own, and come out exact; says how."""
    chance = seeded_random(f"{damage.__name__} {point}")
    image = images[point % len(images)]
    whole = log_of(image).read_bytes()
    at = chance.randrange(len(whole))
    told = f"{damage.__name__} {image.name} at {at} of {len(whole)}, seed {SEED}"
    tried = folder / "tried"
    shutil.rmtree(tried, ignore_errors=True)
    shutil.copytree(image, tried)
    damaged = damage(whole, at)
    log_of(tried).write_bytes(damaged)
    environ = variables(sandbox.base_url, tried / "data", sandbox.key)
    how = "read"
    if call(["status"], environ).status != 0:
        how = "mended"
        called = call(["pull", "jobs"], environ)
        assert 1 == called.status, (told, called)
        assert "connector doctor --repair" in called.err, (told, called)
        others = others_of(tried)
        repaired = call(["doctor", "--repair"], environ)
        assert others <= others_of(tried), told
        assert 0 == repaired.status, (told, repaired)
        kept = list((tried / "data").glob("work.duckdb.damaged-*"))
        assert [damaged] == [each.read_bytes() for each in kept], told
        assert str(kept[0].name) in repaired.out.replace("\n", ""), told
    report = pulled(sandbox, tried, "jobs")
    assert "done" == report.outcome, (told, report.as_json())
    assert [] == differences(sandbox, published(tried)), told
    again = pulled(sandbox, tried, "jobs").resources["jobs"]
    assert (True, 0, 0) == (again.proven, again.new, again.changed), told
    return how

"""A backup or a restore is killed: the old state stays, or the new one is complete."""

from __future__ import annotations

import random
import shutil
import signal
from pathlib import Path

import pytest

from connector.errors import WarehouseError
from connector.operations.backup import check_backup, find_backups, make_backup, restore
from connector.pulls.account import check_files, claim_folder
from connector.settings import Settings, load_settings
from connector.state.database import STATE_FILE, Database
from connector.state.lock import LOCK_FILE
from connector.state.runs import Restore
from connector.warehouse.warehouse import Warehouse
from tests.seeds import SEED
from tests.support.command import variables
from tests.support.errors import has_code
from tests.support.kill_points import IS_ALL
from tests.support.killable_command import CommandForkServer

ADDRESS = "https://acme.example"


def choose_steps(steps: int) -> list[int]:
    """Return the steps to kill at: all, or 50 with the last one and every fifth of the renames."""
    if IS_ALL:
        return [*range(1, steps + 1)]
    chance = random.Random(f"backup {SEED}")
    # The last 40 steps rename the files; each state between two renames is longer than five steps.
    renames = range(max(1, steps - 40 + chance.randrange(5)), steps, 5)
    others = [step for step in range(1, steps) if step not in renames]
    return sorted({*chance.sample(others, 49 - len(renames)), *renames, steps})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an account with both databases and other files."""
    found = load_settings({}, variables(ADDRESS, tmp_path / "data"), tmp_path)
    Warehouse(found.folder).prepare()
    with Database(found.folder) as database:
        claim_folder(database, Warehouse(found.folder), ADDRESS)
    (found.folder / "recruitment.duckdb").write_bytes(b"published" * 1000)
    for name in ("seeds/seed_users.csv", "maps/candidates-1.toml", "inbox/jobs/next.csv"):
        (found.folder / name).parent.mkdir(parents=True)
        (found.folder / name).write_text(f"content of {name}", encoding="utf-8")
    return found


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the files of an account but for its state and lock."""
    return {
        # The name of the folder for files of the inbox has a time.
        path.relative_to(folder).as_posix().partition("Z/")[2] or path.name: path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(STATE_FILE) and path.name != LOCK_FILE
    }


@pytest.mark.slow
def test_a_killed_backup_leaves_no_incomplete_backup(settings: Settings, tmp_path: Path) -> None:
    environ, before = variables(ADDRESS, tmp_path / "data"), read_files(settings.folder)
    with CommandForkServer() as server:
        status, steps = server.call(["backup", tmp_path / "first"], environ)
        assert 0 == status
        for step in choose_steps(steps):
            to = tmp_path / f"killed-{step}"
            status, _ = server.call(["backup", to], environ, step)
            assert -signal.SIGKILL == status, (step, steps)
            for each in find_backups(to, None) if to.exists() else ():
                check_backup(each)
            made, _ = make_backup(settings, to)
            assert {*find_backups(to, None)} == {*to.iterdir()}, f"killed at step {step}"
            assert made in to.iterdir()
            assert before == read_files(settings.folder)
            shutil.rmtree(to)


@pytest.mark.slow
def test_a_killed_restore_is_refused_or_complete_and_can_be_repeated(
    settings: Settings, tmp_path: Path
) -> None:
    made, _ = make_backup(settings, tmp_path / "backups")
    reference = load_settings({}, variables(ADDRESS, tmp_path / "reference"), tmp_path)
    restore(reference, made)
    whole, seen = read_files(reference.folder), set[str]()
    with CommandForkServer() as server:
        first = variables(ADDRESS, tmp_path / "first")
        _, steps = server.call(["restore", made], first)
        for step in choose_steps(steps):
            environ = variables(ADDRESS, tmp_path / f"killed-{step}")
            status, _ = server.call(["restore", made], environ, step)
            assert -signal.SIGKILL == status, (step, steps)
            killed = load_settings({}, environ, tmp_path)
            if (killed.folder / STATE_FILE).exists():
                seen.add("complete")
            elif Warehouse(killed.folder).exists:
                seen.add("refused")
                with pytest.raises(WarehouseError, check=has_code("state_lost")):
                    check_files(killed)
            else:
                seen.add("empty")
                found = killed.folder.iterdir() if killed.folder.exists() else ()
                assert {".restoring", LOCK_FILE} >= {each.name for each in found}
            if not (killed.folder / STATE_FILE).exists():
                restore(killed, made)
            assert whole == read_files(killed.folder), f"killed at step {step} of {steps}"
            with Database(killed.folder) as database:
                assert database.fact_as(Restore, "restore") is not None
            shutil.rmtree(killed.folder)
    assert {"complete", "refused", "empty"} == seen

"""An interrupted erasure is recorded, and the next one completes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from connector.client.messages import Request
from connector.errors import Misused
from connector.errors_api import LeaseHeld
from connector.ledger.journal_writer import PUSH_LEASE, JournalWriter
from connector.ledger.ledger import LeaseOwner, Ledger
from connector.privacy.erase import erase
from connector.pulls.run_context import PULL_LEASE
from tests.privacy.populated_agency import (
    EMAIL,
    NOW,
    TRACES,
    PopulatedAgency,
    copy_populated_agency,
    find_traces,
    run_in_folder,
)
from tests.publishing.demonstration import AT

KILL = """
import os, signal, sys
from pathlib import Path
from connector.privacy.erase import erase
from connector.settings.model import load_settings
module = sys.modules["connector.privacy.erase"]
def killed(*given, **named):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(module, sys.argv[2], killed)
folder = Path(sys.argv[1])
given = {"CONNECTOR_DATA_DIR": str(folder / "data"), "CONNECTOR_MODELS": "off"}
erase(load_settings({}, given, folder), sys.argv[3], applies=True)
"""


class SimulatedKill(BaseException):
    """Exception that no handler of the erasure catches."""


def raise_simulated_kill(*given: Any, **named: Any) -> None:
    """End the erasure; tests replace one of its steps by this function."""
    raise SimulatedKill


@pytest.mark.slow
def test_a_killed_erasure_is_continued_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agency = copy_populated_agency(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", KILL, str(tmp_path), "compact", EMAIL],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
    )
    assert -signal.SIGKILL == ended.returncode
    assert [] != list(find_traces(agency.folder))
    assert 1 == erase(agency.settings, None).interrupted
    with monkeypatch.context() as patched:
        patched.setattr(
            sys.modules["connector.privacy.erase"], "write_receipt", raise_simulated_kill
        )
        with pytest.raises(SimulatedKill):
            erase(agency.settings, None, applies=True)

    done = run_in_folder(tmp_path, "erase", "--apply")

    assert 3 == done.exit_code
    assert [] == list(find_traces(agency.folder))
    assert "Receipt of the erasure" in done.stdout
    assert "\n  ledger.sqlite push_rows: 3\n" in done.stdout
    assert "Still present" not in done.stdout
    assert "some data must be erased by hand. The receipt lists it" in done.stderr
    assert [] == [each for each in TRACES if each.lower() in done.output.lower()]
    assert 0 == erase(agency.settings, None).interrupted


@pytest.mark.parametrize("name", [PULL_LEASE, PUSH_LEASE])
def test_an_erasure_is_refused_while_another_command_runs(tmp_path: Path, name: str) -> None:
    agency = copy_populated_agency(tmp_path)
    held = list(find_traces(agency.folder))
    with Ledger(agency.folder) as ledger:
        ledger.take_lease(name, LeaseOwner.of_this_process("other", name), NOW)
        with pytest.raises(LeaseHeld, match="run other"):
            erase(agency.settings, EMAIL, applies=True, now=lambda: NOW)

    assert held == list(find_traces(agency.folder))


def test_an_erasure_is_refused_while_rows_are_unconfirmed(tmp_path: Path) -> None:
    agency = copy_populated_agency(tmp_path)
    leave_row_unconfirmed(agency)

    with pytest.raises(Misused, match="1 rows of pushes") as raised:
        erase(agency.settings, EMAIL, applies=True)

    assert "connector resolve" in raised.value.action
    assert {each.lower() for each in TRACES} == {
        each.split(": ")[1] for each in find_traces(agency.folder)
    }
    assert 0 == erase(agency.settings, None).interrupted


def leave_row_unconfirmed(agency: PopulatedAgency) -> None:
    """Record the planned row as sent, without a response."""
    with Ledger(agency.folder) as ledger:
        ledger.take_lease(PUSH_LEASE, LeaseOwner.of_this_process("r2", "push"), AT)
        journal = JournalWriter(ledger, "r2", now=lambda: AT)
        path = f"/api/v1/candidates/{agency.id}"
        request = Request("candidates", "update", "PUT", path, "candidates.write", body=b"{}")
        journal.record_attempt((agency.batch, 5), request, before=None, sent_after=AT)
        ledger.release_lease(PUSH_LEASE, "r2")

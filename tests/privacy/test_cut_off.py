"""An erasure that is cut off is known, and the next one brings it to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from connector.client.request import Request
from connector.errors import Misused
from connector.errors_api import LeaseHeld
from connector.ledger.journal_writer import PUSH_LEASE, JournalWriter
from connector.ledger.lease import LeaseOwner
from connector.ledger.ledger import Ledger
from connector.privacy.erase import erase
from connector.pulls.run_context import PULL_LEASE
from tests.privacy.populated_agency import (
    EMAIL,
    NOW,
    TRACES,
    PopulatedAgency,
    call,
    populated_agency,
    traces,
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


class ErasureInterrupted(BaseException):
    """Ends an erasure where it stands, as nothing inside it can."""


def cut_off(*given: Any, **named: Any) -> None:
    """Takes the place of a step that the erasure does not come to."""
    raise ErasureInterrupted


@pytest.mark.slow
def test_killed_and_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agency = populated_agency(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", KILL, str(tmp_path), "compact", EMAIL],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
    )
    assert -signal.SIGKILL == ended.returncode
    assert [] != list(traces(agency.folder))
    assert 1 == erase(agency.settings, None).unended
    with monkeypatch.context() as patched:
        patched.setattr(sys.modules["connector.privacy.erase"], "write_receipt", cut_off)
        with pytest.raises(ErasureInterrupted):
            erase(agency.settings, None, applies=True)

    done = call(tmp_path, "erase", "--apply")

    assert 3 == done.exit_code
    assert [] == list(traces(agency.folder))
    assert "Receipt of the erasure" in done.stdout
    assert "\n  ledger.sqlite push_rows: 3\n" in done.stdout
    assert "Still present" not in done.stdout
    assert "some data must be erased by hand. The receipt lists it" in done.stderr
    assert [] == [each for each in TRACES if each.lower() in done.output.lower()]
    assert 0 == erase(agency.settings, None).unended


@pytest.mark.parametrize("name", [PULL_LEASE, PUSH_LEASE])
def test_waits_for_nobody(tmp_path: Path, name: str) -> None:
    agency = populated_agency(tmp_path)
    held = list(traces(agency.folder))
    with Ledger(agency.folder) as ledger:
        ledger.take_lease(name, LeaseOwner.of_this_process("other", name), NOW)
        with pytest.raises(LeaseHeld, match="run other"):
            erase(agency.settings, EMAIL, applies=True, now=lambda: NOW)

    assert held == list(traces(agency.folder))


def test_rows_in_doubt_come_first(tmp_path: Path) -> None:
    agency = populated_agency(tmp_path)
    leave_in_doubt(agency)

    with pytest.raises(Misused, match="1 rows of pushes") as raised:
        erase(agency.settings, EMAIL, applies=True)

    assert "connector resolve" in raised.value.action
    assert {each.lower() for each in TRACES} == {
        each.split(": ")[1] for each in traces(agency.folder)
    }
    assert 0 == erase(agency.settings, None).unended


def leave_in_doubt(agency: PopulatedAgency) -> None:
    """Send the row that was planned, and hear no answer."""
    with Ledger(agency.folder) as ledger:
        ledger.take_lease(PUSH_LEASE, LeaseOwner.of_this_process("r2", "push"), AT)
        journal = JournalWriter(ledger, "r2", now=lambda: AT)
        path = f"/api/v1/candidates/{agency.id}"
        request = Request("candidates", "update", "PUT", path, "candidates.write", body=b"{}")
        journal.record_attempt((agency.batch, 5), request, before=None, sent_after=AT)
        ledger.release_lease(PUSH_LEASE, "r2")

"""The list of erased people is lost with its ledger, or emptied: no erased person returns."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connector.ledger.erasures import Erasures
from connector.ledger.ledger import Ledger
from connector.ledger.person import key_fingerprint
from connector.sandbox.server import Sandbox
from connector.warehouse.warehouse import Warehouse
from tests.privacy.populated_agency import find_traces
from tests.support.command import CommandResult, call, variables
from tests.tiers import first_fast

EMAIL, NAME, OTHER = "olwen.zz@mail.example", "Zzyzxworth", "gwen.qq@mail.example"
COUNTS = {"jobs": 1, "candidates": 3}


class ErasedPeopleAccount:
    """Account that pulled and erased two people, whose records on the server were changed later."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.data = sandbox, folder / "data"
        self.ledger = self.data / "ledger.sqlite"
        self.environ = variables(sandbox.base_url, self.data, sandbox.key)
        self.environ["CONNECTOR_MODELS"] = "off"
        self.before = len(sandbox.log)

    def pull_and_erase_people(self) -> None:
        """Create two people on the server, pull and erase them, and change them on the server."""
        ids = [self.create(EMAIL, NAME), self.create(OTHER, "Qqworth")]
        assert 0 == self.call("pull", "candidates").status
        for email in (EMAIL, OTHER):
            assert 0 == self.call("erase", email, "--apply").status
        assert [] == self.find_traces()
        for id in ids:
            self.sandbox.store.update("candidates", id, {"city": "Leeds"})

    def create(self, email: str, name: str) -> str:
        """Create a candidate on the server, and return its id."""
        person = {"first_name": "O", "last_name": name, "email": email}
        record = self.sandbox.store.create("candidates", person | {"employment_type": "permanent"})
        return str(record.record["id"])

    def call(self, *words: str) -> CommandResult:
        """Call a command."""
        return call(words, self.environ)

    def push(self) -> CommandResult:
        """Push a row about the first person, without a pull."""
        path = self.data.parent / "people.csv"
        head = "first_name,last_name,email,employment_type"
        path.write_text(f"{head}\nO,Z,{EMAIL},permanent\n", encoding="utf-8")
        words = ("push", "candidates", str(path), "--mode", "create", "--apply", "--no-pull")
        return self.call(*words, "--json")

    def lose_list(self, how: str) -> None:
        """Delete the list's rows if `how` is "emptied", else the whole ledger, and confirm its
        loss.
        """
        if how == "emptied":
            with closing(sqlite3.connect(self.ledger, isolation_level=None)) as connection:
                connection.execute("DELETE FROM suppressed")
            return
        for each in self.data.glob("ledger.sqlite*"):
            each.unlink()
        # Nothing is pulled or pushed until the loss is confirmed.
        assert 1 == self.call("pull", "candidates").status
        self.call("doctor", "--new-ledger")
        self.before = len(self.sandbox.log)

    def find_traces(self, *texts: str) -> list[object]:
        """Return FILE: TEXT for each file with data of the first person, or with one of these
        texts.
        """
        return list(find_traces(self.data, *(texts or (EMAIL, NAME))))

    def count_hashes(self) -> int:
        """Return the number of identifier hashes in the list of erased people."""
        with Ledger(self.data) as ledger:
            return len([*Erasures(ledger).listed_hashes()])


@pytest.fixture(scope="module")
def agency_template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Folder of an agency and of its server, and the server's port. Tests use copies."""
    folder = tmp_path_factory.mktemp("agency")
    with Sandbox(counts=COUNTS, data=folder / "platform") as sandbox:
        ErasedPeopleAccount(sandbox, folder).pull_and_erase_people()
        return folder, int(sandbox.base_url.rsplit(":", 1)[1])


@pytest.fixture
def agency(tmp_path: Path, agency_template: tuple[Path, int]) -> Iterator[ErasedPeopleAccount]:
    """Copy of the template, whose server runs at the same port."""
    folder, port = agency_template
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    # The data folder belongs to one address.
    with Sandbox(data=tmp_path / "platform", port=port) as sandbox:
        yield ErasedPeopleAccount(sandbox, tmp_path)


@pytest.mark.parametrize("how", first_fast(["removed", "emptied"]))
def test_a_lost_suppression_list_is_restored_from_the_receipts(
    agency: ErasedPeopleAccount, how: str
) -> None:
    listed = agency.count_hashes()
    agency.lose_list(how)

    pulled = agency.call("pull", "candidates")

    assert [] == agency.find_traces()
    assert listed == agency.count_hashes() > 0
    assert f"{listed} hashes of erased people were missing" in pulled.err
    again = agency.call("pull", "candidates", "--json")
    assert "notices" not in again.object
    found = agency.call("doctor", "--json").object["checks"]
    assert ["ok"] == [each["state"] for each in found if each["name"] == "erasures"]


@pytest.mark.slow
def test_a_push_restores_the_suppression_list_without_a_pull(agency: ErasedPeopleAccount) -> None:
    agency.lose_list("emptied")

    pushed = agency.push()

    assert (3, 1) == (pushed.status, pushed.object["invalid"]), pushed
    assert [] == [each for each in agency.sandbox.log if each.method == "POST"]
    assert [] == agency.find_traces()


@pytest.mark.parametrize("lost", ["key", "receipt"])
@pytest.mark.parametrize("how", ["kept", "removed"])
def test_a_missing_key_or_receipt_stops_pulls_and_pushes(
    agency: ErasedPeopleAccount, lost: str, how: str
) -> None:
    if how == "removed":
        agency.lose_list(how)
    receipt = sorted((agency.data / "receipts").glob("erasure-*.json"))[0]
    path = agency.data / "suppression.key" if lost == "key" else receipt
    before = path.read_bytes()
    path.unlink() if lost == "key" else path.write_bytes(before[:40])

    for called in (agency.call("pull", "--json"), agency.push()):
        assert (1, "erasures_unknown") == (called.status, called.object["error"]["code"]), called
        assert path.name in called.object["error"]["message"]
        assert "from a backup" in called.object["error"]["action"]
    assert agency.before == len(agency.sandbox.log)
    assert 1 == agency.call("doctor").status
    path.write_bytes(before)
    assert 0 == agency.call("pull", "candidates").status
    assert [] == agency.find_traces()


@pytest.mark.slow
def test_the_documented_steps_after_a_lost_key_work(agency: ErasedPeopleAccount) -> None:
    (agency.data / "suppression.key").unlink()
    (agency.data / "receipts").rename(agency.data.parent / "receipts-away")
    agency.ledger.unlink()

    assert 0 == agency.call("doctor", "--new-ledger").status
    assert 0 == agency.call("pull", "candidates", "--full").status
    for email in (EMAIL, OTHER):
        assert 0 == agency.call("erase", email, "--apply").status

    assert 0 == agency.call("pull", "candidates", "--full").status
    assert [] == agency.find_traces()


@pytest.mark.slow
def test_a_missing_receipt_is_reported_and_written_again(agency: ErasedPeopleAccount) -> None:
    receipt = sorted((agency.data / "receipts").glob("erasure-*.json"))[0]
    hashes = json.loads(receipt.read_text())["hashes"]
    receipt.unlink()

    health, checked = agency.call("status", "--check", "--json"), agency.call("doctor", "--json")

    (wrong,) = health.object["accounts"][0]["problems"]
    (check,) = (each for each in checked.object["checks"] if each["name"] == "erasures")
    assert (1, "warning") == (health.status, check["state"])
    for text in (wrong, check["found"]):
        assert f"{receipt} is missing" in text
        assert "2 hashes of erased people" in text
    for text in (wrong, check["action"]):
        assert "from a backup" in text
        assert "doctor --repair" in text
    # Everybody is on the list, so nothing has to wait.
    assert 0 == agency.call("pull", "candidates").status

    assert 0 == agency.call("doctor", "--repair").status
    assert hashes == json.loads(receipt.read_text())["hashes"]
    assert 0 == agency.call("status", "--check").status
    agency.lose_list("removed")
    assert 0 == agency.call("pull", "candidates", "--full").status
    assert [] == agency.find_traces()


def test_a_list_without_key_and_receipts_stops_pulls_and_pushes(
    agency: ErasedPeopleAccount,
) -> None:
    (agency.data / "suppression.key").unlink()
    shutil.rmtree(agency.data / "receipts")

    for called in (agency.call("pull", "--json"), agency.push()):
        assert (1, "erasures_unknown") == (called.status, called.object["error"]["code"]), called
    assert agency.before == len(agency.sandbox.log)


def test_the_status_check_reports_a_lost_key(agency: ErasedPeopleAccount) -> None:
    (agency.data / "suppression.key").unlink()

    called = agency.call("status", "--check")

    assert 1 == called.status
    assert "suppression.key is missing, so erased people" in called.out
    assert "from a backup" in called.out


OTHER_KEY = b"5f" * 32
"""The key of another account."""

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "random": lambda content: bytes(range(128, 192)),
    "another account's": lambda content: OTHER_KEY,
}


@pytest.mark.parametrize("damage", first_fast([*DAMAGES]))
def test_a_damaged_key_stops_pulls_and_pushes(agency: ErasedPeopleAccount, damage: str) -> None:
    path = agency.data / "suppression.key"
    before = path.read_bytes()
    path.write_bytes(DAMAGES[damage](before))

    for called in (agency.call("pull", "candidates", "--full", "--json"), agency.push()):
        assert (1, "erasures_unknown") == (called.status, called.object["error"]["code"]), called
        assert path.name in called.object["error"]["message"]
        assert "from a backup" in called.object["error"]["action"]
    assert agency.before == len(agency.sandbox.log)
    assert 1 == agency.call("doctor").status
    path.write_bytes(before)
    assert 0 == agency.call("pull", "candidates", "--full").status
    assert [] == agency.find_traces()


def test_a_receipt_of_another_account_is_reported(agency: ErasedPeopleAccount) -> None:
    receipt = sorted((agency.data / "receipts").glob("erasure-*.json"))[0]
    before = receipt.read_text()
    other = json.loads(before) | {"key": key_fingerprint(bytes.fromhex(OTHER_KEY.decode()))}
    receipt.write_text(json.dumps(other))

    called = agency.call("pull", "candidates", "--json")

    assert (1, "erasures_unknown") == (called.status, called.object["error"]["code"])
    assert receipt.name in called.object["error"]["message"]
    assert agency.before == len(agency.sandbox.log)


@pytest.mark.slow
def test_released_people_stay_released_after_a_lost_list(agency: ErasedPeopleAccount) -> None:
    assert 0 == agency.call("erase", "--release", EMAIL).status
    agency.lose_list("removed")

    agency.call("pull", "candidates", "--full")

    assert [] != agency.find_traces()
    assert [] == agency.find_traces(OTHER)
    assert 0 == agency.call("erase", EMAIL, "--apply").status
    agency.lose_list("removed")
    agency.call("pull", "candidates", "--full")
    assert [] == agency.find_traces()


def test_a_lost_work_file_does_not_restore_erased_people(agency: ErasedPeopleAccount) -> None:
    id = agency.create("new.yy@mail.example", "Yyworth")
    assert 0 == agency.call("pull", "candidates").status
    warehouse = Warehouse(agency.data)
    former = agency.data.parent / "former.duckdb"
    shutil.copy(warehouse.published, former)
    assert 0 == agency.call("erase", "new.yy@mail.example", "--apply").status
    warehouse.work.unlink()
    shutil.copy(former, warehouse.published)

    assert 0 == agency.call("pull", "candidates").status

    assert id in agency.sandbox.store.records("candidates")
    assert [] == agency.find_traces("new.yy@mail.example", "Yyworth")

"""Redacted values are never sent to the API by pushes, undos or mappings."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.catalog.field import MARK
from connector.client.messages import encode_body
from connector.errors import Misused
from connector.ledger.push_plan import shorten
from connector.ledger.push_states import Mode, Task
from connector.privacy.erase import erase
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushReport, PushRunOptions, push
from connector.pushes.undo_plan import WrittenRow, plan_undo
from connector.sandbox.server import Sandbox
from connector.spreadsheet.mapping_file import SavedMap, load_map
from connector.warehouse.warehouse import Warehouse
from tests.privacy.populated_agency import load_record
from tests.pushes.pushing import list_writes, make_create, make_update, map_outcomes
from tests.pushes.test_undo import Undoer
from tests.support.clock import Time

EMAIL, NAME = "olwen@mail.example", "Olwen Zzyzxworth"
REDACTED = "was changed by an erasure and is not restored"
NAMING = f"Was recommended by {NAME} <{EMAIL}>."


class RedactedAccount(Undoer):
    """Account with a person to erase, and another person whose notes name the first."""

    def __init__(self, sandbox: Sandbox, folder: Path, time: Time) -> None:
        super().__init__(sandbox, folder, time)
        first, last = NAME.split()
        self.person = self.create_candidate(
            email=EMAIL, first_name=first, last_name=last, city="Hull"
        )
        self.other = self.create_candidate(email="bob@mail.example", notes=NAMING)

    def load_and_make_update(self, number: int, id: str, **wanted: Any) -> Any:
        """Load a candidate, and return a row that changes it."""
        record = self.read_candidate(id)
        self.load_candidate(id)
        return make_update(number, id, record, **wanted)

    def load_candidate(self, id: str) -> None:
        """Load a candidate as it is on the server."""
        warehouse = Warehouse(self.settings.folder)
        with warehouse.keep_open():
            load_record(warehouse, "candidates", self.read_candidate(id), self.time.local_now())

    def erase(self) -> None:
        """Load the person, erase them from the data folder, and let three minutes pass."""
        self.load_candidate(self.person)
        erase(self.settings, EMAIL, applies=True)
        self.time.pass_minutes(3)

    def find_marked_ids(self) -> list[str]:
        """Return the ids of the server's records that contain the redaction mark."""
        records = self.sandbox.store.records("candidates")
        return [id for id, record in records.items() if MARK in str(record)]

    def push_csv(self, mode: Mode, *rows: dict[str, str], saved: SavedMap) -> PushReport:
        """Push and apply a CSV file of these rows with a saved column mapping."""
        path = self.folder / "people.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        push_file = PushFile("candidates", path, mode, saved=saved)
        return asyncio.run(
            push(self.settings, push_file, PushRunOptions(applies=True, pulls=False))
        )


@pytest.fixture
def redacted_account(tmp_path: Path) -> Iterator[RedactedAccount]:
    """Account before the erasure."""
    time = Time()
    with Sandbox(clock=time.server_now) as sandbox:
        yield RedactedAccount(sandbox, tmp_path, time)


def test_an_undo_does_not_write_erased_values(redacted_account: RedactedAccount) -> None:
    rows = (
        redacted_account.load_and_make_update(
            2, redacted_account.other, notes="clean", source="fair"
        ),
        redacted_account.load_and_make_update(
            4, redacted_account.person, city="Leeds", source="fair"
        ),
        redacted_account.load_and_make_update(5, redacted_account.person, phone="+44 20 7946 0000"),
    )
    pushed = redacted_account.push(rows)
    assert {"updated": 3} == dict(pushed.counts)
    redacted_account.erase()

    left = {4: "partly", 5: "redacted"}
    preview = redacted_account.undo(pushed.batch, applies=False)
    assert {2: "restore", **left} == map_outcomes(preview)
    report = redacted_account.undo(pushed.batch)

    assert {2: "restored", **left} == map_outcomes(report)
    assert (3, 3) == (sum(report.counts.values()), report.exit_status)
    assert [(4, "city", f"city {REDACTED}"), (5, "phone", f"phone {REDACTED}")] == [
        (row.number, each.field, each.message) for row in report.rows for each in row.problems
    ]
    assert {"value_erased"} == {each.code for row in report.rows for each in row.problems}
    assert (NAMING, None) == tuple(
        redacted_account.read_candidate(redacted_account.other)[n] for n in ("notes", "source")
    )
    assert ("Leeds", None) == tuple(
        redacted_account.read_candidate(redacted_account.person)[n] for n in ("city", "source")
    )
    assert [] == redacted_account.find_marked_ids()


def test_a_row_of_an_erased_person_is_never_sent(redacted_account: RedactedAccount) -> None:
    rows = (
        make_create(2),
        make_create(3, notes=NAMING),
        make_create(4, status="screening"),
        redacted_account.load_and_make_update(
            5, redacted_account.person, city="Leeds", source="fair"
        ),
        redacted_account.load_and_make_update(6, redacted_account.other, internal_notes=NAMING),
    )
    begun = redacted_account.push(rows, budget=1)
    assert 1 < begun.counts["not_sent"]
    redacted_account.erase()

    with redacted_account.journal() as journal:
        stood = {row.number: row for row in journal.rows(begun.batch)}
        left = [row.key[1] for row in journal.rows_to_push(begun.batch)]
    refused = {number: row.code for number, row in stood.items() if row.outcome == "invalid"}
    assert {5: "person_erased"} == refused
    assert {3, 4, 6} <= set(left)
    assert [] == redacted_account.find_marked_ids()


def test_a_redacted_value_does_not_count_as_a_conflicting_change(
    redacted_account: RedactedAccount,
) -> None:
    redacted_account.erase()

    report = redacted_account.push(
        [make_update(2, redacted_account.other, {"notes": MARK}, notes="clean")]
    )

    (row,) = report.rows
    (problem,) = row.problems
    assert ("conflict", "value_erased", None) == (row.outcome, problem.code, problem.found)
    assert "an erasure changed" in problem.message


@pytest.mark.parametrize("mode", ["create", "update"])
def test_a_cell_with_the_redaction_mark_is_rejected(
    redacted_account: RedactedAccount, mode: Mode
) -> None:
    redacted_account.load_candidate(redacted_account.other)
    full = {"first_name": "Ann", "last_name": "Lee", "employment_type": "permanent"}
    by = {"id": redacted_account.other} if mode == "update" else {}
    rows = [
        {**by, **full, "email": "ann@mail.example", "notes": f"Met {MARK}, and liked them."},
        dict.fromkeys([*by, *full, "email", "notes"], ""),
        {**by, **full, "email": MARK, "notes": ""},
    ]
    before = list_writes(redacted_account.sandbox)
    saved = SavedMap("candidates", constants={"source": "fair"})

    report = redacted_account.push_csv(mode, *rows, saved=saved)

    assert [(2, "invalid"), (4, "invalid")] == [(e.number, e.outcome) for e in report.results]
    problems = [problem for each in report.results for problem in each.problems]
    assert {"value_erased"} == {each.code for each in problems if each.column in ("notes", "email")}
    assert before == list_writes(redacted_account.sandbox)


@pytest.mark.parametrize(
    "lines",
    [
        f'[constants]\nnotes = "by {MARK}"',
        f'[columns."Town"]\nfield = "city"\nvalues = {{ "Leeds" = "{MARK}" }}',
        f'[columns."Town"]\nfield = "city"\nvalues = {{ "{MARK}" = "Leeds" }}',
    ],
    ids=["constant", "value", "cell"],
)
def test_a_mapping_with_the_redaction_mark_is_rejected(tmp_path: Path, lines: str) -> None:
    path = tmp_path / "map.toml"
    path.write_text(f'resource = "candidates"\n{lines}\n', encoding="utf-8")

    with pytest.raises(Misused, match=r"map\.toml: (constants|columns) contains \[erased\]"):
        load_map(path)


@pytest.mark.parametrize("value", [MARK, f"a {MARK}.", ["b", MARK], {"c": [{MARK: 1}]}])
def test_no_request_body_contains_the_redaction_mark(value: Any) -> None:
    with pytest.raises(Misused, match=r"^notes contains \[erased\], the mark") as raised:
        encode_body({"city": "Leeds", "notes": value})

    assert shorten(value) not in str(raised.value) or value == MARK


def test_a_field_without_a_previous_value_is_not_emptied_by_an_undo() -> None:
    written = {"notes": "new", "city": "Leeds"}
    task = Task(2, "update", "candidates", written, record_id="c-1")
    row = WrittenRow(("b", 2), task, "c-1", written, before={"city": None})

    left = plan_undo(row, {"id": "c-1", **written})

    assert {"city": None} == left.body
    assert [("never_shown", "notes")] == [(each.code, each.field) for each in left.problems]

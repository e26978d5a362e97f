"""Checks of the published file after a push and its undo, which change the local copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from connector.warehouse.duckdb_file import open_file
from tests.support.agency import published, rows
from tests.support.command import COUNTS, KEY, call, variables

pytestmark = pytest.mark.slow
AUDIT = "copy_is_fresh"


def test_a_push_and_its_undo_do_not_fail_the_comparison_with_the_api(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    head = "first_name,last_name,email,employment_type"
    people.write_text(f"{head}\nAnn,Lee,ann@mail.example,permanent\n", encoding="utf-8")
    push = ("push", "candidates", str(people), "--mode", "create", "--apply")

    def read_check_state() -> tuple[bool, int]:
        checks = "SELECT failed_checks FROM sync.publications ORDER BY started_at DESC LIMIT 1"
        live = "SELECT count(*) AS n FROM landing.candidates WHERE _deleted_at IS NULL"
        file = published(tmp_path)
        return AUDIT in rows(file, checks)[0]["failed_checks"], rows(file, live)[0]["n"]

    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data") | {"CONNECTOR_MODELS": "on"}
        # The pulls publish without models, which saves two builds.
        without = environ | {"CONNECTOR_MODELS": "off"}
        assert 0 == call(["pull", "candidates"], without).status
        assert 0 == call(push, environ).status
        pushed = read_check_state()
        assert 0 == call(["pull", "candidates"], without).status
        assert 0 == call(["undo", "last", "--apply"], environ).status
        undone = read_check_state()
        # The same audit still sees a list that does not count what is landed.
        counts = "UPDATE sync.run_resources SET total = total + 1 WHERE resource = 'candidates'"
        with open_file(tmp_path / "data" / "work.duckdb") as connection:
            connection.execute(counts)
        assert 0 == call(["publish"], environ).status
        differing = read_check_state()

    assert (False, 13) == pushed
    assert (False, 12) == undone
    assert (True, 12) == differing

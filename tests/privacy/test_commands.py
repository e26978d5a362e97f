"""Privacy commands: their output and exit statuses, without personal data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connector.ledger.person import read_or_create_key
from tests.privacy.populated_agency import EMAIL, TRACES, copy_populated_agency, run_in_folder


def test_whereis_and_erase_print_no_personal_data(tmp_path: Path) -> None:
    copy_populated_agency(tmp_path)

    found = run_in_folder(tmp_path, "whereis", EMAIL, "--json")
    preview = run_in_folder(tmp_path, "erase", EMAIL)

    assert [0, 0] == [found.exit_code, preview.exit_code]
    resources = [each["resource"] for each in json.loads(found.stdout)["records"]]
    assert ["bookings", "bookings", "candidates", "companies"] == resources
    lines = [line.split() for line in preview.stdout.splitlines()]
    assert ["work.duckdb", "landing.candidates", "1"] in lines
    assert "Nothing was changed. Run the command with --apply to erase the person" in preview.stderr
    output = f"{found.output}{preview.output}".lower()
    assert [] == [each for each in TRACES if each.lower() in output]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("erase",), 2, "no person was given"),
        (("erase", "Ann Lee"), 2, "the value is neither an email address nor the id of a record"),
        (("erase", EMAIL, "--release", EMAIL), 2, "--release"),
        (("erase", "--release", EMAIL), 0, "0 hashes"),
        (("retention",), 2, "no retention rules are configured"),
    ],
)
def test_invalid_erase_arguments_are_usage_errors(
    tmp_path: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    (tmp_path / "data").mkdir()
    read_or_create_key(tmp_path / "data")

    done = run_in_folder(tmp_path, *arguments)

    assert status == done.exit_code
    assert message in done.stderr

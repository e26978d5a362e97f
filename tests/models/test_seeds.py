"""Seeds: a user's file replaces the shipped one, and copies get rows to fill in."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import ModelError
from connector.models.project import load_project
from connector.models.seeds import write_seed_copies
from tests.models.account import Account, build_file
from tests.support.errors import has_code

ROWS = "SELECT id, name, since::VARCHAR FROM seeds.people ORDER BY id"


@pytest.fixture
def seeds_folder(tmp_path: Path) -> Path:
    """Empty folder for the user's seed files."""
    folder = tmp_path / "seeds"
    folder.mkdir()
    return folder


def build_with_seed(
    account: Account, seeds_folder: Path, content: bytes
) -> list[tuple[object, ...]]:
    """Build the seed `people` from a user's file with this content, and return its rows."""
    (seeds_folder / "people.csv").write_bytes(content)
    build_file(account.warehouse.work, account.load_project(seeds_folder), ["people"])
    return account.query(ROWS)


GOALS = "consultant_id,team,month,measure,target\n,Köln,2026-03-01,placements,2\n"
WRONG_GOALS = {
    "the same month": (",Köln,2026-03-15,placements,3", "line 2 already has this consultant_id"),
    "a space behind a team": (",Köln ,2026-04-01,placements,3", "team is spelled differently"),
    "composed characters": (",Ko\u0308ln,2026-04-01,placements,3", "team is spelled differently"),
    "capitals": (",KÖLN,2026-04-01,placements,3", "team is spelled differently in line 2"),
}


@pytest.mark.parametrize("fault", WRONG_GOALS)
def test_a_goal_that_is_given_twice_is_reported_with_its_line(tmp_path: Path, fault: str) -> None:
    row, problem = WRONG_GOALS[fault]
    (tmp_path / "goals.csv").write_text(f"{GOALS}u1,,2026-03-01,placements,1\n{row}\n", "utf-8")

    with pytest.raises(ModelError, match=problem, check=has_code("seed_invalid")) as caught:
        build_file(tmp_path / "x.duckdb", load_project(seeds=tmp_path), ["goals"])

    assert (tmp_path / "goals.csv", 4) == (caught.value.path, caught.value.line)


def test_goals_of_other_months_measures_and_teams_are_accepted(tmp_path: Path) -> None:
    rows = ",Köln,2026-04-01,placements,2\n,Köln,2026-03-01,leads_added,2\n"
    (tmp_path / "goals.csv").write_text(f"{GOALS}{rows},Bonn,2026-03-01,placements,2\n", "utf-8")

    built = build_file(tmp_path / "x.duckdb", load_project(seeds=tmp_path), ["goals"])

    assert [4] == [each.rows for each in built.models]


SHEET = '\ufeffid;name;since\r\nx;"Ada ""A."" Løve; Lace";\r\n;;\r\ny;"two\nlines";2024-01-31\r\n'
READ = {
    "a person's file wins": (b"id,name,since\nx,Ada,2024-01-31\n", [("x", "Ada", "2024-01-31")]),
    "a byte order mark, semicolons, Windows line ends, quotes, empty lines": (
        SHEET.encode(),
        [("x", 'Ada "A." Løve; Lace', None), ("y", "two\nlines", "2024-01-31")],
    ),
    "tabs": (b"id\tname\tsince\nx\tAda\t\n", [("x", "Ada", None)]),
    "a row that waits to be filled in": (
        b"id,name,since\nx,Ada,\ny,,\n",
        [("x", "Ada", None), ("y", None, None)],
    ),
}


@pytest.mark.parametrize("case", READ)
def test_a_users_seed_file_is_read_with_its_delimiter_and_encoding(
    account: Account, seeds_folder: Path, case: str
) -> None:
    content, rows = READ[case]
    assert rows == build_with_seed(account, seeds_folder, content)


FAULTS = {
    "headings": (b"id,nmae,since\n", 1, "id, name, since"),
    "a cell too many": (b"id,name,since\nx,Ada,,\n", 2, "4 cells instead of 3"),
    "another type": (b"id,name,since\nx,Ada,\ny,Grace,1.2.24\n", 3, "not of the type date"),
    "not UTF-8": (b"id,name,since\nx,Ada,\ny,Gr\xe4ce,\n", 3, "not UTF-8"),
    "a quote without end": (b'id,name,since\nx,"Ada,\n', 2, "cannot be read"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_invalid_seed_row_is_reported_with_its_line_but_no_value(
    account: Account, seeds_folder: Path, fault: str
) -> None:
    content, line, problem = FAULTS[fault]
    with pytest.raises(ModelError, match=problem, check=has_code("seed_invalid")) as caught:
        build_with_seed(account, seeds_folder, content)

    assert (seeds_folder / "people.csv", line) == (caught.value.path, caught.value.line)
    assert not [each for each in ("Ada", "Grace", "1.2.24") if each in str(caught.value)]


def test_a_seed_copy_has_the_shipped_rows_and_rows_to_fill_in(
    account: Account, seeds_folder: Path
) -> None:
    project = account.load_project(seeds_folder)
    path = seeds_folder / "people.csv"

    assert {} == write_seed_copies(seeds_folder, {}, project)
    assert {path: []} == write_seed_copies(seeds_folder, {}, project, ["people"])
    path.unlink()
    values = {"people": ("p3", "a,b", "=1+1", "@x")}
    assert {path: ["p3", "a,b"]} == write_seed_copies(seeds_folder, values, project)

    assert 'id,name,since\np1,Ada,2024-02-01\np2,Grace,\np3,,\n"a,b",,\n' == path.read_text()
    assert [("a,b",), ("p1",), ("p2",), ("p3",)] == [
        (row[0],) for row in build_with_seed(account, seeds_folder, path.read_bytes())
    ]


def test_missing_values_are_appended_to_a_users_seed_file(
    account: Account, seeds_folder: Path
) -> None:
    held = "\ufeffid;name;since\r\nx;Ada;2024-01-31\r\nwaits;;".encode()
    path = seeds_folder / "people.csv"
    path.write_bytes(held)
    values = {"people": ("waits", "p3", "x")}

    for appended in (["p3"], []):
        project = account.load_project(seeds_folder)
        assert {path: appended} == write_seed_copies(seeds_folder, values, project)
        assert held + b"\np3;;\n" == path.read_bytes()
    assert [path] == [*seeds_folder.iterdir()]

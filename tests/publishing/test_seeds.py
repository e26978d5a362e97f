"""Seeds: a user's file replaces the shipped one, and copies get rows to fill in."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import ModelError
from connector.publishing.build import build
from connector.publishing.seeds import UnmappedValues, write_seed_copies
from tests.publishing.small import SmallProject
from tests.support.errors import has_code

ROWS = "SELECT id, name, since::VARCHAR FROM seeds.people ORDER BY id"


@pytest.fixture
def seeds_folder(tmp_path: Path) -> Path:
    """Empty folder for the user's seed files."""
    folder = tmp_path / "seeds"
    folder.mkdir()
    return folder


def build_with_seed(
    small: SmallProject, seeds_folder: Path, content: bytes
) -> list[tuple[object, ...]]:
    """Build the seed `people` from a user's file with this content, and return its rows."""
    (seeds_folder / "people.csv").write_bytes(content)
    build(small.file, small.load_project(seeds=seeds_folder), select=["people"])
    return small.query(ROWS)


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
    small: SmallProject, seeds_folder: Path, case: str
) -> None:
    content, rows = READ[case]
    assert rows == build_with_seed(small, seeds_folder, content)


FAULTS = {
    "headings": (b"id,nmae,since\n", 1, "id, name, since"),
    "a cell too many": (b"id,name,since\nx,Ada,,\n", 2, "4 cells instead of 3"),
    "another type": (b"id,name,since\nx,Ada,\ny,Grace,1.2.24\n", 3, "not of the type date"),
    "not UTF-8": (b"id,name,since\nx,Ada,\ny,Gr\xe4ce,\n", 3, "not UTF-8"),
    "a quote without end": (b'id,name,since\nx,"Ada,\n', 2, "cannot be read"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_invalid_seed_row_is_reported_with_its_line_but_no_value(
    small: SmallProject, seeds_folder: Path, fault: str
) -> None:
    content, line, problem = FAULTS[fault]
    with pytest.raises(ModelError, match=problem, check=has_code("seed_invalid")) as caught:
        build_with_seed(small, seeds_folder, content)

    assert (seeds_folder / "people.csv", line) == (caught.value.path, caught.value.line)
    assert not [each for each in ("Ada", "Grace", "1.2.24") if each in str(caught.value)]


def make_unmapped_values(
    small: SmallProject, seeds_folder: Path, *values: str
) -> list[UnmappedValues]:
    """Return these values as ids that the seed `people` does not contain."""
    return [UnmappedValues(small.load_project(seeds=seeds_folder).seeds["people"], values)]


def test_a_seed_copy_has_the_shipped_rows_and_rows_to_fill_in(
    small: SmallProject, seeds_folder: Path
) -> None:
    project = small.load_project(seeds=seeds_folder)
    (done,) = write_seed_copies(
        seeds_folder, make_unmapped_values(small, seeds_folder, "p3", "a,b"), project
    )

    assert (seeds_folder / "people.csv", True, ("p3", "a,b")) == (
        done.path,
        done.is_new,
        done.appended,
    )
    assert 'id,name,since\np1,Ada,2024-02-01\np2,Grace,\np3,,\n"a,b",,\n' == done.path.read_text()
    assert [("a,b",), ("p1",), ("p2",), ("p3",)] == [
        (row[0],) for row in build_with_seed(small, seeds_folder, done.path.read_bytes())
    ]


def test_missing_values_are_appended_to_a_users_seed_file(
    small: SmallProject, seeds_folder: Path
) -> None:
    held = "\ufeffid;name;since\r\nx;Ada;2024-01-31\r\nwaits;;".encode()
    (seeds_folder / "people.csv").write_bytes(held)
    values = make_unmapped_values(small, seeds_folder, "waits", "p3", "x")
    (first,) = write_seed_copies(seeds_folder, values, small.load_project(seeds=seeds_folder))
    after = first.path.read_bytes()
    (second,) = write_seed_copies(seeds_folder, values, small.load_project(seeds=seeds_folder))

    assert held + b"\r\np3;;\r\n" == after == second.path.read_bytes()
    assert (False, ("p3",)) == (first.is_new, first.appended)
    assert (False, ()) == (second.is_new, second.appended)
    assert ["people.csv"] == [each.name for each in seeds_folder.iterdir()]


def test_values_that_look_like_formulas_are_not_written_to_a_seed(
    small: SmallProject, seeds_folder: Path
) -> None:
    (done,) = write_seed_copies(
        seeds_folder,
        make_unmapped_values(small, seeds_folder, "=1+1", "@x", "ok"),
        small.load_project(seeds=seeds_folder),
    )

    assert (("ok",), ("=1+1", "@x")) == (done.appended, done.left_out)
    assert "=1+1" not in done.path.read_text()


def test_only_seeds_with_missing_values_are_copied_by_default(
    small: SmallProject, seeds_folder: Path
) -> None:
    project = small.load_project(seeds=seeds_folder)

    assert () == write_seed_copies(seeds_folder, make_unmapped_values(small, seeds_folder), project)
    assert [True] == [
        each.is_new for each in write_seed_copies(seeds_folder, [], project, ["people"])
    ]

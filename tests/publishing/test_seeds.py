"""Seeds: whose file counts, what a person's file may look like, and copies to fill in."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import ModelError
from connector.publishing.build import build
from connector.publishing.seeds import UnmappedValues, write_copies
from tests.publishing.small import SmallProject
from tests.support.errors import has_code

ROWS = "SELECT id, name, since::VARCHAR FROM seeds.people ORDER BY id"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A person's folder for seeds."""
    folder = tmp_path / "seeds"
    folder.mkdir()
    return folder


def built_with(small: SmallProject, own: Path, content: bytes) -> list[tuple[object, ...]]:
    """The rows of the seed, with a person's file of that content."""
    (own / "people.csv").write_bytes(content)
    build(small.file, small.project(seeds=own), select=["people"])
    return small.rows(ROWS)


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


@pytest.mark.parametrize("name", READ)
def test_a_persons_file_is_read_as_it_is(small: SmallProject, own: Path, name: str) -> None:
    content, rows = READ[name]
    assert rows == built_with(small, own, content)


FAULTS = {
    "headings": (b"id,nmae,since\n", 1, "id, name, since"),
    "a cell too many": (b"id,name,since\nx,Ada,,\n", 2, "4 cells instead of 3"),
    "another type": (b"id,name,since\nx,Ada,\ny,Grace,1.2.24\n", 3, "not of the type date"),
    "not UTF-8": (b"id,name,since\nx,Ada,\ny,Gr\xe4ce,\n", 3, "not UTF-8"),
    "a quote without end": (b'id,name,since\nx,"Ada,\n', 2, "cannot be read"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_its_line_and_no_value(
    small: SmallProject, own: Path, name: str
) -> None:
    content, line, problem = FAULTS[name]
    with pytest.raises(ModelError, match=problem, check=has_code("seed_invalid")) as caught:
        built_with(small, own, content)

    assert (own / "people.csv", line) == (caught.value.path, caught.value.line)
    assert not [each for each in ("Ada", "Grace", "1.2.24") if each in str(caught.value)]


def missing(small: SmallProject, own: Path, *values: str) -> list[UnmappedValues]:
    return [UnmappedValues(small.project(seeds=own).seeds["people"], "unmapped_people", values)]


def test_a_copy_is_the_shipped_file_with_rows_to_fill_in(small: SmallProject, own: Path) -> None:
    project = small.project(seeds=own)
    (done,) = write_copies(own, missing(small, own, "p3", "a,b"), project)

    assert (own / "people.csv", True, ("p3", "a,b")) == (done.path, done.is_new, done.appended)
    assert 'id,name,since\np1,Ada,2024-02-01\np2,Grace,\np3,,\n"a,b",,\n' == done.path.read_text()
    assert [("a,b",), ("p1",), ("p2",), ("p3",)] == [
        (row[0],) for row in built_with(small, own, done.path.read_bytes())
    ]


def test_a_persons_file_is_only_appended_to(small: SmallProject, own: Path) -> None:
    held = "\ufeffid;name;since\r\nx;Ada;2024-01-31\r\nwaits;;".encode()
    (own / "people.csv").write_bytes(held)
    values = missing(small, own, "waits", "p3", "x")
    (first,) = write_copies(own, values, small.project(seeds=own))
    after = first.path.read_bytes()
    (second,) = write_copies(own, values, small.project(seeds=own))

    assert held + b"\r\np3;;\r\n" == after == second.path.read_bytes()
    assert (False, ("p3",)) == (first.is_new, first.appended)
    assert (False, ()) == (second.is_new, second.appended)
    assert ["people.csv"] == [each.name for each in own.iterdir()]


def test_no_formula_is_written(small: SmallProject, own: Path) -> None:
    (done,) = write_copies(own, missing(small, own, "=1+1", "@x", "ok"), small.project(seeds=own))

    assert (("ok",), ("=1+1", "@x")) == (done.appended, done.left_out)
    assert "=1+1" not in done.path.read_text()


def test_only_what_lacks_something_is_copied_unasked(small: SmallProject, own: Path) -> None:
    project = small.project(seeds=own)

    assert () == write_copies(own, missing(small, own), project)
    assert [True] == [each.is_new for each in write_copies(own, [], project, ["people"])]

"""The corpus of nasty files: nothing goes wrong in silence, and what a person reads is sent."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from connector.errors import ConnectorError
from connector.spreadsheet.table import open_table
from tests.spreadsheet.corpus.cases import HEAD, corpus, people, person
from tests.spreadsheet.corpus.files import File, book, text
from tests.spreadsheet.corpus.judge import judged
from tests.spreadsheet.files.made import cells_of
from tests.tiers import first_fast

FILES = corpus()


@pytest.mark.parametrize("file", first_fast(FILES, 40), ids=[each.name for each in FILES])
def test_each_cell_is_what_a_person_reads(tmp_path: Path, file: File) -> None:
    found = judged(file, tmp_path)

    assert [] == found.wrong
    assert [] == found.open
    assert found.right == found.readable


def test_the_corpus_is_large_and_all_of_it_differs() -> None:
    assert 60 <= len(FILES) == len({each.name for each in FILES})


@pytest.mark.parametrize("file", FILES, ids=[each.name for each in FILES])
def test_every_reading_gives_the_same_rows(tmp_path: Path, file: File) -> None:
    try:
        table = open_table(file.put(tmp_path))
    except ConnectorError:
        return
    rows = list(table.rows())
    reading = table.rows()
    begun = list(islice(reading, 1))
    assert rows == list(table.rows())
    assert rows == [*begun, *reading]


def test_a_title_is_found_however_many_lines_it_has_and_a_person_may_say_otherwise(
    tmp_path: Path,
) -> None:
    for count in range(6):
        title = [(f"Note {n}",) for n in range(count)]
        for name, content in (
            ("a.csv", text([*title, HEAD, *people(2)])),
            ("a.xlsx", book([*title, HEAD, *people(2)])),
        ):
            (tmp_path / name).write_bytes(content)
            table = open_table(tmp_path / name)
            assert (HEAD, count) == (table.headings, table.place.index)
            assert [person(0), person(1)] == cells_of(table)
            said = open_table(tmp_path / name, header_row=count + 2)
            assert (person(0), [person(1)]) == (said.headings, cells_of(said))

"""Sample files: no wrong value is sent without a warning, and readable values are sent."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from connector.errors import ConnectorError
from connector.settings import Settings
from connector.spreadsheet.table import open_table
from tests.spreadsheet.corpus.cases import HEAD, list_sample_files, people_rows, person_cells
from tests.spreadsheet.corpus.files import SampleFile, encode_csv, make_workbook
from tests.spreadsheet.corpus.judge import find_faults
from tests.spreadsheet.files.made import list_cells
from tests.tiers import first_fast

FILES = list_sample_files()


@pytest.mark.parametrize("file", first_fast(FILES, 40), ids=[each.name for each in FILES])
def test_each_cell_of_the_corpus_is_sent_as_a_user_reads_it(
    tmp_path: Path, file: SampleFile, preview_settings: Settings
) -> None:
    assert [] == find_faults(file, tmp_path, preview_settings)


@pytest.mark.parametrize("file", FILES, ids=[each.name for each in FILES])
def test_reading_a_table_again_gives_the_same_rows(tmp_path: Path, file: SampleFile) -> None:
    try:
        table = open_table(file.write(tmp_path))
    except ConnectorError:
        return
    rows = list(table.rows())
    reading = table.rows()
    begun = list(islice(reading, 1))
    assert rows == list(table.rows())
    assert rows == [*begun, *reading]


def test_title_lines_are_skipped_unless_the_user_sets_the_header_row(tmp_path: Path) -> None:
    for count in range(6):
        title = [(f"Note {n}",) for n in range(count)]
        for name, content in (
            ("a.csv", encode_csv([*title, HEAD, *people_rows(2)])),
            ("a.xlsx", make_workbook([*title, HEAD, *people_rows(2)])),
        ):
            (tmp_path / name).write_bytes(content)
            table = open_table(tmp_path / name)
            assert (HEAD, count) == (table.headings, table.heading_rows.index)
            assert [person_cells(0), person_cells(1)] == list_cells(table)
            chosen = open_table(tmp_path / name, header_row=count + 2)
            assert (person_cells(0), [person_cells(1)]) == (chosen.headings, list_cells(chosen))

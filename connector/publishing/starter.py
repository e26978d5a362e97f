"""Files that a user begins with in a folder of own models. A file that exists is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from connector.atomic_files import write_atomically
from connector.warehouse.duckdb_file import convert_errors, make_folder


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """Files in a folder that were written, and files that existed already and were kept."""

    folder: Path
    written: tuple[Path, ...]
    kept: tuple[Path, ...]


_MODEL = """\
-- model: own_open_jobs
-- grain: one row per consultant with an open job
-- Open jobs and their positions, by consultant.
--
-- The file's name is the table's name: this is own.own_open_jobs in the published file. Write one
-- query per file. ref('...') names a mart, a staging view, a seed or another file of this folder;
-- 'connector models list' shows them with their columns.

select
    consultant_id,
    any_value(consultant_name) as consultant_name,
    count(*) as open_jobs,
    sum(positions) as positions
from {{ ref('dim_jobs') }}
where is_open and consultant_id is not null
group by consultant_id
"""

_SCHEMA = """\
# Describe your models here. Descriptions become comments in the published file, and tests run at
# every build: a test that fails keeps the new file from analysts, unless its severity is warn.
# A text column that is not listed here is masked where personal data is dropped or hashed.
models:
  - name: own_open_jobs
    description: Open jobs and their positions, by consultant.
    columns:
      - name: consultant_id
        description: Identifies the consultant.
        data_tests: [unique, not_null]
      - name: consultant_name
        description: Name of the consultant, from the seed people.
      - name: open_jobs
        description: Number of open jobs.
      - name: positions
        description: Number of positions of these jobs.
        data_tests:
          - not_null: {config: {severity: warn}}
"""

_AUDIT = """\
-- audit: own_open_jobs_have_positions
-- Every consultant with open jobs has at least as many positions.
--
-- An audit is a query for the rows that are wrong. This one only warns; without the next line it
-- blocks the publication.
{{ config(severity='warn') }}

select consultant_id
from {{ ref('own_open_jobs') }}
where positions < open_jobs
"""

OWN_FILES: Mapping[str, str] = {
    "own_open_jobs.sql": _MODEL,
    "own_open_jobs_have_positions.sql": _AUDIT,
    "schema.yml": _SCHEMA,
}
"""A mart, an audit, and the file that describes and tests the mart."""


def write_own_models(folder: Path) -> WrittenFiles:
    """Write an example model with its test and audit. Raises `WarehouseError`."""
    return _write_missing_files(folder, OWN_FILES)


def _write_missing_files(folder: Path, files: Mapping[str, str]) -> WrittenFiles:
    """Write the files that do not exist in the folder yet."""
    written, kept = [], []
    for name, text in files.items():
        path = folder / name
        make_folder(path.parent)
        if path.exists():
            kept.append(path)
            continue
        _write_file(path, text)
        written.append(path)
    return WrittenFiles(folder, tuple(written), tuple(kept))


def _write_file(path: Path, text: str) -> None:
    """Write or replace a text file. Raises `WarehouseError`."""
    with convert_errors(path), write_atomically(path) as file:
        file.write(text.encode())

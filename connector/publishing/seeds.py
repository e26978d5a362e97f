"""Seeds: small tables in csv files that users edit.

A user's file may come from a spreadsheet program, so a byte order mark, semicolons and tabs are
accepted. Empty cells are null. If only the first cell of a row is filled, the user has to fill in
the others; models treat its value as unmapped.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from connector.atomic_files import write_atomically
from connector.errors import MartsMissing, ModelError, UnknownName, file_error
from connector.log import escape_control_characters
from connector.publishing.project import Project, Seed, convert_sql_errors, shipped_folder
from connector.warehouse.duckdb_file import make_folder, quoted
from connector.warehouse.published_file import open_read_only

DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class SeedRows:
    """Rows of a seed's file: line number and cells in the order of the declared columns."""

    delimiter: str
    rows: tuple[tuple[int, tuple[str | None, ...]], ...]


def read_seed_rows(seed: Seed) -> SeedRows:
    """Read a seed's file. Raises `ModelError` with the line but without a value."""
    try:
        text = seed.path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ModelError(
            "is not UTF-8",
            path=seed.path,
            line=line,
            action="Save it as csv in UTF-8.",
            code="seed_invalid",
        ) from None
    except OSError as error:
        raise ModelError(
            f"cannot be read: {error.strerror}", path=seed.path, code="seed_invalid"
        ) from None
    wanted = [each.name for each in seed.columns]
    delimiter = _find_delimiter(text, wanted, seed.path)
    return SeedRows(delimiter, tuple(_parse_rows(text, delimiter, len(wanted), seed.path)))


def _find_delimiter(text: str, wanted: Sequence[str], path: Path) -> str:
    """Return the delimiter that yields the wanted headings. Raises `ModelError`."""
    first = text.partition("\n")[0].rstrip("\r")
    for each in DELIMITERS:
        if next(csv.reader([first], delimiter=each), []) == list(wanted):
            return each
    raise ModelError(
        f"the headings must be {', '.join(wanted)}",
        path=path,
        line=1,
        action=f"Change the first line to {','.join(wanted)}",
        code="seed_invalid",
    )


def _parse_rows(
    text: str, delimiter: str, columns: int, path: Path
) -> Iterator[tuple[int, tuple[str | None, ...]]]:
    """Yield line number and cells of each row after the headings; empty cells are None."""
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if reader.line_num == 1 or not any(cells):
                continue
            if len(cells) != columns:
                problem = f"the row has {len(cells)} cells instead of {columns}"
                raise ModelError(problem, path=path, line=reader.line_num, code="seed_invalid")
            yield reader.line_num, tuple(cell or None for cell in cells)
    except csv.Error as error:
        raise ModelError(
            f"cannot be read: {error}", path=path, line=reader.line_num, code="seed_invalid"
        ) from None


def create_seed_table(connection: duckdb.DuckDBPyConnection, seed: Seed) -> int:
    """Replace the seed's table in the caller's transaction; return its number of rows."""
    rows = read_seed_rows(seed).rows
    texts = ", ".join(
        f"cells ->> {place} AS {quoted(each.name)}" for place, each in enumerate(seed.columns, 1)
    )
    # As one text: with a list as a parameter, DuckDB would import unneeded libraries.
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE seed_cells AS SELECT CAST(cells ->> 0 AS BIGINT) AS line, "
        f"{texts} FROM (SELECT unnest(CAST(? AS JSON[])) AS cells)",
        [json.dumps([[line, *cells] for line, cells in rows])],
    )
    for each in seed.columns:
        name, type = quoted(each.name), str(each.type)
        found = connection.execute(
            f"SELECT min(line) FROM seed_cells WHERE {name} IS NOT NULL "
            f"AND TRY_CAST({name} AS {type}) IS NULL"
        ).fetchone()
        if found is not None and found[0] is not None:
            problem = f"the cell of {each.name} is not of the type {type.lower()}"
            raise ModelError(problem, path=seed.path, line=int(found[0]), code="seed_invalid")
    read = ", ".join(
        f"CAST({quoted(c.name)} AS {c.type}) AS {quoted(c.name)}" for c in seed.columns
    )
    connection.execute(
        f"CREATE OR REPLACE TABLE {seed.table} AS SELECT {read} FROM seed_cells ORDER BY line"
    )
    connection.execute("DROP TABLE seed_cells")
    return len(rows)


# -- Unmapped values -------------------------------------------------------------------------------
# Values in the data that no row of a seed maps, and copies of the seeds to map them.
#
# An audit for each mapping seed finds these values. Here they become rows to be filled in. A user's
# file is only appended to.


AUDITS: Mapping[str, str] = {
    "people": "unmapped_people",
    "lead_statuses": "unmapped_lead_statuses",
    "source_groups": "unmapped_sources",
    "exchange_rates": "unmapped_currencies",
}
"""Audit that finds the unmapped values of each seed, in the first column of its rows."""

# A spreadsheet program would run these as the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def maps_any_value(seed: Seed) -> bool:
    """Return True if a user's file maps a value that the shipped one does not have."""
    if not seed.is_users:
        return False
    shipped = shipped_folder() / "seeds" / seed.path.name
    known = set()
    if shipped.exists():
        known = {cells for _, cells in read_seed_rows(replace(seed, path=shipped)).rows}
    rows = (cells for _, cells in read_seed_rows(seed).rows)
    return any(cells not in known and any(cells[1:]) for cells in rows)


@dataclass(frozen=True, slots=True)
class UnmappedValues:
    """Values in the data that no row of a seed maps."""

    seed: Seed
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeedCopy:
    """User's copy of a seed. Values that a program might execute are `left_out`."""

    path: Path
    is_new: bool
    appended: tuple[str, ...]
    left_out: tuple[str, ...]


def find_unmapped(file: Path, project: Project) -> tuple[UnmappedValues, ...]:
    """Return the unmapped values of each seed. Raises `MartsMissing`, `WarehouseError`."""
    audits = {each.name: each for each in project.audits}
    found = []
    with open_read_only(file) as connection:
        if not connection.execute("FROM duckdb_tables() WHERE schema_name = 'marts'").fetchone():
            raise MartsMissing(f"{file} has no marts, which list the missing values")
        for name, audit_name in AUDITS.items():
            if name in project.seeds and audit_name in audits:
                audit = audits[audit_name]
                with convert_sql_errors(audit.path, f"{audit_name} cannot be run"):
                    rows = connection.execute(audit.query.sql).fetchall()
                values = sorted({str(row[0]) for row in rows if row[0] is not None})
                found.append(UnmappedValues(project.seeds[name], tuple(values)))
    return tuple(found)


def write_seed_copies(
    folder: Path, found: Collection[UnmappedValues], project: Project, names: Collection[str] = ()
) -> tuple[SeedCopy, ...]:
    """Copy seeds to the user's folder, and append unmapped values for the user to fill in.

    Without `names`, only seeds with unmapped values are copied. Rows of an existing file are kept.
    Raises `UnknownName`, `ModelError` and `WarehouseError`.
    """
    missing = {each.seed.name: each.values for each in found}
    for name in names:
        if name not in project.seeds:
            raise UnknownName("seed", name, project.seeds)
    names = names or [name for name, values in missing.items() if values]
    make_folder(folder)
    return tuple(
        _write_copy(folder, project.seeds[n], missing.get(n, ())) for n in sorted(set(names))
    )


def _write_copy(folder: Path, seed: Seed, missing: Collection[str]) -> SeedCopy:
    """Copy one seed, or append to the existing copy, the values that no row has yet."""
    path = folder / f"{seed.name}.csv"
    is_new = not path.exists()
    read = read_seed_rows(seed)
    # Rows that wait to be filled in need not be written twice.
    named = {cells[0] for _, cells in read.rows}
    left_out = tuple(
        v for v in missing if v.startswith(_FORMULA) or v != escape_control_characters(v)
    )
    appended = tuple(value for value in missing if value not in named and value not in left_out)
    try:
        content = seed.path.read_bytes()
        if appended or is_new:
            # Atomically, because the user's work must not be lost.
            with write_atomically(path) as file:
                file.write(content + _new_rows(content, seed, appended, read.delimiter))
    except OSError as error:
        raise file_error(path, error) from error
    return SeedCopy(path, is_new, appended, left_out)


def _new_rows(content: bytes, seed: Seed, values: Collection[str], delimiter: str) -> bytes:
    """Return the bytes to append: a row for each value, in the format of the file."""
    end = "\r\n" if b"\r\n" in content else "\n"
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    for value in values:
        writer.writerow([value, *("" for _ in seed.columns[1:])])
    begun = "" if not values or content.endswith(b"\n") else end
    return f"{begun}{text.getvalue()}".encode()

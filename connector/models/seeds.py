"""Seeds: small tables in csv files that users edit.

A user's file may come from a spreadsheet program, so a byte order mark, semicolons and tabs are
accepted. Empty cells are null. If only the first cell of a row is filled, the user has to fill in
the others; models treat its value as unmapped.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import duckdb

from connector.atomic_files import write_atomically
from connector.errors import ModelError, UnknownName, convert_file_errors
from connector.models.project import Project, TableEntry, sql_errors
from connector.spreadsheet.texts import is_hazard
from connector.warehouse.file import make_folder, quoted

Row = tuple[str | None, ...]

# -- Reading ---------------------------------------------------------------------------------------


def read_rows(path: Path, columns: Sequence[str]) -> tuple[str, list[tuple[int, Row]]]:
    """Return the delimiter of a seed file, and its rows with line numbers; empty cells are None.

    Raises `ModelError` with the line, but without a value, and `WarehouseError`.
    """
    with convert_file_errors(path):
        content = path.read_bytes()
    try:
        lines = content.decode("utf-8-sig").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _invalid(path, line, "is not UTF-8", "Save it as csv in UTF-8.") from None
    first = "".join(lines[:1]).strip().replace('"', "")
    delimiter = next((each for each in ",;\t" if first.split(each) == [*columns]), None)
    if delimiter is None:
        action = f"Change the first line to {','.join(columns)}"
        raise _invalid(path, 1, f"the headings must be {', '.join(columns)}", action)
    reader, rows = csv.reader(lines, delimiter=delimiter, strict=True), []
    try:
        for cells in reader:
            if any(cells) and len(cells) != len(columns):
                problem = f"the row has {len(cells)} cells instead of {len(columns)}"
                raise _invalid(path, reader.line_num, problem)
            if any(cells):
                rows.append((reader.line_num, tuple(cell or None for cell in cells)))
    except csv.Error as error:
        raise _invalid(path, reader.line_num, f"cannot be read: {error}") from None
    return delimiter, rows[1:]


def _invalid(path: Path, line: int, problem: str, action: str | None = None) -> ModelError:
    return ModelError(problem, path=path, line=line, code="seed_invalid", action=action)


def create_seed_table(
    connection: duckdb.DuckDBPyConnection, table: str, path: Path, entry: TableEntry
) -> None:
    """Replace the table of a seed. Raises `ModelError` with the line."""
    types = entry.types
    _, rows = read_rows(path, [*types])
    _check_key(path, rows, entry)
    texts = ", ".join(f"cells ->> {n} AS {quoted(name)}" for n, name in enumerate(types, 1))
    # As one text: with a list as a parameter, DuckDB would import unneeded libraries.
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE seed_cells AS SELECT CAST(cells ->> 0 AS BIGINT) AS line, "
        f"{texts} FROM (SELECT unnest(CAST(? AS JSON[])) AS cells)",
        [json.dumps([[line, *cells] for line, cells in rows])],
    )
    for name, type in types.items():
        ((line,),) = connection.execute(
            f"SELECT min(line) FROM seed_cells WHERE {quoted(name)} IS NOT NULL "
            f"AND TRY_CAST({quoted(name)} AS {type}) IS NULL"
        ).fetchall()
        if line is not None:
            raise _invalid(path, line, f"the cell of {name} is not of the type {type.lower()}")
    cells = ", ".join(f"CAST({quoted(n)} AS {t}) AS {quoted(n)}" for n, t in types.items())
    connection.execute(
        f"CREATE OR REPLACE TABLE {table} AS SELECT {cells} FROM seed_cells ORDER BY line; "
        "DROP TABLE seed_cells"
    )


def _check_key(path: Path, rows: Sequence[tuple[int, Row]], entry: TableEntry) -> None:
    """Raise `ModelError` for two rows with the same key, and for two spellings of one value.

    Spellings differ in spaces, capitals or composed characters. The key of a month is the month,
    whatever its day.
    """
    key: Sequence[str] = entry.config.meta.get("key", ())
    spellings: dict[tuple[str, str], tuple[str, int]] = {}
    lines: dict[Row, int] = {}
    for line, cells in rows if key else ():
        by_name, values = dict(zip(entry.types, cells, strict=True)), []
        for name in key:
            given = by_name[name] or ""
            same = " ".join(unicodedata.normalize("NFC", given).split())
            same = same if name.endswith("id") else same.casefold()
            spelling, first = spellings.setdefault((name, same), (given, line))
            if spelling != given:
                problem = f"{name} is spelled differently in line {first}"
                action = "Use the same spelling in both lines: check spaces and capitals."
                raise _invalid(path, line, problem, action)
            values.append(same[:7] if name == "month" else same)
        if (first := lines.setdefault(tuple(values), line)) != line:
            problem = f"line {first} already has this {', '.join(key)}"
            raise _invalid(path, line, problem, "Keep one of the two lines.")


# -- Unmapped values -------------------------------------------------------------------------------
# An audit finds values in the data that no row of a seed maps. They become rows to be filled in.

AUDIT = "seeds_are_complete"
"""Audit whose rows are the unmapped values: the seed, the value, and its id if it is one."""


def find_unmapped(
    connection: duckdb.DuckDBPyConnection, project: Project
) -> dict[str, tuple[str, ...]]:
    """Return the unmapped values of each seed in a built file, which has marts."""
    audit = next(each for each in project.checks if each.name == AUDIT)
    with sql_errors(audit.path, f"{audit.name} cannot be run"):
        found = connection.execute(
            f"SELECT seed, list(value::VARCHAR ORDER BY value) FROM ({audit.sql}\n) "
            "GROUP BY seed ORDER BY seed"
        )
        return {seed: tuple(values) for seed, values in found.fetchall()}


def write_seed_copies(
    folder: Path,
    missing: Mapping[str, Collection[str]],
    project: Project,
    names: Collection[str] = (),
) -> dict[Path, list[str]]:
    """Copy seeds to the user's folder, with rows to fill in, and return their values by file.

    Existing rows are kept. Values that a spreadsheet program could run as a formula are left out.

    Args:
        folder: Folder of the user's seeds.
        missing: Missing values of each seed.
        project: Project with the seeds.
        names: Seeds to copy. Default: the seeds with missing values.

    Raises:
        UnknownName: There is no such seed.
        ModelError: A seed file is invalid.
        WarehouseError: A file cannot be written.
    """
    seeds = {name: node for name, node in project.nodes.items() if node.kind == "seed"}
    written: dict[Path, list[str]] = {}
    make_folder(folder)
    for name in sorted({*names} or missing):
        if name not in seeds:
            raise UnknownName("seed", name, seeds)
        source, path = seeds[name].path, folder / f"{name}.csv"
        delimiter, rows = read_rows(source, [*seeds[name].entry.types])
        # Rows that wait to be filled in are not written twice.
        known, text = {row[0] for _, row in rows}, io.StringIO()
        new = [v for v in missing.get(name, ()) if v not in known and not is_hazard(v)]
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        writer.writerows([value, *[""] * (len(seeds[name].entry.types) - 1)] for value in new)
        # Atomically, because the user's work must not be lost.
        with convert_file_errors(path), write_atomically(path) as file:
            content = source.read_bytes()
            file.write(content if content.endswith(b"\n") or not new else content + b"\n")
            file.write(text.getvalue().encode())
        written[path] = new
    return written

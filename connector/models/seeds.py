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
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import duckdb

from connector.atomic_files import write_atomically
from connector.errors import ModelError, UnknownName, WarehouseError, convert_file_errors
from connector.log import escape_control_characters
from connector.models.project import Node, Project, TableEntry, sql_errors
from connector.warehouse.file import make_folder, quoted

Row = tuple[str | None, ...]
"""Cells of a row, in the order of the declared columns; None for an empty cell."""

# -- Reading ---------------------------------------------------------------------------------------


def read_rows(path: Path, columns: Sequence[str]) -> tuple[str, list[tuple[int, Row]]]:
    """Return the delimiter of a seed file, and its rows with their line numbers.

    Raises `ModelError` with the line, but without a value.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _invalid(path, line, "is not UTF-8", "Save it as csv in UTF-8.") from None
    except OSError as error:
        raise _invalid(path, None, f"cannot be read: {error.strerror}") from None
    first = text.partition("\n")[0].rstrip("\r")
    for delimiter in (",", ";", "\t"):
        if first.replace('"', "").split(delimiter) == [*columns]:
            return delimiter, [*_parse_rows(text, delimiter, len(columns), path)]
    action = f"Change the first line to {','.join(columns)}"
    raise _invalid(path, 1, f"the headings must be {', '.join(columns)}", action)


def _parse_rows(text: str, delimiter: str, width: int, path: Path) -> Iterator[tuple[int, Row]]:
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if reader.line_num == 1 or not any(cells):
                continue
            if len(cells) != width:
                problem = f"the row has {len(cells)} cells instead of {width}"
                raise _invalid(path, reader.line_num, problem)
            yield reader.line_num, tuple(cell or None for cell in cells)
    except csv.Error as error:
        raise _invalid(path, reader.line_num, f"cannot be read: {error}") from None


def _invalid(path: Path, line: int | None, problem: str, action: str | None = None) -> ModelError:
    return ModelError(problem, path=path, line=line, code="seed_invalid", action=action)


def create_seed_table(
    connection: duckdb.DuckDBPyConnection, table: str, path: Path, entry: TableEntry
) -> None:
    """Replace a seed's table in the caller's transaction. Raises `ModelError` with the line."""
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
    wanted = entry.config.meta.get("key", ())
    spellings: dict[tuple[str, str], tuple[str | None, int]] = {}
    lines: dict[Row, int] = {}
    for line, cells in rows if wanted else ():
        by_name = dict(zip(entry.types, cells, strict=True))
        key = []
        for name in wanted:
            same = " ".join(unicodedata.normalize("NFC", by_name[name] or "").split())
            same = same if name.endswith("id") else same.casefold()
            spelling, first = spellings.setdefault((name, same), (by_name[name], line))
            if spelling != by_name[name]:
                problem = f"{name} is spelled differently in line {first}"
                action = "Use the same spelling in both lines: check spaces and capitals."
                raise _invalid(path, line, problem, action)
            key.append(same[:7] if name == "month" else same)
        if (first := lines.setdefault(tuple(key), line)) != line:
            problem = f"line {first} already has this {', '.join(wanted)}"
            raise _invalid(path, line, problem, "Keep one of the two lines.")


# -- Unmapped values -------------------------------------------------------------------------------
# An audit finds values in the data that no row of a seed maps. Here they become rows to be filled
# in. A user's file is only appended to.

AUDIT = "seeds_are_complete"
"""Audit whose rows are the unmapped values: the seed, the value, and its id if it is one."""


def find_unmapped(
    connection: duckdb.DuckDBPyConnection, project: Project
) -> dict[str, tuple[str, ...]]:
    """Return the unmapped values of each seed in a built file. Raises `WarehouseError`."""
    if not connection.execute("FROM duckdb_tables() WHERE schema_name = 'marts'").fetchone():
        raise WarehouseError(
            "the published file has no marts, which list the missing values", code="marts_missing"
        )
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
    """Copy seeds to the user's folder, and append missing values for the user to fill in.

    Existing rows are kept. Values that a spreadsheet program could run as a formula are left out.

    Args:
        folder: Folder of the user's seeds.
        missing: Missing values of each seed.
        project: Project with the seeds.
        names: Seeds to copy. Default: the seeds with missing values.

    Returns:
        The appended values of each file.

    Raises:
        UnknownName: There is no such seed.
        ModelError: A seed file is invalid.
        WarehouseError: A file cannot be written.
    """
    seeds = {name: node for name, node in project.nodes.items() if node.kind == "seed"}
    for name in names:
        if name not in seeds:
            raise UnknownName("seed", name, seeds)
    make_folder(folder)
    written = {}
    for name in sorted({*names} or missing):
        path = folder / f"{name}.csv"
        written[path] = _write_copy(path, seeds[name], missing.get(name, ()))
    return written


def _write_copy(path: Path, seed: Node, missing: Collection[str]) -> list[str]:
    """Write the seed with rows for the missing values, and return the new ones."""
    columns = [*seed.entry.named]
    delimiter, rows = read_rows(seed.path, columns)
    # Rows that wait to be filled in are not written twice.
    known = {row[0] for _, row in rows}
    appended = [v for v in missing if v not in known and not _is_unsafe(v)]
    with convert_file_errors(path):
        content = seed.path.read_bytes()
        end = "\r\n" if b"\r\n" in content else "\n"
        text = io.StringIO()
        if appended and not content.endswith(b"\n"):
            text.write(end)
        writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
        writer.writerows([value, *("" for _ in columns[1:])] for value in appended)
        # Atomically, because the user's work must not be lost.
        with write_atomically(path) as file:
            file.write(content + text.getvalue().encode())
    return appended


def _is_unsafe(value: str) -> bool:
    return value.startswith(("=", "+", "-", "@")) or value != escape_control_characters(value)

"""Exports of the published file: relations of DuckDB, Parquet files, and an Excel workbook."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.fs
from openpyxl.utils import get_column_letter

from connector.atomic_files import write_atomically
from connector.errors import CHOOSE_PATH, Misused, UnknownName, WarehouseError
from connector.settings import load_settings
from connector.spreadsheet.workbook_writer import BOLD, make_cell
from connector.spreadsheet.workbooks import create_workbook, is_too_long, write_by_number
from connector.warehouse.file import convert_errors, literal, open_read_only, quoted
from connector.warehouse.user_query import list_tables, require_published, tables_in, to_arrow
from connector.warehouse.warehouse import Warehouse

# -- Queries ---------------------------------------------------------------------------------------


def read(table: str, *, account: str | None = None) -> duckdb.DuckDBPyRelation:
    """Return a table of the published file as a relation of DuckDB.

    `read(...).df()` is a pandas frame, `.to_arrow_table()` an Arrow table, `.pl()` a polars frame
    and `.fetchall()` a list of tuples. Times are in UTC.

    Args:
        table: Name of the table as `SCHEMA.TABLE`.
        account: Name of the account. Settings are read from the environment and the project file.

    Raises:
        UnknownName: There is no such table. The message has the nearest name.
        WarehouseError: There is no published file.
        SettingsError: A setting is invalid.
    """
    known = list_tables(_find_published_file(account))
    if table not in known:
        raise UnknownName("table of the published file", table, known)
    return sql(f"SELECT * FROM {quoted(table)}", account=account)


def sql(query: str, *, account: str | None = None) -> duckdb.DuckDBPyRelation:
    """Return the result of a query of the published file, as `read` does.

    Raises the errors of `read`, and `Misused` with DuckDB's message if it refuses the query.
    """
    # The rows are read whole: a notebook that stays open keeps no old file on the disk.
    rows = to_arrow(_find_published_file(account), query)
    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    return connection.from_arrow(rows)


def _find_published_file(account: str | None) -> Path:
    settings = load_settings({"account": account})
    return require_published(Warehouse(settings.folder).published)


# -- Parquet ---------------------------------------------------------------------------------------

MANIFEST = "publication.json"
"""File that identifies the folder of an export; it lists the tables."""


def export(file: Path, target: str, schemas: Sequence[str] = ()) -> tuple[str, ...]:
    """Write the tables and views of the schemas (default: all) as Parquet; return their names.

    They become `TARGET/SCHEMA/TABLE.parquet` and replace an earlier export. A folder is replaced as
    a whole; in `s3://BUCKET/PREFIX`, one object after the other, and the manifest last.

    Raises `UnknownName` for an unknown schema, `Misused` for a folder that no export created, and
    `WarehouseError`.
    """
    found = list_tables(require_published(file))
    known = tuple(dict.fromkeys(each.partition(".")[0] for each in found))
    for schema in schemas:
        if schema not in known:
            raise UnknownName("schema of the published file", schema, known)
    wanted = tuple(each for each in found if each.partition(".")[0] in (schemas or known))
    if target.startswith("s3://"):
        with tempfile.TemporaryDirectory() as made:
            _write_tables(file, Path(made), wanted)
            _upload(Path(made), target)
        return wanted
    folder = Path(target)
    with convert_errors(folder, CHOOSE_PATH):
        is_ours = (folder / MANIFEST).is_file() or (folder.is_dir() and not any(folder.iterdir()))
        if os.path.lexists(folder) and (folder.is_symlink() or not is_ours):
            message = f"{folder} already exists and was not created by an export"
            raise Misused(message, action="Choose another folder with --parquet.")
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Only the owner can use the temporary folder.
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as made:
            draft = Path(made) / "new"
            draft.mkdir(mode=0o700)
            _write_tables(file, draft, wanted)
            if folder.exists():
                folder.rename(Path(made) / "old")
            draft.rename(folder)
    return wanted


def _write_tables(file: Path, folder: Path, tables: Sequence[str]) -> None:
    """Write the tables and the manifest, readable only by the owner."""
    # Names of tables have only a-z, 0-9 and underscores.
    paths = {table: f"{table.replace('.', '/')}.parquet" for table in tables}
    for schema in {table.partition(".")[0] for table in tables}:
        (folder / schema).mkdir(mode=0o700)
    with open_read_only(file) as connection:
        for table, path in paths.items():
            target = f"{literal(str(folder / path))} (FORMAT parquet, COMPRESSION zstd)"
            connection.execute(f"COPY (SELECT * FROM {quoted(table)}) TO {target}")
    (folder / MANIFEST).write_text(json.dumps({"tables": paths}, indent=2), "utf-8")
    for path in (MANIFEST, *paths.values()):
        (folder / path).chmod(0o600)


def _upload(folder: Path, target: str) -> None:
    """Copy an export to object storage, and delete the tables of an earlier one that are not in it.

    The access key and the address are those of the AWS variables of the environment.
    """
    new = json.loads((folder / MANIFEST).read_bytes())["tables"].values()
    try:
        store, path = pyarrow.fs.FileSystem.from_uri(target)
        earlier, old = store.get_file_info(f"{path}/{MANIFEST}"), set[str]()
        if earlier.type is pyarrow.fs.FileType.File:
            old.update(json.loads(store.open_input_stream(earlier.path).read())["tables"].values())
        for name in (*new, MANIFEST):
            with store.open_output_stream(f"{path}/{name}") as written:
                written.write((folder / name).read_bytes())
        for name in old.difference(new):
            store.delete_file(f"{path}/{name}")
    except (OSError, pa.ArrowException) as error:
        message = f"the export to {target} failed: {' '.join(str(error).split())}"
        action = "Check the address, the network and the key."
        raise WarehouseError(message, action=action) from None


# -- Workbook --------------------------------------------------------------------------------------

ROWS_MAX = 1_048_575
"""Maximum number of rows of a sheet, without the headings."""

_KEPT_TYPES = r"BOOLEAN|[A-Z]*INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*|DATE|TIME"
"""Types of which cells have the value; cells of other types have its text."""


def write_workbook(file: Path, path: Path, tables: Sequence[str]) -> dict[str, int]:
    """Write tables (`schema.table`) of the published file to a workbook, one sheet each.

    Return the number of rows by sheet. An earlier workbook is replaced. Raises `Misused` for a
    table with too many rows, `UnknownName` and `WarehouseError`.
    """
    sheets: dict[str, str] = {}
    with open_read_only(require_published(file)) as connection:
        known = tables_in(connection)
        for table in dict.fromkeys(tables):
            if table not in known:
                raise UnknownName("table of the published file", table, known)
            # A sheet's name has at most 31 characters, and Excel refuses the name History.
            name = table.partition(".")[2][:31]
            is_used = name in (*sheets, "history")
            sheets[f"{name[:26]} ({len(sheets) + 1})" if is_used else name] = table
        with (
            convert_errors(path, CHOOSE_PATH),
            write_atomically(path) as written,
            create_workbook(written) as book,
        ):
            return {
                name: _write_sheet(connection, book.create_sheet(name), table)
                for name, table in sheets.items()
            }


def _write_sheet(connection: duckdb.DuckDBPyConnection, page: Any, table: str) -> int:
    """Write a sheet with frozen headings and a filter, and return its number of rows."""
    ((count,),) = connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchall()
    if count > ROWS_MAX:
        raise Misused(
            f"{table} has {count:,} rows, and a sheet has at most {ROWS_MAX:,}",
            action="Export the table with --parquet, or make a model with fewer rows.",
        )
    headings, shown = [], []
    described = connection.execute(f"DESCRIBE SELECT * FROM {quoted(table)}").fetchall()
    for number, (name, type, *_) in enumerate(described, 1):
        headings.append(make_cell(page, name, font=BOLD))
        page.column_dimensions[get_column_letter(number)].width = max(14, len(name) + 4)
        target = "TIMESTAMP" if type.startswith("TIMESTAMP") else "VARCHAR"
        is_kept = re.fullmatch(_KEPT_TYPES, type)
        shown.append(quoted(name) if is_kept else f"CAST({quoted(name)} AS {target})")
    page.freeze_panes = "A2"
    page.auto_filter.ref = f"A1:{get_column_letter(len(headings))}{count + 1}"
    page.append(headings)
    rows = connection.execute(f"SELECT {', '.join(shown)} FROM {quoted(table)}")
    while batch := rows.fetchmany(2_000):
        for row in batch:
            page.append([_cell(page, value) for value in row])
    return int(count)


def _cell(page: Any, value: Any) -> object:
    """Return a cell with the value, or with its text if Excel would change the value.

    A text that is too long for a cell is shortened and ends with its length.
    """
    match value:
        case None | time():
            return value
        case float() if math.isfinite(value):
            return value
        # Excel keeps 15 digits of a number.
        case int() | Decimal() if len(Decimal(value).as_tuple().digits) <= 15:
            return value
        # Excel counts 29 February 1900, which did not exist.
        case date() if value.year > 1900:
            return value
    text = str(value)
    if is_too_long(write_by_number(text)):
        # So few that they fit into the cell even if all of them are written by number.
        text = f"{text[:4_000]} [shortened: {len(text):,} characters]"
    # Other texts need no cell of their own, which takes twice as long.
    is_special = text.startswith(("=", "+", "-", "@", "#", "\t", "\r"))
    return make_cell(page, text) if is_special else write_by_number(text)

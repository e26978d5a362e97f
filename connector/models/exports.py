"""Exports of the published file: relations of DuckDB, Parquet files, and an Excel workbook."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.fs
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter

from connector.atomic_files import sync_folder, write_atomically
from connector.errors import CHOOSE_PATH, Misused, UnknownName, WarehouseError
from connector.settings import load_settings
from connector.spreadsheet.workbooks import create_workbook, is_too_long, write_by_number
from connector.warehouse.file import convert_errors, literal, open_read_only, quoted
from connector.warehouse.user_query import list_tables, require_published, tables_in, to_arrow
from connector.warehouse.warehouse import Warehouse

# -- Queries ---------------------------------------------------------------------------------------
# The result is read whole and the file is closed before the relation is returned, so that no
# notebook that stays open keeps an old file on the disk.


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
    file = _find_published_file(account)
    if table not in (known := list_tables(file)):
        raise UnknownName("table of the published file", table, known)
    return _to_relation(to_arrow(file, f"SELECT * FROM {quoted(table)}"))


def sql(query: str, *, account: str | None = None) -> duckdb.DuckDBPyRelation:
    """Return the result of a query of the published file, as `read` does.

    Raises the errors of `read`, and `Misused` with DuckDB's message if it refuses the query.
    """
    return _to_relation(to_arrow(_find_published_file(account), query))


def _to_relation(rows: pa.Table) -> duckdb.DuckDBPyRelation:
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
            sync_folder(folder.parent)
    return wanted


def _write_tables(file: Path, folder: Path, tables: Sequence[str]) -> None:
    """Write the tables and the manifest, readable only by the owner and synced to the disk."""
    # Names of tables have only a-z, 0-9 and underscores.
    paths = {table: f"{table.replace('.', '/')}.parquet" for table in tables}
    targets = {table: folder / path for table, path in paths.items()}
    for each in {target.parent for target in targets.values()}:
        each.mkdir(mode=0o700)
    with open_read_only(file) as connection:
        for table, path in targets.items():
            rows = f"(SELECT * FROM {quoted(table)})"
            to = f"{literal(str(path))} (FORMAT parquet, COMPRESSION zstd)"
            connection.execute(f"COPY {rows} TO {to}")
    manifest = json.dumps({"tables": paths}, indent=2)
    (folder / MANIFEST).write_text(manifest + "\n", encoding="utf-8")
    for path in (folder / MANIFEST, *targets.values()):
        path.chmod(0o600)
        with path.open("rb") as written:
            os.fsync(written.fileno())


def _upload(folder: Path, target: str) -> None:
    """Copy an export to object storage, and delete the tables of an earlier one that are not in it.

    The access key and the address are those of the AWS variables of the environment.
    """
    try:
        store, path = pyarrow.fs.FileSystem.from_uri(target)
        earlier = store.get_file_info(f"{path}/{MANIFEST}")
        old: dict[str, str] = {}
        if earlier.type is pyarrow.fs.FileType.File:
            with store.open_input_stream(earlier.path) as stream:
                old = json.loads(stream.read())["tables"]
        new = sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*.parquet"))
        for name in (*new, MANIFEST):
            with store.open_output_stream(f"{path}/{name}") as written:
                written.write((folder / name).read_bytes())
        for name in {*old.values()}.difference(new):
            store.delete_file(f"{path}/{name}")
    except (OSError, pa.ArrowException) as error:
        message = f"the export to {target} failed: {' '.join(str(error).split())}"
        action = "Check the address, the network and the key."
        raise WarehouseError(message, action=action) from None


# -- Workbook --------------------------------------------------------------------------------------

ROWS_MAX = 1_048_575
"""Maximum number of rows of a sheet, without the headings."""

_DIGITS_MAX = 15
"""Digits that Excel keeps of a number. A longer number is written as text."""

_FIRST_DAY = date(1900, 3, 1)
"""Excel counts 29 February 1900, which did not exist. Earlier dates are written as text."""

_SHORTENED = 4_000
"""Characters that stay of a text that is too long for a cell, whatever has to be escaped."""

_AS_THEY_ARE = re.compile(
    r"BOOLEAN|U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|DOUBLE|FLOAT|DECIMAL.*|DATE|TIME"
)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Written sheet of a workbook: its table as `schema.table`, its name, and its rows."""

    table: str
    name: str
    rows: int


def write_workbook(file: Path, path: Path, tables: Sequence[str]) -> tuple[Sheet, ...]:
    """Write tables (`schema.table`) of the published file to a workbook, one sheet each.

    An earlier workbook is replaced. Raises `Misused` for a table with too many rows, `UnknownName`
    and `WarehouseError`.
    """
    sheets: list[Sheet] = []
    with open_read_only(require_published(file)) as connection:
        known = tables_in(connection)
        for table in dict.fromkeys(tables):
            if table not in known:
                raise UnknownName("table of the published file", table, known)
            ((rows,),) = connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchall()
            if rows > ROWS_MAX:
                raise Misused(
                    f"{table} has {rows:,} rows, and a sheet has at most {ROWS_MAX:,}",
                    action="Export the table with --parquet, or make a model with fewer rows.",
                )
            # A sheet's name has at most 31 characters, and Excel refuses the name History.
            name, used = table.partition(".")[2][:31], {"history", *(s.name for s in sheets)}
            name = f"{name[:26]} ({len(sheets) + 1})" if name in used else name
            sheets.append(Sheet(table, name, rows))
        with (
            convert_errors(path, CHOOSE_PATH),
            write_atomically(path) as written,
            create_workbook(written) as book,
        ):
            for each in sheets:
                _write_sheet(connection, book.create_sheet(each.name), each)
    return tuple(sheets)


def _write_sheet(connection: duckdb.DuckDBPyConnection, page: Any, sheet: Sheet) -> None:
    """Write a sheet with frozen headings and a filter. Its columns are as wide as the headings."""
    source = quoted(sheet.table)
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    shown = ", ".join(_column_expression(name, type) for name, type, *_ in described)
    headings = []
    for number, (name, *_) in enumerate(described, 1):
        heading = WriteOnlyCell(page, write_by_number(name))
        heading.font = Font(bold=True)
        headings.append(heading)
        page.column_dimensions[get_column_letter(number)].width = max(14, len(name) + 4)
    page.freeze_panes = "A2"
    page.auto_filter.ref = f"A1:{get_column_letter(len(headings))}{sheet.rows + 1}"
    page.append(headings)
    rows = connection.execute(f"SELECT {shown} FROM {source} LIMIT {ROWS_MAX}")
    while batch := rows.fetchmany(2_000):
        for row in batch:
            page.append([_cell(page, value) for value in row])


def _column_expression(name: str, type: str) -> str:
    """Return the SQL for a column: numbers, dates and times unchanged, other types as text."""
    column = quoted(name)
    if type.startswith("TIMESTAMP"):
        return f"CAST({column} AS TIMESTAMP)"
    return column if _AS_THEY_ARE.fullmatch(type) else f"CAST({column} AS VARCHAR)"


def _is_exact(value: object) -> bool:
    """Return True if Excel keeps the value: its digits, and dates from March 1900."""
    match value:
        case float():
            return math.isfinite(value)
        case int() | Decimal():
            return len(Decimal(value).as_tuple().digits) <= _DIGITS_MAX
        case datetime():
            return value.date() >= _FIRST_DAY
        case date():
            return value >= _FIRST_DAY
    return value is None or isinstance(value, time)


def _cell(page: Any, value: Any) -> object:
    """Return a cell with the value, or with its text if Excel would change the value.

    A text that is too long for a cell is shortened and ends with its length.
    """
    if _is_exact(value):
        return value
    text = str(value)
    escaped = write_by_number(text)
    if is_too_long(escaped):
        ending = f" [shortened: {len(text):,} characters]"
        escaped = write_by_number(text[:_SHORTENED]) + ending
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return escaped
    # A text that Excel would run as a formula when the cell is edited.
    cell = WriteOnlyCell(page, "")
    cell.value, cell.data_type, cell.quotePrefix = escaped, "s", True
    return cell

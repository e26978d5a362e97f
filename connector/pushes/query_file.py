"""Push from a query: writes its result as a csv, which is then pushed like any other file.

The query reads the published file and nothing else. A Parquet file can take its place.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from connector.errors import Misused, NothingPublished
from connector.publishing.pseudonymize import TOKEN_CHARACTERS
from connector.pushes.dry_run import PushFile, target_of
from connector.pushes.options import PushOptions
from connector.settings.layers import PUSHES_FOLDER
from connector.settings.model import Settings
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.report import new_table, write_rows
from connector.spreadsheet.target_columns import comparison_text
from connector.warehouse.duckdb_file import literal, make_folder
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.published_file import restricted
from connector.warehouse.runs import published_in
from connector.warehouse.warehouse import Warehouse

CLEARED = r"\N"
"""Text that empties a field in a file with cleared nulls, as in PostgreSQL's COPY."""

_FILE_OPTIONS = (
    *("sheet", "header_row", "encoding", "delimiter"),
    *("date_format", "century", "decimal"),
)
"""Options that say how a file is written. The values of a query have types instead."""

_BATCH_ROWS = 10_000
_OF_VALUES = ("Conversion", "Invalid Input", "Out of Range")
_DAY_SECONDS = 86_400
_TEXT_OR_WHOLE = r"VARCHAR|UUID|JSON|ENUM\([^\[]*\)|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?"
_CELL_TYPE = re.compile(
    rf'{_TEXT_OR_WHOLE}|"NULL"|BOOLEAN|DATE|FLOAT|DOUBLE|DECIMAL\(.*\)|TIMESTAMP.*'
).fullmatch
_LIST_TYPE = re.compile(rf"({_TEXT_OR_WHOLE})\[[0-9]*\]").fullmatch
_HASH = re.compile(rf"[0-9a-f]{{{TOKEN_CHARACTERS}}}").fullmatch


def file_from_query(
    settings: Settings,
    resource: str,
    query: str,
    options: PushOptions,
    *,
    clears_nulls: bool = False,
) -> PushFile | None:
    """Write the result of a query to the folder `pushes` of the account, for a push.

    The same result has the same name. Files older than `import_keep_days` are deleted.

    Args:
        settings: Settings of the account.
        resource: Resource of the rows. Columns are fields, by their names.
        query: SQL, or the path of a .sql or .parquet file.
        options: Options of the push.
        clears_nulls: A null empties its field. By default it leaves the field unchanged.

    Returns:
        The file to push; None if the query has no rows.

    Raises:
        Misused: The query fails, is not one SELECT, or has unsuitable columns.
        NothingPublished: There is no published file.
    """
    for name in _FILE_OPTIONS:
        if getattr(options, name) is not None:
            raise Misused(
                f"--{name.replace('_', '-')} is for files: a query returns values with types",
                action="Leave the option out. Convert texts in the query, for example with"
                " strptime.",
            )
    if clears_nulls and options.clear is None:
        options = replace(options, clear=CLEARED)
    # Decimals are written with a point, and no other mark.
    asked = replace(options, decimal="dot").push_file(resource, Path())
    null = (asked.clear or "") if clears_nulls else ""
    with _result(settings, query) as (cursor, types):
        _check_columns(settings, asked, list(types))
        rows = list(_cells(cursor, types.values(), null))
    if not rows:
        return None
    _check_hashes(settings, list(types), rows)
    path = _write(settings, resource, list(types), rows)
    return replace(asked, path=path, delimiter="comma", header_row=1, remembers=False)


# -- Query -----------------------------------------------------------------------------------------


@contextmanager
def _result(
    settings: Settings, query: str
) -> Iterator[tuple[duckdb.DuckDBPyConnection, dict[str, str]]]:
    """Run the query, and yield its rows and the types of its columns, by name."""
    path = Path(query)
    kind = path.suffix.lower() if "\n" not in query else ""
    if kind in (".sql", ".parquet") and not path.is_file():
        raise Misused(f"{path} does not exist", action="Give the path of a .sql or .parquet file.")
    if kind == ".parquet":
        # A name can contain the characters of a pattern.
        name = re.sub(r"([*?\[])", r"[\1]", str(path))
        with duckdb.connect(":memory:") as connection:
            connection.execute("SET TimeZone = 'UTC'; SET errors_as_json = true")
            parquet = f"FROM read_parquet({literal(name)}, hive_partitioning = false)"
            yield _run(connection, parquet, f"{path} cannot be read")
        return
    published = Warehouse(settings.folder).published
    if not published.exists():
        raise NothingPublished(f"{published} does not exist: nothing has been published yet")
    sql, where = query, "the query"
    if kind == ".sql":
        try:
            sql, where = path.read_text(encoding="utf-8-sig"), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise Misused(
                f"{path} cannot be read: {error}", action="Give a .sql file in UTF-8."
            ) from None
    with restricted(published) as connection:
        yield _run(connection, sql, f"{where} failed")


def _run(
    connection: duckdb.DuckDBPyConnection, sql: str, failed: str
) -> tuple[duckdb.DuckDBPyConnection, dict[str, str]]:
    with _naming_errors(sql, failed):
        statements = connection.extract_statements(sql)
        if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
            raise Misused(
                "the query is not one SELECT statement",
                action="Give one statement that reads tables of the published file, for example"
                " 'select id, notes from own.candidates_to_update'.",
            )
        cursor = connection.execute(statements[0])
        described = [(str(each[0]), str(each[1])) for each in cursor.description or ()]
    counts = Counter(name.casefold() for name, _ in described)
    if twice := [name for name, _ in described if counts[name.casefold()] > 1]:
        raise Misused(
            f"the query returns {counts[twice[0].casefold()]} columns named {twice[0]!r}",
            action="Leave one out, or rename it with AS.",
        )
    for name, type in described:
        if not _has_cells(type):
            raise Misused(
                f"column {name!r} of the query has the type {type}, which a cell cannot contain",
                action="Leave the column out, or cast it to VARCHAR.",
            )
    return cursor, dict(described)


@contextmanager
def _naming_errors(sql: str, failed: str) -> Iterator[None]:
    """Raise DuckDB's errors as `Misused` with the line and column in the query."""
    try:
        yield
    except duckdb.Error as error:
        found = _parse_error(str(error))
        if found.get("exception_type") == "Permission":
            message = "a query can read only the published file"
        else:
            message, _, hint = found["exception_message"].partition("\n")
            if hint:
                message += f" ({' '.join(hint.split())})"
            if found.get("exception_type") in _OF_VALUES:
                # The value can be personal, and messages are logged.
                message = re.sub(r"'[^']*'|\"[^\"]*\"", "a value", message)
        if (position := found.get("position")) is not None:
            before = sql[: int(position)]
            if found.get("exception_type") != "Parser":
                # The parser counts characters, later steps count bytes.
                before = sql.encode()[: int(position)].decode(errors="ignore")
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            failed += f" at line {line}, column {column}"
        raise Misused(f"{failed}: {message}", action="Correct the query.") from None


def _parse_error(text: str) -> dict[str, str]:
    with suppress(ValueError):
        found = json.loads(text[text.index("{") :])
        if isinstance(found, dict) and "exception_message" in found:
            return found
    return {"exception_message": text}


def _check_columns(settings: Settings, asked: PushFile, names: Sequence[str]) -> None:
    """Raise `Misused` for columns that are not fields."""
    warehouse = Warehouse(settings.folder)
    warehouse.prepare()
    with WarehouseLookups(warehouse, comparison_text) as lookups:
        target = target_of(asked, lookups)
    unknown = map_headings(names, target, saved=asked.saved, ignored=asked.ignored).unmapped
    if not unknown:
        return
    each = unknown[0]
    perhaps = "".join(f" Perhaps it is {name} ({why})." for name, why in each.suggestions[:1])
    others = ""
    if len(unknown) > 1:
        others = f" (also unknown: {', '.join(other.heading for other in unknown[1:])})"
    raise Misused(
        f"column {each.heading!r} of the query is not imported: {each.reason}{others}.{perhaps}",
        action="Rename the column with AS, leave it out of the query, or give it with --ignore.",
    )


def _check_hashes(settings: Settings, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Raise `Misused` if a cell is a hash, which would replace the value in the API."""
    row = published_in(Warehouse(settings.folder).published)
    if row is None or row.personal != "hash":
        return
    for name, cell in (pair for row in rows for pair in zip(names, row, strict=True)):
        if _HASH(cell):
            raise Misused(
                f"column {name!r} of the query contains hashes of personal fields",
                action="Leave the column out, or publish with publish_personal = keep.",
            )


# -- Cells -----------------------------------------------------------------------------------------


def _has_cells(type: str) -> bool:
    return _CELL_TYPE(type) is not None or _LIST_TYPE(type) is not None


def _cells(
    cursor: duckdb.DuckDBPyConnection, types: Iterable[str], null: str
) -> Iterator[list[str]]:
    with _naming_errors("", "the query failed"):
        for batch in cursor.to_arrow_reader(_BATCH_ROWS):
            columns = [
                [null if value is None else _cell(value) + ending for value in values]
                for values, ending in map(_values, batch.columns, types)
            ]
            yield from map(list, zip(*columns, strict=True))


def _values(column: pa.Array, type: str) -> tuple[Iterable[Any], str]:
    """Return the values of a column, and the ending of its cells: `Z` for times in UTC."""
    if type.startswith("TIMESTAMP"):
        return column.cast(pa.timestamp("us"), safe=False).to_pylist(), "Z" * type.endswith("ZONE")
    if type == "FLOAT":
        # More than seven digits would be those of the nearest DOUBLE.
        return (v if v is None else Decimal(f"{v:.7g}") for v in column.to_pylist()), ""
    return column.to_pylist(), ""


def _cell(value: Any) -> str:
    """Return a value as a cell that the reader of spreadsheets reads as the same value."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() | Decimal() if isfinite(value):
            text = f"{Decimal(str(value)):f}"
            return text.rstrip("0").rstrip(".") if "." in text else text
        case date():
            return value.isoformat()
        case list():
            return "; ".join(_cell(each) for each in value if each is not None)
    return str(value)


# -- File ------------------------------------------------------------------------------------------


def _write(
    settings: Settings, resource: str, names: Sequence[str], rows: Sequence[Sequence[str]]
) -> Path:
    folder = settings.folder / PUSHES_FOLDER
    make_folder(folder)
    _remove_old(folder, timedelta(days=settings.import_keep_days.value))
    text = io.BytesIO()
    write_rows(text, ",", [names, *rows])
    digest = hashlib.sha256(text.getvalue()).hexdigest()[:12]
    path = folder / f"{resource}-{digest}.csv"
    with new_table(path, "the result of a query") as file:
        file.write(text.getvalue())
    return path


def _remove_old(folder: Path, keep: timedelta) -> None:
    before = time.time() - keep.days * _DAY_SECONDS
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_mtime < before:
                path.unlink()

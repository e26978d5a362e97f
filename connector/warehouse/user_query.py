"""Queries of users: read-only, confined to the published file, with rows as cells."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from connector.errors import Misused
from connector.warehouse.duckdb_file import literal
from connector.warehouse.published_file import open_restricted, require_published

_BATCH_ROWS = 10_000
_OF_VALUES = ("Conversion", "Invalid Input", "Out of Range")
_TEXT_OR_WHOLE = r"VARCHAR|UUID|JSON|ENUM\([^\[]*\)|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?"
_CELL_TYPE = re.compile(
    rf'{_TEXT_OR_WHOLE}|"NULL"|BOOLEAN|DATE|FLOAT|DOUBLE|DECIMAL\(.*\)|TIMESTAMP.*'
).fullmatch
_LIST_TYPE = re.compile(rf"({_TEXT_OR_WHOLE})\[[0-9]*\]").fullmatch


@dataclass(frozen=True, slots=True)
class OpenQuery:
    """Running query: the names of its columns, and its rows as texts, which can be read once."""

    _cursor: duckdb.DuckDBPyConnection
    _types: dict[str, str]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self._types)

    def rows(self, null: str) -> Iterator[list[str]]:
        """Yield each row as texts of cells, with `null` for nulls. Raises `Misused`."""
        with _convert_errors("", "the query failed"):
            for batch in self._cursor.to_arrow_reader(_BATCH_ROWS):
                columns = [
                    [null if value is None else _format_cell(value) + ending for value in values]
                    for values, ending in map(
                        _column_values, batch.columns, self._types, self._types.values()
                    )
                ]
                yield from map(list, zip(*columns, strict=True))


@contextmanager
def open_query(published: Path, query: str) -> Iterator[OpenQuery]:
    """Run a query that can read only the published file, or read a Parquet file.

    `query` is SQL, or the path of a .sql or .parquet file. Raises `WarehouseError`, and `Misused`
    if the query fails, is not one SELECT, or has columns that cells cannot contain.
    """
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
            yield _start_query(connection, parquet, f"{path} cannot be read")
        return
    sql, where = query, "the query"
    if kind == ".sql":
        try:
            sql, where = path.read_text(encoding="utf-8-sig"), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise Misused(
                f"{path} cannot be read: {error}", action="Give a .sql file in UTF-8."
            ) from None
    with open_restricted(require_published(published)) as connection:
        yield _start_query(connection, sql, f"{where} failed")


def _start_query(connection: duckdb.DuckDBPyConnection, sql: str, problem: str) -> OpenQuery:
    """Execute one SELECT statement. Raises `Misused`, whose message begins with `problem`."""
    with _convert_errors(sql, problem):
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
        if not (_CELL_TYPE(type) or _LIST_TYPE(type)):
            raise Misused(
                f"column {name!r} of the query has the type {type}, which a cell cannot contain",
                action="Leave the column out, or cast it to VARCHAR.",
            )
    return OpenQuery(cursor, dict(described))


@contextmanager
def _convert_errors(sql: str, problem: str) -> Iterator[None]:
    """Raise DuckDB's errors as `Misused` with `problem`, line, column and reason."""
    try:
        yield
    except duckdb.Error as error:
        found = _parse_error(str(error))
        if found.get("exception_type") == "Permission":
            message = "a query can read only the published file"
        else:
            message, _, hint = found["exception_message"].partition("\n")
            # DuckDB also proposes its own tables.
            if hint and not re.search(r'"(duckdb|pg|sqlite)_', hint):
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
            problem += f" at line {line}, column {column}"
        raise Misused(f"{problem}: {message}", action="Correct the query.") from None


def _parse_error(text: str) -> dict[str, str]:
    """Return the parts of DuckDB's JSON message; other texts become `exception_message`."""
    with suppress(ValueError):
        found = json.loads(text[text.index("{") :])
        if isinstance(found, dict) and "exception_message" in found:
            return found
    return {"exception_message": text}


# -- Cells -----------------------------------------------------------------------------------------


def _column_values(column: pa.Array, name: str, type: str) -> tuple[Iterable[Any], str]:
    """Return the values of a column and a suffix for its cells: `Z` for UTC, else empty.

    Raises `Misused` for an infinite date.
    """
    if type.startswith("TIMESTAMP"):
        column = column.cast(pa.timestamp("us"), safe=False)
    if type.startswith(("TIMESTAMP", "DATE")):
        try:
            return column.to_pylist(), "Z" * type.endswith("ZONE")
        except (OverflowError, ValueError):
            raise Misused(
                f"the column {name!r} of the query has a date that is infinite, or not in the"
                " years 1 to 9999",
                action="Correct the query: use null or a date in these years.",
            ) from None
    if type == "FLOAT":
        # More than seven digits would be those of the nearest DOUBLE.
        return (v if v is None else Decimal(f"{v:.7g}") for v in column.to_pylist()), ""
    return column.to_pylist(), ""


def _format_cell(value: Any) -> str:
    """Return the text of a cell that the spreadsheet reader reads as the same value."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() | Decimal() if isfinite(value):
            text = f"{Decimal(str(value)):f}"
            return text.rstrip("0").rstrip(".") if "." in text else text
        case date():
            return value.isoformat()
        case list():
            return "; ".join(_format_cell(each) for each in value if each is not None)
    return str(value)

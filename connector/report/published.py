"""Published file as the report reads it: rows, columns and comments.

All queries use one connection, so that the page shows a single publication.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from connector.errors import MartsMissing
from connector.log import escape_control_characters
from connector.warehouse.duckdb_file import from_microseconds
from connector.warehouse.published_file import ABSENT, QueryResult, open_snapshot, require_published

Row = Mapping[str, Any]

MARTS = "marts"
_MART = re.compile(r"\bmarts\.(\w+)")
_PARTS = ("Definition", "Grain", "Numerator", "Denominator", "Excluded", "Trap", "Coverage")
_NOT_IN_XML = re.compile("[\ufffe\uffff]")
_REPLACEMENT = "\ufffd"
_LABEL = re.compile(rf"^\s*({'|'.join(_PARTS)}):\s*", re.MULTILINE)


def split_mart_comment(comment: str) -> dict[str, str]:
    """Return the text of each label (Definition, Grain, ...) in the comment of a mart.

    A comment without labels is a definition.
    """
    pieces = _LABEL.split(comment)
    found = {"Definition": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}
    joined = {part: " ".join(text.split()) for part, text in found.items()}
    return {part: joined[part] for part in _PARTS if joined.get(part)}


def printable(text: str) -> str:
    """Return the text without characters that a drawing or a page cannot contain; keep line ends.

    The drawing library ends the process at a character that XML forbids.
    """
    return escape_control_characters(_NOT_IN_XML.sub(_REPLACEMENT, text), except_for="\n")


class PartMissing(Exception):
    """Error for a mart or column that a query needs and the file lacks; the message names it."""


class PublishedFile:
    """Published file that is open for one report: its rows, comments, and time."""

    def __init__(self, ask: Callable[[str], QueryResult]) -> None:
        self._ask = ask

    def query_rows(self, sql: str) -> list[Row]:
        """Return the rows of a query by column name, with times in the account's zone.

        `{today}` is the day that the marts use as today. Raises `PartMissing`.
        """
        if "{today}" in sql:
            day = "NULL::DATE" if self.today is None else f"DATE '{self.today}'"
            sql = sql.replace("{today}", day)
        try:
            answer = self._ask(sql)
        except ABSENT as error:
            absent = [f"{MARTS}.{each}" for each in _MART.findall(sql) if each not in self.marts]
            column = re.search(r'"(\w+)"', str(error))
            named = f"column {column[1]}" if column else "part that is needed"
            raise PartMissing(", no ".join(dict.fromkeys(absent)) or named) from error
        return [
            {
                name: self._displayable(value)
                for name, value in zip(answer.columns, row, strict=True)
            }
            for row in answer.rows
        ]

    def _displayable(self, value: Any) -> Any:
        """Return a timestamp in the account's zone, a text without unprintable characters, or the
        value.
        """
        if isinstance(value, datetime):
            return self.to_local_time(value)
        return printable(value) if isinstance(value, str) else value

    def require_columns(self, mart: str, columns: Iterable[str], rows: Sequence[Row]) -> None:
        """Raise `PartMissing` if the rows of a mart lack one of the columns."""
        if absent := [f"{MARTS}.{mart}.{each}" for each in columns if rows and each not in rows[0]]:
            raise PartMissing(", no ".join(absent))

    def to_local_time(self, at: datetime) -> datetime:
        """Return the time in the account's zone."""
        return at.astimezone(ZoneInfo(self.zone))

    def query_row(self, sql: str) -> Row:
        """Return the only row of a query. Raises `PartMissing`, or `ValueError` for another number
        of rows.
        """
        (found,) = self.query_rows(sql)
        return found

    @cached_property
    def _columns(self) -> Mapping[str, Mapping[str, str]]:
        """Columns of every table and view, by `schema.table`, each with its comment."""
        found: dict[str, dict[str, str]] = {}
        for row in self.query_rows(
            "SELECT schema_name || '.' || table_name AS owner, column_name, comment "
            "FROM duckdb_columns() WHERE NOT internal ORDER BY owner, column_index"
        ):
            found.setdefault(row["owner"], {})[row["column_name"]] = row["comment"] or ""
        return found

    @cached_property
    def marts(self) -> Mapping[str, str]:
        """Comment of each mart, by its name."""
        rows = self.query_rows(
            f"SELECT table_name, comment FROM duckdb_tables() WHERE schema_name = '{MARTS}' "
            f"UNION ALL SELECT view_name, comment FROM duckdb_views() "
            f"WHERE schema_name = '{MARTS}'"
        )
        return {row["table_name"]: row["comment"] or "" for row in rows}

    def has_table(self, table: str) -> bool:
        """Return True if the file has the table or view, named with its schema."""
        return table in self._columns

    def column_comment(self, mart: str, column: str) -> str:
        """Return the comment of a mart's column; "" if it has none."""
        return self._columns.get(f"{MARTS}.{mart}", {}).get(column, "")

    @cached_property
    def as_of(self) -> datetime | None:
        """Time that the marts use as now; None if no resource was ever verified."""
        if self._has_as_of_table:
            return self._fetch_timestamp("SELECT epoch_us(max(as_of_at)) AS at FROM staging.as_of")
        return self._fetch_timestamp(
            "SELECT epoch_us(coalesce(max(proven_at), max(last_run_at))) AS at "
            "FROM marts.data_freshness"
        )

    @cached_property
    def verified_at(self) -> datetime | None:
        """Time up to which every resource with records is verified; None if one is not."""
        return self._fetch_timestamp(
            "SELECT CASE WHEN bool_and(proven_at IS NOT NULL) THEN epoch_us(min(proven_at)) END "
            "AS at FROM marts.data_freshness WHERE current_rows > 0"
        )

    def _fetch_timestamp(self, sql: str) -> datetime | None:
        """Return the column `at` of the query's only row; None if it is null or the file lacks a
        part.
        """
        try:
            return from_microseconds(self.query_row(sql)["at"])
        except PartMissing:
            return None

    @cached_property
    def _has_as_of_table(self) -> bool:
        """True if the file states the time, the day and the time zone that its marts use."""
        return self.has_table("staging.as_of") and self.has_table("sync.bookmarks")

    @cached_property
    def today(self) -> date | None:
        """Day that the marts use as today; in UTC if the file does not state it. None if empty."""
        if self.as_of is not None and self._has_as_of_table:
            day: date = self.query_row("SELECT max(as_of_date) AS day FROM staging.as_of")["day"]
            return day
        return None if self.as_of is None else self.as_of.astimezone(UTC).date()

    @cached_property
    def zone(self) -> str:
        """Time zone of the account if the file has it, else UTC."""
        if not self._has_as_of_table:
            return "UTC"
        return str(self.query_row("SELECT max(time_zone) AS zone FROM staging.as_of")["zone"])


@contextmanager
def open_published(path: Path) -> Iterator[PublishedFile]:
    """Open the published file for reading.

    Raises `NothingPublished` if there is no file, `MartsMissing` if it has no marts, or another
    `WarehouseError`.
    """
    with open_snapshot(require_published(path)) as ask:
        published = PublishedFile(ask)
        if not published.marts:
            raise MartsMissing(f"{path} has no table in the schema {MARTS}")
        yield published


def sum_column(rows: Sequence[Row], column: str) -> Any:
    """Return the sum of the column over the rows without nulls; 0 without values."""
    return sum(row[column] for row in rows if row[column] is not None)


def month_starts(begins: date, ends: date) -> list[date]:
    """Return the first day of every month from the month of `begins` to the month of `ends`."""
    places = range(begins.year * 12 + begins.month - 1, ends.year * 12 + ends.month)
    return [date(place // 12, place % 12 + 1, 1) for place in places]

"""Find a text in an account's folder, and purge people whom the platform has deleted.

The platform is the truth about people. A record is purged only after it was deleted there, so that
no pull brings it back. A purge changes no record that the platform still has. Every step can be
repeated: the next purge completes an interrupted one.
"""

from __future__ import annotations

import asyncio
import csv
import html
import json
import re
import shutil
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration
from connector.errors import Misused, SpreadsheetError, convert_file_errors, count_noun
from connector.models.publish import publish
from connector.pulls.account import check_files
from connector.settings import Settings
from connector.settings.folders import IMPORTS_FOLDER, INBOX_FOLDER, PUSHES_FOLDER
from connector.spreadsheet.table import BOOK_SUFFIXES, TEXT_SUFFIXES, open_table
from connector.state.database import STATE_FILE, Database
from connector.state.journal import Journal
from connector.state.lock import hold
from connector.state.row import Row
from connector.state.runs import latest_backups
from connector.warehouse.file import Connection, open_file, open_read_only, quoted, run_staged
from connector.warehouse.schema import as_json
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse

PEOPLE = tuple(each for each in CATALOG.values() if any(s.is_record for s in each.subjects))
"""Resources whose records are people."""

PURGED = "[purged]"
"""Text that replaces a message or a file name that contained a purged person."""

_REFERENCES = {
    each.name: {"id"} if each in PEOPLE else {id for s in each.subjects for id in s.ids} - {"id"}
    for each in CATALOG.values()
    if each in PEOPLE or any({*s.ids} - {"id"} for s in each.subjects)
}
"""Fields with the id of a person, by resource."""

_DATABASES = (WORK_FILE, PUBLISHED_FILE, STATE_FILE)
_DATABASE_ENDS = (".duckdb", ".sqlite", "duckdb.wal", "-wal", "-shm", ".lock")
_KEYS = ("id", "_version", "batch", "number")
_MESSAGES = (
    *(("runs", "message"), ("run_resources", "message"), ("publications", "message")),
    *(("events", "detail"), ("batches", "file"), ("batches", "message")),
)
"""Columns of the state with texts that may contain an identifier."""

_PHONE_DIGITS, _PHONE_DIGITS_MIN = 9, 7
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\+?[0-9][0-9 ()./-]{5,}[0-9]")
_TAG = re.compile(r"<[^>]*>")
_DATA = re.compile(r"[0-9@]")


# -- Texts -----------------------------------------------------------------------------------------
# Texts are compared by their words, without letter case, punctuation and line breaks, and telephone
# numbers by their last digits. "Anna  LEE", "anna_lee.csv" and "lee, anna" name the same person.


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _numbers(text: str) -> set[str]:
    """Return the last digits of each telephone number in a text."""
    digits = (re.sub(r"\D", "", each) for each in _NUMBER.findall(text))
    return {each[-_PHONE_DIGITS:] for each in digits if len(each) >= _PHONE_DIGITS_MIN}


def _contains(text: str) -> Callable[[str], bool]:
    """Return the match of a text that a user searches for; it may begin within a word."""
    wanted, numbers = " ".join(_words(text)), _numbers(text) if _NUMBER.fullmatch(text) else set()
    if not wanted:
        raise Misused("the text has no letter and no digit", action="Give a name or an address.")
    return lambda each: wanted in " ".join(_words(each)) or bool(numbers & _numbers(each))


class Identifiers:
    """Identifiers of people: texts as their words, and the last digits of telephone numbers."""

    def __init__(self, texts: Iterable[str] = (), numbers: Iterable[str] = ()) -> None:
        self.known = {tuple(_words(each)) for each in texts} - {()}
        self.known |= {(digits,) for each in numbers for digits in _numbers(each)}
        self._sizes, self._first = {len(e) for e in self.known}, {e[0] for e in self.known}

    def found_in(self, text: str) -> set[tuple[str, ...]]:
        """Return the identifiers that the text contains, as complete words."""
        words = _words(text)
        found = {(each,) for each in _numbers(text)}
        for size in () if self._first.isdisjoint(words) else self._sizes:
            found.update(zip(*(words[start:] for start in range(size)), strict=False))
        return self.known & found

    def match(self, text: str) -> bool:
        """Return True if the text contains an identifier."""
        return bool(self.found_in(text))


def _text_of(value: Any) -> str:
    """Return all texts in a value, also in those of JSON, a mapping or a list."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return "\n".join(filter(None, map(_text_of, value)))
    return "" if value is None else str(value)


# -- Find ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a text: a file, its table or sheet, the row, and the columns with the text."""

    file: str
    table: str
    row: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """Places of a text, and files that cannot be searched."""

    places: tuple[Place, ...] = ()
    not_searched: tuple[str, ...] = ()


def find(settings: Settings, text: str) -> Found:
    """Find a text in all tables and files of the account's folder.

    Raises `Misused` if it has no letter and no digit.
    """
    return _search(settings.folder, _contains(text))


def _search(folder: Path, match: Callable[[str], bool]) -> Found:
    places, not_searched = list[Place](), list[str]()
    for file, table, names, rows in _tables(folder):
        keys = [names.index(each) for each in _KEYS if each in names] or [0]
        for row in rows:
            texts = [_text_of(each) if isinstance(each, str | bytes | list) else "" for each in row]
            if match("\n".join(texts)):
                columns = [n for n, text in zip(names, texts, strict=True) if text and match(text)]
                # `_record` repeats the columns.
                shown = [each for each in columns if each != "_record"] or columns
                key = " ".join(str(row[each]) for each in keys if row[each] is not None)
                places.append(Place(file, table, key, tuple(shown)))
    for path in _files(folder, folder, not_searched):
        name, texts_of_file = str(path.relative_to(folder)), [("name of the file", path.stem)]
        try:
            texts_of_file += _texts_of(path)
        except (SpreadsheetError, zipfile.BadZipFile):
            not_searched.append(name)
        places += [Place(name, "", where) for where, text in texts_of_file if match(text)]
    return Found(tuple(places), tuple(not_searched))


def _tables(folder: Path) -> Iterator[tuple[str, str, Sequence[str], Iterable[Sequence[Any]]]]:
    """Yield file, table, columns and rows of each table of the folder's databases."""
    warehouse, files = Warehouse(folder), dict[str, Connection]()
    with ExitStack() as stack:
        if warehouse.exists:
            files[WORK_FILE] = stack.enter_context(open_file(warehouse.work))
        if warehouse.published.exists():
            files[PUBLISHED_FILE] = stack.enter_context(open_read_only(warehouse.published))
        for file, connection in files.items():
            for (table,) in connection.execute(
                'SELECT format(\'"{}"."{}"\', schema_name, table_name) FROM duckdb_tables()'
                " WHERE NOT internal AND database_name = current_database() ORDER BY ALL"
            ).fetchall():
                rows = connection.execute(f"SELECT * FROM {table}")
                columns = [each[0] for each in rows.description or ()]
                yield file, table.replace('"', ""), columns, iter(rows.fetchone, None)
        state = stack.enter_context(Database(folder))
        if state.exists:
            for (table,) in state.rows("SELECT name FROM sqlite_master WHERE type = 'table'"):
                found = state.rows(f'SELECT * FROM "{table}"')
                yield STATE_FILE, str(table), found[0].keys() if found else [], found


# -- Files -----------------------------------------------------------------------------------------


def _files(folder: Path, root: Path, not_searched: list[str]) -> Iterator[Path]:
    """Yield the files below a folder, except databases and folders of other accounts."""
    with convert_file_errors(folder):
        entries = sorted(folder.iterdir())
    for path in entries:
        is_other_account = path.is_dir() and any((path / each).exists() for each in _DATABASES)
        if path.is_symlink() or is_other_account:
            not_searched.append(str(path.relative_to(root)))
        elif path.is_dir():
            yield from _files(path, root, not_searched)
        elif not (path.name.startswith(_DATABASES) and path.name.endswith(_DATABASE_ENDS)):
            yield path


def _texts_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each row of a table, each part of an archive, or each line, with its place.

    Raises `SpreadsheetError` or `BadZipFile` if the file cannot be searched.
    """
    suffix = path.suffix.lower()
    with convert_file_errors(path):
        content = path.read_bytes()
    if suffix in BOOK_SUFFIXES:
        for row in open_table(path).rows():
            yield f"row {row.number}", "\n".join(str(each) for each in row.cells)
    if content.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                yield member, _TAG.sub(" ", archive.read(member).decode("utf-8", "replace"))
    elif suffix not in BOOK_SUFFIXES:
        text = _decode(content)
        if "\0" in text or text.startswith("%PDF"):
            raise SpreadsheetError("the file is no text")
        lines = html.unescape(text).splitlines(keepends=True)
        # A cell of a csv file may have line breaks.
        rows = csv.reader(lines) if suffix in TEXT_SUFFIXES else ([each] for each in lines)
        try:
            for number, cells in enumerate(rows, 1):
                yield f"row {number}", "\n".join(cells)
        except csv.Error:
            raise SpreadsheetError("the file is no table") from None


def _decode(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _has_only(path: Path, match: Callable[[str], bool]) -> bool:
    """Return True if an imported file has one sheet, and all its rows but the headings match."""
    try:
        parts = [*_texts_of(path)]
    except (SpreadsheetError, zipfile.BadZipFile):
        return False
    rows = [text for place, text in parts if place.startswith("row ") and text.strip()]
    others = [each for each in rows if not match(each)]
    sheets = sum(place.startswith("xl/worksheets/sheet") for place, _ in parts)
    if len(others) == len(rows) or len(others) > 1 or any(map(_DATA.search, others)):
        return False
    return path.suffix.lower() in TEXT_SUFFIXES or sheets == 1


# -- Purge -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class PurgeReport:
    """Result of a purge, or of its preview.

    `left` has the places that still contain an identifier; in a preview, all places. `backups`
    still contain the people. `removed` has the values as (table, record, field, value).
    """

    ids: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    files: list[str] = field(default_factory=list)
    left: Found = field(default_factory=Found)
    backups: list[str] = field(default_factory=list)
    removed: list[tuple[str, str, str, str]] = field(default_factory=list)


def deleted_before(settings: Settings, age: str, now: datetime) -> list[str]:
    """Return the ids of people whom the platform deleted longer ago, and who are not purged yet.

    `age` is a number of days, months or years, for example `24m`. Raises `Misused` otherwise.
    """
    if not re.fullmatch("[0-9]{1,4}[dmy]", age):
        raise Misused(f"the age is {age!r}", action="Give days, months or years: 90d, 24m or 2y.")
    unit = {"d": "days", "m": "months", "y": "years"}[age[-1]]
    old = f"_deleted_at < $1::TIMESTAMPTZ - to_{unit}({int(age[:-1])})"
    with Database(settings.folder) as database:
        if not database.exists:
            return []
        purges = database.rows("SELECT ids FROM purges WHERE ended_at IS NOT NULL")
    ids = {id for (id, _) in Warehouse(settings.folder).read(_people, old, now.isoformat())}
    return sorted(ids.difference(*(each["ids"] for each in purges)))


def _people(connection: Connection, condition: str, value: object) -> list[tuple[str, bool]]:
    """Return the ids of people who fulfil a condition on $1, and if the platform deleted them."""
    selects = (
        f"SELECT id, _deleted_at IS NOT NULL FROM landing.{each.name} WHERE {condition}"
        for each in PEOPLE
    )
    return connection.execute(" UNION ALL ".join(selects), [value]).fetchall()


async def purge(settings: Settings, ids: Collection[str], *, applies: bool = False) -> PurgeReport:
    """Empty every version of these people's records everywhere in the account's folder.

    Without `applies`, only report what would be removed. An interrupted purge is completed first.

    Raises:
        Misused: A record is unknown or the platform still has it, or pushed rows are unconfirmed.
        ConnectorError: Another process uses the account, or a file cannot be used or published.
            The purge can be repeated.
    """
    check_files(settings)
    with Database(settings.folder) as database:
        if not database.exists:
            raise Misused("no records are loaded", action="Check CONNECTOR_DATA_DIR.")
        async with hold(settings.folder, "person purge"):
            made = _Purge(settings, database, applies)
            return await asyncio.to_thread(made.run, ids)


class _Version(NamedTuple):
    """Version of a record that is about the people, with its table and DuckDB's row id."""

    table: str
    rowid: int
    id: str
    record: dict[str, Any]


class _Purge:
    """One purge. The caller holds the lock of the account."""

    def __init__(self, settings: Settings, database: Database, applies: bool) -> None:
        self._settings, self._folder, self._database = settings, settings.folder, database
        self._applies, self._at, self._report = applies, datetime.now(UTC), PurgeReport()
        self._all = self._own = Identifiers()

    def run(self, given: Collection[str]) -> PurgeReport:
        """Purge, or preview. The work file is last: it has the identifiers that others need."""
        report, warehouse = self._report, Warehouse(self._folder)
        warehouse.prepare()
        with open_file(warehouse.work) as connection:
            report.ids = self._choose_ids(connection, {*given})
            if not report.ids:
                return report
            connection.execute("BEGIN")
            versions = {each: [*_versions(connection, each, report.ids)] for each in _REFERENCES}
            self._read_identifiers(connection, versions)
            # Of other records, such as bookings, only rows of deleted ones are emptied.
            current = [e for found in versions.values() for e in found if "landing." in e.table]
            self._empty_journal({each.id for each in current})
            self._remove_files()
            self._empty_messages()
            for name, found in versions.items():
                self._empty_versions(connection, CATALOG[name], found)
            connection.execute("COMMIT" if self._applies else "ROLLBACK")
        if self._applies:
            warehouse.compact()
            self._database.compact()
            if warehouse.published.exists():
                publish(self._settings)
            self._record_end()
        report.left, made = _search(self._folder, self._all.match), latest_backups(self._database)
        report.backups = [each.file for each in made if each.file and each.began_at < self._at]
        return report

    def _unfinished(self) -> dict[datetime, list[str]]:
        """Return the ids of purges that were interrupted, or that a restore left to be repeated."""
        sql = "SELECT at, ids FROM purges WHERE ended_at IS NULL"
        return {each["at"]: each["ids"] for each in self._database.rows(sql)}

    def _record_end(self) -> None:
        for at, ids in self._unfinished().items():
            if set(ids) <= set(self._report.ids):
                sql = "UPDATE purges SET ended_at = ?, counts = ? WHERE at = ?"
                self._database.write(sql, self._at, dict(+self._report.rows), at)

    def _choose_ids(self, connection: Connection, given: set[str]) -> list[str]:
        """Return the given ids, and those of unfinished purges that the platform has deleted."""
        ids = sorted(given.union(*self._unfinished().values()))
        states = dict(_people(connection, "id IN (SELECT unnest($1))", ids))
        if unknown := sorted(given - states.keys()):
            action = "Copy the id from 'connector person find TEXT', with a name or an address."
            raise Misused(f"no candidate or lead has the id {', '.join(unknown)}", action=action)
        if living := sorted(each for each in given if not states[each]):
            action = "Delete the record on the platform, run 'connector pull', and purge again."
            raise Misused(f"the platform still has {', '.join(living)}", action=action)
        return sorted(id for id, is_deleted in states.items() if is_deleted)

    def _read_identifiers(
        self, connection: Connection, versions: Mapping[str, Sequence[_Version]]
    ) -> None:
        """Read all identifiers of the people, and the addresses and numbers that are only theirs:
        no candidate or lead whom the platform still has contains them.
        """
        names, texts, numbers = list[str](), list[str](), list[str]()
        for resource in PEOPLE:
            (subject,) = resource.subjects
            urls = [each.name for each in resource.detail_fields if each.format == "url"]
            for version in versions[resource.name]:
                record = {name: str(value) for name, value in version.record.items() if value}
                texts += [record[each] for each in (*subject.emails, *urls) if each in record]
                numbers += [record[each] for each in subject.phones if each in record]
                for parts in subject.names:
                    full = [record[each] for each in parts if each in record]
                    names += [" ".join(full), " ".join(reversed(full))] if len(full) > 1 else []
        self._all, self._own = Identifiers([*texts, *names], numbers), Identifiers(texts, numbers)
        for resource in PEOPLE:
            others = connection.execute(
                f"SELECT _record FROM landing.{resource.name} WHERE _deleted_at IS NULL"
            )
            for (text,) in iter(others.fetchone, None):
                self._own.known -= self._own.found_in(_text_of(text))

    def _empty_journal(self, ids: Collection[str]) -> None:
        """Empty the pushed rows of these records, and rows without a record that have an address
        or number of the people. A checksum stays, so that the same file creates nothing again.
        """
        journal = Journal(self._database, now=lambda: self._at)
        rows = (row for each in journal.batches() for row in journal.rows(each.batch))
        about = [row for row in rows if self._is_about(row, ids)]
        if unconfirmed := sum(row.is_open for row in about):
            what = count_noun(unconfirmed, "row of these people is", "rows of these people are")
            action = "Run 'connector resolve', then purge again."
            raise Misused(f"{what} unconfirmed", action=action)
        for row in about:
            text = _text_of([row.values, row.before])
            self._report.removed.append(("rows", f"{row.batch} row {row.number}", "row", text))
        self._report.rows["rows"] += len(about)
        if self._applies:
            with self._database.transaction() as connection:
                connection.execute("PRAGMA secure_delete = ON")
                journal.empty(row.key for row in about)
                self._database.put("purges", {"at": self._at, "ids": self._report.ids})

    def _is_about(self, row: Row, ids: Collection[str]) -> bool:
        if row.record_id is not None:
            return row.record_id in ids
        parts = [row.fields, row.then, row.before, [each.body for each in row.attempts]]
        problems = [(each.received, each.found, each.message) for each in row.problems]
        return self._own.match(_text_of([*parts, problems]))

    def _remove_files(self) -> None:
        """Remove imported files and drafts that hold only these people."""
        removed = list[Path]()
        for top in (self._folder / name for name in (INBOX_FOLDER, IMPORTS_FOLDER, PUSHES_FOLDER)):
            for path in _files(top, self._folder, []) if top.is_dir() else ():
                if _has_only(path, self._own.match):
                    draft = top / path.relative_to(top).parts[0]
                    removed.append(draft if top.name == IMPORTS_FOLDER else path)
        self._report.files = [str(each.relative_to(self._folder)) for each in removed]
        for path in removed if self._applies else ():
            with convert_file_errors(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _empty_messages(self) -> None:
        for table, column in _MESSAGES:
            sql = f"SELECT {column}, count(*) FROM {table} WHERE {column} IS NOT NULL GROUP BY 1"
            for text, count in self._database.rows(sql):
                if self._all.match(text):
                    self._report.rows[table] += count
                    if self._applies:
                        sql = f"UPDATE {table} SET {column} = ? WHERE {column} = ?"
                        self._database.write(sql, PURGED, text)

    def _empty_versions(
        self, connection: Connection, resource: Declaration, versions: Sequence[_Version]
    ) -> None:
        emptied = dict[str, dict[int, str]]()
        for each in versions:
            if gone := self._personal_fields(resource, each.record):
                kept = {name: value for name, value in each.record.items() if name not in gone}
                emptied.setdefault(each.table, {})[each.rowid] = as_json(kept)
                self._report.removed += [
                    (each.table, each.id, name, _text_of(each.record[name]))
                    for name in sorted(gone)
                    if each.record[name] is not None
                ]
        names = [quoted(each.name) for each in resource.detail_fields if each.name != "id"]
        kept_values = ", ".join(
            f"CASE WHEN json_exists(stage.record, '$.{each}') THEN one.{each} END AS {each}"
            for each in names
        )
        for table, records in emptied.items():
            self._report.rows[table] += len(records)
            stage = {"place": records, "record": records.values()}
            # An update of spread rows would need much more memory.
            run_staged(
                connection,
                stage,
                f"INSERT INTO {table} SELECT one.* REPLACE ({kept_values}, stage.record AS _record)"
                f" FROM {table} AS one JOIN stage ON one.rowid = stage.place;"
                f" DELETE FROM {table} WHERE rowid IN (SELECT place FROM stage)",
            )

    def _personal_fields(self, resource: Declaration, record: Mapping[str, Any]) -> set[str]:
        """Return the fields of a record to empty: personal ones, and of a person's own record also
        unknown fields and texts with an identifier.
        """
        if resource not in PEOPLE:
            subjects = [each for each in resource.subjects if {*each.ids} - {"id"}]
            return {name for each in subjects for name in each.fields} & record.keys()
        known = resource.fields
        return {
            name
            for name, value in record.items()
            if name not in known
            or known[name].personal
            or (isinstance(value, str) and name != "id" and self._all.match(value))
        }


def _versions(connection: Connection, name: str, ids: Sequence[str]) -> Iterator[_Version]:
    """Yield the versions that are about the people. What the platform still shows is not purged."""
    refers = " OR ".join(f"{each} IN (SELECT unnest($1))" for each in _REFERENCES[name])
    for schema, past in (("landing", "_deleted_at"), ("history", "_valid_to")):
        is_past = "TRUE" if CATALOG[name] in PEOPLE else f"{past} IS NOT NULL"
        rows = connection.execute(
            f"SELECT rowid, id, _record FROM {schema}.{name} WHERE ({refers}) AND {is_past}", [ids]
        )
        for rowid, id, text in rows.fetchall():
            yield _Version(f"{schema}.{name}", rowid, id, json.loads(text))

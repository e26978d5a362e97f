"""Find a text in an account's folder, and purge people whom the platform has deleted.

The platform is the truth about people. A record is purged only after it was deleted there, so that
no pull brings it back, and nothing has to remember who was purged. A purge changes no record that
the platform still has. Every step can be repeated: an interrupted purge is completed by the next.
"""

from __future__ import annotations

import asyncio
import csv
import gzip
import html
import json
import re
import shutil
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration
from connector.errors import (
    Misused,
    SpreadsheetError,
    WarehouseError,
    convert_file_errors,
    count_noun,
)
from connector.models.publish import publish
from connector.pulls.account import check_files
from connector.report.page import REPORT_FILE, write_report
from connector.settings import Settings
from connector.settings.folders import IMPORTS_FOLDER, INBOX_FOLDER, PUSHES_FOLDER
from connector.spreadsheet.table import BOOK_SUFFIXES, TEXT_SUFFIXES, open_table
from connector.state.database import STATE_FILE, Database, to_column
from connector.state.journal import Journal
from connector.state.lock import hold
from connector.state.row import Row
from connector.state.runs import latest_backups
from connector.warehouse.file import Connection, open_file, open_read_only, quoted, staged
from connector.warehouse.schema import as_json
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse

PEOPLE = tuple(each for each in CATALOG.values() if any(s.is_record for s in each.subjects))
"""Resources whose records are people."""

PURGED = "[purged]"
"""Text that replaces a message or a file name that contained a purged person."""

_BATCH = 2000
_PHONE_DIGITS, _PHONE_DIGITS_MIN = 9, 7
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\+?[0-9][0-9 ()./-]{5,}[0-9]")
_TAG = re.compile(r"<[^>]*>")
_KEYS = ("id", "_version", "batch", "number")
_DATABASES = (WORK_FILE, PUBLISHED_FILE, STATE_FILE)
_DATABASE_ENDS = (".duckdb", ".sqlite", "duckdb.wal", "-wal", "-shm", ".lock")
_DATA = re.compile(r"[0-9@]")
_UNREADABLE = (".parquet", ".pdf", ".doc", ".7z", ".bz2", ".xz", ".zst")
_IMPORTED = (INBOX_FOLDER, IMPORTS_FOLDER, PUSHES_FOLDER)

_MESSAGES = {
    "runs": "message",
    "run_resources": "message",
    "publications": "message",
    "events": "detail",
}
"""Tables of the state with messages that may contain an identifier."""

Match = Callable[[str], bool]
"""Function that returns True if a text contains what is searched for."""


# -- Texts -----------------------------------------------------------------------------------------
# Texts are compared by their words, without letter case, punctuation and line breaks, and telephone
# numbers by their last digits. "Anna  LEE", "anna_lee.csv" and "lee, anna" name the same person.


def _words(text: str) -> list[str]:
    """Return the words of a text in a form that can be compared."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _numbers(text: str) -> set[str]:
    """Return the last digits of each telephone number in a text."""
    digits = (re.sub(r"\D", "", each) for each in _NUMBER.findall(text))
    return {each[-_PHONE_DIGITS:] for each in digits if len(each) >= _PHONE_DIGITS_MIN}


def _contains(text: str) -> Match:
    """Return the match of a text that a user searches for; it may begin within a word."""
    wanted, numbers = " ".join(_words(text)), _numbers(text) if _NUMBER.fullmatch(text) else set()
    if not wanted:
        raise Misused("the text has no letter and no digit", action="Give a name or an address.")
    return lambda each: wanted in " ".join(_words(each)) or bool(numbers & _numbers(each))


@dataclass(frozen=True, slots=True)
class Identifiers:
    """Identifiers of people: texts by one of their words, and last digits of telephone numbers."""

    texts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()

    @classmethod
    def of(cls, texts: Iterable[str], numbers: Iterable[str] = ()) -> Identifiers:
        """Return the identifiers with these texts and telephone numbers."""
        by_word: dict[str, set[str]] = {}
        for words in map(_words, texts):
            if words:
                by_word.setdefault(max(words, key=len), set()).add(f" {' '.join(words)} ")
        found = frozenset(digits for each in numbers for digits in _numbers(each))
        return cls({word: frozenset(each) for word, each in by_word.items()}, found)

    def found_in(self, text: str) -> set[str]:
        """Return the identifiers that the text contains, as complete words."""
        words = _words(text)
        known = self.texts.keys() & set(words)
        joined = f" {' '.join(words)} " if known else ""
        texts = {each for word in known for each in self.texts[word] if each in joined}
        return texts | (self.numbers & _numbers(text)) if self.numbers else texts

    def without(self, others: Collection[str]) -> Identifiers:
        """Return the identifiers without some that `found_in` returned."""
        texts = {word: each.difference(others) for word, each in self.texts.items()}
        return Identifiers({w: e for w, e in texts.items() if e}, self.numbers.difference(others))

    def match(self, text: str) -> bool:
        """Return True if the text contains one of the identifiers."""
        return bool(self.found_in(text))


def _leaves(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, in their order."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)
    elif value is not None:
        yield str(value)


def _text_of(value: Any) -> str:
    """Return the text of a database's value: of JSON and of lists all texts in it."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    return value if isinstance(value, str) else "\n".join(_leaves(value))


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

    places: tuple[Place, ...]
    not_searched: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the places as `--json` prints them."""
        return asdict(self)


def find(settings: Settings, text: str) -> Found:
    """Find a text in all tables and files of the account's folder. Changes nothing.

    Raises:
        Misused: The text has no letter and no digit.
        WarehouseError: A file cannot be read.
    """
    return _search(settings.folder, _contains(text))


def _search(folder: Path, match: Match) -> Found:
    """Search the databases and all other files of the folder."""
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
        name = str(path.relative_to(folder))
        parts = [("name of the file", path.stem), *_texts_of(path, not_searched, name)]
        places += [Place(name, "", where) for where, text in parts if match(text)]
    return Found(tuple(places), tuple(not_searched))


def _tables(folder: Path) -> Iterator[tuple[str, str, Sequence[str], Iterator[Sequence[Any]]]]:
    """Yield file, table, columns and rows of each table of the folder's databases."""
    warehouse = Warehouse(folder)
    with ExitStack() as stack:
        files = []
        if warehouse.exists:
            files.append((WORK_FILE, stack.enter_context(open_file(warehouse.work))))
        if warehouse.published.exists():
            opened = stack.enter_context(open_read_only(warehouse.published))
            files.append((PUBLISHED_FILE, opened))
        for file, connection in files:
            for (table,) in connection.execute(
                'SELECT format(\'"{}"."{}"\', schema_name, table_name) FROM duckdb_tables()'
                " WHERE NOT internal AND database_name = current_database() ORDER BY ALL"
            ).fetchall():
                rows = connection.execute(f"SELECT * FROM {table}")
                columns = [each[0] for each in rows.description or ()]
                yield file, table.replace('"', ""), columns, _fetched(rows)
        state = stack.enter_context(Database(folder))
        if state.exists:
            for (table,) in state.rows("SELECT name FROM sqlite_master WHERE type = 'table'"):
                found = state.rows(f'SELECT * FROM "{table}"')
                texts = ([to_column(value) for value in each] for each in found)
                yield STATE_FILE, str(table), found[0].keys() if found else [], texts


def _fetched(rows: Any) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query, some at a time."""
    while batch := rows.fetchmany(_BATCH):
        yield from batch


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


def _texts_of(path: Path, not_searched: list[str], name: str) -> Iterator[tuple[str, str]]:
    """Yield each row of a table, each part of an archive, or each line, with its place."""
    suffix, lines = path.suffix.lower(), list[str]()
    with convert_file_errors(path):
        content = path.read_bytes()
    try:
        if suffix in BOOK_SUFFIXES:
            for row in open_table(path).rows():
                yield f"row {row.number}", "\n".join(str(each) for each in row.cells)
        if content.startswith(b"PK"):
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    yield member, _TAG.sub(" ", _decode(archive.read(member)))
        elif suffix == ".gz":
            lines = _decode(gzip.decompress(content)).splitlines()
        elif suffix in _UNREADABLE:
            not_searched.append(name)
        elif suffix not in BOOK_SUFFIXES:
            lines = html.unescape(_decode(content)).splitlines(keepends=True)
    except (SpreadsheetError, OSError, EOFError, zipfile.BadZipFile):
        not_searched.append(name)
    # A cell of a csv file may have line breaks.
    rows = csv.reader(lines) if suffix in TEXT_SUFFIXES else ([each] for each in lines)
    with suppress(csv.Error):
        for number, cells in enumerate(rows, 1):
            yield f"row {number}", "\n".join(cells)


def _decode(content: bytes) -> str:
    """Return the text of a file in one of the usual encodings."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _imports_only_about(folder: Path, match: Match) -> Iterator[Path]:
    """Yield the imported files, and drafts of the import page, that hold only matching rows."""
    for name in _IMPORTED:
        for path in _files(folder / name, folder, []) if (folder / name).is_dir() else ():
            rows = [text for place, text in _texts_of(path, [], "") if place.startswith("row ")]
            others = [each for each in rows if each.strip() and not match(each)]
            # Only the headings of one sheet may not match.
            is_only = len(others) < len(rows) and not any(map(_DATA.search, others))
            if is_only and len(others) <= 1 and _sheet_count(path) == 1:
                within = path.relative_to(folder / name)
                yield folder / name / within.parts[0] if name == IMPORTS_FOLDER else path


def _sheet_count(path: Path) -> int:
    """Return the number of sheets of an xlsx workbook, or 1 for a text; other formats have 0."""
    if path.suffix.lower() in TEXT_SUFFIXES:
        return 1
    if not zipfile.is_zipfile(path):
        return 0
    with zipfile.ZipFile(path) as archive:
        return sum(each.startswith("xl/worksheets/sheet") for each in archive.namelist())


# -- Purge -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class PurgeReport:
    """Result of a purge, or of its preview.

    Attributes:
        ids: Purged records.
        counts: Number of emptied rows by table.
        files: Removed files.
        places: Places that still contain an identifier; in a preview, all places.
        not_searched: Files that cannot be searched.
        backups: Backups that still contain the people.
        removed: Removed values as (table, record, field, value).
    """

    ids: tuple[str, ...]
    is_applied: bool
    counts: Counter[str] = field(default_factory=Counter)
    files: list[str] = field(default_factory=list)
    places: tuple[Place, ...] = ()
    not_searched: tuple[str, ...] = ()
    backups: tuple[Path, ...] = ()
    removed: list[tuple[str, str, str, str]] = field(default_factory=list)

    @property
    def exit_status(self) -> int:
        """Return 3 if places are left that the user must check, else 0."""
        return 3 if self.is_applied and self.places else 0

    def as_json(self) -> dict[str, Any]:
        """Return the report as `--json` prints it, without personal data."""
        return {
            "ids": list(self.ids),
            "applied": self.is_applied,
            "rows": dict(+self.counts),
            "files": self.files,
            "places": [asdict(each) for each in self.places],
            "not_searched": list(self.not_searched),
            "backups": [str(each) for each in self.backups],
        }


def deleted_before(settings: Settings, age: str, now: datetime) -> tuple[str, ...]:
    """Return the ids of people whom the platform deleted longer ago, and who are not purged yet.

    Args:
        settings: Settings of the account.
        age: Number of days, months or years, for example `24m`.
        now: Current time.

    Raises:
        Misused: The age has another form.
        WarehouseError: A file cannot be read.
    """
    found = re.fullmatch(r"([0-9]{1,4}) ?([dmy])", age.strip())
    if found is None:
        raise Misused(f"the age is {age!r}", action="Give days, months or years: 90d, 24m or 2y.")
    unit = {"d": "DAY", "m": "MONTH", "y": "YEAR"}[found[2]]
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return ()
    ids: list[str] = []
    for resource in PEOPLE:
        personal = [each.name for each in resource.detail_fields if each.personal]
        full = "list_has_any(json_keys(_record), $names)"
        rows = warehouse.read(
            lambda connection, sql, names: connection.execute(sql, names).fetchall(),
            f"SELECT id FROM landing.{resource.name} AS one WHERE _deleted_at <"
            f" $now::TIMESTAMPTZ - to_{unit.lower()}s({int(found[1])}) AND ({full} OR EXISTS"
            f" (FROM history.{resource.name} AS each WHERE each.id = one.id AND {full}))"
            " ORDER BY id",
            {"names": personal, "now": now.isoformat()},
        )
        ids += [id for (id,) in rows]
    return tuple(ids)


async def purge(
    settings: Settings,
    ids: Collection[str],
    *,
    applies: bool = False,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> PurgeReport:
    """Empty every version of these people's records everywhere in the account's folder.

    Without `applies`, only report what would be removed. An interrupted purge is completed first.

    Raises:
        Misused: A record is unknown or the platform still has it, or pushed rows are unconfirmed.
        AccountBusy: A pull or a push is running.
        PublishingRefused: The published file could not be built again. Run the purge again.
        WarehouseError: A file cannot be used. Run the purge again.
    """
    check_files(settings)
    with Database(settings.folder) as database:
        if not database.exists:
            raise Misused("no records are loaded", action="Check CONNECTOR_DATA_DIR.")
        async with hold(settings.folder, "person purge"):
            return await asyncio.to_thread(_Purge(settings, database, ids, applies, now()).run)


def unfinished_purges(database: Database) -> dict[str, list[str]]:
    """Return the ids of interrupted purges, and of those that a restore must repeat, by time."""
    if not database.exists:
        return {}
    rows = database.rows("SELECT at, ids FROM purges WHERE ended_at IS NULL")
    return {each["at"].isoformat(): each["ids"] for each in rows}


class _Purge:
    """One purge. The caller holds the lock of the account."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        ids: Collection[str],
        applies: bool,
        at: datetime,
    ) -> None:
        self._settings, self._folder, self._database = settings, settings.folder, database
        self._given, self._applies, self._at = set(ids), applies, at
        self._warehouse = Warehouse(settings.folder)
        self._ids: list[str] = []
        self._report = PurgeReport((), applies)
        self._all, self._own = Identifiers(), Identifiers()

    def run(self) -> PurgeReport:
        """Purge, or preview. The work file is last: it has the identifiers that others need."""
        self._warehouse.prepare()
        self._choose_ids()
        if not self._ids:
            return self._report
        self._all, self._own = self._warehouse.read(_identifiers, self._ids)
        bookings = self._warehouse.read(_deleted_bookings, self._ids)
        self._empty_journal({*self._ids, *bookings})
        self._remove_files()
        self._empty_messages()
        self._empty_work_file()
        if self._applies:
            self._warehouse.compact()
            self._database.compact()
            self._publish()
            self._record_end()
        found = _search(self._folder, self._all.match)
        report, made = self._report, latest_backups(self._database)
        report.places, report.not_searched = found.places, found.not_searched
        report.backups = tuple(
            Path(e.file) for e in made if e.file is not None and e.began_at < self._at
        )
        return report

    def _choose_ids(self) -> None:
        """Choose the given ids, and those of unfinished purges that the platform has deleted.

        Raises `Misused` unless the platform has deleted all given records.
        """
        waiting = {id for ids in unfinished_purges(self._database).values() for id in ids}
        states = {
            id: is_deleted
            for resource in PEOPLE
            for id, is_deleted in self._warehouse.read(
                lambda connection, name: connection.execute(
                    f"SELECT id, _deleted_at IS NOT NULL FROM landing.{name}"
                    " WHERE id IN (SELECT unnest($1))",
                    [sorted(self._given | waiting)],
                ).fetchall(),
                resource.name,
            )
        }
        if unknown := sorted(self._given - states.keys()):
            raise Misused(
                f"no candidate or lead has the id {', '.join(unknown)}",
                action="Run 'connector person find TEXT' with a name or an address, and copy the"
                " id of the record.",
            )
        if living := sorted(each for each in self._given if not states[each]):
            raise Misused(
                f"the platform still has {', '.join(living)}",
                action="Delete the record on the platform, run 'connector pull', and purge again.",
            )
        self._ids = sorted(id for id, is_deleted in states.items() if is_deleted)
        self._report.ids = tuple(self._ids)

    # -- Journal -----------------------------------------------------------------------------------

    def _empty_journal(self, ids: Collection[str]) -> None:
        """Empty the pushed rows of these records, and rows without a record that have an address
        or number of the people. A checksum stays, so that the same file creates nothing again.
        """
        journal = Journal(self._database, now=lambda: self._at)
        batches = {each.batch: each for each in journal.batches()}
        about = [row for name in batches for row in journal.rows(name) if self._is_about(row, ids)]
        if unconfirmed := sum(row.is_open for row in about):
            raise Misused(
                f"{count_noun(unconfirmed, 'pushed row')} of these people unconfirmed",
                action="Run 'connector resolve', then purge again.",
            )
        for row in about:
            text = _text_of({**row.values, "before": row.before})
            self._report.removed.append(("rows", f"{row.batch} row {row.number}", "row", text))
        self._report.counts["rows"] += len(about)
        if not self._applies:
            return
        with self._database.transaction() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            journal.empty(row.key for row in about)
            for name in {row.batch for row in about}:
                texts = (batches[name].file, batches[name].message)
                shown = [PURGED if each and self._all.match(each) else each for each in texts]
                connection.execute(
                    "UPDATE batches SET file = ?, message = ? WHERE batch = ?", (*shown, name)
                )
            self._database.put("purges", {"at": self._at, "ids": self._ids})

    def _is_about(self, row: Row, ids: Collection[str]) -> bool:
        """Return True if a pushed row is about the people."""
        if row.record_id is not None:
            return row.record_id in ids
        parts = (row.fields, row.then, row.before, [each.body for each in row.attempts])
        problems = [(each.received, each.found, each.message) for each in row.problems]
        return self._own.match(json.dumps([*parts, problems], ensure_ascii=False))

    def _record_end(self) -> None:
        """Record that this purge and interrupted ones have ended, with the counts."""
        ended = self._at.isoformat(), json.dumps(+self._report.counts)
        for at, ids in unfinished_purges(self._database).items():
            if set(ids) <= set(self._ids):
                sql = "UPDATE purges SET ended_at = ?, counts = ? WHERE at = ?"
                self._database.write(sql, *ended, at)

    # -- Files -------------------------------------------------------------------------------------

    def _remove_files(self) -> None:
        """Remove imported files and drafts that hold only these people."""
        removed = list(_imports_only_about(self._folder, self._own.match))
        self._report.files += [str(each.relative_to(self._folder)) for each in removed]
        for path in removed if self._applies else ():
            with convert_file_errors(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    # -- Work file and published file --------------------------------------------------------------

    def _empty_work_file(self) -> None:
        """Empty the people's records, and their past or deleted bookings."""
        with open_file(self._warehouse.work) as connection:
            connection.execute("BEGIN")
            try:
                for resource in CATALOG.values():
                    self._empty_records(connection, resource)
                self._empty_queue_errors(connection)
            finally:
                connection.execute("COMMIT" if self._applies else "ROLLBACK")

    def _empty_records(self, connection: Connection, resource: Declaration) -> None:
        """Empty the personal fields of the resource's versions that describe the people."""
        for schema in ("landing", "history"):
            table = f"{schema}.{quoted(resource.name)}"
            places, records, gone = list[int](), list[str](), list[list[str]]()
            for rowid, id, text in connection.execute(
                f"SELECT rowid, id, _record FROM {table} AS one WHERE"
                f" {_condition(resource, schema)}",
                [self._ids],
            ).fetchall():
                record = json.loads(text)
                names = _fields_to_empty(resource, record, self._all)
                if not names:
                    continue
                places.append(rowid)
                records.append(as_json({n: v for n, v in record.items() if n not in names}))
                gone.append(sorted(names))
                self._report.removed += [
                    (f"{schema}.{resource.name}", id, name, _text_of(record[name]))
                    for name in names
                    if record[name] is not None
                ]
            if places:
                self._report.counts[f"{schema}.{resource.name}"] += len(places)
                gone_type = pa.list_(pa.string())
                stage = _places_table(
                    places, record=pa.array(records), gone=pa.array(gone, gone_type)
                )
                names = {each.name for each in resource.detail_fields}
                _replace_rows(connection, table, names, stage)

    def _empty_queue_errors(self, connection: Connection) -> None:
        """Replace the errors of queued records that contain an identifier."""
        rows = connection.execute("SELECT rowid, error FROM sync.queue WHERE error IS NOT NULL")
        found = [rowid for rowid, text in rows.fetchall() if self._all.match(text)]
        self._report.counts["sync.queue"] += len(found)
        with staged(connection, _places_table(found)):
            connection.execute(
                f"UPDATE sync.queue SET error = '{PURGED}' WHERE rowid IN (SELECT place FROM stage)"
            )

    def _empty_messages(self) -> None:
        """Replace the messages of runs, publications and events that contain an identifier."""
        for table, column in _MESSAGES.items():
            sql = f"SELECT {column}, count(*) FROM {table} WHERE {column} IS NOT NULL GROUP BY 1"
            for text, count in self._database.rows(sql):
                if self._all.match(text):
                    self._report.counts[f"sync.{table}"] += count
                    if self._applies:
                        self._database.write(
                            f"UPDATE {table} SET {column} = ? WHERE {column} = ?", PURGED, text
                        )

    def _publish(self) -> None:
        """Build the published file and the report again, if they exist."""
        published, page = self._warehouse.published, self._folder / REPORT_FILE
        if published.exists():
            publish(self._settings)
        if page.exists():
            try:
                account = self._settings.account
                write_report(published, page, account=account)
            except WarehouseError as error:
                if error.code != "marts_missing":
                    raise
                page.unlink()


def _identifiers(connection: Connection, ids: list[str]) -> tuple[Identifiers, Identifiers]:
    """Return all identifiers of the people, and the addresses and numbers that no other candidate
    or lead has.
    """
    names, texts, numbers = list[str](), list[str](), list[str]()
    for resource in PEOPLE:
        (subject,) = resource.subjects
        urls = [each.name for each in resource.detail_fields if each.format == "url"]
        for schema in ("landing", "history"):
            for (text,) in connection.execute(
                f"SELECT _record FROM {schema}.{resource.name} WHERE id IN (SELECT unnest($1))",
                [ids],
            ).fetchall():
                record = {n: str(v) for n, v in json.loads(text).items() if v is not None}
                texts += [record[each] for each in (*subject.emails, *urls) if each in record]
                numbers += [record[each] for each in subject.phones if each in record]
                for parts in subject.names:
                    full = [record[each] for each in parts if record.get(each)]
                    names += [" ".join(full), " ".join(reversed(full))] if len(full) > 1 else []
    own, shared = Identifiers.of(texts, numbers), set[str]()
    for resource in PEOPLE:
        rows = connection.execute(
            f"SELECT _record FROM landing.{resource.name} WHERE _deleted_at IS NULL"
        )
        for (text,) in _fetched(rows):
            shared |= own.found_in(_text_of(text))
    return Identifiers.of([*texts, *names], numbers), own.without(shared)


def _deleted_bookings(connection: Connection, ids: list[str]) -> list[str]:
    """Return the ids of deleted records that refer to the people."""
    return [
        id
        for resource in CATALOG.values()
        if (condition := _references(resource))
        for (id,) in connection.execute(
            f"SELECT id FROM landing.{quoted(resource.name)} WHERE _deleted_at IS NOT NULL"
            f" AND {condition}",
            [ids],
        ).fetchall()
    ]


def _references(resource: Declaration) -> str:
    """Return the SQL condition that a record refers to one of the people; empty if it cannot."""
    names = {name for each in resource.subjects for name in each.ids if name != "id"}
    return " OR ".join(f"{each} IN (SELECT unnest($1))" for each in sorted(names)).join(
        "()" * bool(names)
    )


def _condition(resource: Declaration, schema: str) -> str:
    """Return the SQL condition of the versions to empty. What the platform still shows stays."""
    if resource in PEOPLE:
        return "id IN (SELECT unnest($1))"
    if not (refers := _references(resource)):
        return "FALSE AND id IN (SELECT unnest($1))"
    if schema == "landing":
        return f"{refers} AND _deleted_at IS NOT NULL"
    return f"{refers} AND _valid_to IS NOT NULL"


def _fields_to_empty(
    resource: Declaration, record: Mapping[str, Any], identifiers: Identifiers
) -> set[str]:
    """Return the fields of a record to empty: personal ones, and of a person's own record also
    unknown fields and texts with an identifier.
    """
    if resource not in PEOPLE:
        subjects = [each for each in resource.subjects if each.ids and each.ids != ("id",)]
        return {name for each in subjects for name in each.fields} & record.keys()
    known = resource.fields
    return {
        name
        for name, value in record.items()
        if name not in known
        or known[name].personal
        or (isinstance(value, str) and name != "id" and identifiers.match(value))
    }


def _places_table(rowids: Sequence[int], **columns: pa.Array) -> pa.Table:
    """Return an Arrow table with DuckDB's row ids as the column `place`, and further columns."""
    return pa.table({"place": pa.array(rowids, pa.int64()), **columns})


def _replace_rows(
    connection: Connection, table: str, names: Collection[str], stage: pa.Table
) -> None:
    """Write the staged rows again without their `gone` columns, and delete the former rows."""
    columns = [
        each[0] for each in connection.execute(f"SELECT * FROM {table} LIMIT 0").description or ()
    ]
    sets = ", ".join(
        f"CASE WHEN list_contains(stage.gone, '{each}') THEN NULL ELSE one.{quoted(each)} END"
        f" AS {quoted(each)}"
        for each in columns
        if each in names and each != "id"
    )
    with staged(connection, stage):
        # An update of spread rows would need much more memory.
        connection.execute(
            f"INSERT INTO {table} SELECT one.* REPLACE ({sets}, stage.record AS _record)"
            f" FROM {table} AS one JOIN stage ON one.rowid = stage.place"
        )
        connection.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT place FROM stage)")

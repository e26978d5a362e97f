"""Carry-over: tables and checks whose inputs are as they were when last published.

A table is a function of its SQL and of the rows that it reads, in the columns that it names. Both
are kept as digests beside the published file. Where they are the same again, the table is copied
from that file, and a check that passed has passed. Rows and not SQL are compared wherever a table
or a view is read: a change that leaves the rows of a model as they were goes no further.

A text that could depend on anything else (the clock, chance, a file, a table that it does not name
by `ref` or `source`) has no digest, and is built and run each time. So is a check that failed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import duckdb

from connector.publishing.lineage import Shapes
from connector.publishing.project import (
    BuildRecord,
    Call,
    Check,
    Described,
    GenericTest,
    Model,
    Project,
    Seed,
    Template,
)
from connector.system.atomic_files import replacing
from connector.warehouse.duckdb_file import naming_errors, quoted
from connector.warehouse.schema import SCHEMA_VERSION

# -- Record ----------------------------------------------------------------------------------------

RECORD_ENDING = ".json"
"""What the record is called, behind the name of the published file."""

_FORMAT = f"1, tables {SCHEMA_VERSION}, DuckDB {duckdb.__version__}"
"""How digests are made; those of another version are as good as none. The first number rises where
a build makes something else of the same inputs.
"""


def write_record(
    published: Path, record: BuildRecord, publication: str, *, is_draft: bool = False
) -> None:
    """Keep the record of a publication beside its file, or where the file is to be.

    Raises a `WarehouseError`.
    """
    path = published.with_name(published.name + RECORD_ENDING)
    with naming_errors(path), replacing(path) as file:
        stamp = None if is_draft else _stamp(published)
        kept = {"format": _FORMAT, "publication": publication, "file": stamp, **asdict(record)}
        file.write(json.dumps(kept).encode())


def read_record(published: Path, draft: str | None = None) -> BuildRecord | None:
    """The record of the file as it is now, or of a draft; None where there is none."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(published.with_name(published.name + RECORD_ENDING).read_bytes())
        of_file = kept["file"] if draft is None else kept["publication"]
        wanted = _stamp(published) if draft is None else draft
        if (kept["format"], of_file) == (_FORMAT, wanted):
            return BuildRecord(kept["nodes"], kept["checks"], kept["rows"], kept["texts"])
    return None


def _stamp(path: Path) -> list[int]:
    """What changes when anybody writes to the file, or puts another in its place."""
    found = path.stat()
    return [found.st_ino, found.st_size, found.st_mtime_ns]


# -- Digest ----------------------------------------------------------------------------------------

_COMMENT = re.compile(r"--[^\n]*")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(
    r"'[^']*'|count\(\*\)|[()]|\bselect\b|[\w\"]+\s*\.\s*\*"
    r"|(?:(?<=select)|(?<=distinct)|(?<=all)|(?<=[,(]))\s*\*"
)
"""Texts, brackets, where a select begins, and stars, which are no multiplication there."""

_ALIAS = re.compile(r"\s*as (\w+)(\s*\()?")

_WHOLE = re.compile(
    r"\b(natural|columns|pivot|unpivot|summarize|table|distinct on)\b"
    r"|(^|\(|\bunion|\ball|\bby name)\s*from\b"
)
"""What reads columns without their names, beside a star."""

_OPEN = re.compile(
    r"\b(now|today|random|uuid\w*|gen_random_uuid|nextval|currval|getenv|getvariable|glob|setseed"
    r"|current_setting|query|\w*_scan|(read|query|duckdb|pragma)_\w+)\s*\("
    r"|\b(current_(date|time|timestamp)|localtime(stamp)?|rowid|information_schema|tablesample)\b"
    r"|(?<!\bdistinct )\b(from|join) '|\busing sample\b"
)
"""What depends on more than the rows of the tables that are named."""

_Words = frozenset[str] | None
"""What may be names of columns in a text; None where any column may be read."""


class InputDigests:
    """Digests of all that the tables and checks of a file are made of."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, project: Project, earlier: BuildRecord
    ) -> None:
        self._connection, self._project, self._earlier = connection, project, earlier
        schemas = {each.table.partition(".")[0] for each in project.nodes}
        schemas |= {each.table.partition(".")[0] for each in project.sources.values()}
        self._schema = re.compile(rf"\b({'|'.join(sorted(schemas))})\s*\.")
        self._columns: dict[str, dict[str, str]] = {}
        self._rows: dict[str, dict[str, str]] = {}
        self._nodes: dict[str, str] = {}
        self._checks: dict[str, str] = {}
        self._reads: dict[tuple[str, str], dict[str, _Words]] = {
            (each.kind, each.name): self._words_of(each)
            for each in (*project.models.values(), *project.checks)
            if each.kind != "view"
        }
        self._readers: dict[str, list[_Words]] = {}
        for reads in self._reads.values():
            for table, words in reads.items():
                self._readers.setdefault(table, []).append(words)

    def is_same(self, node: Model | Seed) -> bool:
        """Whether the table would be what it was. Kept until the table is made or copied."""
        digest = self._of(node)
        self._nodes[node.name] = digest or ""
        return digest is not None and self._earlier.nodes.get(node.name) == digest

    def copied(self, node: Model | Seed, columns: Iterable[Described]) -> None:
        """Take over what is known of a copied table, whatever it should be by now."""
        self._columns[node.table] = {each.name: each.type for each in columns}
        self._nodes[node.name] = self._earlier.nodes.get(node.name, "")
        self._rows[node.table] = dict(self._earlier.rows.get(node.table, {}))

    def has_passed(self, check: Check) -> bool:
        """Whether the check has passed on the very same rows."""
        digest = self._of(check)
        self._checks[check.name] = digest or ""
        return digest is not None and self._earlier.checks.get(check.name) == digest

    def failed(self, check: Check) -> None:
        """Forget the check, so that it is run the next time."""
        del self._checks[check.name]

    def record(self, texts: str) -> BuildRecord:
        """The record of the file, as it was built by now."""
        kept = {each.table for each in self._project.nodes if each.kind != "view"}
        rows = {table: rows for table, rows in self._rows.items() if table in kept}
        return BuildRecord(self._nodes, self._checks, rows, texts)

    def _of(self, node: Model | Seed | Check) -> str | None:
        """The digest of all that it is made of; None where that cannot be known."""
        if isinstance(node, Seed):
            with suppress(OSError):
                return _digest([node.columns, node.path.read_bytes()])
            return None
        if isinstance(node, GenericTest):
            asked = (node.kind, node.column, node.to, node.field)
            text = repr((*asked, node.values, node.quotes_values))
        elif self.is_open(node.template):
            return None
        else:
            text = self._project.sql(node.template)
        reads = self._reads[node.kind, node.name]
        return _digest([text, *(self._read(table, words) for table, words in reads.items())])

    def is_open(self, template: Template) -> bool:
        """Whether the text may depend on more than what it refers to."""
        text = " ".join(" ".join(_plain(part) for _, part in template.parts).split())
        return bool(_OPEN.search(text) or self._schema.search(text))

    def _words_of(self, node: Model | Check) -> dict[str, _Words]:
        """The tables that it reads, each with the words that may be its columns."""
        if isinstance(node, GenericTest):
            # One that fails is run each time, so that its examples are no matter.
            read = {node.table: frozenset((node.column.lower(),))}
            if node.to is not None:
                other = frozenset(((node.field or "id").lower(),))
                read[node.to] = read.get(node.to, frozenset()) | other
            return {**read}
        text = " ".join(_plain(part) for _, part in node.template.parts)
        words = None if _WHOLE.search(text) else frozenset(_WORD.findall(text))
        whole = {self._project.table_of(each) for each in _starred(node.template)}
        calls = (each for each in node.template.calls if each.word != "config")
        read_by_name = dict.fromkeys((self._project.table_of(each) for each in calls), words)
        return read_by_name | dict.fromkeys(whole)

    def _read(self, table: str, words: _Words) -> list[str]:
        """The table as a reader with these words sees it."""
        columns = self._columns_of(table)
        types = [type for name, type in columns.items() if _is_named(name, words)]
        key = _listed(columns, words)
        if key not in self._rows.setdefault(table, {}):
            readers = (*self._readers[table], words)
            self._rows[table] |= self._look(table, {_listed(columns, each) for each in readers})
        return [table, key, *types, self._rows[table][key]]

    def _look(self, table: str, wanted: set[str]) -> dict[str, str]:
        """Digests of the table's rows in each of these selections of columns.

        The order of rows is no part of them: their number, and the sum of their hashes.
        """
        sums = [f"coalesce(sum(hash({names})), 0)" if names else "0" for names in wanted]
        found = self._connection.execute(f"SELECT count(*), {', '.join(sums)} FROM {table}")
        ((count, *values),) = found.fetchall()
        return {n: f"{count} {int(v):x}" for n, v in zip(wanted, values, strict=True)}

    def _columns_of(self, table: str) -> dict[str, str]:
        """The columns of the table with their types."""
        if table not in self._columns:
            found = self._connection.execute(f"FROM {table} LIMIT 0").description or ()
            self._columns[table] = {str(each[0]): str(each[1]) for each in found}
        return self._columns[table]


def _plain(part: str | Call) -> str:
    """The text of a part without comments, in small letters."""
    return _COMMENT.sub("", part).lower() if isinstance(part, str) else ""


@dataclass(slots=True)
class _Select:
    """Tables that one select reads, with their aliases, and what its stars are of."""

    calls: list[tuple[Call, str]] = field(default_factory=list)
    stars: set[str] = field(default_factory=set)

    @property
    def starred(self) -> Iterator[Call]:
        """The tables of which all columns are read."""
        for call, alias in self.calls:
            if "" in self.stars or alias in self.stars or (self.stars and not alias):
                yield call


def _starred(template: Template) -> list[Call]:
    """The tables of which a select reads all columns, since it has a star."""
    selects = [_Select()]
    # For each bracket that is open the select that it is in, which may begin behind it.
    around = [selects[0]]
    parts: list[str | Call] = [part for _, part in template.parts]
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        if isinstance(part, Call):
            named = _ALIAS.match(_plain(after))
            around[-1].calls.append((part, named.group(1) if named else ""))
            if named and named.group(2):
                # Other names for its columns, by their places.
                around[-1].stars.add(named.group(1))
            continue
        for found in _TOKEN.findall(_plain(part)):
            if found == "(":
                around.append(around[-1])
            elif found == ")":
                around.pop()
            elif found == "select":
                around[-1] = _Select()
                selects.append(around[-1])
            elif found.endswith("*"):
                alias = found.strip('* ."\n')
                for each in around if alias else around[-1:]:
                    each.stars.add(alias)
    return [call for each in selects for call in each.starred if call.word != "config"]


def _is_named(column: str, words: _Words) -> bool:
    return words is None or column.lower() in words


def _listed(columns: Iterable[str], words: _Words) -> str:
    """The columns that a reader with these words reads, as SQL has them."""
    return ", ".join(quoted(each) for each in columns if _is_named(each, words))


def texts_digest(project: Project, shapes: Shapes) -> str:
    """Digest of everything that the comments of a project's tables are made of."""
    sources = {each.table for each in project.sources.values()}
    return _digest([project.digest, *((t, shapes[t]) for t in sorted(sources) if t in shapes)])


def _digest(parts: Iterable[object]) -> str:
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()

"""Runs generic tests and audits: each is a query that finds the rows that are wrong.

Examples of what was found are values of `id` and `..._id` columns alone: no result holds anything
personal.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from connector.errors import MartsMissing, UnknownName, naming
from connector.publishing.lineage import Shapes
from connector.publishing.project import (
    Audit,
    Building,
    Checked,
    GenericTest,
    Project,
    Seed,
    naming_line,
)
from connector.publishing.seeds import read_rows
from connector.system.atomic_files import replacing
from connector.warehouse.duckdb_file import literal, make_folder, naming_errors, quoted

EXAMPLES_MAX = 5
"""Rows of each failed check that are named."""

Check = GenericTest | Audit


def run_checks(
    connection: duckdb.DuckDBPyConnection,
    project: Project,
    checks: Iterable[Check],
    shapes: Shapes,
    watch: Building | None = None,
) -> Iterator[Checked]:
    """Run the checks, one after another. Raises `ModelFailed` for one that cannot be run."""
    for check in checks:
        path = check.path if isinstance(check, Audit) else check.place.path
        with naming_line(path, f"{check.name} cannot be run"):
            failing, examples = _found(connection, _query(project, check, shapes))
        done = _checked(check, failing, examples)
        if watch is not None:
            watch.checked(done)
        yield done


def checks_of(project: Project, names: Iterable[str]) -> tuple[Check, ...]:
    """The tests and audits of what the seeds and models are: those that read one of them, and
    those of the source tables that they read and of nothing else.
    """
    wanted = frozenset(names)
    models = (project.models[name] for name in wanted if name in project.models)
    sources = frozenset(table for model in models for table in project.sources_of(model))
    return tuple(
        check
        for check in project.checks
        if (read := project.reads(check)) & wanted
        or (not read and project.sources_read(check) & sources)
    )


def checks_about(project: Project, name: str) -> tuple[Check, ...]:
    """The tests and audits of one seed, model or source table (`schema.table`): each check is of
    one of them, an audit of the first that it refers to.
    """
    return tuple(check for check in project.checks if check.about == name)


def _query(project: Project, check: Check, shapes: Shapes) -> str:
    """The query for the wrong rows; an audit's text begins on its first line."""
    if isinstance(check, Audit):
        return project.sql(check.template)
    column = quoted(check.column)
    if check.kind == "unique":
        return (
            f"SELECT {column} FROM {check.table} WHERE {column} IS NOT NULL "
            f"GROUP BY 1 HAVING count(*) > 1"
        )
    keys = [each.name for each in shapes.get(check.table, ()) if _is_id(each.name)]
    shown = ", ".join(quoted(key) for key in keys) or "1"
    return f"SELECT {shown} FROM {check.table} AS checked WHERE {_wrong(check)}"


def _wrong(check: GenericTest) -> str:
    """The condition of a wrong row."""
    column = f"checked.{quoted(check.column)}"
    if check.kind == "not_null":
        return f"{column} IS NULL"
    if check.kind == "accepted_values":
        values = [literal(v) if check.quotes_values else v for v in check.values]
        return f"{column} NOT IN ({', '.join(values)})"
    return (
        f"{column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {check.to} AS other "
        f"WHERE other.{quoted(check.field or 'id')} = {column})"
    )


def _found(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[int, tuple[str, ...]]:
    """How many rows the query finds, and the ids of a few, the smallest first."""
    cursor = connection.execute(
        f"SELECT count(*) OVER () AS failing, found.* FROM ({sql}\n) AS found "
        f"ORDER BY ALL LIMIT {EXAMPLES_MAX}"
    )
    names = [str(each[0]) for each in cursor.description or ()]
    rows = cursor.fetchall()
    if not rows:
        return 0, ()
    place = next((n for n, name in enumerate(names) if n and _is_id(name)), None)
    shown = () if place is None else (str(row[place]) for row in rows if row[place] is not None)
    return int(rows[0][0]), tuple(dict.fromkeys(shown))


def _is_id(name: str) -> bool:
    return name == "id" or name.endswith("_id")


def _checked(check: Check, failing: int, examples: tuple[str, ...]) -> Checked:
    return Checked(
        name=check.name,
        model=check.about,
        column=None if isinstance(check, Audit) else check.column,
        kind="audit" if isinstance(check, Audit) else check.kind,
        severity=check.severity,
        failing=failing,
        examples=examples,
        about=check.sentence,
    )


# -- Unmapped --------------------------------------------------------------------------------------
# Values in the data that no row of a seed names, and copies of the seeds to name them in.
#
# Which values are missing is the affair of audits, one for each seed that maps something; here they
# become rows that wait to be filled in. A person's file is only ever appended to.


AUDITS: Mapping[str, str] = {
    "people": "unmapped_people",
    "lead_statuses": "unmapped_lead_statuses",
    "source_groups": "unmapped_sources",
    "exchange_rates": "unmapped_currencies",
}
"""The audit that finds what each seed does not name; the first column of its rows is the value."""

# A spreadsheet program would take these for the beginning of a formula and carry it out.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A seed, with the values in the data that none of its rows names."""

    seed: Seed
    audit: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A person's copy of a seed: made now or found there, and the values appended to it.

    `left_out` are values that a spreadsheet program would take for a formula.
    """

    path: Path
    is_new: bool
    appended: tuple[str, ...]
    left_out: tuple[str, ...]


def unmapped(file: Path, project: Project) -> tuple[Unmapped, ...]:
    """What each seed does not name, of the data in a file that was built.

    Raises `MartsMissing` where the file has no marts, or another `WarehouseError`.
    """
    audits = {each.name: each for each in project.audits}
    found = []
    with naming_errors(file), duckdb.connect(str(file), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        if not connection.execute("FROM duckdb_tables() WHERE schema_name = 'marts'").fetchone():
            raise MartsMissing(f"{file} has no marts, and they say what the seeds do not name")
        for name, audit_name in AUDITS.items():
            if name in project.seeds and audit_name in audits:
                audit = audits[audit_name]
                with naming_line(audit.path, f"{audit_name} cannot be run"):
                    rows = connection.execute(project.sql(audit.template)).fetchall()
                values = sorted({str(row[0]) for row in rows if row[0] is not None})
                found.append(Unmapped(project.seeds[name], audit_name, tuple(values)))
    return tuple(found)


def write_copies(
    folder: Path, found: Collection[Unmapped], project: Project, asked: Collection[str] = ()
) -> tuple[Written, ...]:
    """Write copies of seeds into a person's folder, with unmapped values as rows to fill in.

    Without `asked` (names of seeds), those that leave something unmapped. A file that is there
    keeps every byte of it, and gets what it does not name yet. Raises `UnknownName`, `SeedInvalid`
    and `WarehouseError`.
    """
    missing = {each.seed.name: each.values for each in found}
    for name in asked:
        if name not in project.seeds:
            raise UnknownName("seed", name, project.seeds)
    names = asked or [name for name, values in missing.items() if values]
    make_folder(folder)
    return tuple(_write(folder, project.seeds[n], missing.get(n, ())) for n in sorted(set(names)))


def _write(folder: Path, seed: Seed, missing: Collection[str]) -> Written:
    path = folder / f"{seed.name}.csv"
    is_new = not path.exists()
    read = read_rows(seed)
    # Rows that wait to be filled in name nothing yet, and need not be written twice.
    named = {cells[0] for _, cells in read.rows}
    left_out = tuple(value for value in missing if value.startswith(_FORMULA))
    appended = tuple(value for value in missing if value not in named and value not in left_out)
    try:
        held = seed.path.read_bytes()
        if appended or is_new:
            # Whole or not at all: a person's work must not be lost half-way.
            with replacing(path) as file:
                file.write(held + _lines(held, seed, appended, read.delimiter))
    except OSError as error:
        raise naming(path, error) from error
    return Written(path, is_new, appended, left_out)


def _lines(held: bytes, seed: Seed, values: Collection[str], delimiter: str) -> bytes:
    """The rows to append, each with its first cell alone, in the file's own manner."""
    end = "\r\n" if b"\r\n" in held else "\n"
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    for value in values:
        writer.writerow([value, *("" for _ in seed.columns[1:])])
    begun = "" if not values or held.endswith(b"\n") else end
    return f"{begun}{text.getvalue()}".encode()

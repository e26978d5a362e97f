"""Values in the data that no row of a seed names, and copies of the seeds to name them in.

Which values are missing is the affair of audits, one for each seed that maps something; here they
become rows that wait to be filled in. A person's file is only ever appended to.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from connector.disk import replacing
from connector.errors import MartsMissing, UnknownName
from connector.errors.files import naming
from connector.models.declared import Seed
from connector.models.project import Project
from connector.models.seeds import read_rows
from connector.models.statement import naming_line
from connector.warehouse.file import make_folder, naming_errors

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

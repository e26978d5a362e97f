"""Exports of the published file: relations of DuckDB, and Parquet in folders."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import duckdb
import pyarrow as pa

from connector.atomic_files import sync_folder
from connector.errors import Misused, UnknownName
from connector.settings.model import load_settings
from connector.warehouse.duckdb_file import convert_errors
from connector.warehouse.published_file import (
    list_tables,
    read_table,
    require_published,
    to_arrow,
    write_parquet,
)
from connector.warehouse.runs import Publication, read_own_publication
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
        NothingPublished: There is no published file.
        SettingsError: A setting is invalid.
    """
    return _to_relation(read_table(_find_published_file(account), table))


def sql(query: str, *, account: str | None = None) -> duckdb.DuckDBPyRelation:
    """Return the result of a query of the published file, as `read` does.

    Raises the errors of `read`, and `Misused` with DuckDB's message if it refuses the query.
    """
    return _to_relation(to_arrow(_find_published_file(account), query))


def _to_relation(rows: pa.Table) -> duckdb.DuckDBPyRelation:
    """Return the rows as a relation in memory."""
    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    return connection.from_arrow(rows)


def _find_published_file(account: str | None) -> Path:
    """Return the account's published file. Raises `NothingPublished` or `SettingsError`."""
    settings = load_settings({"account": account})
    return require_published(Warehouse(settings.folder).published)


# -- Parquet ---------------------------------------------------------------------------------------
# One file for each table. The folder is created under another name and then renamed, so that it is
# always complete. A folder that no export created is never replaced.

MANIFEST = "publication.json"
"""File that identifies the folder of an export; it describes the export."""

_FILE_NAME_CHARACTERS_MAX = 200
_SWAP = 2
_HERE = -100


def export(file: Path, folder: Path, schemas: Sequence[str] = ()) -> tuple[str, ...]:
    """Write the tables and views of the schemas (default: all) as Parquet; return their names.

    They become `folder/SCHEMA/TABLE.parquet` and replace an earlier export in the folder.

    Raises `UnknownName` for an unknown schema, `Misused` for a folder that no export created,
    `NothingPublished`, and another `WarehouseError`.
    """
    found = list_tables(require_published(file))
    known = tuple(dict.fromkeys(each.partition(".")[0] for each in found))
    for schema in schemas:
        if schema not in known:
            raise UnknownName("schema of the published file", schema, known)
    wanted = tuple(t for t in found if not schemas or t.partition(".")[0] in schemas)
    _refuse_other_folder(folder)
    with convert_errors(folder):
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # `mkdtemp` makes it accessible only to the owner.
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            targets = {
                table: made / path
                for table, path in zip(wanted, _relative_paths(wanted), strict=True)
            }
            for each in {target.parent for target in targets.values()}:
                each.mkdir(mode=0o700)
            write_parquet(file, targets)
            manifest = _manifest_json(read_own_publication(file), targets, made)
            (made / MANIFEST).write_text(manifest, encoding="utf-8")
            _restrict_and_sync(made)
            _replace_folder(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return wanted


def _refuse_other_folder(folder: Path) -> None:
    """Raise `Misused` if the folder contains anything but an earlier export."""
    with convert_errors(folder):
        is_other = folder.is_symlink() or (folder.exists() and not folder.is_dir())
        is_filled = folder.is_dir() and any(folder.iterdir())
        if is_other or (is_filled and not (folder / MANIFEST).is_file()):
            raise Misused(
                f"{folder} already exists and was not created by an export",
                action="Choose another folder with --parquet.",
            )


def _relative_paths(tables: Sequence[str]) -> Iterator[Path]:
    """Yield a unique `SCHEMA/TABLE.parquet` for each table, with safe characters."""
    taken: set[str] = set()
    for table in tables:
        schema, _, name = table.partition(".")
        safe = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
        kept = safe = safe[:_FILE_NAME_CHARACTERS_MAX]
        for number in count(2):
            if f"{schema}/{kept}".lower() not in taken:
                break
            kept = f"{safe}-{number}"
        taken.add(f"{schema}/{kept}".lower())
        yield Path(schema) / f"{kept}.parquet"


def _manifest_json(row: Publication | None, targets: dict[str, Path], folder: Path) -> str:
    """Return the text of the file that names the publication and the file of each table."""
    manifest = {
        "publication": None if row is None else row.publication,
        "true_of": None if row is None or row.true_of is None else row.true_of.isoformat(),
        "tables": {name: str(path.relative_to(folder)) for name, path in targets.items()},
    }
    return json.dumps(manifest, indent=2) + "\n"


def _restrict_and_sync(folder: Path) -> None:
    """Make all files in the folder readable only by the owner, and sync them to the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            with path.open("rb") as file:
                os.fsync(file.fileno())
        else:
            sync_folder(path)
    sync_folder(folder)


def _replace_folder(made: Path, folder: Path) -> None:
    """Put the folder `made` in the place of `folder`; an earlier folder is then at `made`."""
    if not folder.exists() or not any(folder.iterdir()):
        made.replace(folder)
    elif not _swap_folders(made, folder):
        # This system cannot swap two folders, so the folder is missing for an instant.
        aside = Path(f"{made}.old")
        folder.rename(aside)
        made.rename(folder)
        aside.rename(made)
    sync_folder(folder.parent)


def _swap_folders(one: Path, other: Path) -> bool:
    """Swap two folders atomically; return False if the system does not support it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    done = call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _SWAP)
    return bool(done == 0)

"""Creation, copying, compaction and restoration of the work file.

Files are replaced by copy, sync, atomic rename and sync of the folder. A reader with the old file
open keeps reading it, a new reader opens the new file, and a crash leaves one of them. No reader or
writer waits.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from connector.atomic_files import create_private_file, sync_folder
from connector.errors import WarehouseError
from connector.state.runs import Identity
from connector.warehouse.duckdb_file import (
    LOG_ENDINGS,
    ROW_GROUP_ROWS,
    STORAGE_VERSION,
    convert_errors,
    hold_lock,
    literal,
    move_logs,
    open_file,
    quoted,
    transaction,
    wal_path,
)
from connector.warehouse.published_file import query
from connector.warehouse.runs import (
    Publication,
    end_interrupted_publications,
    read_data_time,
    read_own_publication,
    write_publication,
)
from connector.warehouse.schema import complete_tables, schema_version
from connector.warehouse.state import write_notice
from connector.warehouse.stream import Event

# -- Work file -------------------------------------------------------------------------------------


def begin_publication(
    work: Path, draft: Path, publication: Publication, published: Path
) -> Publication:
    """Record in the work file that a publication begins, and copy the file to `draft`.

    Returns the publication with the time of its data. The work file is locked during the copy.
    Raises a `WarehouseError`.
    """
    with open_file(work) as connection:
        complete_tables(connection, str(work))
        publication = replace(publication, true_of=read_data_time(connection))
        with transaction(connection):
            end_interrupted_publications(connection, published)
            write_publication(connection, publication)
        # After a checkpoint all data is in the file and none in a log next to it.
        connection.execute("CHECKPOINT")
        with convert_errors(draft):
            copy_file(work, draft)
    return publication


def copy_work_file(work: Path, target: Path) -> int | None:
    """Copy the work file, locked, to `target`; return its layout version."""
    with open_file(work) as connection:
        version = schema_version(connection)
        connection.execute("CHECKPOINT")
        with convert_errors(target):
            copy_file(work, target)
    return version


def record_publication(file: Path, publication: Publication) -> None:
    """Insert or replace the publication in the work file or a draft. Raises a `WarehouseError`."""
    with open_file(file) as connection, transaction(connection):
        write_publication(connection, publication)


def replace_published(draft: Path, target: Path) -> int:
    """Sync and rename the draft; return its size in bytes. Raises a `WarehouseError`.

    The draft gets the mode and group that the operator gave to the replaced file.
    """
    with convert_errors(target):
        # Closing makes a checkpoint, unless the disk is full: then the log has the rest.
        if wal_path(draft).exists():
            with open_file(draft) as connection:
                connection.execute("CHECKPOINT")
        if target.exists():
            _copy_permissions(target, draft)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
            size = os.fstat(written.fileno()).st_size
        draft.replace(target)
        sync_folder(target.parent)
    return size


def _copy_permissions(source: Path, target: Path) -> None:
    """Give a file the mode and group of another file."""
    given, mode = source.stat(), stat.S_IMODE(source.stat().st_mode)
    if given.st_gid != target.stat().st_gid:
        try:
            os.chown(target, -1, given.st_gid)
        except PermissionError:
            # This user is not in the group. Another group must not get the rights of that one.
            mode &= ~stat.S_IRWXG
    target.chmod(mode)


def remove_draft(draft: Path) -> None:
    """Delete the draft and the files next to it, if they exist."""
    with convert_errors(draft):
        for ending in ("", *LOG_ENDINGS):
            draft.with_name(draft.name + ending).unlink(missing_ok=True)
        shutil.rmtree(draft.with_name(draft.name + ".tmp"), ignore_errors=True)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file that no process writes to; `target` is new. Raises an `OSError`."""
    # Remains of a crash were removed, and a symlink would not be followed.
    with create_private_file(target):
        pass
    shutil.copyfile(source, target)


# -- Compaction ------------------------------------------------------------------------------------
# Writes the work file again, so that it contains no bytes of deleted rows.
#
# DuckDB marks deleted rows and reuses their blocks later; until then their bytes stay. A new file
# is written next to the old one and replaces it by a rename, while the old one is locked. No other
# process writes to it at the same time, and a crash leaves one complete file.


FRESH_ENDING = ".compacting"
"""Suffix of the new file until it is complete."""


def compact(path: Path) -> None:
    """Write the file again without deleted rows. Raises `WarehouseError`; it is then unchanged."""
    fresh = path.with_name(path.name + FRESH_ENDING)
    remove_draft(fresh)
    with open_file(path) as connection, convert_errors(path):
        # The log must be empty, or it would be applied to the new file.
        connection.execute("CHECKPOINT")
        ((name,),) = connection.execute("SELECT current_database()").fetchall()
        connection.execute(
            f"ATTACH {literal(str(fresh))} AS fresh "
            f"(STORAGE_VERSION '{STORAGE_VERSION}', ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
        )
        fresh.chmod(0o600)
        connection.execute(f'COPY FROM DATABASE "{name}" TO fresh')
        connection.execute("CHECKPOINT fresh")
        connection.execute("DETACH fresh")
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        fresh.replace(path)
        sync_folder(path.parent)


# -- Creation --------------------------------------------------------------------------------------
# The file is created under another name and renamed once its tables are in it and on the disk. A
# full disk therefore leaves no file that a later run would have to open.
#
# If the work file is missing next to a published one, it was lost. Its history exists only in the
# published file, and the next publication would drop it there as well. Therefore all tables of the
# connector, including bookmarks, are restored from the published file. They are valid: each commit
# writes rows, queue and bookmark in one transaction, and the published file is the work file after
# one of its commits. The bookmark covers all earlier changes, even in an old file; the next pull
# reads later changes and finds deletions by its counts. If columns or schemas were excluded from
# the published file, it cannot be used.

READ_AGAIN = "work_read_again"
"""Kind of the event for the loss of both files, after which every record is read again."""

MAKING_ENDING = ".making"
"""Suffix of the file until it is complete."""

TAKEN_BACK = "work_taken_back"
"""Kind of the event for a lost work file."""

_OWN_SCHEMAS = ("landing", "history", "sync", "push")
_HEADERS_BYTES = 3 * 4096
"""DuckDB first writes three headers of one page each."""
_MARK_AT, _MARK = 8, b"DUCK"


def is_missing(work: Path) -> bool:
    """Return True if the work file does not exist or was cut off by a full disk."""
    with convert_errors(work):
        if not work.exists():
            return True
        if work.stat().st_size >= _HEADERS_BYTES:
            return False
        with work.open("rb") as file:
            begun = file.read(_MARK_AT + len(_MARK))
        return not begun or begun[_MARK_AT:] == _MARK


def create_work_file(work: Path, published: Path, identity: Identity | None = None) -> None:
    """Create the work file if it is missing, from the published file if there is one.

    `identity` is that of the folder, which the published file must have, too. A known folder
    without both files has lost them, so a notice is added.

    Raises:
        WarehouseError: The lost file cannot be restored from the published one, the disk is full,
            or the file cannot be created. There is no work file then.
    """
    with convert_errors(work.parent), hold_lock(work.parent):
        if not is_missing(work):
            return
        fresh = work.with_name(work.name + MAKING_ENDING)
        remove_draft(fresh)
        try:
            if published.exists():
                _check_same_folder(published, identity)
                _restore_tables(published, fresh)
            now = datetime.now(UTC)
            with open_file(fresh) as connection:
                complete_tables(connection, str(fresh))
                if identity is not None and not published.exists():
                    detail = (
                        f"{work.name} and {published.name} were missing, but other files of the "
                        f"account exist. The pull reads every record, and the history starts again"
                    )
                    with transaction(connection):
                        write_notice(connection, Event(READ_AGAIN, detail), now)
            # The log of a missing file would be applied to the new one.
            move_logs(work, now)
            replace_published(fresh, work)
        except BaseException:
            remove_draft(fresh)
            raise


def _restore_tables(published: Path, fresh: Path) -> None:
    """Write the connector's own tables of the published file to `fresh`."""
    true_of = _check_restorable(published)
    with convert_errors(fresh):
        copy_file(published, fresh)
    now = datetime.now(UTC)
    with open_file(fresh) as connection:
        with transaction(connection):
            for schema in _model_schemas(connection):
                connection.execute(f"DROP SCHEMA {quoted(schema)} CASCADE")
        with transaction(connection):
            detail = (
                "the work file was missing. Records and history were restored from "
                f"{published.name} (data as of {true_of})"
            )
            write_notice(connection, Event(TAKEN_BACK, detail), now)


def _check_same_folder(published: Path, identity: Identity | None) -> None:
    """Raise `WarehouseError` if the published file belongs to another data folder."""
    if identity is None:
        return
    try:
        rows = query(published, "SELECT folder, address FROM sync.folder").rows
    except (WarehouseError, duckdb.Error):
        return  # `_check_restorable` checks whether the file can be read.
    if rows and rows[0][0] != identity.folder:
        raise WarehouseError(
            f"the work file is missing, and {published} belongs to another data folder "
            f"(records of {rows[0][1]})",
            code="work_lost",
        )


def _check_restorable(published: Path) -> str:
    """Return the time of the published file's data as text.

    Raises `WarehouseError` if the file cannot restore the work file: data is masked or left out.
    """
    row = read_own_publication(published)
    if row is None:
        why = "does not contain its publication settings"
    elif row.personal != "keep":
        why = f"was published with publish_personal = {row.personal}"
    elif missing := row.left_out or _missing_schemas(published):
        why = f"was published without {', '.join(missing)}"
    else:
        return "no verified time" if row.true_of is None else f"{row.true_of:%Y-%m-%d %H:%M:%S}Z"
    raise WarehouseError(
        f"the work file is missing, and the history cannot be restored from {published}: the "
        f"file {why}",
        code="work_lost",
    )


def _missing_schemas(published: Path) -> Sequence[str]:
    """Return the connector's own schemas that the published file lacks."""
    found = query(published, "SELECT schema_name FROM duckdb_schemas()").rows
    return [each for each in _OWN_SCHEMAS if (each,) not in found]


def _model_schemas(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the schemas that models have added to the file."""
    own = ", ".join(map(literal, (*_OWN_SCHEMAS, "main")))
    rows = connection.execute(
        "SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database() "
        f"AND NOT internal AND schema_name NOT IN ({own})"
    ).fetchall()
    return [name for (name,) in rows]

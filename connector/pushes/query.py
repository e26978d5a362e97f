"""Push from a query: writes the result as a csv, which is then pushed like any other file.

The query only reads the published file. A Parquet file can be used instead of a query.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import Any

from connector.errors import ConnectorError, Misused
from connector.log import mask_secrets
from connector.models.mask import TOKEN_CHARACTERS
from connector.pushes.options import PushFile, PushOptions
from connector.settings import Settings
from connector.settings.folders import KEEP_DAYS, PUSHES_FOLDER
from connector.spreadsheet.report import open_new_file, write_delimited
from connector.warehouse.file import make_folder
from connector.warehouse.publish import own_publication
from connector.warehouse.user_query import open_query
from connector.warehouse.warehouse import Warehouse

CLEARED = r"\N"
"""Text that empties a field in a file with cleared nulls, as in PostgreSQL's COPY."""

_FILE_OPTIONS = (*("sheet", "header_row", "encoding", "delimiter"), *("date_format", "decimal"))
"""Options that say how a file is written. The values of a query have types instead."""

_WRITTEN: Mapping[str, Any] = {"delimiter": "comma", "header_row": 1}
"""How the file of a query is written."""

_DAY_SECONDS = 86_400
_HASH = re.compile(rf"[0-9a-f]{{{TOKEN_CHARACTERS}}}").fullmatch


def file_from_query(
    settings: Settings,
    resource: str,
    query: str,
    options: PushOptions,
    *,
    clears_nulls: bool = False,
) -> PushFile | None:
    """Write the result of a query to a csv in the account's folder `pushes`, and return it as a
    file to push.

    The name depends on the content. Files older than a week are deleted.

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
        WarehouseError: There is no published file.
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
    null = (options.clear or "") if clears_nulls else ""
    try:
        with open_query(Warehouse(settings.folder).published, query) as result:
            # A row of nulls would be a blank line, which a push leaves out.
            rows = _reject_hashes(settings, result.names, filter(any, result.rows(null)))
            first = next(rows, None)
            if first is None:
                return None
            path = _write_csv(settings, resource, chain([result.names, first], rows))
    except ConnectorError as error:
        # A message of the parser quotes the query, which may contain the key.
        error.args = (mask_secrets(str(error), settings.secrets()),)
        raise
    return replace(asked, path=path, options=replace(asked.options, **_WRITTEN), remembers=False)


def _reject_hashes(
    settings: Settings, names: Sequence[str], rows: Iterable[Sequence[str]]
) -> Iterator[Sequence[str]]:
    """Yield the rows. Raises `Misused` if a cell is the hash of a personal field."""
    published = own_publication(Warehouse(settings.folder).published)
    has_hashes = published is not None and published.personal == "hash"
    for row in rows:
        if has_hashes:
            for name, cell in zip(names, row, strict=True):
                if _HASH(cell):
                    raise Misused(
                        f"column {name!r} of the query contains hashes of personal fields",
                        action="Leave the column out, or publish with publish_personal = keep.",
                    )
        yield row


# -- File ------------------------------------------------------------------------------------------


def _write_csv(settings: Settings, resource: str, rows: Iterable[Sequence[str]]) -> Path:
    """Write the rows to a csv that is named after its content, and return its path."""
    folder = settings.folder / PUSHES_FOLDER
    make_folder(folder)
    _delete_old_files(folder, timedelta(days=KEEP_DAYS))
    draft = folder / f"{resource}-{token_hex(6)}.csv"
    with open_new_file(draft, "the result of a query") as file:
        write_delimited(file, ",", rows)
    with draft.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return draft.replace(folder / f"{resource}-{digest[:12]}.csv")


def _delete_old_files(folder: Path, keep: timedelta) -> None:
    """Delete the files of the folder that are older than `keep`."""
    before = time.time() - keep.days * _DAY_SECONDS
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_mtime < before:
                path.unlink()

"""Push from a query: writes the result as a csv, which is then pushed like any other file.

The query only reads the published file.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from connector.atomic_files import write_atomically
from connector.errors import ConnectorError, Misused, convert_file_errors
from connector.log import mask_secrets
from connector.models.mask import TOKEN_CHARACTERS
from connector.pushes.options import PushFile, PushOptions
from connector.settings import Settings
from connector.settings.folders import KEEP_DAYS, PUSHES_FOLDER
from connector.spreadsheet.books import ROWS_MAX
from connector.spreadsheet.report import write_delimited
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
        query: SQL, or the path of a .sql file.
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
        with open_query(Warehouse(settings.folder).published, query, null) as (names, found):
            # A row of nulls would be a blank line, which a push leaves out.
            rows = list(islice(filter(any, found), ROWS_MAX + 1))
        _reject_hashes(settings, names, rows)
    except ConnectorError as error:
        # A message of the parser quotes the query, which may contain the key.
        error.args = (mask_secrets(str(error), settings.secrets()),)
        raise
    if not rows:
        return None
    path = _write_csv(settings, resource, [names, *rows])
    return replace(asked, path=path, options=replace(asked.options, **_WRITTEN), remembers=False)


def _reject_hashes(settings: Settings, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Raise `Misused` if a cell is the hash of a personal field."""
    published = own_publication(Warehouse(settings.folder).published)
    if published is None or published.personal != "hash":
        return
    for name, *cells in zip(names, *rows, strict=True):
        if any(map(_HASH, cells)):
            raise Misused(
                f"column {name!r} of the query contains hashes of personal fields",
                action="Leave the column out, or publish with publish_personal = keep.",
            )


# -- File ------------------------------------------------------------------------------------------


def _write_csv(settings: Settings, resource: str, rows: Iterable[Sequence[str]]) -> Path:
    """Write the rows to a csv that is named after its content, and delete old ones."""
    folder = settings.folder / PUSHES_FOLDER
    make_folder(folder)
    before = time.time() - KEEP_DAYS * _DAY_SECONDS
    for each in folder.iterdir():
        if each.is_file() and each.stat().st_mtime < before:
            each.unlink(missing_ok=True)
    text = BytesIO()
    write_delimited(text, ",", rows)
    digest = hashlib.sha256(text.getvalue()).hexdigest()
    path = folder / f"{resource}-{digest[:12]}.csv"
    with convert_file_errors(path), write_atomically(path) as file:
        file.write(text.getvalue())
    return path

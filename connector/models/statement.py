"""Runs a statement made of a file, and names file and line where DuckDB refuses it.

A statement holds the file's text from its first line on, so that DuckDB's `LINE n` is line n of
the file. What DuckDB says of data is told without the data: it may be a person's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from connector.errors import ModelFailed

_LINE = re.compile(r"^LINE (\d+): ", re.MULTILINE)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_ABOUT_THE_TEXT = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
_MISSING = re.compile(r"(?:Table|View) with name \"?([\w.]+)\"? does not exist", re.IGNORECASE)


@contextmanager
def naming_line(path: Path, doing: str) -> Iterator[None]:
    """Turn what DuckDB says of a statement into a `ModelFailed` with file and line.

    Errors of the file system and of the disk pass, since no model is at fault.
    """
    try:
        yield
    except (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError) as error:
        message = str(error)
        line = _LINE.search(message)
        raise ModelFailed(
            f"{doing}: {_told(error, message)}",
            path=path,
            line=int(line.group(1)) if line else None,
            action=_action(message),
        ) from None


def _told(error: duckdb.Error, message: str) -> str:
    """DuckDB's sentence on one line, without the SQL that it repeats, and without data."""
    sentence = " ".join(_LINE.split(message)[0].split())
    if isinstance(error, _ABOUT_THE_TEXT):
        return sentence
    return _QUOTED.sub("'...'", sentence)


def _action(message: str) -> str | None:
    missing = _MISSING.search(message)
    if missing is None:
        return None
    return (
        f"Build what it is made of as well, with a '+' before its name: {missing.group(1)} is "
        "not there. If it is written as plain SQL, write it as ref() or source()."
    )

"""A mapping as a file, to be kept, shared and given: which column is which field, and how it is
written. TOML, so that people can read and change it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

from connector.catalog import CATALOG
from connector.catalog.value import MARK, is_redacted
from connector.errors import Misused, naming
from connector.spreadsheet.cells import AS_WRITTEN, CellOptions, ColumnPolicy, Decimal
from connector.spreadsheet.dates import FORMAT_ALLOWED, DateFormat

_MANNER = tuple(each.name for each in fields(CellOptions))
_FILE_WIDE = ("date_format", "decimal", "timezone")
_TOP = ("resource", *_FILE_WIDE, "ignored", "constants", "columns")
_BYTES_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class SavedMap:
    """What a person decided about a file's columns.

    `columns` maps a heading to a column's name (as `column` of a slot) and the options of its
    cells; `constants` a column's name to a text that every row has. `options` is that of columns
    that are not named; its `values` and `policy` are not used.
    """

    resource: str
    columns: Mapping[str, tuple[str, CellOptions]] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    options: CellOptions = AS_WRITTEN


def load_map(path: Path) -> SavedMap:
    """Read a mapping. Raises `Misused` that names the file, the key, the value and what is
    allowed.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_BYTES_MAX + 1)
    except FileNotFoundError:
        raise Misused(
            f"the mapping {path} is not there", action="Check the name and the folder."
        ) from None
    except OSError as error:
        raise Misused(
            str(naming(path, error)), action="Give a file that this user may read."
        ) from error
    try:
        if len(text) > _BYTES_MAX:
            raise ValueError("it is too large to be one")
        document = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise Misused(
            f"the mapping {path} is not TOML: {error}",
            action="Correct the line that is named; names with blanks stand in quotes.",
        ) from error
    return _Reading(path).saved(document)


def save_map(path: Path, saved: SavedMap) -> None:
    """Write a mapping, in place of one that is there. Raises a `WarehouseError` where it cannot."""
    try:
        path.write_text("\n".join(_lines(saved)) + "\n", encoding="utf-8")
    except OSError as error:
        raise naming(path, error) from error


def _lines(saved: SavedMap) -> Iterator[str]:
    yield "# Which column of the file fills which field."
    yield f"resource = {_text(saved.resource)}"
    for name in _FILE_WIDE:
        if (value := getattr(saved.options, name)) is not None:
            yield f"{name} = {_text(value)}"
    if saved.ignored:
        yield f"ignored = [{', '.join(map(_text, saved.ignored))}]"
    if saved.constants:
        yield "\n# What every row has."
        yield "[constants]"
        yield from (f"{_key(name)} = {_text(text)}" for name, text in saved.constants.items())
    yield "\n[columns]"
    for heading, (column, options) in saved.columns.items():
        written = _options(options, saved.options)
        if written:
            yield f"{_key(heading)} = {{ field = {_text(column)}, {', '.join(written)} }}"
        else:
            yield f"{_key(heading)} = {_text(column)}"


def _options(options: CellOptions, usual: CellOptions) -> list[str]:
    written = []
    for name in _MANNER:
        value = getattr(options, name)
        expected = getattr(usual, name) if name in _FILE_WIDE else getattr(AS_WRITTEN, name)
        if value == expected:
            continue
        if isinstance(value, bool):
            written.append(f"{name} = {str(value).lower()}")
        elif isinstance(value, Mapping):
            pairs = ", ".join(f"{_key(cell)} = {_text(text)}" for cell, text in value.items())
            written.append(f"{name} = {{ {pairs} }}")
        else:
            written.append(f"{name} = {_text(value or '')}")
    return written


def _text(text: str) -> str:
    # TOML's strings are JSON's, but for one control character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").isalnum() else _text(name)


class _Reading:
    """A document under way to a mapping; knows the file's name for its errors."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def saved(self, document: dict[str, Any]) -> SavedMap:
        self._names("", document, _TOP)
        for key, value in document.items():
            if is_redacted(value):
                raise Misused(
                    f"the mapping {self._path}: {key} holds {MARK}, which stands for what an"
                    " erasure removed and is never sent",
                    action="Write the whole value or heading, or take the line out.",
                )
        resource = self._string("resource", document.get("resource"), tuple(CATALOG))
        usual = self._manner("", {k: v for k, v in document.items() if k in _FILE_WIDE}, AS_WRITTEN)
        ignored = document.get("ignored", [])
        if not isinstance(ignored, list) or not all(isinstance(each, str) for each in ignored):
            raise self._wrong("ignored", ignored, "a list of headings")
        constants = self._table("constants", document.get("constants", {}))
        return SavedMap(
            resource,
            {
                heading: self._column(f"columns.{heading}", given, usual)
                for heading, given in self._table("columns", document.get("columns", {})).items()
            },
            {name: self._constant(f"constants.{name}", v) for name, v in constants.items()},
            tuple(ignored),
            usual,
        )

    def _column(self, key: str, given: Any, usual: CellOptions) -> tuple[str, CellOptions]:
        if isinstance(given, str):
            return given, usual
        table = self._table(key, given)
        self._names(f"{key}.", table, ("field", *_MANNER))
        column = self._string(f"{key}.field", table.get("field"))
        return column, self._manner(f"{key}.", table, usual)

    def _manner(self, before: str, table: Mapping[str, Any], usual: CellOptions) -> CellOptions:
        given = {**{name: getattr(usual, name) for name in _FILE_WIDE}, **table}
        date_format, zone, decimal = (given[n] for n in ("date_format", "timezone", "decimal"))
        if date_format is not None:
            self._date_format(f"{before}date_format", date_format)
        if zone is not None:
            self._timezone(f"{before}timezone", zone)
        if decimal is not None:
            self._string(f"{before}decimal", decimal, get_args(Decimal))
        whole = given.get("whole_numbers", False)
        if not isinstance(whole, bool):
            raise self._wrong(f"{before}whole_numbers", whole, "true or false")
        values = self._table(f"{before}values", given.get("values", {}))
        policy: Any = self._string(
            f"{before}policy", given.get("policy", "overwrite"), get_args(ColumnPolicy)
        )
        texts = {c: self._constant(f"{before}values.{c}", v) for c, v in values.items()}
        return CellOptions(date_format, decimal, zone, whole, texts, policy)

    def _date_format(self, key: str, value: Any) -> None:
        try:
            DateFormat(self._string(key, value))
        except ValueError:
            raise self._wrong(key, value, FORMAT_ALLOWED) from None

    def _timezone(self, key: str, value: Any) -> None:
        try:
            ZoneInfo(self._string(key, value))
        # The library answers names of folders and odd characters with errors of its own.
        except (KeyError, ValueError, OSError):
            raise self._wrong(key, value, "the name of a time zone, as Europe/London") from None

    def _constant(self, key: str, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int | float):
            return str(value)
        return self._string(key, value)

    def _string(self, key: str, value: Any, allowed: tuple[str, ...] = ()) -> str:
        if not isinstance(value, str) or (allowed and value not in allowed):
            raise self._wrong(key, value, ", ".join(map(repr, allowed)) or "a text in quotes")
        return value

    def _table(self, key: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong(key, value, "a table")
        return value

    def _names(self, before: str, table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        for name in table:
            if name not in allowed:
                raise Misused(
                    f"the mapping {self._path} has a key that is not known: {before}{name}",
                    action=f"Use one of: {', '.join(allowed)}.",
                )

    def _wrong(self, key: str, value: Any, allowed: str) -> Misused:
        received = "missing" if value is None else repr(value)
        return Misused(
            f"the mapping {self._path}: {key} is {received}", action=f"Allowed: {allowed}."
        )

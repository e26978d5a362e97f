"""Mapping file (TOML): the field and the options of each column."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from connector.atomic_files import write_atomically
from connector.catalog import CATALOG
from connector.catalog.field import MARK, is_redacted
from connector.errors import Misused, file_error
from connector.spreadsheet.cells import AS_WRITTEN, CellOptions, ColumnPolicy, Immediately
from connector.spreadsheet.dates import FORMAT_ALLOWED, check_date_format
from connector.spreadsheet.numbers import Decimal
from connector.spreadsheet.texts import REGIONS, is_timezone

_FILE_WIDE = (
    *("date_format", "decimal", "timezone", "region", "century"),
    *("month_days", "immediately"),
)
_TOP = ("resource", "header_row", *_FILE_WIDE, "ignored", "constants", "columns")
_BYTES_MAX = 1_000_000
_QUOTED = "a text in quotes"


@dataclass(frozen=True, slots=True)
class SavedMap:
    """Decisions of the user about a file's columns.

    Attributes:
        columns: Target column and options by heading.
        constants: Text for every row, by target column.
        options: Options of columns that are not named, except `values` and `policy`.
        remarks: Remarks on columns without a field. They are written for the user and not read.
        missing: Missing fields. They are written for the user and not read.
    """

    resource: str
    columns: Mapping[str, tuple[str, CellOptions]] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    options: CellOptions = AS_WRITTEN
    remarks: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    header_row: int | None = None


def with_options(saved: SavedMap, overrides: CellOptions) -> SavedMap:
    """Return the map with the overrides that are not None, for all columns."""
    overridden = {
        name: value for name in _FILE_WIDE if (value := getattr(overrides, name)) is not None
    }
    columns = {
        heading: (name, replace(options, **overridden))
        for heading, (name, options) in saved.columns.items()
    }
    return replace(saved, columns=columns, options=replace(saved.options, **overridden))


def load_map(path: Path) -> SavedMap:
    """Return the mapping in a file.

    Raises `Misused`, which names the file, the key, the value and the allowed values.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_BYTES_MAX + 1)
    except FileNotFoundError:
        raise Misused(
            f"the mapping {path} does not exist", action="Check the name and the folder."
        ) from None
    except OSError as error:
        raise Misused(
            str(file_error(path, error)), action="Use a file that this user can read."
        ) from error
    try:
        if len(text) > _BYTES_MAX:
            raise ValueError("the file is too large")
        document = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise Misused(
            f"the mapping {path} is not TOML: {error}",
            action="Correct this line. Put names that contain spaces in quotes.",
        ) from error
    return _MapReader(path).read_map(document)


def save_map(path: Path, saved: SavedMap) -> None:
    """Write a mapping that only its owner can read; an existing file is replaced.

    Raises a `WarehouseError`.
    """
    try:
        with write_atomically(path) as file:
            file.write(("\n".join(_toml_lines(saved)) + "\n").encode())
    except OSError as error:
        raise file_error(path, error) from error


def _toml_lines(saved: SavedMap) -> Iterator[str]:
    """Yield the lines of the mapping file."""
    yield "# The field of each column of the file."
    yield f"resource = {_toml_string(saved.resource)}"
    if saved.header_row is not None:
        yield f"header_row = {saved.header_row}"
    for name in _FILE_WIDE:
        if (value := getattr(saved.options, name)) is not None:
            yield f"{name} = {value if isinstance(value, int) else _toml_string(value)}"
    if saved.ignored:
        yield f"ignored = [{', '.join(map(_toml_string, saved.ignored))}]"
    if saved.constants:
        yield "\n# Values of every row."
        yield "[constants]"
        yield from (
            f"{_toml_key(name)} = {_toml_string(text)}" for name, text in saved.constants.items()
        )
    yield "\n[columns]"
    for heading, (column, options) in saved.columns.items():
        written = ", ".join(_changed_options(options, saved.options))
        field_name = _toml_string(column)
        yield f"{_toml_key(heading)} = " + (
            f"{{ field = {field_name}, {written} }}" if written else field_name
        )
    for heading, remark in saved.remarks.items():
        yield f'# {_toml_key(heading)} = ""  # no field yet ({_one_line(remark)})'
    for name in saved.missing:
        yield f"# missing: {name}, add a column or a constant for it"


def _one_line(text: str) -> str:
    """Return the text with blanks instead of line breaks and other unprintable characters."""
    return "".join(each if each.isprintable() else " " for each in text)


def _changed_options(options: CellOptions, defaults: CellOptions) -> Iterator[str]:
    """Yield `name = value` in TOML for each option that differs from its default."""
    for name in _OPTIONS:
        value = getattr(options, name)
        expected = getattr(defaults if name in _FILE_WIDE else AS_WRITTEN, name)
        if value == expected:
            continue
        if isinstance(value, bool):
            yield f"{name} = {str(value).lower()}"
        elif isinstance(value, Mapping):
            pairs = ", ".join(
                f"{_toml_key(cell)} = {_toml_string(text)}" for cell, text in value.items()
            )
            yield f"{name} = {{ {pairs} }}"
        elif isinstance(value, int):
            yield f"{name} = {value}"
        else:
            yield f"{name} = {_toml_string(value or '')}"


def _toml_string(text: str) -> str:
    # A TOML string is a JSON string, except for one control character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").isalnum() else _toml_string(name)


# -- Reading ---------------------------------------------------------------------------------------


def _is_date_format(value: Any) -> bool:
    try:
        check_date_format(value)
    except (AttributeError, TypeError, ValueError):
        return False
    return True


CENTURY_ALLOWED = "the earliest year for two-digit years, from 1900 to 2100"


def is_century(value: Any) -> bool:
    """Return True if the value is a year from 1900 to 2100."""
    return isinstance(value, int) and not isinstance(value, bool) and 1900 <= value <= 2100


_OPTIONS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "date_format": (_is_date_format, FORMAT_ALLOWED),
    "decimal": (lambda value: value in get_args(Decimal), "'.', ','"),
    "timezone": (
        lambda value: isinstance(value, str) and is_timezone(value),
        "the name of a time zone, for example Europe/London",
    ),
    "region": (lambda value: value in REGIONS, "a two-letter country code, for example GB"),
    "century": (is_century, CENTURY_ALLOWED),
    "month_days": (
        lambda value: type(value) is int and value in range(28, 32),
        "a number of days from 28 to 31",
    ),
    "immediately": (lambda value: value in get_args(Immediately), "'today', 'empty'"),
    "whole_numbers": (lambda value: isinstance(value, bool), "true or false"),
    "values": (lambda value: isinstance(value, dict), "a table"),
    "policy": (
        lambda value: value in get_args(ColumnPolicy),
        ", ".join(map(repr, get_args(ColumnPolicy))),
    ),
}
"""By column option: a check of the value, and the description of allowed values."""


class _MapReader:
    """Reader of a parsed TOML document; it knows the file's path for error messages."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read_map(self, document: dict[str, Any]) -> SavedMap:
        """Return the mapping in the document. Raises `Misused`."""
        self._check_keys("", document, _TOP)
        for key, value in document.items():
            if is_redacted(value):
                raise Misused(
                    f"the mapping {self._path}: {key} contains {MARK}, the mark of an"
                    " erased value, which is never sent",
                    action="Enter the complete value or heading, or remove the line.",
                )
        resource = document.get("resource")
        if resource not in tuple(CATALOG):
            raise self._invalid_value("resource", resource, ", ".join(map(repr, CATALOG)))
        row = document.get("header_row")
        if row is not None and (type(row) is not int or row < 1):
            raise self._invalid_value("header_row", row, "a row's number, from 1")
        defaults = self._read_options(
            "", {n: document[n] for n in _FILE_WIDE if n in document}, AS_WRITTEN
        )
        ignored = document.get("ignored", [])
        if not isinstance(ignored, list) or not all(isinstance(each, str) for each in ignored):
            raise self._invalid_value("ignored", ignored, "a list of headings")
        columns = self._require_table("columns", document.get("columns", {}))
        return SavedMap(
            resource,
            {
                name: self._read_column(f"columns.{name}", each, defaults)
                for name, each in columns.items()
            },
            self._read_texts("constants", document.get("constants", {})),
            tuple(ignored),
            defaults,
            header_row=row,
        )

    def _read_column(self, key: str, value: Any, defaults: CellOptions) -> tuple[str, CellOptions]:
        """Return the target column and the options in one entry of the table `columns`."""
        if isinstance(value, str):
            return value, defaults
        table = self._require_table(key, value)
        self._check_keys(f"{key}.", table, ("field", *_OPTIONS))
        column = table.pop("field", None)
        if not isinstance(column, str):
            raise self._invalid_value(f"{key}.field", column, _QUOTED)
        return column, self._read_options(f"{key}.", table, defaults)

    def _read_options(
        self, prefix: str, table: dict[str, Any], defaults: CellOptions
    ) -> CellOptions:
        """Return the options in a table, with `defaults` for the others. Raises `Misused`."""
        for name, value in table.items():
            is_right, allowed = _OPTIONS[name]
            if not is_right(value):
                raise self._invalid_value(f"{prefix}{name}", value, allowed)
        texts = self._read_texts(f"{prefix}values", table.get("values", {}))
        file_wide = {name: getattr(defaults, name) for name in _FILE_WIDE}
        return CellOptions(**{**file_wide, **table, "values": texts})

    def _read_texts(self, key: str, value: Any) -> dict[str, str]:
        """Return a table with its values as texts. Raises `Misused` for lists and tables."""
        texts = {}
        for name, each in self._require_table(key, value).items():
            if not isinstance(each, str | bool | int | float):
                raise self._invalid_value(f"{key}.{name}", each, _QUOTED)
            texts[name] = str(each).lower() if isinstance(each, bool) else str(each)
        return texts

    def _require_table(self, key: str, value: Any) -> dict[str, Any]:
        """Return the value if it is a table. Raises `Misused`."""
        if not isinstance(value, dict):
            raise self._invalid_value(key, value, "a table")
        return value

    def _check_keys(self, prefix: str, table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        """Raise `Misused` if the table has a key that is not allowed."""
        for name in table:
            if name not in allowed:
                raise Misused(
                    f"the mapping {self._path} has an unknown key: {prefix}{name}",
                    action=f"Use one of: {', '.join(allowed)}.",
                )

    def _invalid_value(self, key: str, value: Any, allowed: str) -> Misused:
        """Return the error for a key with an invalid value, or without a value (None)."""
        received = "missing" if value is None else repr(value)
        return Misused(
            f"the mapping {self._path}: {key} is {received}", action=f"Allowed: {allowed}."
        )

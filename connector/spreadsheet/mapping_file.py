"""Mapping file (TOML): the field and the options of each column."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from connector.atomic_files import write_atomically
from connector.catalog import CATALOG
from connector.errors import Misused, end_sentence, file_error
from connector.spreadsheet.dates import HOURS_ALLOWED, ORDERS, parse_hours
from connector.spreadsheet.targets import AS_WRITTEN, CellOptions, ColumnPolicy, Decimal
from connector.spreadsheet.texts import REGIONS, is_timezone


@dataclass(frozen=True, slots=True)
class SavedMap:
    """Decisions of the user about a file's columns.

    Attributes:
        columns: Target column and options by heading.
        constants: Text for every row, by target column.
        options: Options of columns that are not named, except `values` and `policy`.
        comments: Comments for the user on missing fields and on columns without a field.
        unanswered: By heading, cells that need a value, and what is allowed. They are comments too.
    """

    resource: str
    columns: Mapping[str, tuple[str, CellOptions]] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    options: CellOptions = AS_WRITTEN
    comments: tuple[str, ...] = ()
    unanswered: Mapping[str, tuple[Sequence[str], str]] = field(default_factory=dict)
    header_row: int | None = None


# -- Model -----------------------------------------------------------------------------------------


_CHECKS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "date_format": (ORDERS.__contains__, "dmy, mdy or ymd"),
    "timezone": (is_timezone, "a name such as Europe/London"),
    "region": (REGIONS.__contains__, "a country code such as GB"),
    "day_hours": (parse_hours, HOURS_ALLOWED),
}
"""Function that returns False or raises `ValueError` for a wrong value, and what is allowed."""


class _FileOptions(BaseModel):
    """Options for all columns of a file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    date_format: str | None = None
    decimal: Decimal | None = None
    timezone: str | None = None
    region: str | None = None
    day_hours: str | None = None

    @field_validator(*_CHECKS)
    @classmethod
    def _check(cls, value: str, info: ValidationInfo) -> str:
        is_right, allowed = _CHECKS[str(info.field_name)]
        with suppress(ValueError):
            if is_right(value) is not False:
                return value
        raise ValueError(f"Allowed: {allowed}.")

    def cell_options(self, defaults: CellOptions = AS_WRITTEN) -> CellOptions:
        """Return the options that were given, with the defaults of the file."""
        given = self.model_dump(exclude_unset=True, exclude={"resource", "field", *_OTHER_KEYS})
        return replace(defaults, **given)


_OTHER_KEYS = ("header_row", "ignored", "constants", "columns")


class _Column(_FileOptions):
    field: str
    whole_numbers: bool = False
    values: dict[str, str] = Field(default_factory=dict)
    policy: ColumnPolicy = "overwrite"


class _Document(_FileOptions):
    resource: Literal[tuple(CATALOG)]  # type: ignore[valid-type] # the names of the catalog
    header_row: Annotated[int, Field(ge=1)] | None = None
    ignored: list[str] = Field(default_factory=list)
    constants: dict[str, str] = Field(default_factory=dict)
    columns: dict[str, str | _Column] = Field(default_factory=dict)


def load_map(path: Path) -> SavedMap:
    """Return the mapping in a file.

    Raises `Misused`, which names the file, the key and the allowed values.
    """
    try:
        return parse_map(tomllib.loads(path.read_text("utf-8")), f"the mapping {path}")
    except FileNotFoundError:
        message = f"the mapping {path} does not exist"
        raise Misused(message, action="Check the name and the folder.") from None
    except OSError as error:
        action = "Use a file that this user can read."
        raise Misused(str(file_error(path, error)), action=action) from error
    except (ValueError, RecursionError) as error:
        action = "Correct this line. Put names that contain spaces in quotes."
        raise Misused(f"the mapping {path} is not TOML: {error}", action=action) from error


def parse_map(given: Mapping[str, Any], description: str) -> SavedMap:
    """Return the mapping in the document of a mapping file. Raises `Misused`."""
    try:
        document = _Document.model_validate(given)
    except ValidationError as error:
        raise _invalid_error(description, error) from error
    defaults = document.cell_options()
    columns = {
        heading: (each, defaults)
        if isinstance(each, str)
        else (each.field, each.cell_options(defaults))
        for heading, each in document.columns.items()
    }
    return SavedMap(
        document.resource,
        columns,
        document.constants,
        tuple(document.ignored),
        defaults,
        header_row=document.header_row,
    )


def _invalid_error(description: str, error: ValidationError) -> Misused:
    """Return the error for the first invalid key of a mapping."""
    # A column may be a text or a table: the error of the table names its key.
    errors = error.errors()
    first = next((each for each in errors if len(each["loc"]) > 3), errors[0])
    place = ".".join(str(each) for each in first["loc"] if each not in ("str", "_Column"))
    received = "missing" if first["type"] == "missing" else repr(first["input"])
    text = first["msg"].removeprefix("Value error, ")
    return Misused(f"{description}: {place} is {received}", action=end_sentence(text))


# -- Options and writing ---------------------------------------------------------------------------


def with_options(saved: SavedMap, overrides: CellOptions) -> SavedMap:
    """Return the map with the overrides that are not None, for all columns."""
    given = _given_options(overrides)
    return _replace_options(saved, lambda options: replace(options, **given))


def with_region(saved: SavedMap, region: str) -> SavedMap:
    """Return the map with the region for all columns for which the user gave none."""
    return _replace_options(
        saved, lambda options: replace(options, region=options.region or region)
    )


def _replace_options(saved: SavedMap, change: Callable[[CellOptions], CellOptions]) -> SavedMap:
    columns = {heading: (name, change(each)) for heading, (name, each) in saved.columns.items()}
    return replace(saved, columns=columns, options=change(saved.options))


def _given_options(options: CellOptions) -> dict[str, Any]:
    """Return the options for all columns that are set, by name."""
    values = {name: getattr(options, name) for name in _FileOptions.model_fields}
    return {name: value for name, value in values.items() if value is not None}


def to_document(saved: SavedMap) -> dict[str, Any]:
    """Return the map as the document of a mapping file, without the row of the headings."""
    return {
        **_given_options(saved.options),
        "ignored": list(saved.ignored),
        "constants": dict(saved.constants),
        "columns": {h: _written_column(saved, *each) for h, each in saved.columns.items()},
    }


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
    document = {"resource": saved.resource, "header_row": saved.header_row, **to_document(saved)}
    constants, written = document.pop("constants"), document.pop("columns")
    yield "# The field of each column of the file."
    yield from (f"{name} = {_toml(value)}" for name, value in document.items() if value)
    if constants:
        yield "\n# Values of every row."
        yield "[constants]"
        yield from (f"{toml_key(name)} = {_toml(text)}" for name, text in constants.items())
    yield "\n[columns]"
    for heading, given in written.items():
        if heading not in saved.unanswered:
            yield f"{toml_key(heading)} = {_toml(given if len(given) > 1 else given['field'])}"
    yield from (f"# {_one_line(each)}" for each in saved.comments)
    for heading, (cells, allowed) in saved.unanswered.items():
        yield f"\n[columns.{toml_key(heading)}]"
        answered = written[heading].pop("values", {})
        yield from (f"{name} = {_toml(value)}" for name, value in written[heading].items())
        yield from (f"values.{_toml(cell)} = {_toml(value)}" for cell, value in answered.items())
        yield '# Enter a value and delete the "#". An empty value skips the cell.'
        yield f"# {_one_line(allowed)}"
        yield from (f'# values.{_toml(each)} = ""' for each in cells)


def _written_column(saved: SavedMap, name: str, options: CellOptions) -> dict[str, Any]:
    """Return the field and the options of a column that differ from those of the file."""
    defaults = replace(saved.options, values={}, policy="overwrite")
    given = asdict(options).items()
    kept = {k: v for k, v in given if k in _Column.model_fields and v is not None}
    return {"field": name, **{k: v for k, v in kept.items() if v != getattr(defaults, k)}}


def _one_line(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{toml_key(k)} = {_toml(each)}" for k, each in value.items()) + " }"
        )
    # A TOML string is a JSON string, except for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if name.isascii() and name.replace("_", "").isalnum() else _toml(name)

"""Templates: an empty table with every accepted column, to be filled in.

A csv has the headings. A workbook also explains each column at its heading, offers the allowed
values as a list, and formats all columns as text, so that `00123` and `+44...` stay unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.spreadsheet.report import open_new_file, write_delimited
from connector.spreadsheet.table import WORKBOOK_SUFFIX
from connector.spreadsheet.targets import PushTarget, TargetColumn
from connector.spreadsheet.words import RULES


@dataclass(frozen=True, slots=True)
class TemplateColumn:
    """Column of a template, with sentences on its field and the allowed values, if any."""

    heading: str
    rule: str
    allowed: tuple[str, ...]
    is_required: bool


def write_template(path: Path, columns: Sequence[TemplateColumn]) -> None:
    """Write the template, as csv or xlsx by its name. The file appears when it is complete.

    Raises the errors of `open_new_file`.
    """
    with open_new_file(path, "a template") as file:
        if path.suffix.lower() == WORKBOOK_SUFFIX:
            from connector.spreadsheet.workbook_writer import write_template_workbook  # noqa: PLC0415

            write_template_workbook(file, columns)
        else:
            delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
            write_delimited(file, delimiter, [[column.heading for column in columns]])


def template_columns(target: PushTarget) -> tuple[TemplateColumn, ...]:
    """Return one column for every field that the target's mode accepts, in declared order.

    If a field can be named in several ways, the best known name is used.
    """
    by_key: dict[str, list[TargetColumn]] = {}
    for column in target.columns:
        by_key.setdefault(column.key, []).append(column)
    return tuple(_template_column(target, group) for group in by_key.values())


def _template_column(target: PushTarget, group: list[TargetColumn]) -> TemplateColumn:
    """Return the column for a field; `group` has the target columns that fill it."""
    # The second way to name a record is the best known one; the first is its id.
    column = group[1] if len(group) > 1 else group[0]
    field, by = column.field, column.reference.by if column.reference is not None else None
    rule = RULES[field.format or field.kind.value]
    if by is not None:
        rule = f"The {by.replace('_', ' ')} of an existing record."
    elif field.values:
        rule = ""
    return TemplateColumn(
        heading=column.name,
        rule=f"{field.about} {rule}".strip(),
        allowed=column.accepted_values(target.mode),
        is_required=_is_required(target, column),
    )


def _is_required(target: PushTarget, column: TargetColumn) -> bool:
    if target.mode == "update":
        return column.key in (target.match or ("id",))
    return target.mode != "convert" and (column.field.create.required or column.key in target.match)

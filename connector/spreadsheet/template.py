"""Templates: an empty table with every accepted column, to be filled in.

A csv has the headings. A workbook also explains each column at its heading,
offers the allowed values as a list, and formats all columns as text, so that `00123` and `+44...`
stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.errors import SpreadsheetError
from connector.log import UNSAFE
from connector.spreadsheet.headings import name_columns
from connector.spreadsheet.report import open_new_file, write_delimited
from connector.spreadsheet.table import WORKBOOK_SUFFIX
from connector.spreadsheet.targets import PushTarget, TargetColumn
from connector.spreadsheet.texts import is_hazard
from connector.spreadsheet.words import RULES


@dataclass(frozen=True, slots=True)
class TemplateColumn:
    """Column of a template.

    Attributes:
        rule: Sentences on the field and on the expected value.
        allowed: Allowed values; empty if any value is allowed.
    """

    heading: str
    rule: str
    allowed: tuple[str, ...]
    is_required: bool


def write_template(path: Path, columns: Sequence[TemplateColumn]) -> None:
    """Write the template, as csv or xlsx by its name. The file appears when it is complete.

    Raises `SpreadsheetError` if headings are not distinct or look like a formula (only keys of
    content fields can), and the errors of `open_new_file`.
    """
    headings = [column.heading for column in columns]
    for each in headings:
        if is_hazard(each) or UNSAFE.search(each):
            raise SpreadsheetError(
                f"{path}: a spreadsheet program or a terminal would run the heading as a command: "
                f"{each!r}",
                action=(
                    "Rename the key of this field in the content type, then pull content_types."
                ),
                code="headings_refused",
            )
    if headings != list(name_columns(path, headings)):
        raise SpreadsheetError(
            f"{path}: two columns have the same heading: {', '.join(headings)}",
            code="headings_refused",
        )
    with open_new_file(path, "a template") as file:
        if path.suffix.lower() == WORKBOOK_SUFFIX:
            from connector.spreadsheet.workbook_writer import write_template_workbook  # noqa: PLC0415

            write_template_workbook(file, columns)
        else:
            delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
            write_delimited(file, delimiter, [headings])


# -- Columns of a push target ----------------------------------------------------------------------
# One column for each field. If a field can be named in several ways, the best known name is used
# and the others are explained. A file with these headings maps by name alone.


def template_columns(target: PushTarget) -> tuple[TemplateColumn, ...]:
    """Return one column for every field that the target's mode accepts, in declared order."""
    by_key: dict[str, list[TargetColumn]] = {}
    for column in target.columns:
        by_key.setdefault(column.key, []).append(column)
    return tuple(_template_column(target, group) for group in by_key.values())


def _template_column(target: PushTarget, group: list[TargetColumn]) -> TemplateColumn:
    """Return the column for a field; `group` has the target columns that fill it."""
    # The second way to name a record is the best known one; the first is its id.
    column = group[1] if len(group) > 1 else group[0]
    others = [each.name for each in group if each is not column]
    rule = [column.field.about, *_rule_sentences(target, column)]
    if others:
        rule.append(f"Alternative column: {' or '.join(others)}.")
    return TemplateColumn(
        heading=column.name,
        rule=" ".join(rule),
        allowed=column.accepted_values(target.mode),
        is_required=_is_required(target, column),
    )


def _is_required(target: PushTarget, column: TargetColumn) -> bool:
    """Return True if every row needs a value in this column."""
    match target.mode:
        case "create" | "upsert":
            return column.field.create.required or column.key in target.match
        case "update":
            return column.key in (target.match or ("id",))
        case "convert":
            return column.key == "id"


def _rule_sentences(target: PushTarget, column: TargetColumn) -> Iterator[str]:
    """Yield the sentences on the expected value."""
    if target.mode == "convert":
        yield "Fill in id or email."
    elif _is_required(target, column):
        yield "Required."
    if column.reference is not None and column.reference.by is not None:
        yield f"The {column.reference.by.replace('_', ' ')} of an existing record."
    elif column.field.format is not None:
        yield RULES[column.field.format]
    elif column.field.values:
        yield (
            "One or more of the values, separated by semicolons."
            if column.is_multiple
            else "A value."
        )
    else:
        yield RULES[column.field.kind.value]

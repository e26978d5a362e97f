"""The website's tables of personal fields: whose each field is, and its class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from connector.catalog import CATALOG
from connector.catalog.field import Personal
from generate.files import Texts, read_or_empty

_PAGE = "docs/PERSONAL_DATA.md"

Row = tuple[str, ...]


def personal_data_page() -> Texts:
    """Return the page, followed by the tables of all personal fields."""
    lines = ("", "## All personal fields", "", *_owner_table(), "", *_personal_class_table())
    return {_PAGE: read_or_empty(_PAGE) + "".join(f"{line}\n" for line in lines)}


def _owner_table() -> Iterator[str]:
    """Yield a Markdown table with a row for each group of fields that are removed together."""
    rows = []
    for name, resource in CATALOG.items():
        for owner in resource.subjects:
            personal = {f.name for f in resource.fields.values() if f.personal is not None}
            is_all = personal == set(owner.fields)
            fields = "all personal fields" if is_all else _code_list(owner.fields)
            rows.append((f"`{name}`", owner.about, _code_list((*owner.ids, *owner.emails)), fields))
    yield from _markdown_table(("Resource", "Whose", "Known by", "Fields"), rows)


def _personal_class_table() -> Iterator[str]:
    """Yield a table of personal fields: a row for each resource, a column for each class."""
    classes = get_args(Personal)
    yield from _markdown_table(
        ("Resource", *(f"`{each}`" for each in classes)),
        (
            (
                f"`{name}`",
                *(
                    _code_list(f.name for f in resource.fields.values() if f.personal == each)
                    or "-"
                    for each in classes
                ),
            )
            for name, resource in CATALOG.items()
        ),
    )


def _markdown_table(header: Row, rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    yield from (
        f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in rows
    )


def _code_list(names: Iterable[str]) -> str:
    """Format the names as code, with commas between them."""
    return ", ".join(f"`{each}`" for each in names)

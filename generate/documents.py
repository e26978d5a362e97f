"""The tables of `docs/API.md` and `docs/PERSONAL_DATA.md`.

What people wrote in the columns *Notes*, *Body* and *Answer* of a table stays in its row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from connector.catalog import CATALOG
from connector.catalog.content import ContentTypeField
from connector.catalog.field import (
    REFUSED,
    AtLeastOneOf,
    Field,
    FieldInput,
    Personal,
    RequiredWhen,
    Rule,
)
from connector.catalog.resource import Declaration, Operation
from generate.files import Texts, block_content, block_names, read_or_empty, replace_block

_API, _PERSONAL = "docs/API.md", "docs/PERSONAL_DATA.md"
_OPERATIONS: Mapping[Operation, tuple[str, str, str]] = {
    "list": ("GET", "", "200"),
    "get": ("GET", "/{id}", "200"),
    "create": ("POST", "", "201"),
    "update": ("PUT", "/{id}", "200"),
    "delete": ("DELETE", "/{id}", "4.8"),
    "convert": ("POST", "/{id}/convert", "not shown"),
}
"""What an operation means over HTTP: the method, the path's ending, and its status."""

Row = tuple[str, ...]


def api_page() -> Texts:
    """Return `docs/API.md` with the current tables of all resources."""
    text = read_or_empty(_API)
    own = set(block_names(text))
    for resource in CATALOG.values():
        for kind, lines in _tables_by_block(resource, text).items():
            if f"{kind} of {resource.name}" in own:
                text = _fill_block(text, f"{kind} of {resource.name}", lines)
    parts = ContentTypeField.fields_declared.values()
    notes = _cells_by_key(block_content(text, "fields of a content type"), (0,), 3)
    rows = (
        (f"`{f.name}`", str(f.kind), _code_list(f.values), notes.get((f"`{f.name}`",), ""))
        for f in parts
    )
    text = _fill_block(
        text,
        "fields of a content type",
        _markdown_table(("Field", "Type", "Values", "Notes"), rows),
    )
    text = _fill_block(text, "sorts", _sort_table())
    text = _fill_block(text, "scopes", (f"   {line}" for line in _scope_table()))
    for kind in ("fields", "states", "endpoints"):
        others = (e for e in CATALOG.values() if f"{kind} of {e.name}" not in own)
        text = _fill_block(
            text, f"{kind} of other resources", _sections_of_other_resources(others, kind, text)
        )
    return {_API: text}


def _sections_of_other_resources(
    resources: Iterable[Declaration], kind: str, text: str
) -> Iterator[str]:
    """Yield the lines of a heading and a table for each resource without an own section.

    `kind` is "fields", "states" or "endpoints". `text` is the page with the existing notes.
    """
    for each in resources:
        if lines := _tables_by_block(each, text)[kind]:
            named = each.singular if kind == "states" else each.name.replace("_", " ")
            heading = f"### {each.section} {each.singular.capitalize()}"
            yield from (
                heading if kind == "fields" else f"**{named.capitalize()}**",
                "",
                *lines,
                "",
            )


def _tables_by_block(resource: Declaration, text: str) -> dict[str, list[str]]:
    """Return the lines of a resource's tables by the kind of their block in the page."""
    return {
        "fields": [*field_table(resource, text), *rule_table(resource.rules)],
        "states": list(state_table(resource)),
        "endpoints": list(endpoint_table(resource, text)),
    }


def _fill_block(text: str, name: str, lines: Iterable[str]) -> str:
    """Return the page with these lines as the content of a block."""
    return replace_block(
        text, name, "\n" + "".join(f"{line}\n".replace(" \n", "\n") for line in lines)
    )


def _markdown_table(header: Row, rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    yield from (
        f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in rows
    )


def _cells_by_key(table: str, keys: tuple[int, ...], column: int) -> dict[Row, str]:
    """Return the cells of one column of a Markdown table, by the cells that identify their row.

    `keys` are the indexes of the identifying columns, and `column` the index of the other one.
    """
    kept = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if len(cells) > column:
            kept[tuple(cells[key] for key in keys)] = cells[column]
    return kept


def _code_list(names: Iterable[str]) -> str:
    """Format the names as code, with commas between them."""
    return ", ".join(f"`{each}`" for each in names)


# -- Fields, rules, states -------------------------------------------------------------------------


def field_table(resource: Declaration, text: str = "") -> Iterator[str]:
    """Yield a Markdown table of the resource's fields.

    The column *Notes* is taken from the existing table in the page `text`.
    """
    notes = _cells_by_key(block_content(text, f"fields of {resource.name}"), (0,), 9)
    header = (
        "Field",
        "Type",
        "Values",
        "Create",
        "Update",
        "List item",
        "Detail",
        "Sort",
        "Filter",
    )
    filters = {each.name for each in resource.filters}
    yield from _markdown_table(
        (*header, "Notes"),
        (
            (
                f"`{each.name}`",
                str(each.kind),
                _code_list(each.values),
                _input_cell(each, each.create if "create" in resource.operations else REFUSED),
                _input_cell(each, each.update if "update" in resource.operations else REFUSED),
                _list_item_cell(each),
                "no" if each.write_only else "yes",
                "yes" if each.name in resource.sortable else "no",
                "yes" if each.name in filters else "no",
                notes.get((f"`{each.name}`",), ""),
            )
            for each in resource.fields.values()
        ),
    )


def _input_cell(field: Field, terms: FieldInput) -> str:
    """Return "no", "optional" or "required", with the accepted values if they are restricted."""
    if not terms.accepted:
        return "no"
    word = "required" if terms.required else "optional"
    return word if terms.values is None else f"{word}: {_code_list(terms.values)}"


def _list_item_cell(field: Field) -> str:
    """Return "yes" or "no" for a field in list items, with its values if they are restricted."""
    if not field.listed:
        return "no"
    return "yes" if field.item_values == field.values else f"yes: {_code_list(field.item_values)}"


def rule_table(rules: tuple[Rule, ...]) -> Iterator[str]:
    """Yield a Markdown table of the rules between fields of a body; nothing without rules."""
    if rules:
        yield ""
        yield from _markdown_table(
            ("Body", "Fields", "Rule", "On", "Values"), map(_rule_row, rules)
        )


def _rule_row(rule: Rule) -> Row:
    """Return the table row of a rule between fields."""
    if isinstance(rule, AtLeastOneOf):
        return ("create", _code_list(rule.fields), "at least one of", "", "")
    if isinstance(rule, RequiredWhen):
        on, values = f"`{rule.on}`", _code_list(rule.values)
        return ("create", _code_list(rule.fields), "required when", on, values)
    return ("update", f"`{rule.field}`", "accepted when", f"`{rule.on}`", _code_list(rule.values))


def state_table(resource: Declaration) -> Iterator[str]:
    """Yield a Markdown table of the values of `status` that create, update and list items have."""
    status = resource.fields.get("status")
    if status is None or not status.values:
        return
    columns = [
        (f"On {operation}", terms.accepted, terms.values)
        for operation, terms in (("create", status.create), ("update", status.update))
        if operation in resource.operations
    ]
    if status.item_values != status.values:
        columns.append(("List item", True, status.item_values))
    yield from _markdown_table(
        ("State", *(name for name, _, _ in columns)),
        (
            (
                f"`{state}`",
                *("yes" if ok and state in (v or status.values) else "no" for _, ok, v in columns),
            )
            for state in status.values
        ),
    )


# -- Endpoints -------------------------------------------------------------------------------------


def endpoint_table(resource: Declaration, text: str = "") -> Iterator[str]:
    """Yield a Markdown table of the resource's requests.

    The columns *Body* and *Answer* are taken from the existing table in the page `text`.
    """
    written = block_content(text, f"endpoints of {resource.name}")
    bodies, answers = _cells_by_key(written, (1, 2), 5), _cells_by_key(written, (1, 2), 7)
    header = ("Operation", "Method", "Path", "Scope", "Query", "Body", "Status", "Answer")
    rows = []
    for operation, (method, ending, status) in _OPERATIONS.items():
        if operation in resource.operations:
            path = f"`/api/v1{resource.path}{ending}`"
            scope = resource.read_scope() if method == "GET" else resource.write_scope()
            query = ", ".join(_query_parameters(resource)) if operation == "list" else "none"
            body = bodies.get((method, path)) or _body_cell(resource, operation)
            answer = answers.get((method, path), "")
            if not answer or answer.startswith("`id`"):
                answer = _answer_cell(resource, operation)
            rows.append((operation, method, path, f"`{scope}`", query, body, status, answer))
    yield from _markdown_table(header, rows)


def _query_parameters(resource: Declaration) -> Iterator[str]:
    """Yield the query parameters of the resource's list."""
    yield from ("`page`", "`per_page`")
    for each in resource.filters:
        # A filter named like a field takes the field's type; only another one states its own.
        yield f"`{each.name}`" + ("" if each.name in resource.fields else f" ({each.kind})")
    if resource.searchable:
        yield "`search`"
    if resource.sortable:
        yield from ("`sort`", "`order`")


def _body_cell(resource: Declaration, operation: Operation) -> str:
    """Return the section of the API document that describes the request's body, or "none"."""
    if operation == "create":
        return f"{resource.section}, *Create*"
    return f"{resource.section}, *Update*; nothing is required" if operation == "update" else "none"


def _answer_cell(resource: Declaration, operation: Operation) -> str:
    """Describe the response of an operation in a few words."""
    if operation in resource.echoes:
        return _code_list(resource.echoes[operation])
    return {
        "list": f"list items of {resource.section}",
        "get": "detail",
        "delete": "`message` alone",
        "convert": "the converted record",
    }.get(operation, f"the {operation}d {resource.singular}")


def _sort_table() -> Iterator[str]:
    """Yield a Markdown table of the sortable fields of each list."""
    yield from _markdown_table(
        ("Endpoint", "Sortable fields"),
        ((f"`{e.path}`", _code_list(e.sortable)) for e in CATALOG.values() if e.sortable),
    )


def _scope_table() -> Iterator[str]:
    """Yield a Markdown table of the scopes that operations need."""
    scopes = _code_list(dict.fromkeys(each.scope for each in CATALOG.values()))
    yield from _markdown_table(
        ("Operations", "Scope", "Resources"),
        (
            ("list, get", "`<resource>.read`", scopes),
            ("create, update, delete, convert", "`<resource>.write`", scopes),
        ),
    )


# -- Personal data ---------------------------------------------------------------------------------


def personal_data_page() -> Texts:
    """Return `docs/PERSONAL_DATA.md` with the current tables of personal fields."""
    text = _fill_block(read_or_empty(_PERSONAL), "owners", _owner_table())
    return {_PERSONAL: _fill_block(text, "classes", _personal_class_table())}


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
    classes = (*get_args(Personal), "none")
    tables = [(name, each.fields.values()) for name, each in CATALOG.items()]
    tables.append(("content_type_fields", ContentTypeField.fields_declared.values()))
    yield from _markdown_table(
        ("Resource", *(f"`{each}`" for each in classes)),
        (
            (
                f"`{name}`",
                *(
                    _code_list(f.name for f in fields if (f.personal or "none") == each) or "-"
                    for each in classes
                ),
            )
            for name, fields in tables
        ),
    )

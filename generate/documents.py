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
    """The page of the API, with the tables of every resource."""
    text = read_or_empty(_API)
    own = set(block_names(text))
    for resource in CATALOG.values():
        for kind, lines in _tables(resource, text).items():
            if f"{kind} of {resource.name}" in own:
                text = _filled(text, f"{kind} of {resource.name}", lines)
    parts = ContentTypeField.fields_declared.values()
    notes = _kept(block_content(text, "fields of a content type"), (0,), 3)
    rows = (
        (f"`{f.name}`", str(f.kind), _quoted(f.values), notes.get((f"`{f.name}`",), ""))
        for f in parts
    )
    text = _filled(
        text, "fields of a content type", _table(("Field", "Type", "Values", "Notes"), rows)
    )
    text = _filled(text, "sorts", _sorts())
    text = _filled(text, "scopes", (f"   {line}" for line in _scopes()))
    for kind in ("fields", "states", "endpoints"):
        others = (e for e in CATALOG.values() if f"{kind} of {e.name}" not in own)
        text = _filled(text, f"{kind} of other resources", _sections(others, kind, text))
    return {_API: text}


def _sections(resources: Iterable[Declaration], kind: str, text: str) -> Iterator[str]:
    """A section of its own for each resource that the page does not describe by hand."""
    for each in resources:
        if lines := _tables(each, text)[kind]:
            named = each.singular if kind == "states" else each.name.replace("_", " ")
            heading = f"### {each.section} {each.singular.capitalize()}"
            yield from (
                heading if kind == "fields" else f"**{named.capitalize()}**",
                "",
                *lines,
                "",
            )


def _tables(resource: Declaration, text: str) -> dict[str, list[str]]:
    return {
        "fields": [*field_table(resource, text), *rule_table(resource.rules)],
        "states": list(state_table(resource)),
        "endpoints": list(endpoint_table(resource, text)),
    }


def _filled(text: str, name: str, lines: Iterable[str]) -> str:
    return replace_block(text, name, "".join(f"{line}\n".replace(" \n", "\n") for line in lines))


def _table(header: Row, rows: Iterable[Row]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    yield from (
        f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in rows
    )


def _kept(table: str, keys: tuple[int, ...], *places: int) -> dict[Row, str]:
    """What the cells of a written table hold in one column, by the cells that identify a row."""
    kept = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if len(cells) > max(places):
            kept[tuple(cells[key] for key in keys)] = cells[places[0]]
    return kept


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)


# -- Fields, rules, states -------------------------------------------------------------------------


def field_table(resource: Declaration, text: str = "") -> Iterator[str]:
    """What is declared of each field, with the notes that the text's own table has."""
    notes = _kept(block_content(text, f"fields of {resource.name}"), (0,), 9)
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
    yield from _table(
        (*header, "Notes"),
        (
            (
                f"`{each.name}`",
                str(each.kind),
                _quoted(each.values),
                _terms(each, each.create if "create" in resource.operations else REFUSED),
                _terms(each, each.update if "update" in resource.operations else REFUSED),
                _item(each),
                "no" if each.write_only else "yes",
                "yes" if each.name in resource.sortable else "no",
                "yes" if each.name in filters else "no",
                notes.get((f"`{each.name}`",), ""),
            )
            for each in resource.fields.values()
        ),
    )


def _terms(field: Field, terms: FieldInput) -> str:
    if not terms.accepted:
        return "no"
    word = "required" if terms.required else "optional"
    return word if terms.values is None else f"{word}: {_quoted(terms.values)}"


def _item(field: Field) -> str:
    if not field.listed:
        return "no"
    return "yes" if field.item_values == field.values else f"yes: {_quoted(field.item_values)}"


def rule_table(rules: tuple[Rule, ...]) -> Iterator[str]:
    """What holds of a body only in company with another field; nothing where there are no rules."""
    if rules:
        yield ""
        yield from _table(("Body", "Fields", "Rule", "On", "Values"), map(_rule, rules))


def _rule(rule: Rule) -> Row:
    if isinstance(rule, AtLeastOneOf):
        return ("create", _quoted(rule.fields), "at least one of", "", "")
    if isinstance(rule, RequiredWhen):
        on, values = f"`{rule.on}`", _quoted(rule.values)
        return ("create", _quoted(rule.fields), "required when", on, values)
    return ("update", f"`{rule.field}`", "accepted when", f"`{rule.on}`", _quoted(rule.values))


def state_table(resource: Declaration) -> Iterator[str]:
    """Which values of `status` a create, an update and a list item have."""
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
    yield from _table(
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
    """The requests that a resource takes, with what the text's own table says of their bodies."""
    written = block_content(text, f"endpoints of {resource.name}")
    bodies, answers = _kept(written, (1, 2), 5), _kept(written, (1, 2), 7)
    header = ("Operation", "Method", "Path", "Scope", "Query", "Body", "Status", "Answer")
    rows = []
    for operation, (method, ending, status) in _OPERATIONS.items():
        if operation in resource.operations:
            path = f"`/api/v1{resource.path}{ending}`"
            scope = resource.read_scope() if method == "GET" else resource.write_scope()
            query = ", ".join(_query(resource)) if operation == "list" else "none"
            body = bodies.get((method, path)) or _body(resource, operation)
            answer = answers.get((method, path), "")
            if not answer or answer.startswith("`id`"):
                answer = _answer(resource, operation)
            rows.append((operation, method, path, f"`{scope}`", query, body, status, answer))
    yield from _table(header, rows)


def _query(resource: Declaration) -> Iterator[str]:
    yield from ("`page`", "`per_page`")
    for each in resource.filters:
        # A filter named like a field takes the field's type; only another one states its own.
        yield f"`{each.name}`" + ("" if each.name in resource.fields else f" ({each.kind})")
    if resource.searchable:
        yield "`search`"
    if resource.sortable:
        yield from ("`sort`", "`order`")


def _body(resource: Declaration, operation: Operation) -> str:
    if operation == "create":
        return f"{resource.section}, *Create*"
    return f"{resource.section}, *Update*; nothing is required" if operation == "update" else "none"


def _answer(resource: Declaration, operation: Operation) -> str:
    if operation in resource.echoes:
        return _quoted(resource.echoes[operation])
    return {
        "list": f"list items of {resource.section}",
        "get": "detail",
        "delete": "`message` alone",
        "convert": "the converted record",
    }.get(operation, f"the {operation}d {resource.singular}")


def _sorts() -> Iterator[str]:
    yield from _table(
        ("Endpoint", "Sortable fields"),
        ((f"`{e.path}`", _quoted(e.sortable)) for e in CATALOG.values() if e.sortable),
    )


def _scopes() -> Iterator[str]:
    scopes = _quoted(dict.fromkeys(each.scope for each in CATALOG.values()))
    yield from _table(
        ("Operations", "Scope", "Resources"),
        (
            ("list, get", "`<resource>.read`", scopes),
            ("create, update, delete, convert", "`<resource>.write`", scopes),
        ),
    )


# -- Personal data ---------------------------------------------------------------------------------


def personal_data_page() -> Texts:
    """The page on personal data: whose each field is, and of which class."""
    text = _filled(read_or_empty(_PERSONAL), "owners", _owners())
    return {_PERSONAL: _filled(text, "classes", _classes())}


def _owners() -> Iterator[str]:
    """A row for each group of fields that are erased together."""
    rows = []
    for name, resource in CATALOG.items():
        for owner in resource.subjects:
            personal = {f.name for f in resource.fields.values() if f.personal is not None}
            is_all = personal == set(owner.fields)
            fields = "all personal fields" if is_all else _quoted(owner.fields)
            rows.append((f"`{name}`", owner.about, _quoted((*owner.ids, *owner.emails)), fields))
    yield from _table(("Resource", "Whose", "Known by", "Fields"), rows)


def _classes() -> Iterator[str]:
    """A row for each resource, a column for each class."""
    classes = (*get_args(Personal), "none")
    tables = [(name, each.fields.values()) for name, each in CATALOG.items()]
    tables.append(("content_type_fields", ContentTypeField.fields_declared.values()))
    yield from _table(
        ("Resource", *(f"`{each}`" for each in classes)),
        (
            (
                f"`{name}`",
                *(
                    _quoted(f.name for f in fields if (f.personal or "none") == each) or "-"
                    for each in classes
                ),
            )
            for name, fields in tables
        ),
    )

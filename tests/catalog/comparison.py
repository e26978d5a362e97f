"""What the catalog declares, in the document's terms, and where the two differ.

Kept apart from the tests so that they can compare broken copies as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from connector.catalog.field import AtLeastOneOf, Field, Input, RequiredWhen, Rule
from connector.catalog.resource import Declaration, Operation
from tests.catalog.document import (
    FIELD_HEADER,
    EndpointFact,
    FieldFact,
    RuleFact,
    Table,
    Terms,
    read_endpoints,
    read_fields,
    read_rules,
)

SECTIONS: Mapping[str, tuple[str, str]] = {
    "jobs": ("2.1", "3.1"),
    "candidates": ("2.2", "3.2"),
    "companies": ("2.3", "3.3"),
    "bookings": ("2.4", "3.4"),
    "leads": ("2.5", "3.5"),
    "content_types": ("2.6", ""),
    "content_items": ("2.7", "3.6"),
}
"""The sections of the document that state a resource's fields and its states."""

METHODS: Mapping[Operation, tuple[str, str, str]] = {
    "list": ("GET", "", "200"),
    "get": ("GET", "/{id}", "200"),
    "create": ("POST", "", "201"),
    "update": ("PUT", "/{id}", "200"),
    "delete": ("DELETE", "/{id}", "4.8"),
    "convert": ("POST", "/{id}/convert", "not shown"),
}
"""What an operation means over HTTP: the method, the path's ending, and where its status stands."""


def terms_of(terms: Input, values: tuple[str, ...]) -> Terms:
    """A request body's terms as the document writes them."""
    if not terms.accepted:
        return Terms("no")
    narrowed = () if terms.values in (None, values) else terms.values
    return Terms("required" if terms.required else "optional", narrowed or ())


def field_fact(declared: Field, declaration: Declaration) -> FieldFact:
    """A declared field as the document would state it."""
    item_values = () if declared.item_values == declared.values else declared.item_values
    return FieldFact(
        kind=str(declared.kind),
        values=declared.values,
        create=terms_of(declared.create, declared.values),
        update=terms_of(declared.update, declared.values),
        item=Terms("yes", item_values) if declared.listed else Terms("no"),
        detail=Terms("no" if declared.write_only else "yes"),
        is_sortable=declared.name in declaration.sortable,
        is_filterable=any(f.name == declared.name for f in declaration.filters),
    )


def rule_fact(rule: Rule) -> RuleFact:
    """A declared rule as the document would state it."""
    if isinstance(rule, RequiredWhen):
        return RuleFact("create", rule.fields, "required when", rule.on, rule.values)
    if isinstance(rule, AtLeastOneOf):
        return RuleFact("create", rule.fields, "at least one of", "", ())
    return RuleFact("update", (rule.field,), "accepted when", rule.on, rule.values)


def endpoint_facts(declaration: Declaration) -> Iterator[EndpointFact]:
    """The endpoints that a declaration stands for."""
    for operation in declaration.operations:
        method, ending, status = METHODS[operation]
        is_read = method == "GET"
        echoes = {"create": declaration.echo_create, "update": declaration.echo_update}
        yield EndpointFact(
            operation=operation,
            method=method,
            path=f"/api/v1{declaration.path}{ending}",
            scope=declaration.read_scope() if is_read else declaration.write_scope(),
            query=tuple(_query(declaration)) if operation == "list" else (),
            status=status,
            echo=echoes.get(operation) or (),
        )


def _query(declaration: Declaration) -> Iterator[tuple[str, str]]:
    yield from (("page", ""), ("per_page", ""))
    for each in declaration.filters:
        # A filter named like a field takes the field's type; only another one states its own.
        yield each.name, "" if each.name in declaration.fields else str(each.kind)
    if declaration.searchable:
        yield "search", ""
    if declaration.sortable:
        yield from (("sort", ""), ("order", ""))


def field_differences(table: Table, declaration: Declaration) -> list[str]:
    """Where a field table and a declaration differ, both ways, one sentence each."""
    stated = read_fields(table)
    declared = {n: field_fact(f, declaration) for n, f in declaration.fields.items()}
    return [
        f"API {table.section}, {name}: the document states {stated.get(name)}, "
        f"the catalog declares {declared.get(name)}"
        for name in sorted(stated.keys() | declared.keys())
        if stated.get(name) != declared.get(name)
    ]


def filter_differences(declaration: Declaration) -> list[str]:
    """Filters named like a field that do not take exactly the field's type and values."""
    return [
        f"{declaration.name}: the filter {each.name!r} is not of its field's type and values"
        for each in declaration.filters
        if each.name in declaration.fields
        and (each.kind, each.values)
        != (declaration.fields[each.name].kind, declaration.fields[each.name].values)
    ]


def endpoint_differences(tables: list[Table], catalog: Mapping[str, Declaration]) -> list[str]:
    """Where the endpoint tables and the catalog differ, both ways."""
    stated = {key: _unordered(fact) for key, fact in read_endpoints(tables).items()}
    declared = {
        (fact.method, fact.path): _unordered(fact)
        for declaration in catalog.values()
        for fact in endpoint_facts(declaration)
    }
    return [
        f"{' '.join(key)}: the document states {stated.get(key)}, "
        f"the catalog declares {declared.get(key)}"
        for key in sorted(stated.keys() | declared.keys())
        if stated.get(key) != declared.get(key)
    ]


def _unordered(fact: EndpointFact) -> tuple[object, ...]:
    # The order of query parameters means nothing.
    plain = (fact.operation, fact.scope, fact.status, fact.echo)
    return (*plain, frozenset(fact.query))


def differences(tables: list[Table], catalog: Mapping[str, Declaration]) -> list[str]:
    """Every difference between the document's tables and the catalog."""
    found = endpoint_differences(tables, catalog)
    field_tables = {t.section: t for t in tables if t.header == FIELD_HEADER}
    stated_sections = {SECTIONS[name][0] for name in catalog if name in SECTIONS}
    if set(field_tables) != stated_sections:
        found.append(f"field tables stand in {sorted(field_tables)}, not {stated_sections}")
    for name, declaration in catalog.items():
        section, _ = SECTIONS[name]
        if section in field_tables:
            found += field_differences(field_tables[section], declaration)
        found += filter_differences(declaration)
        rules = {rule_fact(rule) for rule in declaration.rules}
        if rules != read_rules(tables, section):
            found.append(f"API {section}: the document states other rules than {rules}")
    return found

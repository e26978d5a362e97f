"""The catalog: declarations that agree with themselves, and no fact of them left unsaid.

That `docs/API.md` says what is declared is asserted in `tests/generate`; here, that each declared
fact makes a difference to what it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from connector.catalog import CATALOG, REFERRED_FIRST, declaration, references
from connector.catalog.content import ContentTypeField
from connector.catalog.field import REFUSED, REQUIRED, Field, FieldInput, Kind
from connector.catalog.resource import Declaration, Resource
from connector.errors import UnknownName
from generate.documents import endpoint_table, field_table, rule_table, state_table


def describe_resource(resource: Declaration) -> list[str]:
    """Return all texts of the API page about a resource."""
    tables = (field_table(resource), endpoint_table(resource), state_table(resource))
    return [line for table in (*tables, rule_table(resource.rules)) for line in table]


@pytest.mark.parametrize("name", CATALOG)
def test_values_of_operations_and_filters_are_values_of_the_field(name: str) -> None:
    resource = declaration(name)
    for each in resource.fields.values():
        narrowed = (each.create.values, each.update.values, each.item_values)
        assert all(set(values or ()) <= set(each.values) for values in narrowed), each.name
    for filter in resource.filters:
        if declared := resource.fields.get(filter.name):
            assert (declared.kind, declared.values) == (filter.kind, filter.values)


def test_fields_of_a_content_type_are_read_only() -> None:
    writable = [
        name
        for name, each in ContentTypeField.fields_declared.items()
        if each.create.accepted or each.update.accepted
    ]

    assert [] == writable
    assert ContentTypeField is declaration("content_types").field("fields").element_type


def test_referenced_resources_are_ordered_first() -> None:
    for place, name in enumerate(REFERRED_FIRST):
        assert set(references(CATALOG[name]).values()) <= set(REFERRED_FIRST[:place])
    assert set(CATALOG) == set(REFERRED_FIRST)


def test_an_unknown_resource_is_rejected_with_the_nearest_name() -> None:
    with pytest.raises(UnknownName) as caught:
        declaration("candidate")

    assert "'candidate' is not a resource. Did you mean 'candidates'?" == str(caught.value)
    assert f"Use one of: {', '.join(CATALOG)}." == caught.value.action


def test_a_declaration_with_an_unknown_natural_key_is_rejected() -> None:
    head = {"section": "9", "singular": "thing", "path": "/things", "scope": "things"}
    with pytest.raises(UnknownName, match="'titel' is not a field of things"):
        type("Thing", (Resource,), {}, name="things", **head, natural_keys=(("titel",),))


# What follows proves that a changed fact is seen in the document: each is changed once.


def vary_input(declared: FieldInput) -> Iterator[FieldInput]:
    """Yield variants of a field's input, each with one changed property."""
    yield REFUSED if declared.accepted else REQUIRED
    yield FieldInput(accepted=True, required=not declared.required, values=declared.values)
    yield FieldInput(accepted=True, required=declared.required, values=("another",))


def vary_field(declared: Field, resource: Declaration) -> Iterator[Field]:
    """Yield variants of a resource's field, each with one changed property."""
    yield replace(declared, kind=Kind.BOOL if declared.kind != Kind.BOOL else Kind.DATE)
    yield replace(declared, values=(*declared.values, "another"))
    yield replace(declared, listed=not declared.listed)
    yield replace(declared, write_only=not declared.write_only)
    if declared.listed:
        yield replace(declared, item_values=("another",))
    if "create" in resource.operations:
        yield from (replace(declared, create=terms) for terms in vary_input(declared.create))
    if "update" in resource.operations:
        yield from (replace(declared, update=terms) for terms in vary_input(declared.update))


def vary_resource(resource: Declaration) -> Iterator[tuple[str, Declaration]]:
    """Yield variants of a resource, each after the name of its changed property."""
    for each in resource.fields.values():
        for field in vary_field(each, resource):
            yield str(field), replace(resource, fields={**resource.fields, each.name: field})
    yield "path", replace(resource, path=f"{resource.path}s")
    yield "scope", replace(resource, scope="another")
    yield "operations", replace(resource, operations=resource.operations - {"list"})
    yield "sortable", replace(resource, sortable=(*resource.sortable, "id"))
    yield "searchable", replace(resource, searchable=not resource.searchable)
    if "create" in resource.operations:
        yield "echoes", replace(resource, echoes={"create": ("id",)})
    if resource.filters:
        yield "filters", replace(resource, filters=resource.filters[1:])
    if resource.rules:
        yield "rules", replace(resource, rules=resource.rules[1:])


@pytest.mark.parametrize("name", CATALOG)
def test_every_declared_property_is_in_the_api_page(name: str) -> None:
    intact = declaration(name)

    assert [] == [
        what
        for what, changed in vary_resource(intact)
        if describe_resource(changed) == describe_resource(intact)
    ]

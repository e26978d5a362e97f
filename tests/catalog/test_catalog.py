"""The catalog: declarations that agree with themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import pytest

from connector.catalog import CATALOG, REFERRED_FIRST, declaration, references
from connector.catalog.content import ContentTypeField
from connector.catalog.resource import Resource
from connector.errors import UnknownName
from connector.models.project import load_project
from connector.models.runner import describe
from connector.warehouse.schema import Column, landing_columns
from tests.repository import ROOT

MODELS = ROOT / "dbt_like_sql"


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


@cache
def described_tables() -> Mapping[str, Sequence[Column]]:
    """Return the columns of every table of the shipped models."""
    return describe(load_project())


@pytest.mark.parametrize("name", CATALOG)
def test_the_models_have_each_resource_with_every_column(name: str) -> None:
    resource = CATALOG[name]
    key = f"{resource.singular.replace(' ', '_')}_id"
    staged = {each.name for each in described_tables()[f"staging.{resource.view}"]}
    landed = {each.name for each in landing_columns(name) if not each.name.startswith("_")}
    files = ("staging/stg_records.sql", "audits/copy_is_intact.sql", "marts/data_quality.sql")

    assert set() == (landed - {"id"} | {key}) - staged
    assert [] == [each for each in files if f"'{name}'" not in (MODELS / each).read_text()]
    sources = (MODELS / "staging/sources.yml").read_text()
    assert 2 == sources.count(f"- name: {name}\n"), "the landing table and that of its versions"

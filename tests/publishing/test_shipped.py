"""The shipped project, as far as it can be tested without data."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from connector.publishing.columns import column_descriptions, describe_project
from connector.publishing.dictionary import ModelDescription, describe_models
from connector.publishing.project import Project, shipped_folder
from connector.publishing.project_loader import load_project
from connector.publishing.seeds import AUDITS


@pytest.fixture(scope="module")
def project() -> Project:
    """The shipped project of models."""
    return load_project()


@pytest.fixture(scope="module")
def catalog_entries(project: Project) -> Mapping[str, ModelDescription]:
    """Descriptions of the shipped models for data catalogs, by model name."""
    return {each.name: each for each in describe_models(project)}


RIDDLES = ("mirror", "; all for all", "the same as", "somebody")
"""Words that an analyst cannot understand in a description."""


def test_column_descriptions_contain_no_vague_words(
    catalog_entries: Mapping[str, ModelDescription],
) -> None:
    texts = {
        f"{each.name}.{column.name}": column.about
        for each in catalog_entries.values()
        for column in each.columns
    }
    assert {} == {
        name: text
        for name, text in texts.items()
        if any(word in text.lower() for word in RIDDLES) or text in ("Jobs.", "Days since.")
    }


def test_every_column_has_a_description(project: Project) -> None:
    shapes = describe_project(project)
    texts = column_descriptions(project, shapes)

    assert [] == [
        f"{node.table}.{column.name}"
        for node in project.nodes
        for column in shapes[node.table]
        if not texts[node.table].get(column.name)
    ]


def test_every_model_with_a_consultant_name_has_the_team(project: Project) -> None:
    shapes = describe_project(project)
    columns = {m.name: {c.name for c in shapes[m.table]} for m in project.models.values()}

    assert [] == [
        name for name, each in columns.items() if "consultant_name" in each and "team" not in each
    ]


def test_staging_is_views_and_marts_are_tables(project: Project) -> None:
    wanted = {"staging": "view", "marts": "table"}

    assert [] == [
        each.table for each in project.models.values() if wanted[each.schema] != each.kind
    ]


def test_no_model_or_audit_uses_the_clock_or_random_values(project: Project) -> None:
    clocks = re.compile(r"\b(?:now|today|random|uuid)\s*\(|\bcurrent_(?:date|time|timestamp)\b")
    models, audits = project.models.values(), project.audits
    queries = [*(each.query for each in models), *(each.query for each in audits)]

    assert [] == [
        (each.path.name, found.group())
        for each in queries
        for line in each.sql.splitlines()
        for found in clocks.finditer(line.partition("--")[0])
    ]


def test_each_mapping_seed_has_an_audit_that_warns(project: Project) -> None:
    severities = {each.name: each.severity for each in project.audits}

    assert set(AUDITS) <= set(project.seeds)
    assert {"warn"} == {severities[each] for each in AUDITS.values()}


def test_the_folder_of_shipped_models_is_next_to_the_package() -> None:
    assert "dbt_like_sql" == shipped_folder().name
    assert (shipped_folder().parent / "connector").is_dir()

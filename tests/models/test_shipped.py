"""The shipped project, as far as it can be tested without data."""

from __future__ import annotations

import re

import pytest

from connector.models.project import Project, load_project
from connector.models.runner import describe
from connector.models.seeds import AUDIT


@pytest.fixture(scope="module")
def project() -> Project:
    """The shipped project of models."""
    return load_project()


def test_every_table_and_column_has_a_description(project: Project) -> None:
    assert [] == [each.table for each in project.nodes.values() if not each.entry.description]
    assert [] == [
        f"{node.table}.{column.name}"
        for node in project.nodes.values()
        for column in describe(project)[node.table]
        if not column.comment
    ]


def test_every_model_with_a_consultant_name_has_the_team(project: Project) -> None:
    shapes = describe(project)
    columns = {m.name: {c.name for c in shapes[m.table]} for m in project.nodes.values()}

    assert [] == [
        name for name, each in columns.items() if "consultant_name" in each and "team" not in each
    ]


def test_staging_is_views_and_marts_are_tables(project: Project) -> None:
    wanted = {"staging": "view", "marts": "table", "seeds": "seed"}

    assert [] == [each.table for each in project.nodes.values() if wanted[each.schema] != each.kind]


def test_no_model_or_audit_uses_the_clock_or_random_values(project: Project) -> None:
    clocks = re.compile(r"\b(?:now|today|random|uuid)\s*\(|\bcurrent_(?:date|time|timestamp)\b")
    queries = {name: node.sql for name, node in project.nodes.items()}
    queries |= {each.name: each.sql for each in project.checks}

    assert [] == [
        (name, found.group())
        for name, sql in queries.items()
        for line in sql.splitlines()
        for found in clocks.finditer(line.partition("--")[0])
    ]


def test_the_audit_of_seeds_names_seeds_and_warns(project: Project) -> None:
    (audit,) = (each for each in project.checks if each.name == AUDIT)

    assert "warn" == audit.severity
    named = set(re.findall(r"^select '(\w+)'", audit.sql, re.MULTILINE))
    assert {"people", "lead_statuses", "source_groups", "exchange_rates"} == named
    assert named <= set(project.nodes)

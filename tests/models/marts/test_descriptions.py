"""Descriptions of columns are true of the data, and a name has one meaning in all marts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from connector.models.project import load_project
from connector.models.runner import describe
from tests.models.marts.world import BuiltWorld

CLAIMS = {
    r"First day of the month of (\w+)": "date_trunc('month', {0})::DATE = {column}",
    r"(?:The day|Day) of (\w+)": "{0}::DATE = {column}",
    r"Days from (\w+) to (\w+)": "abs((epoch({1}) - epoch({0})) / 86400 - {column}) < 0.01",
    r"(\w+) / (\w+)\.": "abs({0} / nullif({1}, 0) - {column}) < 0.0001",
    r"(\w+) \+ (\w+) \+ (\w+)\.": "{0} + {1} + {2} = {column}",
    r"True if (\w+) is at least (\w+)\.": "({0} >= {1}) = {column}",
    r"True if (\w+) is at most (\d+)\.": "coalesce({0} <= {1}, false) = {column}",
    r"True if (\w+) is known\.": "({0} IS NOT NULL) = {column}",
}
"""Forms of a description that name the source of a column, and SQL that is false if it is wrong."""


def find_claims() -> Iterator[tuple[str, str, str]]:
    """Yield mart, column and condition of each description that names columns of the same mart."""
    for table, columns in describe(load_project()).items():
        types = {each.name: each.type for each in columns}
        for each in columns if table.startswith("marts.") else ():
            for form, condition in CLAIMS.items():
                found = re.match(form, each.comment)
                if found is None or not {n for n in found.groups() if not n.isdigit()} <= {*types}:
                    continue
                zone = (
                    "time_zone" if "time_zone" in types else "(SELECT time_zone FROM staging.as_of)"
                )
                named = [
                    f"({name} AT TIME ZONE {zone})"
                    if types.get(name, "").endswith("ZONE") and "::DATE" in condition
                    else name
                    for name in found.groups()
                ]
                yield table, each.name, condition.format(*named, column=each.name)


@pytest.mark.slow
def test_a_description_that_names_its_source_columns_is_true(
    jobs_world: BuiltWorld, people_world: BuiltWorld
) -> None:
    claims = [*find_claims()]

    assert 20 <= len(claims)
    wrong = {}
    for table, column, condition in claims:
        query = f"SELECT * FROM {table} WHERE NOT ({condition})"
        if jobs_world.query(query) or people_world.query(query):
            wrong[f"{table}.{column}"] = condition
    assert {} == wrong


def test_a_column_name_has_one_type_and_no_vague_meaning() -> None:
    types: dict[str, set[str]] = defaultdict(set)
    for table, columns in describe(load_project()).items():
        if table.startswith("marts."):
            for each in columns:
                types[each.name].add(each.type)

    assert {} == {name: some for name, some in types.items() if len(some) > 1}
    assert not {"outcome", "hired_on", "agreed_on", "days", "name", "status"} & types.keys()

"""The locks hold every dependency, with hashes and without addresses, and each dependency has a
reason in the decisions.
"""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.catalog.document import parse_tables
from tests.repository import ROOT

LOCKS = {"requirements-referee.txt": "referee", "requirements-site.txt": "site"}
"""The requirements of environments that have no part of the project, with their groups."""


def read_package_names(requirements: list[str]) -> set[str]:
    """Return the names of the packages in requirements, except this project."""
    names = {re.split(r"[\[<>=~!; ]", each, maxsplit=1)[0].lower() for each in requirements}
    return names - {"recruitment-connector"}


@pytest.mark.parametrize("lock", ["requirements.txt", *LOCKS])
def test_locks_contain_every_dependency_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    required = {
        "requirements.txt": [
            *project["project"]["dependencies"],
            *project["project"]["optional-dependencies"]["dev"],
            *project["build-system"]["requires"],
        ],
        **{lock: project["dependency-groups"][group] for lock, group in LOCKS.items()},
    }
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    locked = {block.split("==")[0].lower() for block in blocks}

    assert [] == re.findall(r"^-.*|\w+://\S+", text, re.MULTILINE)
    assert set() == read_package_names(required[lock]) - locked
    assert [] == [block.split("\n")[0] for block in blocks if "--hash=sha256:" not in block]
    assert "duckdb" not in locked or "duckdb==1.5.5 " in text


def test_every_dependency_has_a_documented_reason() -> None:
    described = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = described["project"]
    required = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
        *described["dependency-groups"]["referee"],
    ]
    page = (ROOT / "docs" / "DECISIONS.md").read_text(encoding="utf-8")
    table = next(t for t in parse_tables(page) if t.header[0] == "Package")
    reasoned = {name for row in table.rows_as_dicts() for name in row["Package"].split(", ")}

    assert read_package_names(required) == reasoned

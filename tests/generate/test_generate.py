"""One declaration: what follows from the catalog is written from it, and nothing else by hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from connector.catalog import CATALOG
from connector.models.project import load_project
from connector.models.runner import describe
from connector.warehouse.schema import landing_columns
from generate.files import (
    ROOT,
    BlockMissing,
    Texts,
    block_content,
    read_or_empty,
    replace_block,
    stale_files,
)
from generate.sources import REFERENCE, SOURCES
from tests.repository import Repository

# Names that the API will hardly ever serve: a real one would collide with what is planted here.
FIELD = (
    '    fediverse_url: str | None = field("Fediverse page.", format="url", personal="contact")\n'
)
PAGE = '''"""Errands: who was sent where."""

from typing import Literal

from connector.catalog.field import REQUIRED, field
from connector.catalog.resource import Resource
from connector.catalog.field import Uuid

ErrandStatus = Literal["running", "ended"]


class Errand(
    Resource,
    name="errands",
    section="2.99",
    singular="errand",
    path="/errands",
    scope="errands",
    operations=("list", "get", "create"),
    natural_keys=(("reference",),),
    view="stg_errand_records",
    sandbox_count=30,
):
    """A person sent somewhere."""

    reference: str = field("The errand's own code.", create=REQUIRED, listed=True)
    candidate_id: Uuid | None = field("The candidate (`candidates.id`).", listed=True)
    fee: float | None = field("The agency's fee.")
    status: ErrandStatus | None = field("Its state.", listed=True, filterable=True)
'''
USE = """
import os, sys
from pathlib import Path
from connector.sandbox.server import Sandbox
from tests.support.command import call
from tests.support.agency import rows

people = "First name,Last name,Email,Employment type,Fediverse URL"
files = {
    "errands": "Reference,Fee\\nP-1,12.5\\n",
    "candidates": people + "\\nA,B,a@example.com,permanent,https://l.example/a\\n",
}
questions = {
    "count(fee) = 1": "staging.stg_errand_records WHERE reference = 'P-1'",
    "count(fediverse_url) = 1": "staging.stg_candidates WHERE email = 'a@example.com'",
    "min(total) = 5": "marts.data_quality WHERE resource = 'errands'",
}
folder = Path(sys.argv[1])
os.chdir(folder)
with Sandbox(counts={"candidates": 5, "errands": 4}) as sandbox:
    named = {"CONNECTOR_BASE_URL": sandbox.base_url, "CONNECTOR_API_KEY": sandbox.key}
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
        command = ["push", name, f"{name}.csv", "--mode", "create", "--apply"]
        ended = call(command, named)
        assert 0 == ended.status, ended.err
    for fact, table in questions.items():
        query = f"SELECT {fact} AS holds FROM {table}"
        assert [{"holds": True}] == rows(next(folder.rglob("recruitment.duckdb")), query), query
"""


def test_generated_files_are_up_to_date() -> None:
    assert [] == stale_files(SOURCES), "run make generate"


@pytest.mark.parametrize("name", CATALOG)
def test_staging_views_have_every_column_of_landing(name: str) -> None:
    resource = CATALOG[name]
    key = f"{resource.singular.replace(' ', '_')}_id"
    staged = {each.name for each in describe(load_project())[f"staging.{resource.view}"]}
    landed = {each.name for each in landing_columns(resource.name) if not each.name.startswith("_")}

    assert set() == (landed - {"id"} | {key}) - staged


@pytest.mark.parametrize("page", REFERENCE, ids=lambda page: page.__name__)
def test_the_website_adds_a_reference_to_a_page(page: Callable[[], Texts]) -> None:
    ((path, text),) = page().items()
    lines = text.removeprefix(read_or_empty(path)).splitlines()
    table = [line for line in lines if line.startswith("| `")]

    assert text.startswith(read_or_empty(path))
    assert len(table) > 10
    assert [] == [line for line in table if line.count(" | ") < 1]


def test_replacing_an_unknown_block_raises() -> None:
    text = "a\n  -- x: written by `make generate`\nold\n  -- end of x\nb\n"

    assert text.replace("old", "new") == replace_block(text, "x", "new\n")
    assert "old\n" == block_content(text, "x")
    with pytest.raises(BlockMissing, match="there is no block 'y'"):
        replace_block(text, "y", "new\n")


# -- In a copy of the project ----------------------------------------------------------------------


@dataclass(frozen=True)
class ProjectCopy:
    """Copy of the project whose catalog a test may change."""

    root: Path

    def run_python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the modules of the copy."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
        )

    def read_files(self) -> Mapping[str, str]:
        """Return the text of every file by its path."""
        return {each.path: each.text for each in Repository(self.root).files}

    def run_generate(self) -> set[str]:
        """Run `python -m generate`. Returns the paths of the files that it changes."""
        before = self.read_files().items()
        ended = self.run_python("-m", "generate")
        assert 0 == ended.returncode, ended.stderr
        return {path for path, _ in before ^ self.read_files().items()}


@pytest.fixture
def project_copy(tmp_path: Path) -> ProjectCopy:
    """Copy of the folders that `python -m generate` reads and writes."""
    for name in ("connector", "dbt_like_sql", "docs", "generate", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("simulation"))
    return ProjectCopy(tmp_path)


@pytest.mark.slow
def test_a_new_field_or_resource_only_requires_its_declaration(
    project_copy: ProjectCopy, tmp_path: Path
) -> None:
    page = project_copy.root / "connector/catalog/candidate.py"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("    date_of_birth:", f"{FIELD}    date_of_birth:"))

    assert set() == project_copy.run_generate()

    (page.parent / "errand.py").write_text(PAGE, encoding="utf-8")
    audits = {each.name for each in (ROOT / "dbt_like_sql/audits").glob("*.sql")}
    changed = project_copy.run_generate()

    assert {
        *(f"dbt_like_sql/staging/{each}.yml" for each in ("sources", "schema")),
        "dbt_like_sql/staging/stg_errand_records.sql",
        "dbt_like_sql/staging/stg_records.sql",
        "dbt_like_sql/marts/data_quality.sql",
    } == {path for path in changed if Path(path).name not in audits}
    assert 1 == len([path for path in changed if Path(path).name in audits])

    (tmp_path / "data").mkdir()
    used = project_copy.run_python("-c", USE, str(tmp_path / "data"))
    assert 0 == used.returncode, used.stderr

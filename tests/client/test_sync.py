"""The client without asyncio, and the page of recipes for both clients."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path

import pytest

from connector import Misused, NotFound, SettingsError, SyncClient, ValidationFailed
from connector.client.shapes import CandidateCreate
from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from tests.repository import ROOT

PAGE = (ROOT / "docs" / "CLIENT.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PYRIGHT = ROOT / ".venv-site" / "bin" / "basedpyright"
COUNTS = {"jobs": 9, "candidates": 120, "content_types": 2, "content_items": 5}


@pytest.mark.parametrize("recipe", RECIPES, ids=re.findall(r"^## (.+)$", PAGE, re.MULTILINE))
def test_every_recipe_runs(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Sandbox(counts=COUNTS) as sandbox, chdir(tmp_path):
        monkeypatch.setenv("CONNECTOR_BASE_URL", sandbox.base_url)
        monkeypatch.setenv("CONNECTOR_API_KEY", sandbox.key)
        exec(compile(recipe, "recipe", "exec"), {"__name__": "__main__"})  # noqa: S102  # our own

    assert capsys.readouterr().out.strip()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipes as files in a folder of their own."""
    folder = tmp_path_factory.mktemp("recipes")
    for number, recipe in enumerate(RECIPES):
        (folder / f"recipe_{number}.py").write_text(recipe, encoding="utf-8")
    return folder


def test_mypy_accepts_the_recipes(written: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, written.glob("*.py"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == checked.returncode, checked.stdout


@pytest.mark.skipif(not PYRIGHT.exists(), reason="make site makes the environment with pyright")
def test_pyright_accepts_the_recipes(written: Path) -> None:
    settings = f'{{"typeCheckingMode": "strict", "extraPaths": ["{ROOT}"], "include": ["."]}}'
    (written / "pyrightconfig.json").write_text(settings, encoding="utf-8")
    checked = subprocess.run(
        [PYRIGHT, "--project", written, "--pythonpath", sys.executable],
        cwd=written,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == checked.returncode, checked.stdout


def test_the_recipes_would_not_pass_with_a_field_that_is_not_there(tmp_path: Path) -> None:
    recipe = (
        "from connector import SyncClient\n\n\ndef main(client: SyncClient) -> None:\n"
        "    for item in client.jobs.iterate():\n        print(item.department)\n"
    )
    (tmp_path / "wrong.py").write_text(recipe, encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", tmp_path / "wrong.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert '"JobItem" has no attribute "department"' in checked.stdout


def test_it_works_where_a_loop_runs_already() -> None:
    async def cell(client: SyncClient) -> list[str]:
        return [page.items[0].id for page in client.candidates.pages()]

    with Sandbox(counts=COUNTS) as sandbox, SyncClient(sandbox.base_url, sandbox.key) as client:
        first_of_each = asyncio.run(cell(client))
        items = [item.id for item in client.candidates.iterate()]

    assert first_of_each == items[::100]
    assert 120 == len(set(items))


def test_several_threads_use_one_client() -> None:
    with Sandbox(counts=COUNTS) as sandbox, SyncClient(sandbox.base_url, sandbox.key) as client:
        ids = sorted(sandbox.store.records("jobs"))
        with ThreadPoolExecutor(len(ids)) as threads:
            found = [each.id for each in threads.map(client.jobs.get, ids)]

    assert found == ids


def test_errors_are_those_of_the_client() -> None:
    person: CandidateCreate = {
        "first_name": "A",
        "last_name": "B",
        "email": "nobody",
        "employment_type": "permanent",
    }
    with Sandbox(counts=COUNTS) as sandbox, SyncClient(sandbox.base_url, sandbox.key) as client:
        with pytest.raises(ValidationFailed) as refused:
            client.candidates.create(person)
        with pytest.raises(NotFound):
            client.jobs.get("5d1c")
        sandbox.faults.add(Drop("none"), method="GET", path="/api/v1/jobs")
        total = client.jobs.list().total

    assert ["email"] == list(refused.value.errors)
    assert 9 == total


def test_a_closed_client_says_so_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with Sandbox(counts=COUNTS) as sandbox:
        with SyncClient(sandbox.base_url, sandbox.key) as client:
            assert sandbox.base_url in repr(client)
            assert sandbox.key not in repr(client)
        client.close()
        with pytest.raises(Misused, match="make another one"):
            client.jobs.list()
        with pytest.raises(SettingsError):
            SyncClient("not an address", sandbox.key)

    assert before == set(threading.enumerate())

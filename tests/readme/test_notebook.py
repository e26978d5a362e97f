"""The notebook of the documents, and the pushes from queries that PUSH.md shows."""

from __future__ import annotations

import ast
import asyncio
import json
import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from connector.pushes.report import ORDER
from connector.sandbox.server import Sandbox
from tests.readme.sessions import parse_session, read_code_blocks
from tests.repository import ROOT
from tests.support.command import call

_AWAITS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
"""What a notebook's cells may do."""


@pytest.fixture(scope="module")
def notebook(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Sandbox, dict[str, str], dict[str, Any]]]:
    """Sandbox, environment and variables of the notebook after all cells ran."""
    counts = {"jobs": 9, "candidates": 40, "companies": 30, "bookings": 60, "leads": 9}
    cells = json.loads((ROOT / "docs" / "first_plot.ipynb").read_text())["cells"]
    lines = [line for each in cells if each["cell_type"] == "code" for line in each["source"]]
    names: dict[str, Any] = {}
    with (
        Sandbox(counts={**counts, "content_types": 2, "content_items": 16}) as sandbox,
        pytest.MonkeyPatch.context() as patch,
        chdir(tmp_path_factory.mktemp("notebook")),
    ):
        environ = {"CONNECTOR_BASE_URL": sandbox.base_url, "CONNECTOR_API_KEY": sandbox.key}
        for name, value in {**environ, "MPLBACKEND": "agg"}.items():
            patch.setenv(name, value)
        code = compile("".join(f"{line.rstrip()}\n" for line in lines), "notebook", "exec", _AWAITS)
        asyncio.run(eval(code, names))  # noqa: S307  # a notebook's own cells
        yield sandbox, environ, names


@pytest.mark.slow
def test_the_notebook_pulls_reads_and_plots_placements(
    notebook: tuple[Sandbox, dict[str, str], dict[str, Any]],
) -> None:
    *_, names = notebook
    months = names["placements"]

    assert "done" == names["report"].outcome
    assert {"placements": "int64"} == {"placements": str(months["placements"].dtype)}
    assert len(months) == len(names["chart"].patches) > 1


@pytest.mark.slow
def test_every_documented_push_from_a_query_has_no_problems(
    notebook: tuple[Sandbox, dict[str, str], dict[str, Any]],
) -> None:
    sandbox, environ, _ = notebook
    page = (ROOT / "docs" / "PUSH.md").read_text()
    for query in read_code_blocks("sql", page):
        Path(query.split()[1]).write_text(query)
    exec(read_code_blocks("py", page)[0], {})  # noqa: S102  # the page's own lines
    requests, ready = len(sandbox.log), {}
    for example in read_code_blocks("console", page)[1:]:
        ((command, _),) = parse_session(example)
        words = shlex.split(command)[1:]
        pushed = call([*words, "--json"], environ)
        assert 0 == pushed.status, (command, pushed.err)
        rows = pushed.object["rows"]
        (file,) = (each for each in words if each.endswith((".sql", ".csv")))
        ready[file] = rows and rows == sum(
            pushed.object.get(name, 0) for name in ("update", "convert", "unchanged")
        )

    assert {f"{name}.sql" for name in ORDER} | {"ratings.csv"} == set(ready)
    assert all(ready.values()), ready
    assert requests == len(sandbox.log)

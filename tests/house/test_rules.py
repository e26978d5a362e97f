"""Each house rule finds a planted offence, says what to do instead, and lets good files pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.house import layers, style
from tests.house.tree import Tree

Rule = Callable[[Tree], list[str]]

D = '"""A module."""\n'
DO = "def read() -> None:\n    "
UNDONE = "TO" + "DO"
HOST = "py" + "pi.org"
HOME = "/" + "home/anna/x"


def plant(folder: Path, files: Mapping[str, str]) -> Tree:
    """A tree with these files."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Tree(folder)


def function(lines: int, *, docstring: str = '"""Doc."""') -> str:
    """A module with one function of so many lines, its docstring not counted."""
    body = "".join("    x = 1\n" for _ in range(lines - 1))
    return f"{D}def read() -> None:\n    {docstring}\n{body}"


OFFENCES: list[tuple[Rule, str, str, str]] = [
    (style.file_is_short, "a.py", D + "x = 1\n" * 600, "a.py: 601 lines"),
    (style.file_is_short, "m.sql", "select 1\n" * 601, "m.sql: 601 lines"),
    (style.line_is_short, "a.py", f"{D}x = '{'x' * 95}'\n", "a.py:2: 101 columns"),
    (style.line_is_short, "Makefile", "x" * 101, "Makefile:1: 101 columns"),
    (style.function_is_short, "a.py", function(51), "a.py:2: read has 51 lines"),
    (style.module_has_docstring, "a.py", "x = 1\n", "a.py:1: no docstring"),
    (style.module_has_docstring, "tests/__init__.py", "", "tests/__init__.py:1: no docstring"),
    (style.public_has_docstring, "a.py", f"{D}{DO}pass\n", "a.py:2: read has no docstring"),
    (style.public_has_docstring, "a.py", f"{D}class A:\n    pass\n", "a.py:2: A has no"),
    (
        style.public_has_docstring,
        "a.py",
        f'{D}class A:\n    """A."""\n\n    async def b(self) -> None:\n        pass\n',
        "a.py:5: b has no docstring",
    ),
    (
        style.test_has_docstring,
        "tests/test_a.py",
        f"{D}class TestA:\n    def test_b(self) -> None:\n        pass\n",
        "tests/test_a.py:3: test_b has no docstring",
    ),
    (style.no_test_sleeps, "tests/a.py", f"{D}time.sleep(1)\n", "tests/a.py:2: a test sleeps"),
    (style.no_test_sleeps, "tests/a.py", f"{D}await asyncio.sleep(0.1)\n", "a test sleeps"),
    (style.no_test_sleeps, "tests/a.py", f"{D}sleep(seconds=0)\n", "a test sleeps"),
    (style.names_say_something, "date_utils.py", D, "file 'date_utils': 'utils' says nothing"),
    (style.names_say_something, "common.sql", "select 1", "file 'common'"),
    (style.names_say_something, "data.py", D, "name what the data are"),
    (style.names_say_something, "process.py", D, "use the verb of what happens"),
    (style.names_say_something, "a.py", f"{D}class RunManager: ...\n", "a.py:2: class 'RunManag"),
    (style.names_say_something, "a.py", f"{D}class BaseClient: ...\n", "'base' says nothing"),
    (style.names_say_something, "a.py", f"{D}class RowHandler: ...\n", "'handler' says nothing"),
    (style.names_say_something, "a.py", f"{D}def process_rows(): ...\n", "'process' says nothing"),
    (style.names_say_something, "a.py", f"{D}def _handle(): ...\n", "'handle' says nothing"),
    (style.no_registry_is_named, "a.txt", f"see {HOST}/x\n", "a.txt:1: names a package registry"),
    (style.no_path_of_a_machine, "docs/a.md", f"\nin {HOME}\n", "docs/a.md:2: holds a path"),
    (style.no_path_of_a_machine, "a.py", "C:" + r"\Users\anna", "a.py:1: holds a path"),
    (style.nothing_is_left_undone, "a.sql", f"-- {UNDONE}: x\n", "a.sql:1: a note of work"),
    (
        layers.imports_point_down,
        "connector/engine/pull.py",
        f"{D}from connector.warehouse import Warehouse\n",
        "connector/engine/pull.py:2: engine imports warehouse: it may import catalog, errors,",
    ),
    (
        layers.imports_point_down,
        "connector/warehouse/state.py",
        f"{D}from ..client import Client\n",
        "warehouse imports client",
    ),
    (
        layers.imports_point_down,
        "connector/client/session.py",
        f"{D}def read():\n    import connector.warehouse.state\n",
        "connector/client/session.py:3: client imports warehouse",
    ),
    (
        layers.imports_point_down,
        "connector/errors.py",
        f"{D}import connector\n",
        "errors imports the front door: it may import no other",
    ),
    (
        layers.imports_point_down,
        "connector/catalog/job.py",
        f"{D}if TYPE_CHECKING:\n    from connector.settings.model import Settings\n",
        "catalog imports settings",
    ),
    (layers.imports_point_down, "connector/attic.py", D, "'attic' is a new room: enter it in"),
    (
        layers.imports_point_down,
        "connector/sandbox/app.py",
        f"{D}from connector import settings\n",
        "sandbox imports settings",
    ),
    (
        layers.libraries_stay_at_home,
        "connector/pulls/run.py",
        f"{D}import httpx\n",
        "connector/pulls/run.py:2: imports httpx: only connector/client and",
    ),
    (
        layers.libraries_stay_at_home,
        "pipelines/models.py",
        f"{D}from duckdb import connect\n",
        "imports duckdb: only connector/warehouse and ",
    ),
    (
        layers.libraries_stay_at_home,
        "connector/clients.py",
        f"{D}import httpx\n",
        "connector/clients.py:2: imports httpx",
    ),
    *(
        (
            layers.engine_is_pure,
            "connector/client/rate_limiter.py",
            f"{D}import {name}\n",
            f"rate_limiter.py:2: the engine imports {name}",
        )
        for name in ("time", "random", "socket", "sqlite3", "asyncio", "os.path", "uuid")
    ),
    *(
        (
            layers.engine_is_pure,
            "connector/client/rate_limiter.py",
            f"{D}x = {call}\n",
            f"the engine calls {call.split('(')[0]}: take the moment",
        )
        for call in ("datetime.now(UTC)", "datetime.datetime.now()", "date.today()", "open('x')")
    ),
]


@pytest.mark.parametrize(
    ("rule", "path", "text", "said"),
    OFFENCES,
    ids=[f"{rule.__name__}-{number}" for number, (rule, *_) in enumerate(OFFENCES)],
)
def test_rule_finds_a_planted_offence(
    tmp_path: Path, rule: Rule, path: str, text: str, said: str
) -> None:
    """A file that breaks the rule is named, with the line and with what to do instead."""
    offences = rule(plant(tmp_path, {path: text}))

    assert 1 == len(offences)
    assert said in offences[0]
    assert any(mark in offences[0] for mark in (": ", "; "))


def test_pipelines_that_look_inside_are_found(tmp_path: Path) -> None:
    """A pipeline that imports from inside the connector is found; the front door is free."""
    tree = plant(
        tmp_path,
        {
            "connector/__init__.py": D,
            "connector/warehouse/__init__.py": D,
            "pipelines/landing.py": f"{D}from connector.warehouse import W\nimport connector\n"
            "from connector import pull, warehouse\n",
        },
    )

    assert [2, 4] == [
        int(offence.split(":")[1]) for offence in layers.pipelines_use_the_front_door(tree)
    ]


def test_every_rule_has_a_planted_offence() -> None:
    """No rule goes without a proof that it can fail."""
    planted = {rule for rule, *_ in OFFENCES} | {layers.pipelines_use_the_front_door}

    assert planted == {*style.RULES, *layers.RULES}


GOOD = {
    "connector/__init__.py": f"{D}from connector.catalog import CATALOG, Job\n"
    "from connector.pulls.run import pull\n",
    "connector/catalog/field.py": f"{D}from connector.errors import Misused\n",
    "connector/client/connection.py": f"{D}import httpx\n\nfrom connector import catalog\n\n\n"
    'class Seam:\n    """A."""\n\n    def handle_async_request(self) -> None:\n'
    '        """B."""\n',
    "connector/engine/pull.py": f"{D}from datetime import datetime\nfrom .commands import Commit\n"
    "from connector.catalog import CATALOG\nx = datetime.fromisoformat('2026-01-01')\n",
    "connector/warehouse/duckdb_file.py": f"{D}import duckdb\n{function(50)[len(D) :]}",
    "tests/test_a.py": f'{D}def test_a_second_process_waits() -> None:\n    """It does."""\n'
    "    asyncio.sleep(0)\n",
    "docs/a.md": "Paths such as data/recruitment.duckdb and /usr/bin/env are fine.\n",
    "a/b_database.py": f"{D}def read_base_url() -> str:\n"
    '    """A."""\n    # a todo list in small letters\n',
    ".venv/lib/utils.py": "",
    "data/work.md": f"{UNDONE} {HOST}\n",
    "connector/cli/__pycache__/utils.py": "",
}


@pytest.mark.parametrize("rule", [*style.RULES, *layers.RULES], ids=lambda rule: rule.__name__)
def test_good_files_pass(tmp_path: Path, rule: Rule) -> None:
    """Files that keep the rules give no offence, nor do files that no commit holds."""
    assert [] == rule(plant(tmp_path, GOOD))


def test_bytes_that_are_no_text_are_left_alone(tmp_path: Path) -> None:
    """A picture or a database is no text, and no rule reads it."""
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\xff\xfe")

    assert [] == Tree(tmp_path).sources

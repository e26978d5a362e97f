"""House rules on who may import what. Each returns its offences, with what to do instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from tests.house.tree import Source, Tree, imports

_LANGUAGE = frozenset(("errors", "errors_api", "system", "catalog"))
_PURE = _LANGUAGE | {"settings", "engine", "client", "suppression"}
_STORES = _PURE | {"ledger", "warehouse", "spreadsheet"}
_FILES = _STORES | {"publishing", "lakehouse", "report"}

MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "errors": frozenset(),
    "errors_api": frozenset(("errors",)),
    "system": frozenset(("errors",)),
    "catalog": frozenset(("errors",)),
    "settings": frozenset(("errors", "system")),
    "engine": _LANGUAGE,
    "client": _LANGUAGE | {"settings"},
    "sandbox": _LANGUAGE,
    "suppression": _LANGUAGE,
    "ledger": _PURE,
    "warehouse": _PURE - {"client"},
    "spreadsheet": _PURE - {"client"},
    "lakehouse": _PURE | {"warehouse"},
    "report": _LANGUAGE | {"warehouse"},
    "publishing": _PURE | {"warehouse", "lakehouse"},
    "pulls": _STORES | {"publishing"},
    "pushes": _STORES | {"publishing", "pulls", "lakehouse"},
    "privacy": _FILES | {"pulls", "pushes"},
    "page": _FILES | {"pulls", "pushes"},
    "operations": _FILES | {"pulls", "pushes", "privacy"},
    "cli": _FILES | {"pulls", "pushes", "privacy", "operations", "sandbox", "page"},
}
"""Which rooms of `connector` a room may import besides itself. `client`, `warehouse` and
`spreadsheet` do not know each other; they meet in `pulls` and `pushes`.
"""

HOMES: Mapping[str, tuple[str, ...]] = {
    # The client speaks to the API alone: with the key, at its pace, paying for each request.
    "httpx": ("connector/client", "connector/operations/delivery"),
    "aiohttp": ("connector/client/transport",),
    "yarl": ("connector/client/transport",),
    "duckdb": ("connector/warehouse", "connector/publishing", "connector/lakehouse"),
    "psycopg": ("connector/lakehouse",),
    "sqlglot": ("connector/publishing",),
    "yaml": ("connector/publishing",),
    "sqlite3": ("connector/ledger", "connector/sandbox", "connector/suppression/listed"),
    "keyring": ("connector/settings/credentials",),
    "openpyxl": ("connector/spreadsheet",),
    "pandas": ("connector/spreadsheet", "connector/publishing/exports"),
    "python_calamine": ("connector/spreadsheet",),
    "jinja2": ("connector/report", "connector/publishing/project", "connector/page"),
    "markupsafe": ("connector/report",),
    "vl_convert": ("connector/report",),
    "dagster": ("pipelines",),
    "distributed": ("pipelines/cluster",),
    "dask": ("pipelines/everywhere",),
    "starlette": ("connector/sandbox", "connector/page"),
    "uvicorn": ("connector/sandbox", "connector/cli/page"),
    "argon2": ("connector/page/access",),
    "babel": ("connector/page/words",),
    "click": ("connector/cli",),
    "rich": ("connector/cli",),
    "opentelemetry": ("connector/operations/metrics",),
    "prometheus_client": ("connector/operations/metrics",),
}
"""The only place that imports a library, so that it can be replaced there."""

_WORLD = frozenset(
    (
        *("aiohttp", "asyncio", "concurrent", "duckdb", "http", "httpx", "logging"),
        *("multiprocessing", "os"),
        *("pathlib", "random", "secrets", "select", "shutil", "signal", "socket", "sqlite3"),
        *("ssl", "subprocess", "tempfile", "threading", "time", "urllib", "uuid"),
    )
)
_CLOCKS = re.compile(r"(?:^|\.)(?:datetime|date)\.(?:now|utcnow|today)$")
_ACTS = frozenset(("open", "print", "input"))


def imports_point_down(tree: Tree) -> list[str]:
    """A room of `connector` imports only the rooms that the table allows."""
    offences = []
    for each in tree.select(".py", inside="connector/"):
        if not each.room:
            continue
        if each.room not in MAY_IMPORT:
            offences.append(
                f"{each.path}: {each.room!r} is a new room: enter it in MAY_IMPORT in"
                " tests/house/layers.py, with the rooms below it"
            )
            continue
        for line, name in _rooms_imported(each):
            if name not in MAY_IMPORT[each.room] | {each.room}:
                allowed = ", ".join(sorted(MAY_IMPORT[each.room])) or "no other room"
                offences.append(
                    f"{each.path}:{line}: {each.room} imports {name}: it may import {allowed};"
                    f" move what both need below both, or the call up to pulls or pushes"
                )
    return offences


def _rooms_imported(source: Source) -> Iterator[tuple[int, str]]:
    for line, name in imports(source):
        parts = name.split(".")
        if parts[0] != "connector":
            continue
        # `import connector` and names of the front door come from above every room.
        is_room = len(parts) > 1 and (parts[1] in MAY_IMPORT or len(parts) > 2)
        yield line, parts[1] if is_room else "the front door"


def pipelines_use_the_front_door(tree: Tree) -> list[str]:
    """Pipelines import from `connector` itself, and nothing from inside it."""
    inside = {each.room for each in tree.select(".py", inside="connector/")} - {""}
    return [
        f"{each.path}:{line}: imports {name}: use what connector exports, or export it in"
        " connector/__init__.py"
        for each in tree.select(".py", inside="pipelines/")
        for line, name in imports(each)
        if name.startswith("connector.") and name.split(".")[1] in inside
    ]


def libraries_stay_at_home(tree: Tree) -> list[str]:
    """A library that could be replaced is imported in one place; tests and benchmarks are free."""
    return [
        f"{each.path}:{line}: imports {name.split('.')[0]}: only {' and '.join(homes)} may; ask"
        " that room for what is needed"
        for each in (*tree.select(".py", inside="connector/"), *tree.select(".py", inside="pipel"))
        for line, name in imports(each)
        if (homes := HOMES.get(name.split(".")[0]))
        and not any(each.path.startswith((f"{home}/", f"{home}.py")) for home in homes)
    ]


def engine_is_pure(tree: Tree) -> list[str]:
    """What decides touches no clock, chance, network, file, database or event loop."""
    offences = []
    pure = ("connector/engine/", "connector/client/rate_limiter", "connector/client/other_clients")
    for each in (source for place in pure for source in tree.select(".py", inside=place)):
        for line, name in imports(each):
            if name.split(".")[0] in _WORLD:
                offences.append(
                    f"{each.path}:{line}: the engine imports {name}: take moments, chance and"
                    " answers as arguments"
                )
        for node in ast.walk(each.syntax):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in _ACTS or _CLOCKS.search(called):
                    offences.append(
                        f"{each.path}:{node.lineno}: the engine calls {called}: take the moment or"
                        " the answer as an argument"
                    )
    return offences


RULES = (imports_point_down, pipelines_use_the_front_door, libraries_stay_at_home, engine_is_pure)

"""House rules on who may import what. Each returns its offences, with what to do instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from tests.house.tree import Source, Tree, imports

_DECLARATION = frozenset(("words", "errors", "value", "field", "resource", "catalog"))
_BELOW = _DECLARATION | {
    *("address", "key", "sources", "settings", "alert_settings", "schedule_settings", "reading"),
    *("lakehouse_settings", "log", "disk", "stamp"),
    *("wire", "engine", "endpoint", "shapes"),
}
_ROOMS = _BELOW | {"kept", "suppression", "client", "ledger", "warehouse", "spreadsheet"}
_RUN = _ROOMS | {"outcome", "stream", "visit"}

MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "words": frozenset(),
    "disk": frozenset(),
    "stamp": frozenset(),
    "errors": frozenset(("words",)),
    "value": frozenset(),
    "field": frozenset(("value", "errors")),
    "resource": frozenset(("field", "value", "errors")),
    "catalog": frozenset(("resource", "field", "value", "errors")),
    "address": frozenset(),
    "key": frozenset(),
    "sources": frozenset(("address", "errors")),
    "alert_settings": frozenset(("address",)),
    "schedule_settings": frozenset(),
    "lakehouse_settings": frozenset(("sources", "errors")),
    "reading": frozenset(("sources",)),
    "credentials": frozenset(
        ("address", "key", "log", "reading", "sources", "alert_settings", "lakehouse_settings")
    )
    | {"errors"},
    "settings": frozenset(
        ("address", "credentials", "sources", "alert_settings", "schedule_settings", "reading")
    )
    | {"errors", "lakehouse_settings", "log"},
    "wire": _DECLARATION | {"address", "engine"},
    "endpoint": _DECLARATION | {"wire", "shapes"},
    "engine": _DECLARATION,
    "sandbox": _DECLARATION,
    "shapes": _DECLARATION,
    "kept": frozenset(("errors",)),
    "suppression": _DECLARATION | {"disk"},
    "client": _BELOW,
    "ledger": _BELOW | {"suppression"},
    "warehouse": _BELOW | {"suppression"},
    "spreadsheet": _BELOW | {"suppression"},
    "models": _BELOW | {"warehouse"},
    "lakehouse": _BELOW | {"suppression", "warehouse"},
    "publication": _BELOW | {"warehouse", "models", "lakehouse"},
    "report": _DECLARATION | {"disk", "warehouse"},
    "frame": _BELOW | {"warehouse"},
    "outcome": _BELOW | {"warehouse", "publication", "lakehouse"},
    "stream": _ROOMS | {"outcome"},
    "visit": _ROOMS | {"outcome", "stream"},
    "run": _RUN | {"publication"},
    "batch": _RUN | {"publication", "lakehouse"},
    "preview": _ROOMS,
    "asking": _ROOMS | {"preview"},
    "template": _ROOMS,
    "push": _RUN | {"run", "batch", "preview", "lakehouse"},
    "undo": _RUN | {"batch"},
    "erasure": _RUN | {"batch", "publication", "report", "lakehouse"},
    "backup": _RUN | {"batch", "publication", "report", "erasure", "inbox"},
    "permissions": frozenset(),
    "log": frozenset(),
    "inbox": _ROOMS | {"advice", "asking", "preview", "push"},
    "plan": _RUN,
    "verify": _RUN | {"erasure"},
    "advice": _ROOMS,
    "accounts": frozenset(("settings", "sources", "errors")),
    "alerts": _ROOMS | {"advice", "outcome"},
    "upkeep": _ROOMS | {"permissions", "backup", "erasure"},
    "doctor": _ROOMS | {"upkeep", "lakehouse"},
    "demo": _BELOW | {"sandbox"},
    "cli": _RUN
    | {"run", "batch", "plan", "verify", "sandbox", "advice", "doctor", "demo", "publication"}
    | {"accounts", "alerts"}
    | {"asking", "models", "preview", "template", "push", "undo", "report"}
    | {"erasure", "lakehouse", "backup", "permissions", "log"},
}
"""Which rooms of `connector` a room may import besides itself. `client`, `ledger`,
`warehouse` and `spreadsheet` do not know each other; they meet in `run`.
"""

# Types that only a checker needs, of the room above: there is no other way to name them.
_TYPES_ONLY = frozenset((("field", "resource"),))

HOMES: Mapping[str, tuple[str, ...]] = {
    # The client speaks to the API alone: with the key, at its pace, paying for each request.
    "httpx": ("connector/client", "connector/alerts/webhook"),
    "duckdb": (
        *("connector/warehouse", "connector/models", "connector/publication"),
        "connector/lakehouse",
    ),
    "psycopg": ("connector/lakehouse",),
    "sqlglot": ("connector/models",),
    "yaml": ("connector/models",),
    "sqlite3": ("connector/ledger", "connector/sandbox", "connector/suppression/listed"),
    "keyring": ("connector/key",),
    "openpyxl": ("connector/spreadsheet",),
    "pandas": ("connector/spreadsheet", "connector/frame"),
    "python_calamine": ("connector/spreadsheet",),
    "jinja2": ("connector/report",),
    "markupsafe": ("connector/report",),
    "vl_convert": ("connector/report",),
    "dagster": ("pipelines",),
    "distributed": ("pipelines/cluster",),
    "dask": ("pipelines/everywhere",),
    "starlette": ("connector/sandbox",),
    "uvicorn": ("connector/sandbox",),
    "click": ("connector/cli",),
    "rich": ("connector/cli",),
}
"""The only place that imports a library, so that it can be replaced there."""

_WORLD = frozenset(
    (
        *("asyncio", "concurrent", "duckdb", "http", "httpx", "logging", "multiprocessing", "os"),
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
                    f" move what both need below both, or the call up to run"
                )
    return offences


def _rooms_imported(source: Source) -> Iterator[tuple[int, str]]:
    skipped = set(_types_only_lines(source))
    for line, name in imports(source):
        parts = name.split(".")
        if parts[0] != "connector" or line in skipped:
            continue
        # `import connector` and names of the front door come from above every room.
        is_room = len(parts) > 1 and (parts[1] in MAY_IMPORT or len(parts) > 2)
        yield line, parts[1] if is_room else "the front door"


def _types_only_lines(source: Source) -> Iterator[int]:
    for node in ast.walk(source.syntax):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for each in node.body:
                module = getattr(each, "module", None) or ""
                if (source.room, module.removeprefix("connector.")) in _TYPES_ONLY:
                    yield each.lineno


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
    """The engine touches no clock, chance, network, file, database or event loop."""
    offences = []
    for each in tree.select(".py", inside="connector/engine/"):
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


def front_door_lists_its_names(tree: Tree) -> list[str]:
    """`connector/__init__.py` lists what it imports, all of it, sorted, and nothing else."""
    offences = []
    for each in tree.select("connector/__init__.py", inside="connector/__init__"):
        names = [name for _, name in imports(each) if name.startswith("connector.")]
        bound = {name.rsplit(".", 1)[-1] for name in names}
        listed = _listed(each)
        for name in sorted(bound - set(listed)):
            offences.append(f"{each.path}: {name} is imported and not in __all__: list it")
        for name in sorted(set(listed) - bound):
            offences.append(f"{each.path}: {name} is in __all__ and not imported: take it out")
        if listed != sorted(listed, key=_order):
            offences.append(f"{each.path}: __all__ is not sorted: constants, classes, functions")
    return offences


def _listed(source: Source) -> list[str]:
    for node in source.syntax.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def _order(name: str) -> tuple[int, str]:
    if name.isupper():
        return 0, name
    return (1 if name[:1].isupper() else 2), name


RULES = (
    imports_point_down,
    pipelines_use_the_front_door,
    libraries_stay_at_home,
    engine_is_pure,
    front_door_lists_its_names,
)

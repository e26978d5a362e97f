"""Events of the log: every call of a logger names one, and the page on settings lists them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.repository import ROOT

LEVELS = frozenset(("debug", "info", "warning", "error", "exception", "critical"))


def find_logger_calls() -> Iterator[tuple[str, ast.Call]]:
    """Yield the location (PATH:LINE) and the node of each call of a logger in the connector."""
    for path in sorted((ROOT / "connector").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and ast.unparse(node.func.value) == "_LOGGER"
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def get_event_name(call: ast.Call) -> str | None:
    """Return the event name in the arguments of a logger call; None without one."""
    for keyword in call.keywords:
        if keyword.arg == "extra":
            assert isinstance(keyword.value, ast.Dict)
            keys = [ast.literal_eval(each) for each in keyword.value.keys if each is not None]
            return str(ast.literal_eval(keyword.value.values[keys.index("event")]))
    return None


def test_every_log_line_names_an_event_that_the_settings_page_lists() -> None:
    events = {place: get_event_name(call) for place, call in find_logger_calls()}
    text = (ROOT / "docs" / "SETTINGS.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"Its lines also have an `event`: ([^.]*)\.", text)

    assert events, "no call of a logger was found"
    assert [] == [place for place, event in events.items() if event is None]
    assert set(events.values()) == set(re.findall(r"`(\w+)`", listed))

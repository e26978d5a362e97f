"""Every name that `connector` declares for type checkers can be imported, including all errors."""

from __future__ import annotations

import re

import connector
from connector import errors, errors_api
from connector.errors import ConnectorError
from tests.repository import ROOT


def test_every_public_name_can_be_imported() -> None:
    text = (ROOT / "connector" / "__init__.py").read_text(encoding="utf-8")
    declared = re.findall(r"^    from \S+ import \w+ as (\w+)$", text, re.MULTILINE)
    raised = [
        name
        for module in (errors, errors_api)
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, ConnectorError) and not name.startswith("_")
    ]

    assert {*declared, *raised} == {*connector.__all__}
    assert [] == [name for name in declared if not hasattr(connector, name)]

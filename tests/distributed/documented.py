"""What docs/DISTRIBUTED.md tells Dask's workers by their environment."""

from __future__ import annotations

import re
from pathlib import Path

import dask

_DOCUMENT = Path(__file__).parents[2] / "docs" / "DISTRIBUTED.md"


def documented() -> dict[str, str]:
    """The settings of Dask, by the names of their variables."""
    text = _DOCUMENT.read_text(encoding="utf-8")
    return dict(re.findall(r"^export (DASK_DISTRIBUTED__\w+)=(\S+)$", text, re.MULTILINE))


def name_of(variable: str) -> str:
    """The name by which Dask knows the setting of a variable."""
    return variable.removeprefix("DASK_").lower().replace("__", ".")


def settings() -> dict[str, object]:
    """The settings by the names that Dask has for them, as `dask.config.set` takes them."""
    variables = documented()
    read = dask.config.collect_env(variables)
    return {name_of(each): dask.config.get(name_of(each), config=read) for each in variables}

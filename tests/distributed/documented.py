"""What docs/DISTRIBUTED.md tells Dask's workers by their environment."""

from __future__ import annotations

import re
from pathlib import Path

_DOCUMENT = Path(__file__).parents[2] / "docs" / "DISTRIBUTED.md"


def documented() -> dict[str, str]:
    """The settings of Dask, by the names of their variables, as `dask.config.collect_env` takes
    them.
    """
    text = _DOCUMENT.read_text(encoding="utf-8")
    return dict(re.findall(r"^export (DASK_DISTRIBUTED__\w+)=(\S+)$", text, re.MULTILINE))

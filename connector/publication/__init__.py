"""Publishing: the work file's copy, with models built in it, checked, and put in place at once.

What lands is of the work file; what analysts read is the published file. Between the two is the
draft, in which models are built and audited while the work file goes on being written to.
"""

from __future__ import annotations

from connector.models import Building
from connector.publication.parquet import Exported, export
from connector.publication.publishing import (
    Prepared,
    Published,
    prepare,
    project_of,
    publish,
)

__all__ = [
    "Building",
    "Exported",
    "Prepared",
    "Published",
    "export",
    "prepare",
    "project_of",
    "publish",
]

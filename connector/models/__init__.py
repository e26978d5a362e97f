"""The models: SQL files that make staging, marts and seeds out of what landed, and their checks.

The room reads a project folder, orders and builds it in one DuckDB file, and runs its tests and
audits. It knows nothing of drafts and publishing, and is told which file to build in.
"""

from __future__ import annotations

from connector.models.build import build, check
from connector.models.folder import load_project, shipped_folder
from connector.models.inventory import ColumnShown, Shown, inventory_of
from connector.models.project import Project
from connector.models.result import Building, Built, Checked, ModelBuilt

__all__ = [
    "Building",
    "Built",
    "Checked",
    "ColumnShown",
    "ModelBuilt",
    "Project",
    "Shown",
    "build",
    "check",
    "inventory_of",
    "load_project",
    "shipped_folder",
]

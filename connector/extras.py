"""Packages that only some users install: the extras of the project."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from connector.errors import ConnectorError


def extra_missing(subject: str, extra: str, error: ImportError) -> ConnectorError:
    """Return the error for a feature whose package is not installed.

    Args:
        subject: The feature, as the subject of a sentence: "the report's charts need".
        extra: Name of the extra that installs the package.
        error: What Python raised; names the package.
    """
    return ConnectorError(
        f"{subject} the package {error.name}, which is not installed", action=install_extra(extra)
    )


def install_extra(extra: str) -> str:
    """Return the instruction that installs an extra: from the project's lock file, or the wheel."""
    lock = Path(__file__).parents[1] / "docs" / "service" / "requirements" / f"{extra}.txt"
    if lock.exists():
        return f"Run: pip install --require-hashes --no-deps -r {lock}"
    wheel = f"recruitment_connector-{version('recruitment-connector')}-py3-none-any.whl"
    return f"Install the wheel again with its extra: pip install '{wheel}[{extra}]'"

"""Packages that only some users install: the extras of the project."""

from __future__ import annotations

from connector.errors import ConnectorError


def extra_missing(subject: str, extra: str, error: ImportError) -> ConnectorError:
    """Return the error for a feature whose package is not installed.

    Args:
        subject: The feature, as the subject of a sentence: "the report's charts need".
        extra: Name of the extra that installs the package.
        error: What Python raised; names the package.
    """
    return ConnectorError(
        f"{subject} the package {error.name}, which is not installed",
        action=f"Install the extra '{extra}': pip install 'recruitment-connector[{extra}]', or the"
        f" lock docs/service/requirements/{extra}.txt.",
    )

"""Version of the program, with the commit if it runs from a checkout."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[1]
_GIT_SECONDS_MAX = 5.0


def program_version() -> str:
    """Version number of the installed program, for example 0.1.0."""
    return version("recruitment-connector")


def checkout_commit(checkout: Path = _CHECKOUT) -> str | None:
    """Return the commit of a checkout, with `-dirty` if files were changed.

    Return None for an installed package, or if git fails.
    """
    if not (checkout / ".git").exists():
        return None
    command = ("git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude=*")
    try:
        done = subprocess.run(  # noqa: S603 # the arguments are our own
            command, capture_output=True, text=True, timeout=_GIT_SECONDS_MAX, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def full_version() -> str:
    """Version with the commit, if known, for example "0.1.0 (commit 4011042)"."""
    found = checkout_commit()
    return program_version() if found is None else f"{program_version()} (commit {found})"

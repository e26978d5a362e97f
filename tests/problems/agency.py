"""Settings of an account, and a result of a pull, for the tests of problems."""

from __future__ import annotations

from pathlib import Path

from connector.settings import Settings, load_settings
from connector.state.runs import ResourceRun


def load_account_settings(folder: Path, account: str | None = None, **environ: str) -> Settings:
    """Return the settings of an account; `environ` are settings in lower case."""
    given = {f"CONNECTOR_{name.upper()}": value for name, value in environ.items()}
    flags = {"account": account} if account is not None else {}
    return load_settings(flags, {"CONNECTOR_DATA_DIR": str(folder), **given}, folder)


DONE = ResourceRun(
    resource="jobs",
    outcome="done",
    proven=True,
    requests=2,
    lists=1,
    details=1,
    new=0,
    changed=0,
    unchanged=1,
    deleted=0,
    live=6,
    total=6,
    pending=0,
    bookmark_before=None,
    bookmark_after=None,
)

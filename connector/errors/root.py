"""The root of all errors, and what the caller has to change first."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


class ConnectorError(Exception):
    """The root: one sentence on what happened, a stable `code`, an `action`, and an
    `exit_status`.
    """

    code: ClassVar[str] = "failed"
    action: str = "Run the command again with --debug and read its last lines."
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, action: str | None = None) -> None:
        super().__init__(message)
        if action is not None:
            self.action = action

    def as_json(self) -> dict[str, str]:
        """The error as reports print it with `--json`."""
        return {"code": self.code, "message": str(self), "action": self.action}


class Misused(ConnectorError):
    """The command or the settings must change before a repeat can succeed."""

    code = "misused"
    action = "Run the command with --help."
    exit_status = 2


class SettingsError(Misused):
    """A setting is missing, malformed or unsafe; the message names it and where it was read."""

    code = "settings"
    action = "Correct the setting that is named, then run 'connector doctor'."


class UnknownName(Misused):
    """A name that is not one of those allowed; the message lists them and the nearest."""

    code = "unknown_name"

    def __init__(self, what: str, received: str, allowed: Iterable[str]) -> None:
        self.what, self.received, self.allowed = what, received, tuple(allowed)
        near = get_close_matches(received, self.allowed, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        listed = ", ".join(self.allowed)
        super().__init__(
            f"{received!r} is not a {what}.{hint}",
            action=f"Use one of: {listed}.",
        )

"""What a run's record says, as an alert may repeat it: nothing that another program has worded.

An alert leaves the machine. The API's own words in an error may name anybody, so that they stay
behind; everything else in a record is the connector's own, which never holds a record's contents.
"""

from __future__ import annotations

import re

_ANSWERED = re.compile(r"( was answered [0-9]{3})\b.*", re.DOTALL)


def told(message: str | None, code: str | None) -> str:
    """What happened, to follow a colon, with the error's code in brackets; empty where nothing is
    known.
    """
    said = _ANSWERED.sub(r"\1", message or "").strip().rstrip(".")
    shown = f"[{code}]" if code else ""
    return " ".join(filter(None, (said, shown)))


def sentence(said: str, reason: str) -> str:
    """What happened and, where it is known, why."""
    return f"{said}: {reason}." if reason else f"{said}."

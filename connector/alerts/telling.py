"""A message in the forms in which it leaves: an object, a text for Slack and its like, an email."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connector.alerts.declared import DECLARED
from connector.engine.quota import shown
from connector.ledger.alerts import MessageRecord

_UNNAMED = "the unnamed account"


def headline(message: MessageRecord, account: str | None) -> str:
    """One line: the kind or that it is over, the account, the code, and what it is about."""
    declared = DECLARED.get(message.code)
    kind = declared.kind if declared is not None else message.code
    what = {"opened": kind, "ended": f"over: {kind}", "test": "test"}[message.change]
    about = f" ({message.about})" if message.about else ""
    return f"[{what}] {account or _UNNAMED}: {message.code}{about}"


def text(message: MessageRecord, account: str | None) -> str:
    """The headline, what happened, since when, and what to do next."""
    lines = [headline(message, account), message.happened]
    lines += [f"Since {shown(message.since)}."] if message.change != "test" else []
    if message.change == "ended":
        lines[-1] = f"It had been so since {shown(message.since)}."
    return "\n".join((*lines, f"Next: {message.action}"))


def generic(message: MessageRecord, account: str | None) -> Mapping[str, Any]:
    """The message as an object of its own. A second arrival is known by its `id`."""
    declared = DECLARED.get(message.code)
    return {
        "id": message.id,
        "change": message.change,
        "kind": declared.kind if declared is not None else None,
        "code": message.code,
        "account": account,
        "about": message.about or None,
        "at": message.at.isoformat(),
        "since": message.since.isoformat(),
        "happened": message.happened,
        "action": message.action,
        "text": text(message, account),
    }


def slack(message: MessageRecord, account: str | None) -> Mapping[str, Any]:
    """The message as Slack and its like take it. What their markup would obey is escaped."""
    said = text(message, account)
    for character, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        said = said.replace(character, name)
    return {"text": said}

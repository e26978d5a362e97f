"""What happened and what to do, as one text: of an error, or of a resource that did not end well.

A run's record keeps codes, not errors; here a code is a kind of error again. Nothing is decided
about the run itself.
"""

from __future__ import annotations

from connector.catalog import declaration
from connector.errors import ConnectorError
from connector.errors_api import Forbidden, TryAgain
from connector.warehouse.runs import ResourceRun

_UNPROVEN = "Run the same command again: the bookmark has not moved, so nothing is missed."


def explain(what: ConnectorError | ResourceRun) -> str:
    """What happened, and what to do next: two sentences."""
    if isinstance(what, ConnectorError):
        happened, action = str(what), what.action
    else:
        happened, action = what.message or f"{what.resource} is not proven", action_of(what)
    return f"{happened.rstrip().removesuffix('.')}. {action}"


def difference(done: ResourceRun) -> str | None:
    """One sentence on a landing that has another number of rows than the API counts, else None."""
    if done.total is None:
        return f"The API's total of {done.resource} is not known: no list was read whole."
    if done.live == done.total:
        return None
    return (
        f"landing.{done.resource} has {done.live:,} live rows and the API counts {done.total:,}:"
        " it changed while it was read, and the next pull looks again."
    )


def may_repeat(done: ResourceRun) -> bool:
    """Whether the same request may succeed later without anybody's doing anything."""
    return done.error_code is not None and issubclass(_kinds()[done.error_code], TryAgain)


def action_of(what: ResourceRun | str | None) -> str:
    """Next action for a resource that did not end well, or for an error's code."""
    if not isinstance(what, ResourceRun):
        return _kinds().get(what or "", ConnectorError).action
    if what.error_code is None:
        return _UNPROVEN
    kind = _kinds().get(what.error_code, ConnectorError)
    if issubclass(kind, Forbidden):
        scope = declaration(what.resource).read_scope()
        return Forbidden("", status=403, scope=scope).action
    return kind.action


def _kinds() -> dict[str, type[ConnectorError]]:
    """Every kind of error by its code."""
    found, waiting = {}, [ConnectorError]
    while waiting:
        kind = waiting.pop()
        found[kind.code] = kind
        waiting += kind.__subclasses__()
    return found

"""Whether an account is silent: when its resources were last proven, and how old that may be.

Pure, and from what has landed alone: whether a schedule ran is no proof of anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from connector.alert_settings import Age
from connector.alerts.deciding import Finding, Seen, Subject
from connector.alerts.declared import DECLARED
from connector.engine.quota import shown
from connector.warehouse.health import Health


@dataclass(frozen=True, slots=True)
class Proof:
    """`oldest` is the moment up to which the resource is proven that is furthest behind (None:
    none ever was), `behind` those that are older than is allowed, and `sentence` says so (None:
    all are young enough).
    """

    oldest: datetime | None
    behind: tuple[str, ...]
    sentence: str | None


def proof_of(proven_at: Mapping[str, datetime | None], now: datetime, age: Age) -> Proof:
    """How old the proof of what is pulled is. A resource that was never proven counts only where
    none was: that it is not is told by other means.
    """
    known = {resource: moment for resource, moment in proven_at.items() if moment is not None}
    if not known:
        said = f"No pull was ever proven, and one must be at most {age} old."
        return Proof(None, (), said)
    behind = tuple(resource for resource, moment in known.items() if now - moment > age.length)
    oldest = min(known.values())
    if not behind:
        return Proof(oldest, (), None)
    said = f"No proven pull of {', '.join(behind)} is younger than {age}"
    return Proof(oldest, behind, f"{said}: the oldest is of {shown(oldest)}.")


def of_silence(health: Health | None, now: datetime, age: Age) -> Seen:
    """Whether the account is silent. The first pull of all has as long as any other."""
    proof = proof_of({} if health is None else health.proven_at, now, age)
    subject = Subject("silent")
    if proof.sentence is None:
        yield subject, None
        return
    first = None if health is None else health.first_run_at
    if proof.oldest is None and first is not None and now - first <= age.length:
        return
    since = proof.oldest or first
    yield subject, Finding(since, proof.sentence, DECLARED["silent"].action)

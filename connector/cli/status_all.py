"""`connector status --all`: one line for each account, and the worst exit status of all.

An account that cannot be looked at has its line as well, and keeps no other from having one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from connector.cli import alerts as alerting
from connector.cli.session import Session
from connector.engine.quota import shown
from connector.errors import ConnectorError
from connector.ledger.ledger import Ledger, Standing, terms_of
from connector.operations.findings import Proof, proof_of
from connector.pulls.advice import explain
from connector.pulls.outcome import plain
from connector.settings.accounts import UNNAMED, Configured, configured_accounts
from connector.settings.model import Settings
from connector.settings.values import Age
from connector.warehouse.runs import Run
from connector.warehouse.warehouse import Warehouse

COLUMNS = ("account", "proven up to", "last run", "outcome", "requests", "of", "forecast", "alerts")


@dataclass(frozen=True, slots=True)
class Line:
    """What is shown of one account; `error` says why it could not be looked at."""

    name: str | None
    proof: Proof | None = None
    last: Run | None = None
    standing: Standing | None = None
    watched: alerting.Watched | None = None
    error: ConnectorError | None = None

    def cells(self) -> tuple[object, ...]:
        """The line of the table."""
        oldest = self.proof.oldest if self.proof is not None else None
        month = self.standing.month if self.standing is not None else None
        return (
            self.name or UNNAMED,
            shown(oldest) if oldest is not None else None,
            shown(self.last.started_at) if self.last is not None else None,
            f"error: {self.error.code}"
            if self.error is not None
            else self.last.outcome or "not ended"
            if self.last is not None
            else "never pulled",
            month.used if month is not None else None,
            month.limit if month is not None else None,
            self.standing.forecast if self.standing is not None else None,
            ", ".join(each.code for each in self.watched.standing) if self.watched else None,
        )

    def as_json(self) -> dict[str, object]:
        """The line as `--json` prints it."""
        proof, month = self.proof, self.standing.month if self.standing is not None else None
        told: dict[str, object] = {
            "account": self.name,
            "proven_at": None if proof is None else plain(proof.oldest),
            "last_run_at": None if self.last is None else plain(self.last.started_at),
            "last_outcome": None if self.last is None else self.last.outcome,
            "requests": None if month is None else month.used,
            "limit": None if month is None else month.limit,
            "forecast": None if self.standing is None else self.standing.forecast,
            "error": None if self.error is None else self.error.as_json(),
        }
        return told if self.watched is None else told | alerting.as_json(proof, self.watched)


def tell(session: Session, max_age: Age | None) -> int:
    """Print the lines, and what is wrong below them. The exit status is the greatest of what
    `connector status` has for each account.
    """
    terminal, now = session.terminal, datetime.now(UTC)
    lines = [look(each, now, max_age) for each in configured_accounts(os.environ, Path.cwd())]
    terminal.print_table(COLUMNS, [each.cells() for each in lines])
    status = 0
    for each in lines:
        name = each.name or UNNAMED
        if each.error is not None:
            terminal.warn(f"{name}: {explain(each.error)}")
            status = max(status, each.error.exit_status)
            continue
        failures = each.watched.failures if each.watched is not None else ()
        for failure in failures:
            terminal.warn(f"{name}: {failure}.")
        if max_age is not None and each.proof is not None and each.proof.sentence is not None:
            terminal.warn(f"{name}: {each.proof.sentence}")
            status = max(status, 1)
        if max_age is not None and failures:
            status = max(status, 1)
    if terminal.is_json:
        terminal.print_object({"accounts": [each.as_json() for each in lines]})
    return status


def look(account: Configured, now: datetime, max_age: Age | None) -> Line:
    """The line of one account; what keeps it from being looked at is in it as well."""
    try:
        return _looked_at(account.name, account.required(), now, max_age)
    except ConnectorError as error:
        return Line(account.name, error=error)


def _looked_at(name: str | None, settings: Settings, now: datetime, max_age: Age | None) -> Line:
    warehouse = Warehouse(settings.folder)
    health = None
    if warehouse.exists:
        health = warehouse.health()
    with Ledger(settings.folder) as ledger:
        standing = ledger.standing(terms_of(settings), now) if ledger.exists else None
    age = max_age or settings.alert_max_age.value
    return Line(
        name,
        proof=proof_of({} if health is None else health.proven_at, now, age),
        last=health.runs[0] if health is not None and health.runs else None,
        standing=standing,
        watched=alerting.watched(settings),
    )

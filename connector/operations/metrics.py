"""Metrics of an account for Prometheus, read from the account's files.

Runs only record their results, and this module reads them. prometheus-client is the extra
`metrics`, imported when metrics are printed. Labels contain fixed words and names of accounts: no
key, address, id or text of a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from connector.errors import ConnectorError
from connector.extras import extra_missing
from connector.ledger.ledger import Ledger, allowance_of
from connector.operations.alert_check import open_alerts
from connector.settings.model import Settings
from connector.warehouse.warehouse import Warehouse

_PREFIX = "connector_"


@dataclass(frozen=True, slots=True)
class Instrument:
    """Metric: its help text, and whether it is a counter (which only grows) or a gauge."""

    help: str
    is_counter: bool = False


INSTRUMENTS: Mapping[str, Instrument] = {
    "proof_age_seconds": Instrument("Seconds since the loaded records were last verified."),
    "records_live": Instrument("Loaded records that are not deleted."),
    "records_pending": Instrument("Records whose details still have to be read."),
    "rows_total": Instrument("Loaded records by change: new, changed or deleted.", True),
    "runs_total": Instrument("Ended runs by command and outcome.", True),
    "run_duration_seconds_total": Instrument("Duration of all runs in seconds.", True),
    "requests_total": Instrument("Requests that runs sent.", True),
    "requests_wait_seconds_total": Instrument(
        "Seconds that requests waited for the rate limit.", True
    ),
    "requests_limited_total": Instrument("Responses with status 429.", True),
    "push_rows_total": Instrument("Pushed rows by outcome.", True),
    "month_requests_used": Instrument("Requests of this billing cycle."),
    "month_requests_limit": Instrument("Maximum number of requests of a billing cycle."),
    "month_requests_left": Instrument("Requests of this billing cycle that pulls can still use."),
    "alerts_standing": Instrument("Open alerts."),
    "up": Instrument("1 if the account's files can be read, else 0."),
}
"""All metrics, by name without the prefix `connector_`."""

_TOTALS = """
SELECT command, coalesce(outcome, 'interrupted') AS outcome, count(*) AS runs_total,
    sum(seconds) AS run_duration_seconds_total, sum(requests) AS requests_total,
    sum(waited_seconds) AS requests_wait_seconds_total, sum(rate_limited) AS requests_limited_total
FROM sync.runs WHERE ended_at IS NOT NULL GROUP BY ALL
"""
_ROWS = """
UNPIVOT (SELECT resource, sum("new") AS "new", sum(changed) AS changed, sum(deleted) AS deleted
    FROM sync.run_resources GROUP BY ALL)
ON "new", changed, deleted INTO NAME change VALUE rows
"""
_PUSHES = """
SELECT outcome, count(*) AS rows FROM push.rows WHERE outcome IS NOT NULL GROUP BY ALL
"""
Point = tuple[str, float, Mapping[str, str]]
"""Name of an instrument, a value, and its labels."""


def read_metrics(settings: Settings, now: datetime) -> list[Point]:
    """Return every metric of an account; the metric `up` is 0 if its files cannot be read."""
    found: list[tuple[str, float | None, dict[str, str]]] = []
    is_up = False
    with suppress(ConnectorError):
        found = [
            *_warehouse_points(Warehouse(settings.folder), now),
            *_ledger_points(settings, now),
        ]
        is_up = True
    found.append(("up", float(is_up), {}))
    account = {f"{_PREFIX}account": settings.account.value or ""}
    return [
        (name, value, account | {f"{_PREFIX}{label}": text for label, text in labels.items()})
        for name, value, labels in found
        if value is not None
    ]


def unreadable_metric(account: str | None) -> Point:
    """Return the metric `up` with the value 0."""
    return ("up", 0.0, {f"{_PREFIX}account": account or ""})


def _warehouse_points(
    warehouse: Warehouse, now: datetime
) -> Iterable[tuple[str, float | None, dict[str, str]]]:
    """Yield (metric name, value, labels) from the work file; None if a value is unknown."""
    if not warehouse.exists:
        return
    for each in warehouse.status():
        about = {"resource": each.resource}
        age = None if each.proven_at is None else (now - each.proven_at).total_seconds()
        yield "proof_age_seconds", age, about
        yield "records_live", each.live, about
        yield "records_pending", each.pending, about
    for row in _query_rows(warehouse, _TOTALS):
        about = {"command": row.pop("command"), "outcome": row.pop("outcome")}
        yield from ((name, value, about) for name, value in row.items())
    for row in _query_rows(warehouse, _ROWS):
        yield "rows_total", row["rows"], {"resource": row["resource"], "change": row["change"]}
    for row in _query_rows(warehouse, _PUSHES):
        yield "push_rows_total", row["rows"], {"outcome": row["outcome"]}


def _ledger_points(
    settings: Settings, now: datetime
) -> Iterable[tuple[str, float | None, dict[str, str]]]:
    """Yield (metric name, value, labels) from the ledger; None if a value is unknown."""
    for alert in open_alerts(settings).open:
        yield "alerts_standing", 1, {"alert": alert.code, "about": alert.about}
    with Ledger(settings.folder) as ledger:
        if not ledger.exists:
            return
        month = ledger.status(allowance_of(settings), now).month
    yield "month_requests_used", month.used, {}
    yield "month_requests_limit", month.limit, {}
    yield "month_requests_left", month.requests_left(keeps_reserve=True), {}


def _query_rows(warehouse: Warehouse, sql: str) -> list[dict[str, Any]]:
    """Run the query, and return each row as a dictionary by column."""
    with warehouse.open_connection() as connection:
        answer = connection.execute(sql)
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def prometheus_text(points: Sequence[Point]) -> str:
    """Return the metrics in Prometheus' text format.

    Raises:
        ConnectorError: prometheus-client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415
        from prometheus_client.core import Metric  # noqa: PLC0415
    except ImportError as error:
        raise extra_missing("metrics need", "metrics", error) from error

    class Points:
        """Collector of prometheus-client."""

        def collect(self) -> Iterator[Metric]:
            """Yield each instrument that has a value."""
            for name, instrument in INSTRUMENTS.items():
                full = f"{_PREFIX}{name}"
                family = Metric(
                    full.removesuffix("_total") if instrument.is_counter else full,
                    instrument.help,
                    "counter" if instrument.is_counter else "gauge",
                )
                for each, value, labels in points:
                    if each == name:
                        family.add_sample(full, dict(labels), value)
                if family.samples:
                    yield family

    registry = CollectorRegistry()
    registry.register(Points())
    return generate_latest(registry).decode()

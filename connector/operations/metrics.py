"""Metrics and traces of an account, by OpenTelemetry, read from its files.

A run writes down what it did; this reads it afterwards. So no run does anything for telemetry, and
it costs nothing where nobody asks. OpenTelemetry is the extra `telemetry`, imported by whoever
asks. Names follow its conventions. Attributes are words of the connector and of the settings: there
is no key, address, id or text of a record among them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from connector.errors import ConnectorError
from connector.ledger.ledger import Ledger, allowance_of
from connector.operations.alert_check import open_alerts
from connector.settings.model import Settings
from connector.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import ReadableSpan

SERVICE = "recruitment-connector"
SECONDS = 10
"""How long a collector is waited for."""

_PREFIX = "connector"
_OTLP = "opentelemetry.exporter.otlp.proto.http"


@dataclass(frozen=True, slots=True)
class Instrument:
    """Instrument: its unit in UCUM's letters, what it says, and whether it only grows."""

    unit: str
    about: str
    grows: bool = False


INSTRUMENTS: Mapping[str, Instrument] = {
    "proof.age": Instrument("s", "How long ago what is landed was last proven."),
    "records.live": Instrument("{record}", "Landed records that are not deleted."),
    "records.pending": Instrument("{record}", "Records that still wait to be read whole."),
    "rows": Instrument("{record}", "Records that landed, by what became of them.", grows=True),
    "runs": Instrument("{run}", "Runs that have ended, by how.", grows=True),
    "run.duration": Instrument("s", "How long all runs took together.", grows=True),
    "requests": Instrument("{request}", "Requests that runs have sent.", grows=True),
    "requests.wait": Instrument("s", "How long requests waited for the limit.", grows=True),
    "requests.limited": Instrument("{request}", "Answers with the status 429.", grows=True),
    "push.rows": Instrument("{row}", "Rows of pushes, by what became of them.", grows=True),
    "month.requests.used": Instrument("{request}", "Requests of this billing cycle."),
    "month.requests.limit": Instrument("{request}", "The most requests of a billing cycle."),
    "month.requests.left": Instrument("{request}", "What is left of this cycle for pulls."),
    "alerts.standing": Instrument("{alert}", "Alerts that stand."),
    "up": Instrument("1", "1 if the account's files could be read, else 0."),
}
"""Every instrument, by its name behind `connector.`."""

_TOTALS = """
SELECT command, coalesce(outcome, 'interrupted') AS outcome, count(*) AS runs,
    sum(seconds) AS "run.duration", sum(requests) AS requests,
    sum(waited_seconds) AS "requests.wait", sum(rate_limited) AS "requests.limited"
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
_RUNS = """
SELECT run_id, command, epoch_ns(started_at) AS began, epoch_ns(ended_at) AS ended, outcome,
    error_code, requests, rate_limited, waited_seconds
FROM sync.runs WHERE ended_at >= ? ORDER BY started_at
"""
_PARTS = """
SELECT resource, outcome, error_code, requests, "new", changed, deleted
FROM sync.run_resources WHERE run_id = ?
"""

Point = tuple[str, float, Mapping[str, str]]
"""The name of an instrument, a value, and the attributes that it belongs to."""


def measure(settings: Settings, now: datetime) -> list[Point]:
    """Every figure of an account, as its files have it now."""
    account = {f"{_PREFIX}.account": settings.account.value or ""}
    found: list[tuple[str, float | None, dict[str, str]]] = []
    is_up = False
    with suppress(ConnectorError):
        found = [*_of_warehouse(Warehouse(settings.folder), now), *_of_ledger(settings, now)]
        is_up = True
    found.append(("up", float(is_up), {}))
    return [
        (name, value, account | {f"{_PREFIX}.{k}": v for k, v in attributes.items()})
        for name, value, attributes in found
        if value is not None
    ]


def _of_warehouse(
    warehouse: Warehouse, now: datetime
) -> Iterable[tuple[str, float | None, dict[str, str]]]:
    if not warehouse.exists:
        return
    for each in warehouse.status():
        about = {"resource": each.resource}
        age = None if each.proven_at is None else (now - each.proven_at).total_seconds()
        yield "proof.age", age, about
        yield "records.live", each.live, about
        yield "records.pending", each.pending, about
    for row in _rows_of(warehouse, _TOTALS):
        about = {"command": row.pop("command"), "outcome": row.pop("outcome")}
        yield from ((name, value, about) for name, value in row.items())
    for row in _rows_of(warehouse, _ROWS):
        yield "rows", row["rows"], {"resource": row["resource"], "change": row["change"]}
    for row in _rows_of(warehouse, _PUSHES):
        yield "push.rows", row["rows"], {"outcome": row["outcome"]}


def _of_ledger(
    settings: Settings, now: datetime
) -> Iterable[tuple[str, float | None, dict[str, str]]]:
    for alert in open_alerts(settings).standing:
        yield "alerts.standing", 1, {"alert": alert.code, "about": alert.about}
    with Ledger(settings.folder) as ledger:
        if not ledger.exists:
            return
        month = ledger.status(allowance_of(settings), now).month
    yield "month.requests.used", month.used, {}
    yield "month.requests.limit", month.limit, {}
    yield "month.requests.left", month.room(keeps_reserve=True), {}


def _rows_of(warehouse: Warehouse, sql: str, *values: object) -> list[dict[str, Any]]:
    with warehouse.reading() as connection:
        answer = connection.execute(sql, values)
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


# -- OpenTelemetry ---------------------------------------------------------------------------------
# What is handed over is asked for its result: the library's own periodic export logs failures, and
# nobody would read them.


@contextmanager
def _needing_the_extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConnectorError(
            f"metrics need a package that is not here ({error.name})",
            action="Install the extra: pip install 'recruitment-connector[telemetry]'.",
        ) from error


def prometheus_text(points: Sequence[Point]) -> str:
    """The figures as Prometheus reads them. Raises `ConnectorError` without the extra."""
    with _needing_the_extra():
        from opentelemetry.exporter.prometheus import PrometheusMetricReader  # noqa: PLC0415
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415
    registry = CollectorRegistry()
    with _recorded(points, PrometheusMetricReader(registry=registry, scope_info_enabled=False)):
        return generate_latest(registry).decode()


def send(points: Sequence[Point], runs: Sequence[RunTrace]) -> None:
    """Send figures and runs to the collector that OpenTelemetry's own variables name.

    Raises `ConnectorError` without the extra, and where the collector does not take them.
    """
    with _needing_the_extra():
        metrics, traces = (
            import_module(f"{_OTLP}.{each}_exporter") for each in ("metric", "trace")
        )
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: PLC0415
    reader = InMemoryMetricReader()
    with _recorded(points, reader):
        data = reader.get_metrics_data()
    # Their logs name the address, with whatever stands in it.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    spans = _spans(runs)
    is_taken = (
        data is None or metrics.OTLPMetricExporter(timeout=SECONDS).export(data).name == "SUCCESS"
    ) and (not spans or traces.OTLPSpanExporter(timeout=SECONDS).export(spans).name == "SUCCESS")
    if not is_taken:
        raise ConnectorError(
            "the collector has not taken the metrics or traces",
            action="Check OTEL_EXPORTER_OTLP_ENDPOINT and that the collector listens there.",
        )


@contextmanager
def _recorded(points: Sequence[Point], reader: MetricReader) -> Iterator[None]:
    """Let the reader see the figures while the body lasts."""
    from opentelemetry.metrics import CallbackOptions, Observation  # noqa: PLC0415
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415

    provider = MeterProvider([reader], Resource({"service.name": SERVICE}), shutdown_on_exit=False)
    meter = provider.get_meter(SERVICE)
    for name, instrument in INSTRUMENTS.items():
        seen = [Observation(value, about) for each, value, about in points if each == name]

        def observe(_: CallbackOptions, seen: list[Observation] = seen) -> list[Observation]:
            return seen

        create = (
            meter.create_observable_counter if instrument.grows else meter.create_observable_gauge
        )
        create(f"{_PREFIX}.{name}", [observe], instrument.unit, instrument.about)
    try:
        yield
    finally:
        provider.shutdown()


# -- Traces ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunTrace:
    """Trace of a run that has ended: its record, and that of each of its resources."""

    account: str
    run: Mapping[str, Any]
    resources: Sequence[Mapping[str, Any]]


def runs_since(settings: Settings, since: datetime) -> list[RunTrace]:
    """The runs of an account that have ended since then."""
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return []
    return [
        RunTrace(settings.account.value or "", run, _rows_of(warehouse, _PARTS, run["run_id"]))
        for run in _rows_of(warehouse, _RUNS, since)
    ]


def _spans(runs: Sequence[RunTrace]) -> Sequence[ReadableSpan]:
    """A span for each run, with an event for each of its resources.

    A run's ids follow from its name, so that a collector that is sent a run twice has it once.
    """
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415
    from opentelemetry.sdk.trace.id_generator import IdGenerator  # noqa: PLC0415
    from opentelemetry.trace import StatusCode  # noqa: PLC0415

    memories = import_module("opentelemetry.sdk.trace.export.in_memory_span_exporter")

    class FromName(IdGenerator):
        """Ids of the run whose turn it is."""

        name = ""

        def generate_trace_id(self) -> int:
            """Sixteen bytes."""
            return int(hashlib.sha256(self.name.encode()).hexdigest()[:32], 16)

        def generate_span_id(self) -> int:
            """Eight bytes."""
            return int(hashlib.sha256(self.name.encode()).hexdigest()[32:48], 16)

    ids, memory = FromName(), memories.InMemorySpanExporter()
    provider = TracerProvider(
        id_generator=ids, resource=Resource({"service.name": SERVICE}), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer(SERVICE)
    for trace in runs:
        run = dict(trace.run)
        ids.name, began, ended = (
            f"{trace.account}/{run['run_id']}",
            run.pop("began"),
            run.pop("ended"),
        )
        about = {"account": trace.account, **run}
        span = tracer.start_span(run["command"], attributes=_named(about), start_time=began)
        for each in trace.resources:
            span.add_event(each["resource"], _named(each), timestamp=ended)
        if run["outcome"] == "failed":
            span.set_status(StatusCode.ERROR, run["error_code"])
        span.end(ended)
    finished: Sequence[ReadableSpan] = memory.get_finished_spans()
    return finished


def _named(about: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{_PREFIX}.{name}": value for name, value in about.items() if value is not None}

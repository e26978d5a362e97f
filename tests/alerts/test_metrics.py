"""Metrics and traces: what a collector and Prometheus are told, and what they are not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from connector.operations.metrics import INSTRUMENTS, prometheus_text
from connector.sandbox.server import Sandbox
from tests.cli.calling import COUNTS, KEY, Called, call, variables

SERVICE = Path(__file__).parents[2] / "docs" / "service"
RUN = "from connector.cli import main; main()"


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An account that was pulled, and had a row pushed."""
    folder = tmp_path_factory.mktemp("metrics")
    people = folder / "people.csv"
    people.write_text(
        "First name,Last name,Email,Employment type\nAnn,Lee,ann@new.example,permanent\n"
    )
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        given = variables(sandbox.base_url, folder / "data")
        given["CONNECTOR_MONTHLY_REQUESTS"] = "1000"
        assert 0 == call(["pull"], given).status
        push = ["push", "candidates", str(people), "--mode", "create", "--apply"]
        assert 0 == call(push, given).status
        yield given


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, dict[str, bytes]]]:
    """A collector that answers so: its address, and what it was sent last by path."""
    got: dict[str, bytes] = {}

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def lines_of(called: Called) -> dict[str, float]:
    """The samples of a text for Prometheus."""
    samples = [each for each in called.out.splitlines() if not each.startswith("#")]
    return {name: float(value) for name, value in (each.rsplit(" ", 1) for each in samples)}


def test_prometheus_is_told_what_the_files_say(environ: dict[str, str]) -> None:
    found = lines_of(call(["metrics"], environ))
    status = call(["status", "--json"], environ).object
    month, runs = status["month"], status["runs"]
    account = 'connector_account=""'

    assert month["used"] == found[f"connector_month_requests_used{{{account}}}"]
    assert month["left_for_pulls"] == found[f"connector_month_requests_left{{{account}}}"]
    assert 1 == found[f'connector_push_rows_total{{{account},connector_outcome="created"}}']
    live = found[f'connector_records_live{{{account},connector_resource="candidates"}}']
    assert COUNTS["candidates"] + 1 == live
    requests = [value for name, value in found.items() if name.startswith("connector_requests_t")]
    assert sum(each["requests"] for each in runs) == sum(requests)


def test_a_collector_is_sent_metrics_and_each_run_as_one_trace(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = []
    with collector() as (address, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        for _ in range(2):
            assert 0 == call(["metrics", "--otlp"], environ).status
            traces = ExportTraceServiceRequest()
            traces.ParseFromString(got["/v1/traces"])
            spans = traces.resource_spans[0].scope_spans[0].spans
            ids.append({(each.trace_id, each.span_id) for each in spans})
        metrics = ExportMetricsServiceRequest()
        metrics.ParseFromString(got["/v1/metrics"])
        sent = b"".join(got.values())

    names = {each.name for each in metrics.resource_metrics[0].scope_metrics[0].metrics}
    assert {f"connector.{name}" for name in INSTRUMENTS} - {"connector.alerts.standing"} == names
    assert ids[0] == ids[1]
    assert {"pull", "push"} <= {each.name for each in spans}
    assert {*COUNTS} == {each.name for span in spans if span.name == "pull" for each in span.events}
    for secret in (KEY, environ["CONNECTOR_BASE_URL"], "ann@new.example", "Lee"):
        assert secret.encode() not in sent


@pytest.mark.parametrize("status", [500, 404])
def test_a_collector_that_takes_nothing_is_an_error(
    status: int, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connector.operations.metrics.SECONDS", 1)
    with collector(status) as (address, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        called = call(["metrics", "--otlp"], environ)

    assert 1 == called.status
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in called.err
    assert address not in called.err


def test_the_dashboard_and_the_rules_name_what_there_is() -> None:
    every = [(name, 1.0, {"connector.account": ""}) for name in INSTRUMENTS]
    printed = set(re.findall(r"^(connector_\w+)\{", prometheus_text(every), re.MULTILINE))
    dashboard = json.loads((SERVICE / "grafana-dashboard.json").read_text())
    rules = yaml.safe_load((SERVICE / "prometheus-rules.yaml").read_text())
    asked = [each["targets"][0]["expr"] for each in dashboard["panels"]]
    asked += [each["expr"] for group in rules["groups"] for each in group["rules"]]
    labels = {"connector_account", "connector_resource", "connector_change", "connector_outcome"}
    labels |= {"connector_command", "connector_alert"}

    assert len(asked) >= 10
    assert set() == set(re.findall(r"connector_\w+", " ".join(asked))) - printed - labels


def test_nothing_of_it_is_loaded_by_other_commands(environ: dict[str, str]) -> None:
    code = "import sys; import connector.cli.pull, connector.cli.alerts; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert [] == re.findall(r"opentelemetry\S*|prometheus_client\S*", loaded.stdout)

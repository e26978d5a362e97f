"""Metrics for Prometheus: their names, values and labels."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from connector.operations.metrics import INSTRUMENTS, prometheus_text
from connector.sandbox.server import Sandbox
from tests.support.command import COUNTS, KEY, CommandResult, call, variables

SERVICE = Path(__file__).parents[2] / "docs" / "service"
RUN = "from connector.cli import main; main()"


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Environment of an account with a pull and one pushed row."""
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


def read_samples(result: CommandResult) -> dict[str, float]:
    """Return the value of each sample in the printed Prometheus text."""
    samples = [each for each in result.out.splitlines() if not each.startswith("#")]
    return {name: float(value) for name, value in (each.rsplit(" ", 1) for each in samples)}


def test_metrics_have_the_values_that_the_files_record(environ: dict[str, str]) -> None:
    found = read_samples(call(["metrics"], environ))
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


def test_metrics_contain_no_secret_and_no_personal_data(environ: dict[str, str]) -> None:
    text = call(["metrics"], environ).out

    assert {f"connector_{name}" for name in INSTRUMENTS} - {"connector_alerts_standing"} == set(
        re.findall(r"^(connector_\w+)\{", text, re.MULTILINE)
    )
    for secret in (KEY, environ["CONNECTOR_BASE_URL"], "ann@new.example", "Lee"):
        assert secret not in text


def test_metrics_without_the_package_fail_and_name_the_missing_extra(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    called = call(["metrics"], environ)

    assert 1 == called.status
    assert "docs/service/requirements/metrics.txt" in called.err


def test_the_dashboard_and_alert_rules_use_existing_metrics_only() -> None:
    every = [(name, 1.0, {"connector_account": ""}) for name in INSTRUMENTS]
    printed = set(re.findall(r"^(connector_\w+)\{", prometheus_text(every), re.MULTILINE))
    dashboard = json.loads((SERVICE / "grafana-dashboard.json").read_text())
    rules = yaml.safe_load((SERVICE / "prometheus-rules.yaml").read_text())
    expressions = [each["targets"][0]["expr"] for each in dashboard["panels"]]
    expressions += [each["expr"] for group in rules["groups"] for each in group["rules"]]
    labels = {"connector_account", "connector_resource", "connector_change", "connector_outcome"}
    labels |= {"connector_command", "connector_alert"}

    assert len(expressions) >= 10
    assert set() == set(re.findall(r"connector_\w+", " ".join(expressions))) - printed - labels


def test_other_commands_do_not_import_the_prometheus_library(environ: dict[str, str]) -> None:
    code = "import sys; import connector.cli.pull, connector.cli.alerts; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert [] == re.findall(r"prometheus_client\S*", loaded.stdout)

"""The documents of `--json` are as their schemas say, in success and in failure."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import pytest
from pydantic import ValidationError

from connector.cli import main
from connector.cli.documents import DOCUMENTS, VERSION, RowCounts, schema, validate
from connector.engine.push_states import Operation, RowOutcome
from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from tests.cli.calling import COUNTS, KEY, call, start, variables

SHARED = {"sweep": "pull", "alerts": "accounts"}
"""Commands whose documents are named after others."""


def with_json(group: click.Group, above: str = "") -> Iterator[str]:
    """Each command that has --json, by the name that its document has."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from with_json(found, f"{above}{name}-")
        elif found is not None and any("--json" in each.opts for each in found.get_params(context)):
            yield f"{above}{name}"


def test_every_command_that_prints_an_object_has_a_schema() -> None:
    commands = [*with_json(main)]

    assert {"push", "lakehouse-status", "account-rename"} <= {*commands}
    assert [] == [each for each in commands if SHARED.get(each, each) not in DOCUMENTS]


def test_outcomes_of_rows_are_fields_of_documents() -> None:
    assert {*get_args(RowOutcome), *get_args(Operation)} == {*RowCounts.__annotations__}


def test_every_document_is_as_its_schema_says(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        for name, words, more in (
            ("status", "status", {}),
            ("plan", "plan", {}),
            ("pull", "pull", {}),
            ("plan", "plan --every 1h", {"CONNECTOR_MONTHLY_REQUESTS": "500"}),
            ("verify", "verify", {}),
            ("verify", "verify jobs --budget 1", {}),
            ("pull", "pull jobs --budget 1", {}),
            ("pull", "pull jobs", {"CONNECTOR_API_KEY": "refused"}),
            ("pull", "sweep jobs", {}),
            ("status", "status --max-age 1h", {"CONNECTOR_MONTHLY_REQUESTS": "500"}),
            ("health", "health", {}),
            ("doctor", "doctor", {}),
            ("backup", f"backup {tmp_path / 'backups'}", {}),
            ("metrics", "metrics", {}),
            ("accounts", "alerts", {}),
            ("accounts", "status --all", {}),
            ("accounts", "doctor --all", {}),
            ("pull-all", "pull --all jobs", {}),
            ("error", "pull nothing", {}),
            ("error", "restore nowhere.tar --check", {}),
        ):
            called = call([*words.split(), "--json"], environ | more)
            validate(name, called.object)


def test_every_document_of_writing_is_as_its_schema_says(tmp_path: Path) -> None:
    people, held, firms = (tmp_path / f"{name}.csv" for name in ("people", "held", "firms"))
    head = "first_name,last_name,email,employment_type\n"
    people.write_text(f"{head}Eve,Orr,eve@people.example,permanent\n", encoding="utf-8")
    held.write_text(f"{head}Ada,Poe,ada@people.example,permanent\n", encoding="utf-8")
    firms.write_text("name\nNorth\n", encoding="utf-8")
    rules = tmp_path / "connector.toml"
    rules.write_text('[retention]\ncandidates = "1 days after created_at"\n', encoding="utf-8")
    create = "--mode create"

    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")

        def said(name: str, words: str, **more: str) -> None:
            called = call([*words.split(), "--json"], environ | more)
            validate(name, called.object)

        said("template", f"template candidates --out {tmp_path / 'template.csv'}")
        said("push", f"push candidates {people} {create}")
        said("push", f"push candidates {people} {create} --apply")
        said("push-files", f"push companies {firms} candidates {people} {create}")
        said("undo", "undo last")
        said("whereis", "whereis eve@people.example")
        said("erase", "erase eve@people.example")
        said("undo", "undo last --apply")
        sandbox.faults.add(Drop("later"), method="POST", path="/api/v1/candidates")
        said("push", f"push candidates {held} {create} --apply --no-wait")
        lost = call(["resolve", "--json"], environ).object
        validate("resolve", lost)
        (row,) = lost["rows"]
        sandbox.faults.release()
        said("resolve-settled", f"resolve {row['batch']} --look")
        said("erase", "erase eve@people.example --apply")
        said("erase-unended", "erase --apply")
        said("erase-release", "erase --release eve@people.example")
        said("retention", "retention", CONNECTOR_CONFIG=str(rules))
        said("retention", "retention --apply --most 1", CONNECTOR_CONFIG=str(rules))
        backup = call(["backup", str(tmp_path / "backups"), "--json"], environ).object["file"]
        said("restore-check", f"restore {backup} --check")
        said("restore", f"restore {backup} --replace")
        said("models-list", "models list")
        said("models-build", "models build", CONNECTOR_MODELS="on")
        said("models-test", "models test sum_coverage", CONNECTOR_MODELS="on")
        said("models-seeds", "models seeds --write")
        said("report", "report")
        said("publish", f"publish --parquet {tmp_path / 'lake'}")
        said("completion", "completion bash")
        said("manual", f"manual --out {tmp_path / 'man'}")


def test_the_page_says_where_it_is_as_its_schema_says(tmp_path: Path) -> None:
    environ = variables("http://127.0.0.1:9", tmp_path / "data")
    with start(["page", "--port", "0", "--json"], environ) as page:
        assert page.stdout is not None
        text = "".join(iter(page.stdout.readline, "}\n"))
        page.send_signal(signal.SIGINT)
        validate("page", json.loads(f"{text}}}"))


def test_a_document_that_differs_is_refused() -> None:
    good = {"error": {"code": "failed", "message": "No."}}
    validate("error", good)

    for wrong in ({}, {"error": {"code": 1, "message": "No."}}, {**good, "new": 1}):
        with pytest.raises(ValidationError):
            validate("error", wrong)


def test_each_schema_has_its_number() -> None:
    for name in DOCUMENTS:
        made = schema(name)
        assert made["$id"] == f"connector-{name}-{VERSION}"
        assert "additionalProperties" not in made

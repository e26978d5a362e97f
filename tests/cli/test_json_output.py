"""The `--json` object of every command has the documented fields."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from connector.cli import main
from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from generate.json_fields import JSON_FIELDS
from tests.support.command import COUNTS, KEY, call, check_fields, start, variables


def list_json_commands(group: click.Group, prefix: str = "") -> Iterator[str]:
    """Yield the names of commands that have the option --json. `prefix` precedes each name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from list_json_commands(found, f"{prefix}{name} ")
        elif found is not None and any("--json" in each.opts for each in found.get_params(context)):
            yield f"{prefix}{name}"


def test_the_json_fields_of_every_command_are_documented() -> None:
    # The sandbox prints one line when it is ready, and has no object.
    assert {*list_json_commands(main)} - {"sandbox"} == {*JSON_FIELDS}


@pytest.fixture(scope="module")
def pulled_environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Environment of an account after a pull; checks the fields of the commands that it runs."""
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path_factory.mktemp("json") / "data")
        check_fields("status", "", call(["status", "--json"], environ).object)
        check_fields("pull", "--plan", call(["pull", "--plan", "--json"], environ).object)
        check_fields("pull", "", call(["pull", "--json"], environ).object)
        yield environ


MONTH = {"CONNECTOR_MONTHLY_REQUESTS": "500"}


@pytest.mark.parametrize(
    ("command", "option", "words", "more"),
    [
        ("pull", "--plan", "pull --plan jobs", MONTH),
        ("verify", "", "verify", {}),
        ("verify", "", "verify jobs --max-requests 1", {}),
        ("pull", "", "pull jobs --max-requests 1", {}),
        ("pull", "", "pull jobs", {"CONNECTOR_API_KEY": "refused"}),
        ("pull", "--all", "pull --all jobs", {}),
        ("pull", "", "pull jobs --sweep", {}),
        ("status", "", "status", MONTH),
        ("status", "--all", "status --all", {}),
        ("status", "--check", "status --check", {}),
        ("doctor", "", "doctor", {}),
        ("doctor", "--all", "doctor --all", {}),
    ],
)
def test_reading_commands_print_the_documented_json_fields(
    pulled_environ: dict[str, str], command: str, option: str, words: str, more: dict[str, str]
) -> None:
    check_fields(command, option, call([*words.split(), "--json"], pulled_environ | more).object)


@pytest.mark.parametrize("words", ["pull nothing", "restore nowhere.zip --check"])
def test_a_failed_command_prints_its_error_as_json(
    pulled_environ: dict[str, str], words: str
) -> None:
    found = call([*words.split(), "--json"], pulled_environ).object

    assert ["error"] == [*found]
    assert {"code", "message", "action"} <= found["error"].keys()


@pytest.mark.slow
def test_writing_commands_print_the_documented_json_fields(tmp_path: Path) -> None:
    people, held = (tmp_path / f"{name}.csv" for name in ("people", "held"))
    head = "first_name,last_name,email,employment_type\n"
    people.write_text(f"{head}Eve,Orr,eve@people.example,permanent\n", encoding="utf-8")
    held.write_text(f"{head}Ada,Poe,ada@people.example,permanent\n", encoding="utf-8")
    create = "--mode create"

    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")

        def check(command: str, words: str, option: str = "", **more: str) -> Mapping[str, Any]:
            found = call([*words.split(), "--json"], environ | more).object
            check_fields(command, option, found)
            return found

        check("template", f"template candidates --out {tmp_path / 'template.csv'}")
        check("push", f"push candidates {people} {create}")
        check("push", f"push candidates {people} {create} --apply")
        check("undo", "undo last")
        check("person find", "person find eve@people.example")
        check("undo", "undo last --apply")
        sandbox.faults.add(Drop("later"), method="POST", path="/api/v1/candidates")
        check("push", f"push candidates {held} {create} --apply --no-wait")
        (row,) = check("resolve", "resolve")["rows"]
        sandbox.apply_delayed_effects()
        check("resolve", f"resolve {row['batch']} --look", "BATCH")
        check("person purge", "person purge --deleted-before 1d --apply")
        backup = check("backup", f"backup {tmp_path / 'backups'}")["file"]
        check("restore", f"restore {backup} --check", "--check")
        (tmp_path / "data").rename(tmp_path / "former")
        check("restore", f"restore {backup}")
        check("models list", "models list")
        check("publish", "publish", CONNECTOR_MODELS="on")
        check("models test", "models test data_quality", CONNECTOR_MODELS="on")
        check("models seeds", "models seeds --write")
        check("report", "report")
        workbook = f"--xlsx {tmp_path / 'marts.xlsx'} --table sync.runs"
        check("publish", f"publish --parquet {tmp_path / 'lake'} {workbook}")


def test_the_page_command_prints_its_address_as_json(tmp_path: Path) -> None:
    environ = variables("http://127.0.0.1:9", tmp_path / "data")
    with start(["page", "--port", "0", "--json"], environ) as page:
        assert page.stdout is not None
        text = "".join(iter(page.stdout.readline, "}\n"))
        page.send_signal(signal.SIGINT)
        check_fields("page", "", json.loads(f"{text}}}"))

"""The files for running as a service: what they name exists, and nobody in them is root."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from connector.cli import main
from connector.settings.layers import CONFIG_VARIABLE
from connector.settings.model import ENVIRONMENT
from tests.repository import ROOT

FOLDER = ROOT / "docs" / "service"
FILES = sorted(path for path in FOLDER.iterdir() if path.is_file())
UNITS = [path for path in FILES if path.suffix in (".service", ".timer")]
PROGRAMS = "/opt/connector/bin/"
BIN = Path(sys.executable).parent


def compose() -> dict[str, Any]:
    """The compose file, with what is merged."""
    found = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def unit_of(path: Path) -> configparser.ConfigParser:
    """A unit as systemd reads it, but that of a key given twice the last one stays."""
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign] # systemd heeds letter case
    unit.read_string(path.read_text(encoding="utf-8"))
    return unit


def commands() -> list[list[str]]:
    """Every command that the files run, in words."""
    found = [shlex.split(unit_of(p)["Service"]["ExecStart"]) for p in UNITS if p.suffix[1] == "s"]
    for each in compose()["services"].values():
        found += [each["command"]] if "command" in each else []
        found += [each["healthcheck"]["test"][1:]] if "healthcheck" in each else []
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8")
    found += [
        yaml.safe_load(words)
        for words in re.findall(r"^(?:HEALTHCHECK .* )?CMD (\[.*\])$", text, re.MULTILINE)
    ]
    return [[words[0].removeprefix(PROGRAMS), *words[1:]] for words in found]


@pytest.mark.parametrize("words", [c for c in commands() if c[0] == "connector"], ids=" ".join)
def test_every_command_of_ours_can_be_given_so(words: list[str]) -> None:
    group = click.Context(main)
    command = main.get_command(group, words[1])

    assert command is not None, words
    command.make_context(words[1], list(words[2:]), parent=group)


def test_every_other_program_is_one_that_is_installed() -> None:
    others = {words[0] for words in commands()} - {"connector"}

    assert {"dagster-webserver", "dagster-daemon", "python", "pg_isready"} == others
    assert [] == [each for each in others - {"pg_isready"} if not (BIN / each).exists()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_variable_is_a_setting(path: Path) -> None:
    known = {*ENVIRONMENT.values(), CONFIG_VARIABLE}
    named = set(re.findall(r"\bCONNECTOR_[A-Z_]+\b", path.read_text(encoding="utf-8")))

    assert set() == named - known


def test_services_run_as_nobody_and_keep_what_must_last() -> None:
    whole = compose()
    services = whole["services"]

    assert {"postgres", "webserver", "daemon", "backup"} == set(services)
    for name, each in services.items():
        assert each["user"].split(":")[0] not in ("", "0", "root"), name
        assert "healthcheck" in each or each["restart"] == "no", name
        for volume in each["volumes"]:
            source = volume.split(":")[0]
            assert source.startswith("./") or source in whole["volumes"], volume
    assert ["127.0.0.1:3000:3000"] == services["webserver"]["ports"]
    for name in ("webserver", "daemon", "backup"):
        each = services[name]
        assert ["ALL"] == each["cap_drop"]
        assert each["read_only"] is True
        assert "data:/var/lib/connector/data" in each["volumes"]
        assert "service_healthy" == each["depends_on"]["postgres"]["condition"]


def test_the_image_copies_what_is_there_and_ends_as_nobody() -> None:
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8")
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ")]
    sources = [s for words in copied if not words[0].startswith("--") for s in words]
    users = re.findall(r"^USER (.+)$", text, re.MULTILINE)
    (made,) = re.findall(r"--uid (\d+)", text)

    assert [] == [each for each in sources if not (ROOT / each).exists()]
    assert [made] == users
    assert f"{made}:{made}" == compose()["services"]["daemon"]["user"]
    for line in re.findall(r"pip (?:install|wheel) (.+)", text):
        assert "--require-hashes" in line or "--no-index" in line, line
    (extras,) = re.findall(r'^ARG EXTRAS="(.+)"$', text, re.MULTILINE)
    assert [] == [e for e in extras.split() if not (FOLDER / f"requirements/{e}.txt").exists()]


def test_the_database_library_is_the_one_that_this_dagster_has() -> None:
    text = (FOLDER / "requirements" / "postgres.txt").read_text(encoding="utf-8")
    major, minor, patch = version("dagster").split(".")

    assert "1" == major
    assert f"dagster-postgres==0.{int(minor) + 16}.{patch} " in text


def test_dagster_runs_as_in_the_project_but_for_its_storage() -> None:
    theirs = yaml.safe_load((FOLDER / "dagster.yaml").read_text(encoding="utf-8"))
    ours = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    kept = ("storage", "compute_logs", "local_artifact_storage")
    given = compose()["services"]["daemon"]["environment"]
    named = re.findall(r"env: (\w+)", (FOLDER / "dagster.yaml").read_text(encoding="utf-8"))

    assert {n: v for n, v in ours.items() if n not in kept} == {
        n: v for n, v in theirs.items() if n not in kept
    }
    assert set() == set(named) - set(given)
    assert ["postgres"] == list(theirs["storage"])
    assert given["DAGSTER_PG_HOST"] in compose()["services"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_closed_and_belong_together(path: Path) -> None:
    if path.suffix == ".timer":
        assert path.with_suffix(".service").exists()
        return
    unit = unit_of(path)["Service"]

    assert "connector" == unit["User"] == unit["Group"]
    assert ("0077", "0700", "strict") == (
        unit["UMask"],
        unit["StateDirectoryMode"],
        unit["ProtectSystem"],
    )
    assert "yes" == unit["NoNewPrivileges"]
    assert "" == unit["CapabilityBoundingSet"]
    assert "CONNECTOR_API_KEY=" not in path.read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for path in UNITS:
        text = path.read_text(encoding="utf-8").replace(PROGRAMS, f"{BIN}/")
        (tmp_path / path.name).write_text(text, encoding="utf-8")

    verified = subprocess.run(
        ["systemd-analyze", "verify", *sorted(map(str, tmp_path.iterdir()))],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (verified.returncode, verified.stderr)

"""Service files: they name existing programs, and do not run as root."""

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
from connector.settings import CONFIG_VARIABLE, ENVIRONMENT
from tests.repository import ROOT

FOLDER = ROOT / "docs" / "service"
BIN = Path(sys.executable).parent
TEXTS = {p.name: p.read_text(encoding="utf-8") for p in FOLDER.iterdir() if p.is_file()}
UNIT = TEXTS["connector.service"]
GUIDE = (ROOT / "docs" / "INSTALL.md").read_text(encoding="utf-8")


def load_compose_file() -> dict[str, Any]:
    """Return the compose file with merged anchors."""
    found = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def list_commands() -> list[list[str]]:
    """Return every command in the service files as words."""
    named = re.findall(r"/opt/connector/bin/(connector [^|&$\"\n]+)", GUIDE + UNIT)
    named += [f"connector {job}" for job in re.findall(r'^job \w+ "([^"]+)"', GUIDE, re.MULTILINE)]
    named += re.findall(r'^server \w+ "([^"]+)"', GUIDE, re.MULTILINE)
    found = [shlex.split(each) for each in named if "--version" not in each]
    for each in load_compose_file()["services"].values():
        found += [each["command"]] if "command" in each else []
        found += [each["healthcheck"]["test"][1:]] if "healthcheck" in each else []
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8")
    found += [
        yaml.safe_load(words)
        for words in re.findall(r"^(?:HEALTHCHECK .* )?CMD (\[.*\])$", text, re.MULTILINE)
    ]
    return [[words[0].removeprefix(f"{BIN}/"), *words[1:]] for words in found]


@pytest.mark.parametrize("words", [c for c in list_commands() if c[0] == "connector"], ids=" ".join)
def test_every_connector_command_in_service_files_is_valid(words: list[str]) -> None:
    group = click.Context(main)
    command = main.get_command(group, words[1])

    assert command is not None, words
    command.make_context(words[1], list(words[2:]), parent=group)


def test_every_other_program_in_service_files_is_installed() -> None:
    others = {words[0] for words in list_commands()} - {"connector"}

    assert {"dagster-webserver", "dagster-daemon", "python", "pg_isready"} == others
    assert [] == [each for each in others - {"pg_isready"} if not (BIN / each).exists()]


@pytest.mark.parametrize("name", TEXTS)
def test_every_variable_in_service_files_is_a_setting(name: str) -> None:
    known = {*ENVIRONMENT.values(), CONFIG_VARIABLE}
    named = set(re.findall(r"\bCONNECTOR_[A-Z_]+\b", TEXTS[name]))

    assert set() == named - known


def test_services_run_without_root_and_keep_their_data_folders() -> None:
    whole = load_compose_file()
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


def test_the_image_copies_existing_files_and_runs_without_root() -> None:
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8")
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ")]
    sources = [s for words in copied if not words[0].startswith("--") for s in words]
    users = re.findall(r"^USER (.+)$", text, re.MULTILINE)
    (made,) = re.findall(r"--uid (\d+)", text)

    assert [] == [each for each in sources if not (ROOT / each).exists()]
    assert [made] == users
    assert f"{made}:{made}" == load_compose_file()["services"]["daemon"]["user"]
    for line in re.findall(r"pip (?:install|wheel) (.+)", text):
        assert "--require-hashes" in line or "--no-index" in line, line
    (extras,) = re.findall(r'^ARG EXTRAS="(.+)"$', text, re.MULTILINE)
    assert [] == [e for e in extras.split() if not (FOLDER / f"requirements/{e}.txt").exists()]


def test_the_postgres_library_matches_the_dagster_version() -> None:
    text = (FOLDER / "requirements" / "postgres.txt").read_text(encoding="utf-8")
    major, minor, patch = version("dagster").split(".")

    assert "1" == major
    assert f"dagster-postgres==0.{int(minor) + 16}.{patch} " in text


def test_dagster_settings_match_the_project_except_storage() -> None:
    text = (FOLDER / "dagster.yaml").read_text(encoding="utf-8")
    ours = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    kept = ("storage", "compute_logs", "local_artifact_storage")
    given = load_compose_file()["services"]["daemon"]["environment"]
    same = {name: value for name, value in ours.items() if name not in kept}

    assert same == {n: v for n, v in yaml.safe_load(text).items() if n not in kept}
    assert set() == set(re.findall(r"env: (\w+)", text)) - set(given)
    assert ["postgres"] == list(yaml.safe_load(text)["storage"])
    assert given["DAGSTER_PG_HOST"] in load_compose_file()["services"]


def test_the_systemd_service_is_sandboxed() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign] # systemd heeds letter case
    unit.read_string(UNIT)
    service = unit["Service"]

    assert "connector" == service["User"] == service["Group"]
    assert ("0077", "strict", "yes", "") == (
        service["UMask"],
        service["ProtectSystem"],
        service["NoNewPrivileges"],
        service["CapabilityBoundingSet"],
    )


def test_a_pull_that_needs_a_review_starts_the_failure_hook() -> None:
    # Only exit status 0 is a success, so that a pull that ends with 3 or 4 is noticed.
    assert "SuccessExitStatus" not in UNIT
    assert ["connector-watch.service"] == re.findall(r"^OnFailure=(.+)$", UNIT, re.MULTILINE)
    assert '/^OnFailure=/d"' in GUIDE


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for name in ("connector.service", "connector.timer"):
        # systemd refuses a program that does not exist.
        (tmp_path / name).write_text(TEXTS[name].replace("/opt/connector/bin", str(BIN)))

    verified = subprocess.run(
        ["systemd-analyze", "verify", *sorted(map(str, tmp_path.iterdir()))],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (verified.returncode, verified.stderr)

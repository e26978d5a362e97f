"""The hooks of pre-commit and the workflow run only commands and targets that exist."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml

from tests.repository import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOW = ROOT / ".github" / "workflows" / "test.yml"
BIN = Path(sys.executable).parent


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_pre_commit_hooks_run_the_commands_of_make_check() -> None:
    (repo,) = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    recipe = MAKEFILE.partition("\ncheck:")[2].partition("\n\n")[0]
    checks = re.findall(r"^\t\$\(BIN\)/([\w-]+(?: check| format)?)", recipe, re.MULTILINE)
    hooks = [
        re.match(r"\.venv/bin/([\w-]+(?: check| format)?)", hook["entry"]) for hook in repo["hooks"]
    ]

    assert "local" == repo["repo"]
    assert {"system"} == {hook["language"] for hook in repo["hooks"]}
    assert sorted(checks) == sorted(hook[1] for hook in hooks if hook)
    assert [] == [name for name in checks if not (BIN / name.split()[0]).exists()]


def test_the_workflow_runs_existing_targets_on_every_supported_python() -> None:
    jobs = read_yaml(WORKFLOW)["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    named = [
        word for command in commands for word in command.split() if command.startswith("make ")
    ]
    targets = {"make", *re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    first, end = re.findall(r"3\.(\d+)", project["requires-python"])

    assert [] == [name for name in named if name not in targets]
    assert {"check", "test", "test-all"} <= {*named}
    assert [f"3.{minor}" for minor in range(int(first), int(end))] == jobs["fast"]["strategy"][
        "matrix"
    ]["python"]
    assert "://" not in WORKFLOW.read_text(encoding="utf-8")

"""Locks: installed packages match them, and licences permit a service. `make audit` checks
known vulnerabilities, which needs a network.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from tests.repository import ROOT

FOLDER = ROOT / "docs" / "service" / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = sorted({*PROJECT["optional-dependencies"]} - {"dev"})

ELSEWHERE = {"matplotlib", "vl-convert-python", "moto", "flask", "playwright", "pypdfium2"}
ELSEWHERE |= {"pytest", "hypothesis", "mypy", "ruff", "distributed"}
"""Packages for tests, charts and extras. The base must not require them."""

REFUSED = re.compile(
    r"\bAGPL|Affero|(?<!Lesser )General Public|\bGPL|SSPL|Non-?Commercial", re.IGNORECASE
)
"""Licences that forbid running a service, or require giving away its code."""


Lock = dict[str, dict[str, frozenset[str]]]


@cache
def read_lock(path: Path) -> Lock:
    """Return the hashes of each package in a lock, by name and by version."""
    text = path.read_text(encoding="utf-8")
    assert [] == re.findall(r"^-.*|\w+://\S+", text, re.MULTILINE), path.name
    found: Lock = {}
    for block in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]:
        ((name, version),) = re.findall(r"\A([\w.-]+)==([^ ;\\]+)", block)
        hashes = frozenset(re.findall(r"--hash=sha256:(\w{64})", block))
        assert hashes, (path.name, name)
        found.setdefault(name, {})[version] = hashes
    return found


def read_all_runtime_locks() -> Lock:
    """Return the packages of all locks for machines that run the connector."""
    found: Lock = {}
    for path in sorted(FOLDER.glob("*.txt")):
        found |= read_lock(path)
    return found


def test_the_base_and_each_extra_have_a_lock() -> None:
    base = read_lock(FOLDER / "base.txt")

    assert sorted(["base", "build", *EXTRAS]) == sorted(each.stem for each in FOLDER.glob("*.txt"))
    assert set() == ELSEWHERE & {*base}
    for extra in EXTRAS:
        lock = read_lock(FOLDER / f"{extra}.txt")
        required = {re.split(r"[\[<>=]", e)[0] for e in PROJECT["optional-dependencies"][extra]}
        assert set() == required - {*lock}, extra
        # What the base has for one platform alone, an extra may have for all.
        assert {*lock} & {*base} <= {"psutil"}, extra


def test_all_locks_have_the_same_versions_and_files() -> None:
    tested = read_lock(ROOT / "requirements.txt")
    only_there = {"dagster-postgres", "psycopg2-binary"}

    assert {} == {
        name: lock
        for name, lock in read_all_runtime_locks().items()
        if name not in only_there and tested.get(name) != lock
    }


def test_installed_packages_match_the_locks() -> None:
    others = {}
    for name, versions in read_lock(ROOT / "requirements.txt").items():
        try:
            here = distribution(name).version
        except PackageNotFoundError:
            continue  # for another platform, or another Python
        if here not in versions:
            others[name] = here, [*versions]

    assert {} == others


@pytest.mark.parametrize("lock", ["base", *EXTRAS])
def test_every_licence_is_known_and_permits_running_a_service(lock: str) -> None:
    refused = {}
    for name in read_lock(FOLDER / f"{lock}.txt"):
        try:
            about = distribution(name).metadata
        except PackageNotFoundError:
            continue
        licences = [*(about.get_all("License-Expression") or ()), *(about.get_all("License") or ())]
        licences += [c for c in about.get_all("Classifier") or () if c.startswith("License")]
        words = " ".join(each[:200] for each in licences)
        if not words and not about.get_all("License-File"):
            refused[name] = "says nothing"
        elif REFUSED.search(words):
            refused[name] = words

    assert {} == refused

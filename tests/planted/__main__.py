"""Plants each fault of `faults.txt` in a copy of the project: the named tests must notice it.

    python -m tests.planted [WORD ...]

plants all faults, or those whose name contains a word. Exit status 1 if a fault was not noticed, or
if a line to be changed no longer exists. The faults of the engines of pull and push that only the
simulators notice are in `tests/simulation/planted.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.repository import ROOT

FAULTS = Path(__file__).with_name("faults.txt")
COPIED = ("connector", "pipelines", "dbt_like_sql", "generate", "tests", "docs")
TEST_FAILED = 1
"""Exit status of pytest if a test failed. Others are errors of the call."""

_FORM = re.compile(
    r"(?P<name>.+)\nin (?P<file>.+)\n- (?P<old>.+?)\n\+ (?P<new>.+?)\nseen by (?P<test>.+)", re.S
)


@dataclass(frozen=True)
class Fault:
    """A text of a file that is replaced, and the test that must fail then."""

    name: str
    file: str
    old: str
    new: str
    test: str

    def plant(self, root: Path) -> None:
        """Replace the text. Raises `ValueError` unless it occurs once."""
        text = (root / self.file).read_text(encoding="utf-8")
        if 1 != (count := text.count(self.old)):
            raise ValueError(f"{self.file} has the text {count} times: {self.old}")
        (root / self.file).write_text(text.replace(self.old, self.new), encoding="utf-8")


def read_faults() -> Iterator[Fault]:
    """Yield the faults of the list."""
    for block in FAULTS.read_text(encoding="utf-8").strip().split("\n\n"):
        found = _FORM.fullmatch(block)
        assert found is not None, block
        yield Fault(**found.groupdict())


def is_noticed(fault: Fault, root: Path) -> bool:
    """Plant a fault in a copy of the project, and return True if the test fails."""
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, root)
    fault.plant(root)
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", fault.test]
    environ = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=root, env=environ, capture_output=True, check=False)
    return done.returncode == TEST_FAILED


def main(words: list[str]) -> int:
    """Plant the selected faults, and print which of them were noticed."""
    missed = 0
    for fault in read_faults():
        if words and not any(word in fault.name for word in words):
            continue
        with tempfile.TemporaryDirectory(prefix="planted-") as folder:
            try:
                result = "noticed" if is_noticed(fault, Path(folder)) else "NOT NOTICED"
            except ValueError as error:
                result = str(error)
        missed += result != "noticed"
        sys.stdout.write(f"{fault.name}: {result}\n")
        sys.stdout.flush()
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

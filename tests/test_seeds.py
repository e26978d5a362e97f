"""Random tests: the same in every fast run, others in every slow run, and repeatable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT

RANDOM_TEST = """
from hypothesis import given, strategies as st
from tests.seeds import seeded_random
@given(st.integers())
def test_drawn(number):
    print("drew", number, seeded_random("test").random())
    assert False
"""


def run_random_test(file: Path, **environ: str) -> str:
    """Run a test that prints random numbers and fails, and return pytest's output."""
    inherited = {name: value for name, value in os.environ.items() if name != "TEST_SEED"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", str(file)],
        cwd=ROOT,
        env={**inherited, **environ},
        capture_output=True,
        text=True,
        check=False,
    ).stdout


@pytest.mark.slow
def test_a_seed_repeats_a_random_test_and_its_report_names_the_seed(tmp_path: Path) -> None:
    file = tmp_path / "test_drawn.py"
    file.write_text(RANDOM_TEST, encoding="utf-8")
    slow = run_random_test(file, TEST_SEED="7")

    def drawn(printed: str) -> list[str]:
        return [line for line in printed.splitlines() if line.startswith("drew")]

    assert drawn(slow)
    assert "TEST_SEED=7 .venv/bin/python -m pytest" in slow
    assert drawn(slow) == drawn(run_random_test(file, TEST_SEED="7"))

"""What a shell and `man` know of the commands: the same as `--help`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from connector.cli import COMMANDS, main
from tests.cli.calling import RUN, call


def test_each_command_has_a_page_with_all_its_options(tmp_path: Path) -> None:
    called = call(["manual", "--out", str(tmp_path / "man"), "--json"], {})
    pages = {each.stem: each.read_text() for each in (tmp_path / "man").iterdir()}

    assert 0 == called.status
    assert sorted(pages) == sorted(Path(each).stem for each in called.object["files"])
    assert {f"connector-{name}" for name in COMMANDS} <= {*pages}
    group = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(group, name)
        assert command is not None
        options = [each for p in command.params for each in p.opts if each.startswith("--")]
        page = pages[f"connector-{name}"].replace("\\-", "-")
        assert [] == [each for each in options if each not in page], name


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff here")
def test_man_takes_the_pages(tmp_path: Path) -> None:
    assert 0 == call(["manual", "--out", str(tmp_path)], {}).status
    pages = sorted(map(str, tmp_path.iterdir()))
    shown = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", *pages],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (shown.returncode, shown.stderr)
    assert "connector push candidates people.xlsx --mode create" in shown.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell: str) -> None:
    called = call(["completion", shell], {})
    words = {"_CONNECTOR_COMPLETE": f"{shell}_complete", "COMP_WORDS": "connector pu"}
    words |= {"COMP_CWORD": "1" if shell != "fish" else "pu"}
    answer = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "_CONNECTOR_COMPLETE" in called.out
    assert {"pull", "push", "publish"} <= {*answer.stdout.replace(",", " ").split()}

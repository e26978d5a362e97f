"""The documents show every command, and only commands, options and targets that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator

import click
import pytest

from connector.cli import COMMANDS, main
from tests.repository import ROOT, Repository

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def read_documented_calls() -> Iterator[tuple[str, list[str]]]:
    """Yield each connector call in a shell block of a document: the page and the arguments."""
    for file in Repository(ROOT).select(".md"):
        for block in re.findall(r"```(?:console|sh)\n(.*?)```", file.text, re.DOTALL):
            for line in block.replace("\\\n", " ").split("\n"):
                words = shlex.split(line.strip().removeprefix("$ "), comments=True)
                end = next(
                    (n for n, word in enumerate(words) if word in (">", "|", "&", "&&")), None
                )
                if words[:1] == ["connector"]:
                    yield file.path, words[1:end]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        pytest.param(page, words, id=f"{page}-{' '.join(words)}")
        for page, words in read_documented_calls()
        if words != ["--version"]
    ],
)
def test_every_documented_call_is_accepted_by_the_command_line(page: str, words: list[str]) -> None:
    context, command = click.Context(main), click.Command("")
    group: click.Command = main
    rest = words
    while isinstance(group, click.Group):
        found = group.get_command(context, rest[0])
        assert found is not None, f"{page}: there is no command {rest[0]!r}"
        group = command = found
        name, *rest = rest
        if isinstance(group, click.Group):
            context = click.Context(group, parent=context, info_name=name)

    command.make_context(words[0], rest, parent=context)


def test_every_command_is_documented() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages)

    assert [] == [name for name in COMMANDS if f"connector {name}" not in text]


def test_every_documented_target_of_make_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    named = {
        (file.path, target)
        for file in Repository(ROOT).select(".md")
        for target in re.findall(r"(?:`|^\$ )make ([a-z-]+)", file.text, re.MULTILINE)
    }

    assert [] == sorted((page, target) for page, target in named if target not in targets)
    assert "install" in {target for _, target in named}


def test_make_help_lists_every_target() -> None:
    phony = " ".join(re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE))

    shown = subprocess.run(
        ["make", "--no-print-directory"],  # noqa: S607 # the make that the reader has
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert phony.split() == re.findall(r"^  make ([a-z-]+) ", shown, re.MULTILINE)

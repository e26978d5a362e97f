"""Code blocks and console sessions of a Markdown page."""

from __future__ import annotations

import re


def read_code_blocks(language: str, page: str) -> list[str]:
    """Return the code blocks of a language on a page."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def parse_session(block: str) -> tuple[list[str], list[str]]:
    """Return the commands of a console block and the expected lines of output."""
    lines = block.splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    return commands, [line for line in lines if not line.startswith("$ ")]

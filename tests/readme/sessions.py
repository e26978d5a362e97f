"""Code blocks and console sessions of a Markdown page."""

from __future__ import annotations

import re


def read_code_blocks(language: str, page: str) -> list[str]:
    """Return the code blocks of a language on a page."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def parse_session(block: str) -> list[tuple[str, list[str]]]:
    """Return each command of a console block with the lines that it prints."""
    _, *parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    return [(lines[0], lines[1:]) for lines in (part.splitlines() for part in parts)]

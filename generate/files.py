"""Every file that is written from the catalog, by its path: what it says now, and what it should.

    python -m generate

A field is one line of its page in `connector/catalog`, and a resource is one page; what follows
from them is written here. A file is written whole, or as blocks between two comments, so that what
people write around them stays theirs.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMAND = "make generate"
_COLUMNS_MAX = 96

Texts = Mapping[str, str]
"""What files should hold, by their paths from the project's folder."""


class BlockMissing(Exception):
    """Error for a file without the block to be replaced. It may be written by hand."""


def read_or_empty(path: str) -> str:
    """Return the content of a file of the project; empty if it does not exist."""
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.exists() else ""


def write_changed(sources: Iterable[Callable[[], Texts]]) -> list[str]:
    """Write the generated files whose content differs; return their paths."""
    changed = []
    for source in sources:
        # One after another: the dictionary of the data is read from models that were just written.
        for path, text in source().items():
            if read_or_empty(path) != text:
                (ROOT / path).write_text(text, encoding="utf-8")
                changed.append(path)
    return changed


def stale_files(sources: Iterable[Callable[[], Texts]]) -> list[str]:
    """Return the paths of generated files whose content differs from the generated text."""
    return [
        path for each in sources for path, text in each().items() if read_or_empty(path) != text
    ]


# -- Blocks ----------------------------------------------------------------------------------------
# A block begins with a comment that names it and ends with another; both may be indented.


def block_content(text: str, name: str) -> str:
    """Return the content of the named block; empty if the text has no such block."""
    found = _block_pattern(name).search(text)
    return found["inside"] if found else ""


def replace_block(text: str, name: str, inside: str) -> str:
    """Return the text with another content of the named block. Raises `BlockMissing`."""
    found = _block_pattern(name).search(text)
    if found is None:
        raise BlockMissing(f"there is no block {name!r}; a comment must begin and another end it")
    return text[: found.start("inside")] + inside + text[found.end("inside") :]


def block_names(text: str) -> Iterator[str]:
    """Yield the names of all blocks of a text."""
    for found in re.finditer(rf"^ *(?:--|#|<!--) (.+): written by `{COMMAND}`", text, re.M):
        yield found[1]


def _block_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern that matches the named block; its group `inside` is the content."""
    named = re.escape(name)
    begin = rf"^ *(?:--|#|<!--) {named}: written by `{COMMAND}`(?: -->)?\n"
    return re.compile(rf"{begin}(?P<inside>.*?)^ *(?:--|#|<!--) end of {named}\b", re.M | re.S)


def wrap_list(parts: Iterable[str], indent: str, width: int = _COLUMNS_MAX) -> str:
    """Return the items with commas between them, in lines of at most `width` characters."""
    return textwrap.fill(
        ", ".join(parts),
        width=width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )

"""Writes the pages of the website into a folder: those of `docs`, and the reference."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from generate.behaviours import behaviours_page
from generate.codes import codes_page
from generate.commands import command_reference
from generate.data_page import data_page
from generate.files import ROOT, Texts
from generate.personal_data import personal_data_page

REFERENCE: tuple[Callable[[], Texts], ...] = (
    behaviours_page,
    codes_page,
    command_reference,
    data_page,
    personal_data_page,
)
"""Pages of the website that are not committed as they are shown."""


def write_pages(folder: Path) -> None:
    """Replace the folder by the pages."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    for page in REFERENCE:
        for path, text in page().items():
            (folder / Path(path).name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))

"""Writes everything that follows from the catalog anew, and says which files changed.

With a folder, writes the pages of the website there instead: those of `docs`, and the reference.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from generate.files import COMMAND, ROOT, BlockMissing, write_changed
from generate.sources import REFERENCE, SOURCES

if sys.argv[1:]:
    (folder,) = map(Path, sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    for page in REFERENCE:
        for path, text in page().items():
            (folder / Path(path).name).write_text(text, encoding="utf-8")
    sys.exit()
try:
    changed = write_changed(SOURCES)
except BlockMissing as error:
    sys.exit(f"{COMMAND}: {error}")
sys.stdout.write("".join(f"{path}\n" for path in changed) or "Everything is as it should be.\n")

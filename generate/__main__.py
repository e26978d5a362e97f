"""Writes everything that follows from the catalog anew, and says which files changed."""

from __future__ import annotations

import sys

from generate.files import COMMAND, BlockMissing, write_changed
from generate.sources import SOURCES

try:
    changed = write_changed(SOURCES)
except BlockMissing as error:
    sys.exit(f"{COMMAND}: {error}")
sys.stdout.write("".join(f"{path}\n" for path in changed) or "Everything is as it should be.\n")

"""Writes everything that follows from the catalog anew, and says which files changed."""

from __future__ import annotations

import sys

from generate.files import COMMAND, NotGenerated, write
from generate.sources import SOURCES

try:
    changed = write(SOURCES)
except NotGenerated as error:
    sys.exit(f"{COMMAND}: {error}")
sys.stdout.write("".join(f"{path}\n" for path in changed) or "Everything is as it should be.\n")

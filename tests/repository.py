"""The text files of the repository, for tests of the documentation and of the architecture."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Names that no commit holds (`.git` is a file in a worktree); `data` and `dist` only at the top.
_UNCOMMITTED = re.compile(
    r"\.git|\.venv.*|__pycache__|\.(mypy|ruff|pytest|import_linter)_cache|\.hypothesis|.*\.egg-info"
).fullmatch
_UNCOMMITTED_AT_TOP = frozenset(("data", "demo-data", "dist", ".dagster"))


@dataclass(frozen=True)
class TextFile:
    """A text file; `path` is relative to the repository, with forward slashes."""

    path: str
    text: str

    @cached_property
    def syntax(self) -> ast.Module:
        """The parsed Python file.

        Raises:
            SyntaxError: The file is not Python.
        """
        return ast.parse(self.text)


@dataclass(frozen=True)
class Repository:
    """All UTF-8 text files below `root` that a commit may hold, sorted by path."""

    root: Path

    @cached_property
    def files(self) -> list[TextFile]:
        """Every file that is UTF-8 text."""
        found = []
        for path in sorted(self._paths()):
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            found.append(TextFile(path.relative_to(self.root).as_posix(), text))
        return found

    def select(self, *endings: str, inside: str = "") -> list[TextFile]:
        """The files whose path starts with `inside` and ends with one of `endings`."""
        return [
            each
            for each in self.files
            if each.path.startswith(inside) and each.path.endswith(endings)
        ]

    def _paths(self) -> Iterator[Path]:
        """Yield every file below `root`, except files that no commit contains."""
        for folder, folders, names in os.walk(self.root):
            is_top = Path(folder) == self.root
            folders[:] = [
                name
                for name in folders
                if not _UNCOMMITTED(name) and not (is_top and name in _UNCOMMITTED_AT_TOP)
            ]
            # A lock or socket of a tool may disappear, or is not a file.
            paths = (Path(folder, name) for name in names if not _UNCOMMITTED(name))
            yield from (path for path in paths if path.is_file())

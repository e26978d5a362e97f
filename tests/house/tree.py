"""The project's files as the house rules read them: text, lines and syntax; no rule is here."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Names that no commit holds (`.git` is a file in a worktree); `data` and `dist` only at the top.
_UNCOMMITTED = re.compile(
    r"\.git|\.venv.*|__pycache__|\.(mypy|ruff|pytest)_cache|\.hypothesis|.*\.egg-info"
).fullmatch
_UNCOMMITTED_AT_TOP = frozenset(("data", "demo-data", "dist", ".dagster"))


@dataclass(frozen=True)
class Source:
    """One file of text; `path` is relative to the top, with forward slashes."""

    path: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The file's lines without their ends."""
        return self.text.splitlines()

    @cached_property
    def syntax(self) -> ast.Module:
        """The parsed file. Raises `SyntaxError`."""
        return ast.parse(self.text)

    @property
    def room(self) -> str:
        """The part of `connector` that the file belongs to: "errors", "engine"; else ""."""
        parts = self.path.removesuffix(".py").split("/")
        return parts[1] if parts[0] == "connector" and parts[1] != "__init__" else ""

    @property
    def package(self) -> list[str]:
        """The dotted package that relative imports of the file start from, in parts."""
        return self.path.split("/")[:-1]


@dataclass(frozen=True)
class Tree:
    """All files of text below `root` that a commit may hold, in the order of their paths."""

    root: Path

    @cached_property
    def sources(self) -> list[Source]:
        """Every file that is text in UTF-8."""
        found = []
        for path in sorted(self._paths()):
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            found.append(Source(path.relative_to(self.root).as_posix(), text))
        return found

    def select(self, *endings: str, inside: str = "") -> list[Source]:
        """The files whose path begins with `inside` and ends with one of `endings`."""
        return [
            each
            for each in self.sources
            if each.path.startswith(inside) and each.path.endswith(endings)
        ]

    def _paths(self) -> Iterator[Path]:
        for folder, folders, names in os.walk(self.root):
            is_top = Path(folder) == self.root
            folders[:] = [
                name
                for name in folders
                if not _UNCOMMITTED(name) and not (is_top and name in _UNCOMMITTED_AT_TOP)
            ]
            # A tool's lock or socket may vanish or not be a file.
            paths = (Path(folder, name) for name in names if not _UNCOMMITTED(name))
            yield from (path for path in paths if path.is_file())


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module, nested ones and methods among them."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything imported, `from a import b` as `a.b`."""
    for node in ast.walk(source.syntax):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = source.package[: len(source.package) - node.level + 1] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)

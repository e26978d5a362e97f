"""Figures of the house that may fall and never rise: its size, its rooms, its doubled names.

`python -m tests.house` prints the figures as they are, in the form of `MOST`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from tests.house.tree import Source, Tree, imports

MOST: Mapping[str, int] = {
    "files": 229,
    "lines": 58_823,
    "rooms": 20,
    "modules with one importer": 26,
    "class names of more than one thing": 0,
    "file names of more than one file": 3,
    "modules under 60 lines": 0,
    "names with a private word": 0,
    "first lines of docstrings that are too long": 0,
    "lines of tests": 55_711,
}
"""The figures when they were last lowered; the aim: 180 files, 36,000 lines, 34,000 of tests."""

SLACK = 1.03
"""How far below its limit a figure may lie before the limit has to follow."""

FIRST_LINE_MAX = 80
MODULE_LINES_MIN = 60
_GENERATED = "connector/client/shapes/"
_DECLARATIONS = ("connector/catalog/",)
_PRIVATE_WORD = re.compile(
    r"visit|world|scene|drive|course|purse|toll|turn|asks?|asked|manner|terms|foresee|"
    r"foreseen|looks|loose|kept|slots|aim|finding|examine|others|gate|readings|"
    r"evidence|gallop|book|standing|facts|telling|sending|counted"
)
"""Words for which the field has others: run context, driver, request budget, options, queries."""


def measured(tree: Tree) -> dict[str, int]:
    """Every figure of `MOST` as the tree has it."""
    ours = [
        each
        for each in tree.select(".py", inside="connector/")
        if not each.path.startswith(_GENERATED)
    ]
    named = Counter(name for each in ours for name in {*_classes(each)})
    files = Counter(_file_name(each) for each in ours if not _is_face(each) and each.room != "cli")
    return {
        "files": len(ours),
        "lines": sum(len(each.lines) for each in ours),
        "rooms": len({each.room for each in ours} - {"", "errors_api"}),
        "modules with one importer": len([*with_one_importer(ours)]),
        "class names of more than one thing": sum(count > 1 for count in named.values()),
        "file names of more than one file": sum(count > 1 for count in files.values()),
        "modules under 60 lines": len([*short_modules(ours)]),
        "names with a private word": sum(1 for each in ours for _ in private_names(each)),
        "first lines of docstrings that are too long": sum(
            1 for each in ours for _ in _long_first_lines(each)
        ),
        "lines of tests": sum(len(each.lines) for each in tree.select(".py", inside="tests/")),
    }


def too_high(found: Mapping[str, int], most: Mapping[str, int]) -> list[str]:
    """What has grown beyond its limit, or fallen so far that the limit has to follow."""
    offences = []
    for name, value in found.items():
        if value > most[name]:
            offences.append(
                f"{name}: {value} are more than {most[name]}: take some away, "
                "or raise the limit in tests/house/ratchets.py by what a feature needs"
            )
        elif most[name] > value * SLACK + 1:
            offences.append(f"{name}: only {value} are left: lower {most[name]} in ratchets.py")
    return offences


def _is_face(source: Source) -> bool:
    return source.path.endswith("/__init__.py")


def _file_name(source: Source) -> str:
    return source.path.rsplit("/", 1)[-1]


def _classes(source: Source) -> Iterator[str]:
    for node in source.syntax.body:
        if isinstance(node, ast.ClassDef):
            yield node.name


def with_one_importer(sources: list[Source]) -> Iterator[str]:
    """Modules that one other module alone imports; commands are imported by their names."""
    modules = {each.path.removesuffix(".py").replace("/", "."): each for each in sources}
    importers: dict[str, set[str]] = defaultdict(set)
    for each in sources:
        for _, name in imports(each):
            module = name if name in modules else name.rpartition(".")[0]
            importers[module].add(each.path)
    for module, each in modules.items():
        if each.room != "cli" and not _is_face(each) and len(importers[module]) == 1:
            yield module


def short_modules(sources: list[Source]) -> Iterator[str]:
    """Modules of less than sixty lines; a face or a declaration may be short."""
    for each in sources:
        is_excused = _is_face(each) or each.path.startswith(_DECLARATIONS)
        if len(each.lines) < MODULE_LINES_MIN and not is_excused:
            yield each.path


def private_names(source: Source) -> Iterator[str]:
    """Files, classes and functions that are named with a word of our own."""
    for node in ast.walk(source.syntax):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", node.name)
            if any(_PRIVATE_WORD.fullmatch(word.lower()) for word in words):
                yield f"{source.path}:{node.lineno}: {node.name}"
    if any(map(_PRIVATE_WORD.fullmatch, _file_name(source).removesuffix(".py").split("_"))):
        yield source.path


def _long_first_lines(source: Source) -> Iterator[str]:
    for node in ast.walk(source.syntax):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if len(first) > FIRST_LINE_MAX:
                yield f"{source.path}: {first}"

"""House rules on size, names and words. Each returns its offences, with what to do instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.tree import Source, Tree, functions

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 50
COLUMNS_MAX = 100

# The word, and what to write in its place. Spelt in full so that the message can be read alone.
_EMPTY_WORDS = {
    "util": "name the noun that it is about: dates, headers, pages",
    "utils": "name the noun that it is about: dates, headers, pages",
    "helper": "name the noun that it is about, or the verb of what it does",
    "helpers": "name the noun that it is about, or the verb of what it does",
    "manager": "name what it keeps: Journal, Lease, Pool",
    "managers": "name what it keeps: Journal, Lease, Pool",
    "misc": "split it by noun",
    "common": "name what is shared: values, headers, moments",
}
_EMPTY_VERBS = {
    "handle": "use the verb of what happens: read, refuse, apply",
    "process": "use the verb of what happens: read, refuse, apply",
}
_EMPTY_ROLES = {
    "base": "name the concept that its kinds share",
    "handler": "name it for what it does: Reader, Listener, Driver",
    "processor": "name it for what it does: Reader, Listener, Driver",
}
_FORCED_NAMES = frozenset(
    ("handle_async_request", "handle_request")  # httpx's own names for the seam of a transport
)

_REGISTRIES = (
    *(("py" + "pi", "org"), ("python" + "hosted", "org"), ("npm" + "js", "org")),
    *(("npm" + "js", "com"), ("deb" + "ian", "org"), ("crates", "io")),
)
_REGISTRY = re.compile("|".join(rf"\b{name}\.{end}\b" for name, end in _REGISTRIES))
_MACHINE_PATH = re.compile(r"(?<![\w.:/-])/(?:home|Users|root|work)/[\w.]|\b[A-Z]:\\+Users\b")
_LEFT_UNDONE = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def file_is_short(tree: Tree) -> list[str]:
    """A file has at most 600 lines."""
    return [
        f"{each.path}: {len(each.lines)} lines are more than {FILE_LINES_MAX}: "
        "shorten it, or split it where a reader would look for two things"
        for each in tree.select(".py", ".sql")
        if len(each.lines) > FILE_LINES_MAX
    ]


def line_is_short(tree: Tree) -> list[str]:
    """A line of code has at most 100 columns."""
    return [
        f"{each.path}:{number}: {len(line)} columns are more than {COLUMNS_MAX}: break the line"
        for each in tree.select(".py", ".sql", "Makefile", ".ci/run")
        for number, line in enumerate(each.lines, 1)
        if len(line) > COLUMNS_MAX
    ]


def function_is_short(tree: Tree) -> list[str]:
    """A function has at most 50 lines without its docstring."""
    return [
        f"{each.path}:{node.lineno}: {node.name} has {size} lines, more than {FUNCTION_LINES_MAX}"
        " without its docstring: name one step of it and take that out"
        for each in tree.select(".py")
        for node in functions(each.syntax)
        if (size := _size(node)) > FUNCTION_LINES_MAX
    ]


def _size(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node) is not None:
        first = node.body[0]
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def module_has_docstring(tree: Tree) -> list[str]:
    """Every module opens with a docstring."""
    return [
        f"{each.path}:1: no docstring: say what the module is for and what it does not do"
        for each in tree.select(".py")
        if not (ast.get_docstring(each.syntax) or "").strip()
    ]


def public_has_docstring(tree: Tree) -> list[str]:
    """Every public class, function, method and property has a docstring."""
    return [
        f"{each.path}:{node.lineno}: {node.name} has no docstring: say what it promises, its units"
        " and the errors that it raises"
        for each in tree.select(".py")
        for node in _public(each.syntax)
        if not (ast.get_docstring(node) or "").strip()
    ]


def _public(
    node: ast.Module | ast.ClassDef,
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for each in node.body:
        if not isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        is_overload = any(ast.unparse(d).endswith("overload") for d in each.decorator_list)
        if each.name.startswith("_") or is_overload:
            continue
        yield each
        if isinstance(each, ast.ClassDef):
            yield from _public(each)


def test_has_docstring(tree: Tree) -> list[str]:
    """Every test states its property in a docstring."""
    return [
        f"{each.path}:{node.lineno}: {node.name} has no docstring: state the property that must"
        " hold, in a sentence"
        for each in tree.select(".py", inside="tests/")
        for node in functions(each.syntax)
        if _is_test(each, node) and not (ast.get_docstring(node) or "").strip()
    ]


# The rule's own name begins like a test's; pytest must not collect it where it is imported.
test_has_docstring.__test__ = False  # type: ignore[attr-defined] # functions take attributes


def _is_test(source: Source, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    file = source.path.rsplit("/", 1)[-1]
    return file.startswith("test_") and node.name.startswith("test")


def no_test_sleeps(tree: Tree) -> list[str]:
    """No test waits for a length of time; `sleep(0)` only lets others run."""
    return [
        f"{each.path}:{node.lineno}: a test sleeps: wait for an event or a condition, with a"
        " deadline"
        for each in tree.select(".py", inside="tests/")
        for node in ast.walk(each.syntax)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rsplit(".", 1)[-1] == "sleep"
        and [ast.unparse(argument) for argument in node.args] != ["0"]
    ]


def names_say_something(tree: Tree) -> list[str]:
    """No file, class or function has a name that says nothing of what it is for."""
    return [
        f"{path}: {kind} {name!r}: {word!r} says nothing; {instead}"
        for each in tree.select(".py", ".sql")
        for path, kind, name in _names(each)
        for word, instead in _empty(kind, name)
    ]


def _names(source: Source) -> Iterator[tuple[str, str, str]]:
    yield source.path, "file", re.sub(r"\.\w+$", "", source.path.rsplit("/", 1)[-1])
    if not source.path.endswith(".py"):
        return
    for node in ast.walk(source.syntax):
        if isinstance(node, ast.ClassDef):
            yield f"{source.path}:{node.lineno}", "class", node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{source.path}:{node.lineno}", "function", node.name


def _empty(kind: str, name: str) -> Iterator[tuple[str, str]]:
    words = [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]
    if not words or name in _FORCED_NAMES:
        return
    yield from ((w, _EMPTY_WORDS[w]) for w in words if w in _EMPTY_WORDS)
    if words[0] in _EMPTY_VERBS and (kind == "function" or len(words) == 1):
        yield words[0], _EMPTY_VERBS[words[0]]
    edges = {words[0], words[-1]} if kind == "class" or len(words) == 1 else set()
    yield from ((w, _EMPTY_ROLES[w]) for w in sorted(edges) if w in _EMPTY_ROLES)
    if words == ["data"]:
        yield "data", "name what the data are: records, rows, pages"


def no_registry_is_named(tree: Tree) -> list[str]:
    """No file names the host of a package registry, so that any mirror serves."""
    return [
        f"{each.path}:{number}: names a package registry's host: leave it to the reader's settings"
        for each in tree.sources
        for number, line in enumerate(each.lines, 1)
        if _REGISTRY.search(line)
    ]


def no_path_of_a_machine(tree: Tree) -> list[str]:
    """No file holds an absolute path of somebody's machine."""
    return [
        f"{each.path}:{number}: holds a path of a machine: write it relative to the project, or"
        " take it from a setting"
        for each in tree.sources
        for number, line in enumerate(each.lines, 1)
        if _MACHINE_PATH.search(line)
    ]


def nothing_is_left_undone(tree: Tree) -> list[str]:
    """No file has a note of work to be done."""
    return [
        f"{each.path}:{number}: a note of work to be done: do it, or write down what is not"
        " promised"
        for each in tree.sources
        for number, line in enumerate(each.lines, 1)
        if _LEFT_UNDONE.search(line)
    ]


RULES = (
    file_is_short,
    line_is_short,
    function_is_short,
    module_has_docstring,
    public_has_docstring,
    test_has_docstring,
    no_test_sleeps,
    names_say_something,
    no_registry_is_named,
    no_path_of_a_machine,
    nothing_is_left_undone,
)

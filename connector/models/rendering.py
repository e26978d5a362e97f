"""What stands in double braces: ref, source and config, and nothing else of Jinja.

    select id, status from {{ source('landing', 'jobs') }}
    select job_id from {{ ref('stg_jobs') }}
    {{ config(materialized='view') }}        {{ config(severity='warn') }} in an audit

A rendered text has as many lines as the file, so that a line of one is the same line of the other.
Names are rendered as `schema.table`, without the catalog: a view survives the file's new name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from connector.errors import ModelInvalid

ALLOWED = (
    "{{ ref('model') }}, {{ source('schema', 'table') }} and "
    "{{ config(materialized='table' or 'view') }}, in an audit {{ config(severity='error' or "
    "'warn') }}"
)
CONFIGURED: Mapping[str, tuple[str, ...]] = {
    "materialized": ("table", "view"),
    "severity": ("error", "warn"),
}
"""What a file may configure, and the values allowed."""

_BRACE = re.compile(r"\{\{|\{%|\{#|\}\}|%\}|#\}")
_CALL = re.compile(r"\{\{-?\s*(ref|source|config)\s*\(([^{}]*?)\)\s*-?\}\}", re.DOTALL)
_ARGUMENTS = {"ref": 1, "source": 2, "config": 0}


@dataclass(frozen=True, slots=True)
class Call:
    """One use of the braces: which word, its arguments, and the place from 1."""

    word: str
    arguments: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Template:
    """A file's text with the calls that it holds."""

    text: str
    path: Path
    calls: tuple[Call, ...]

    @property
    def refs(self) -> tuple[Call, ...]:
        """The calls of `ref`, in order."""
        return tuple(each for each in self.calls if each.word == "ref")

    @property
    def sources(self) -> tuple[Call, ...]:
        """The calls of `source`, in order."""
        return tuple(each for each in self.calls if each.word == "source")

    @property
    def options(self) -> dict[str, str]:
        """What the file configures."""
        return {k: v for each in self.calls for k, v in each.options}

    def render(self, name: Callable[[Call], str]) -> str:
        """The text with each ref and source replaced by its table; lines stay where they are."""
        parts, at = [], 0
        for each in self.calls:
            replaced = "" if each.word == "config" else name(each)
            lines = self.text.count("\n", each.start, each.end)
            parts += [self.text[at : each.start], replaced, "\n" * lines]
            at = each.end
        return "".join((*parts, self.text[at:]))


def read_template(text: str, path: Path) -> Template:
    """Find what stands in braces. Raises `ModelInvalid` with the place of anything not allowed."""
    calls, at = [], 0
    while found := _BRACE.search(text, at):
        call = _CALL.match(text, found.start())
        if call is None:
            raise _refused(text, path, found.start(), "this is not understood")
        calls.append(_call(text, path, call))
        at = call.end()
    return Template(text, path, tuple(calls))


def _call(text: str, path: Path, found: re.Match[str]) -> Call:
    word, inside = found.group(1), found.group(2)
    try:
        tree = ast.parse(f"{word}({inside})", mode="eval").body
        assert isinstance(tree, ast.Call)
        arguments = tuple(_text(each) for each in tree.args)
        options = tuple((each.arg or "**", _text(each.value)) for each in tree.keywords)
    except (SyntaxError, ValueError):
        raise _refused(text, path, found.start(), f"{word}() takes plain texts") from None
    if len(arguments) != _ARGUMENTS[word] or (options and word != "config"):
        problem = f"{word}() takes {_ARGUMENTS[word]} name(s) and nothing else"
        raise _refused(text, path, found.start(), problem)
    for name, value in options:
        if value not in CONFIGURED.get(name, ()):
            raise _refused(text, path, found.start(), f"config({name}={value!r}) is not understood")
    line, column = _place(text, found.start())
    return Call(word, arguments, options, found.start(), found.end(), line, column)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise ValueError(ast.dump(node))


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


def _refused(text: str, path: Path, at: int, problem: str) -> ModelInvalid:
    line, column = _place(text, at)
    shown = text[at:].split("\n", 1)[0][:40]
    return ModelInvalid(
        f"{shown!r}: {problem}",
        path=path,
        line=line,
        column=column,
        action=f"Write plain SQL with {ALLOWED}.",
    )

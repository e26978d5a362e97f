"""Texts in the code are sentences of at most thirty words, in the words of the field."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator

from tests.repository import ROOT, Repository

OTHER = ("connector/catalog/", "connector/sandbox/", "connector/spreadsheet/words.toml")
"""Texts of the API, and words that people type."""

CATALOGUE = "connector/spreadsheet/problems.toml"
"""Texts of the problems of rows."""

QUERY = re.compile(r"\b(SELECT|FROM|WHERE|CREATE|INSERT|UPDATE|DELETE|ALTER)\b|\n")
PRIVATE = re.compile(
    r"\b(anew|whoever|proven|somebody|once more|meanwhile|of its own|in its place|none of)\b"
    r"|\b(nothing but|goes on|go on|taken back|landed|ended well|not well|by which|of which)\b"
    r"|\b(so that|what is meant)\b"
)


def find_texts(path: str, source: str) -> Iterator[str]:
    """Yield the texts of a module as PATH:LINE: TEXT, except docstrings, assertion messages and
    queries.
    """
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, ast.Assert) and node.msg is not None:
            skipped |= {id(each) for each in ast.walk(node.msg)}
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(each) for each in ast.walk(node)} - {id(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (e.value if isinstance(e, ast.Constant) else "X" for e in node.values)
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if len(text.split()) > 3 and not QUERY.search(text):
            yield f"{path}:{node.lineno}: {text}"


def find_style_problems(text: str) -> list[str]:
    """Return the unusual words and the sentences of more than thirty words in a text."""
    sentences = re.split(r"(?<=[.:?;]) ", text)
    return [
        *map(str, PRIVATE.findall(text)),
        *(each for each in sentences if len(each.split()) > 30),
    ]


def test_texts_in_the_code_have_short_sentences_and_plain_words() -> None:
    found = [
        text
        for file in Repository(ROOT).select(".py")
        if file.path.startswith(("connector/", "pipelines/")) and not file.path.startswith(OTHER)
        for text in find_texts(file.path, file.text)
        if find_style_problems(text)
    ]
    assert [] == found
    catalogue = tomllib.loads((ROOT / CATALOGUE).read_text("utf-8"))
    texts = [text for table in catalogue.values() for text in table.values()]
    assert [] == list(filter(find_style_problems, texts))


def test_an_unusual_word_is_found() -> None:
    source = 'say("what has landed is kept", f"{a} is read anew by {b}", "one two three four")'

    assert 2 == len([each for each in find_texts("a.py", source) if find_style_problems(each)])

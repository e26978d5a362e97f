"""The comment that opens a model or an audit: its name, its grain, one sentence.

    -- model: fct_placements
    -- grain: one row per placement (a contract or permanent booking that is not cancelled)
    -- Every placement with its fee, from the first source of it that is known.

    -- audit: no_job_is_lost
    -- Every job that is landed and not deleted is a row of dim_jobs.

The sentence may run over several lines. Notes may follow after an empty comment line; they are for
readers of the file and go nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from connector.errors import ModelInvalid

Word = Literal["model", "audit"]

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
NAME_ALLOWED = "a-z, 0-9 and '_', beginning with a letter, at most 63 of them"


@dataclass(frozen=True, slots=True)
class Header:
    """A file's own words on itself; an audit has no grain."""

    name: str
    grain: str
    sentence: str


def read_header(text: str, path: Path, word: Word) -> Header:
    """Read the opening comment. Raises `ModelInvalid` with the line that is not as it must be."""
    comment = []
    for line in text.split("\n"):
        if not line.startswith("--"):
            break
        comment.append(line[2:].strip())
    name = _labelled(comment, 0, word, path)
    if name != path.stem or not NAME.fullmatch(name):
        raise _wrong(
            path,
            1,
            f"the header names {name!r}",
            f"Write '-- {word}: {path.stem}': the file's own name, of {NAME_ALLOWED}.",
        )
    grain = _labelled(comment, 1, "grain", path) if word == "model" else ""
    first = 2 if word == "model" else 1
    sentence = " ".join(_until_empty(comment[first:]))
    if not sentence or not sentence.endswith("."):
        raise _wrong(
            path,
            first + 1,
            "the header has no sentence",
            "Say in one sentence, with a full stop, what the rows are: '-- Every job ...'.",
        )
    return Header(name, grain, sentence)


def _labelled(comment: list[str], index: int, label: str, path: Path) -> str:
    found = comment[index].partition(":") if index < len(comment) else ("", "", "")
    if found[0] != label or not found[2].strip():
        raise _wrong(
            path,
            index + 1,
            f"the header must have '-- {label}: ...' here",
            f"Begin the file with {_form(label)}.",
        )
    return found[2].strip()


def _form(label: str) -> str:
    if label == "audit":
        return "'-- audit: NAME' and a sentence"
    return "'-- model: NAME', '-- grain: one row per ...' and a sentence, each on a line"


def _until_empty(lines: list[str]) -> list[str]:
    return lines[: lines.index("")] if "" in lines else lines


def _wrong(path: Path, line: int, problem: str, action: str) -> ModelInvalid:
    return ModelInvalid(problem, path=path, line=line, action=action)

"""Records as text files with a line `key: value` each, and their differences line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

FOLDER = Path(__file__).parent / "files"

SEVERAL = 10
"""Number of words from which two values are compared word by word."""

SHOWN_MAX = 8
"""Differing words of a line that are printed."""

Record = Mapping[str, str]
"""Recorded values by key; neither contains a line break."""


def write_record(name: str, record: Record) -> None:
    """Write the record's file."""
    FOLDER.mkdir(exist_ok=True)
    lines = [f"{key}: {value}".rstrip() for key, value in record.items()]
    (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_record(name: str) -> Record:
    """Read the record's file; a missing file is an empty record."""
    path = FOLDER / f"{name}.txt"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return dict(_split(line) for line in lines)


def _split(line: str) -> tuple[str, str]:
    key, _, value = line.partition(":")
    return key, value.strip()


def find_differences(accepted: Record, found: Record) -> Iterator[str]:
    """Yield a text for each line that differs: only the changed words of a long line."""
    for key in [*accepted, *(each for each in found if each not in accepted)]:
        if key not in found:
            yield f"- {key}: {accepted[key]}"
        elif key not in accepted:
            yield f"+ {key}: {found[key]}"
        elif accepted[key] != found[key].strip():
            yield from _describe_change(key, accepted[key], found[key])


def _describe_change(key: str, before: str, after: str) -> Iterator[str]:
    old, new = before.split(), after.split()
    if len(old) != len(new) or len(old) < SEVERAL:
        yield f"- {key}: {before}"
        yield f"+ {key}: {after}"
        return
    changed = [(n, *pair) for n, pair in enumerate(zip(old, new, strict=True)) if len({*pair}) > 1]
    shown = ", ".join(f"{a} -> {b} (at {n})" for n, a, b in islice(changed, SHOWN_MAX))
    yield f"  {key}: {len(changed)} of {len(old)} values differ: {shown}"

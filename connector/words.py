"""Numbers with their nouns, the same in every sentence that a person reads."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """The number with its noun, as in "1 record" and "2,000 records"; `plural` is said where an s
    does not make it.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"

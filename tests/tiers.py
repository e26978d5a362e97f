"""Fast and slow cases of parametrized tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def first_fast(cases: Sequence[Any], count: int = 1) -> list[ParameterSet]:
    """Return the cases of a parametrized test: the first `count` are fast, the others slow.

    A tuple is a case of several arguments.
    """
    return only_fast(cases, cases[:count])


def only_fast(cases: Sequence[Any], fast: Collection[Any]) -> list[ParameterSet]:
    """Return the cases of a parametrized test: those in `fast` are fast, the others slow."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[] if case in fast else [pytest.mark.slow],
        )
        for case in cases
    ]

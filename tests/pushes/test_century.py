"""The option `century`: a year as a number or, from programs, as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connector.errors import Misused
from connector.pushes.options import PushOptions


def make_options(century: Any) -> PushOptions:
    """Return options of a push with this century."""
    return PushOptions("create", century=century)


@pytest.mark.parametrize("century", [1930, "1930"])
def test_a_century_is_read_from_a_number_and_from_text(century: int | str) -> None:
    saved = make_options(century).push_file("candidates", Path("people.csv")).saved

    assert saved is not None
    assert 1930 == saved.options.century


@pytest.mark.parametrize("century", [1899, "19", "soon"])
def test_an_invalid_century_is_refused_with_the_allowed_years(century: int | str) -> None:
    with pytest.raises(Misused, match=f"{century!r} is not a valid first year") as caught:
        make_options(century).push_file("candidates", Path("people.csv"))
    assert "from 1900 to 2100" in str(caught.value.action)

"""Text and chart colours have enough contrast in both themes."""

from __future__ import annotations

import re
from itertools import combinations, product

import pytest

from connector.report.charts import PALETTE, SERIES
from connector.report.page import ReportPage

SURFACES = ("paper", "card")
TEXTS = ("ink", "muted", "link", "warn")


def compute_luminance(colour: str) -> float:
    """Return the relative luminance of #rrggbb, from 0 to 1."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def compute_contrast(colour: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    low, high = sorted((compute_luminance(colour), compute_luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_of_known_colours_is_computed_correctly() -> None:
    assert 21 == round(compute_contrast("#000000", "#ffffff"), 6)
    assert 1 == compute_contrast("#0e4f7d", "#0e4f7d")
    assert 4.54 == round(compute_contrast("#767676", "#ffffff"), 2)


@pytest.mark.parametrize("theme_index", [0, 1])
def test_text_has_a_contrast_of_at_least_4_5(theme_index: int) -> None:
    for text, surface in product(TEXTS, SURFACES):
        found = compute_contrast(PALETTE[text][theme_index], PALETTE[surface][theme_index])
        assert found >= 4.5, (text, surface, found)


@pytest.mark.parametrize("theme_index", [0, 1])
def test_chart_colours_contrast_with_the_card_and_each_other(theme_index: int) -> None:
    for name in SERIES:
        assert compute_contrast(PALETTE[name][theme_index], PALETTE["card"][theme_index]) >= 3, name
    for one, other in combinations(SERIES, 2):
        assert compute_contrast(PALETTE[one][theme_index], PALETTE[other][theme_index]) >= 1.25, (
            one,
            other,
        )


def test_the_page_uses_only_declared_colours(page: ReportPage) -> None:
    declared = {colour for shade in PALETTE.values() for colour in shade}
    used = set(re.findall(r"var\(--(\w+)\)", page.html))

    assert used <= set(PALETTE)
    assert set(re.findall(r"#[0-9a-f]{6}\b", page.html)) <= declared | {"#ffffff"}

"""Tables and pictures of measurements: benchmarks and simulated worlds.

`make bench` writes `docs/figures/benchmarks.json`. The tables and pictures of
`docs/BENCHMARKS.md` are made here, so that no figure is typed by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from math import log10
from typing import Any

from benchmarks.measure import HEADINGS, Bound, Line
from connector.report.charts import PALETTE, Theme
from generate.files import Texts, read_or_empty, replace_block

_PAGE = "docs/BENCHMARKS.md"
_BENCHMARKS, _GROWTH = "docs/figures/benchmarks.json", "docs/pictures/growth-{}.svg"
_THEMES: tuple[Theme, ...] = ("light", "dark")
_PROOF, _SIMULATED = "docs/CORRECTNESS.md", "docs/figures/simulation.json"
_WORLD_PARTS = ("runs", "wrong", "unproven", "requests")


def _markdown_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    names = [*head]
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(each)} |\n" for each in lines)


# -- Benchmarks ------------------------------------------------------------------------------------


def benchmark_figures() -> Texts:
    """Return `docs/BENCHMARKS.md` with the table of `make bench`, and its plot in both themes."""
    measured = json.loads(read_or_empty(_BENCHMARKS))
    lines = [_parse_line(each) for topic in measured["lines"].values() for each in topic]
    lines.sort(key=lambda each: each.bound is None)
    missed = [each for each in lines if not each.is_met]
    inside = f"Measured on {measured['date']}, on a machine with {measured['cores']} cores.\n\n"
    inside += _markdown_table(HEADINGS, (each.cells() for each in lines))
    if missed:
        inside += "\nMissed bounds:\n\n"
    for each in missed:
        assert each.bound is not None
        beside = f", next to {each.reference_name}" if each.bound.of == "ratio" else ""
        inside += f"- {each.what}, {each.size}{beside}. {each.bound.reason}\n"
    texts = {_PAGE: replace_block(read_or_empty(_PAGE), "benchmarks", inside)}
    curves: dict[str, list[Line]] = {}
    for each in lines:
        if each.curve:
            curves.setdefault(each.curve, []).append(each)
    for theme in _THEMES:
        texts[_GROWTH.format(theme)] = _growth_chart(curves, theme)
    return texts


def _parse_line(fields: Mapping[str, Any]) -> Line:
    """Return the line that `make bench` stored in JSON."""
    bound = fields["bound"] and Bound(**fields["bound"])
    return Line(**{**fields, "bound": bound})


_PLOT, _PLOT_GAP, _PLOT_TOP, _PLOT_COLUMNS = 170, 60, 84, 3


def _growth_chart(curves: Mapping[str, list[Line]], theme: Theme) -> str:
    """Draw processor time by size, one panel for each curve, with logarithmic axes."""
    colours, inside = _theme_colours(theme), []
    step_x, step_y = _PLOT + _PLOT_GAP, _PLOT + _PLOT_GAP + 20
    width = _PLOT_COLUMNS * step_x + 24
    height = _PLOT_TOP + -(-len(curves) // _PLOT_COLUMNS) * step_y - 30
    inside.append(f'<rect width="{width}" height="{height}" rx="8" fill="{colours["card"]}"/>')
    about = "Processor seconds by size; both axes are logarithmic."
    inside.append(_svg_text(16, 26, about, colours["muted"]))
    inside.append(_svg_text(16, 46, "this connector", colours["first"], ' font-weight="700"'))
    inside.append(_svg_text(136, 46, "reference", colours["second"]))
    for place, (name, lines) in enumerate(curves.items()):
        row, column = divmod(place, _PLOT_COLUMNS)
        left, top = 48 + column * step_x, _PLOT_TOP + row * step_y
        inside += _curve_panel(left, top, name, lines, colours)
    return _svg_document("Processor time by size", width, height, inside)


def _curve_panel(
    left: int, top: int, name: str, lines: list[Line], colours: Mapping[str, str]
) -> Iterator[str]:
    """Yield the SVG elements of one panel: axes, and the curves of connector and reference."""
    yield _svg_text(left, top - 8, f"{name} ({lines[0].reference_name})", colours["muted"])
    bottom = top + _PLOT
    for power in range(-1, 3):
        y = bottom - (power + 1) / 3 * _PLOT
        line = f'x1="{left}" x2="{left + _PLOT}" y1="{y:.1f}" y2="{y:.1f}"'
        yield f'<line {line} stroke="{colours["line"]}"/>'
        yield _svg_text(left - 8, y + 4, f"{10.0**power:g}", colours["muted"], ' text-anchor="end"')
    xs = [left + _PLOT * (place + 0.5) / len(lines) for place in range(len(lines))]
    for x, each in zip(xs, lines, strict=True):
        yield _svg_text(
            x, bottom + 18, f"{each.scale:,}", colours["muted"], ' text-anchor="middle"'
        )
    ours = [each.figure for each in lines]
    others = [each.reference or each.figure for each in lines]
    for values, colour in ((others, colours["second"]), (ours, colours["first"])):
        ys = [bottom - (log10(max(0.1, min(100.0, each))) + 1) / 3 * _PLOT for each in values]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        for x, y in zip(xs, ys, strict=True):
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'


# -- Drawing ---------------------------------------------------------------------------------------


def _theme_colours(theme: Theme) -> dict[str, str]:
    """Return the colours of a theme by name."""
    return {name: getattr(shade, theme) for name, shade in PALETTE.items()}


def _svg_document(title: str, width: int, height: int, inside: Iterable[str]) -> str:
    """Return an SVG file with these elements."""
    head = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    font = 'font-family="system-ui, sans-serif"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {head} {font} role="img">'
    return "\n".join((svg, f"<title>{title}</title>", *inside, "</svg>")) + "\n"


def _svg_text(x: float, y: float, words: str, colour: str, more: str = "") -> str:
    """Return an SVG text element; `more` are additional attributes."""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="13" fill="{colour}"'
    return f"<text {place}{more}>{escape(words)}</text>"


# -- The simulator ---------------------------------------------------------------------------------


def simulation_tables() -> Texts:
    """Return `docs/CORRECTNESS.md` with the tables of the latest recorded `make simulate`."""
    told = json.loads(read_or_empty(_SIMULATED))
    page, worlds, planted = read_or_empty(_PROOF), told["worlds"], told["planted"]
    rows = [
        [f"`{each['scenario']}`", each["about"], *(f"{each[part]:,}" for part in _WORLD_PARTS)]
        for each in worlds
    ]
    totals = (f"**{sum(each[part] for each in worlds):,}**" for part in _WORLD_PARTS)
    rows.append(["**all**", f"{len(worlds)} kinds of worlds", *totals])
    page = replace_block(
        page, "worlds", _markdown_table(["Scenario", "What happens in it", *_WORLD_PARTS], rows)
    )
    faults = (
        [
            each["engine"],
            each["about"],
            f"`{each['scenario']}`",
            *_detection_cells(each, told["planted_runs"]),
        ]
        for each in planted
    )
    head = ["Engine", "Fault planted", "Scenario", "Seen after", "By"]
    return {_PROOF: replace_block(page, "planted faults", _markdown_table(head, faults))}


def _detection_cells(fault: Mapping[str, Any], runs: int) -> tuple[str, str]:
    """Return the number of runs until a planted fault was detected, and what detected it."""
    if fault["is_harmless"]:
        return f"not in {runs:,} runs", "[harmless](#two-harmless-changes)"
    after = fault["seen_after"]
    if after is None:
        return f"not in {runs:,} runs", "nothing"
    return f"{after:,} run{'s' if after > 1 else ''}", fault["promise"].removeprefix("Broken ")

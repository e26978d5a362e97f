"""Tables and pictures of measurements: benchmarks, other tools, and simulated worlds.

`make bench` writes `docs/figures/benchmarks.json`, and `make peers` writes `peers.json`. The tables
and pictures of README and `docs/BENCHMARKS.md` are made here, so that no figure is typed by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from math import log10
from typing import Any

from benchmarks.measure import HEADINGS, Bound, Line
from connector.report.charts import PALETTE, Theme
from generate.files import Texts, block_names, read_or_empty, replace_block

MEASURED = "docs/figures/peers.json"
OURS = "this connector"
_PAGE, _README = "docs/BENCHMARKS.md", "README.md"
_PICTURE = "docs/pictures/peers-{}.svg"
_BENCHMARKS, _GROWTH = "docs/figures/benchmarks.json", "docs/pictures/growth-{}.svg"
_THEMES: tuple[Theme, ...] = ("light", "dark")
_COSTLY = ("first load", "65 changes", "nothing changed")
_QUIET = ("65 changes", "quiet after churn", "ties, after a bulk edit")
_MEASURES: Mapping[str, tuple[str, str]] = {
    "requests": ("requests", "{:,.0f}"),
    "processor_seconds": ("processor time", "{:.1f} s"),
    "memory_mb": ("memory", "{:,.0f} MB"),
}
_PROOF, _SIMULATED = "docs/CORRECTNESS.md", "docs/figures/simulation.json"
_WORLD_PARTS = ("runs", "wrong", "unproven", "requests")
_NOISE = 1.1
"""Two costs that are nearer to each other than this are called equal."""

Run = Mapping[str, Any]


def peer_figures() -> Texts:
    """Return both pages with their comparison tables, and the chart in both themes."""
    measured = json.loads(read_or_empty(MEASURED))
    runs: dict[str, dict[str, Run]] = {}
    for each in measured["runs"]:
        runs.setdefault(each["copier"], {})[each["run"]] = each
    page, limit = read_or_empty(_PAGE), f"limit of {measured['limit']} a minute"
    page = replace_block(page, "cost of copies", _cost_table(runs))
    page = replace_block(page, "truth of copies", _correctness_table(runs))
    page = replace_block(page, "copies under a limit", _rate_limit_table(runs, limit))
    page = replace_block(page, "where others win", _list_wins_of_others(runs, limit))
    texts = {_PAGE: page}
    if "why not" in block_names(read_or_empty(_README)):
        texts[_README] = replace_block(
            read_or_empty(_README), "why not", _readme_table(runs, limit)
        )
    for theme in _THEMES:
        texts[_PICTURE.format(theme)] = _comparison_chart(runs, theme, measured["records"])
    return texts


def count_wrong_rows(run: Run) -> int:
    """Return the number of rows of a copy that are missing, deleted in the API, or outdated."""
    return int(run["missing"] + run["ghosts"] + run["stale"])


def _cost_table(runs: Mapping[str, Mapping[str, Run]]) -> str:
    """Return a table of the requests, processor time and memory of each copier."""
    head = ["Copier"]
    for name in _COSTLY:
        head += [f"{name}: requests", "processor", "memory"]
    rows = (
        [copier, *(_format_measure_or_failed(each[name], m) for name in _COSTLY for m in _MEASURES)]
        for copier, each in runs.items()
    )
    return _markdown_table(head, rows)


def _format_measure_or_failed(run: Run, measure: str) -> str:
    """Format a measure with its unit, followed by ", failed" if the run failed."""
    shown = _format_measure(run, measure)
    return shown if run["has_succeeded"] else f"{shown}, failed"


def _correctness_table(runs: Mapping[str, Mapping[str, Run]]) -> str:
    """Return a table of the wrong rows in the copy of each copier."""
    names = ("65 changes", "churn while reading", *_QUIET[1:])
    head = ["Copier", *names, "requests, both runs with churn"]
    rows = (
        [
            copier,
            *(_describe_copy(each[name]) for name in names),
            f"{sum(each[name]['requests'] for name in names[1:3]):,}",
        ]
        for copier, each in runs.items()
    )
    return _markdown_table(head, rows)


def _describe_copy(run: Run) -> str:
    """Return "failed", "exact", or the numbers of missing, ghost and stale rows."""
    if not run["has_succeeded"]:
        return "failed"
    if not count_wrong_rows(run):
        return "exact"
    parts = ((run["missing"], "missing"), (run["ghosts"], "ghosts"), (run["stale"], "stale"))
    return ", ".join(f"{count} {what}" for count, what in parts if count)


def _rate_limit_table(runs: Mapping[str, Mapping[str, Run]], limit: str) -> str:
    """Return a table of each copier's run under a rate limit."""
    rows = (
        [
            copier,
            f"{each[limit]['requests']:,}",
            str(each[limit]["refused"]),
            f"{each[limit]['wall_seconds']:.0f} s",
            _describe_copy(each[limit]),
        ]
        for copier, each in runs.items()
    )
    return _markdown_table(["Copier", "Requests", "Answered 429", "Until it ended", "Copy"], rows)


def _list_wins_of_others(runs: Mapping[str, Mapping[str, Run]], limit: str) -> str:
    """Return a list of the costs that are lower with another tool by more than the noise."""
    lines = []
    for name in (*_COSTLY, limit):
        measures = [*_MEASURES] if name != limit else ["wall_seconds"]
        for measure in measures:
            ours = runs[OURS][name][measure]
            better = [
                f"{copier} ({_format_measure(each[name], measure)})"
                for copier, each in runs.items()
                if each[name]["has_succeeded"] and each[name][measure] * _NOISE < ours
            ]
            if better:
                what = _MEASURES.get(measure, ("time until it ended",))[0]
                told = f"{name}, {what} ({_format_measure(runs[OURS][name], measure)} here)"
                lines.append(f"- {told}: {', '.join(better)}")
    return "\n".join(lines or ["- Nowhere."]) + "\n"


def _format_measure(run: Run, measure: str) -> str:
    """Format a measure with its unit; seconds unless it is in `_MEASURES`."""
    return _MEASURES.get(measure, ("", "{:.0f} s"))[1].format(run[measure])


def _readme_table(runs: Mapping[str, Mapping[str, Run]], limit: str) -> str:
    """Return the table of README that compares the copiers."""
    head = ["", "Requests for 65 changes", "Wrong rows: after 65 changes"]
    head += ["… after a load during edits", "… after a bulk edit", "Rejected (429)"]
    rows = (
        [
            f"**{copier}**" if copier == OURS else copier.replace(", exact", ", full"),
            f"{each['65 changes']['requests']:,} requests",
            *(_format_wrong_rows(each[name]) for name in _QUIET),
            str(each[limit]["refused"]) if each[limit]["has_succeeded"] else "failed",
        ]
        for copier, each in runs.items()
    )
    return _markdown_table(head, rows)


def _format_wrong_rows(run: Run) -> str:
    """Return "failed", "none", or the number of wrong rows, for example "12 rows"."""
    if not run["has_succeeded"]:
        return "failed"
    count = count_wrong_rows(run)
    return "none" if not count else f"{count:,} row{'s' if count > 1 else ''}"


def _markdown_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    names = [*head]
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(each)} |\n" for each in lines)


# -- The picture -----------------------------------------------------------------------------------
# Bars in three panels, drawn by hand: a picture of a page has no fonts and no scripts to load.

_LABELS, _PANEL, _GAP, _ROW, _TOP = 196, 196, 20, 26, 64


def _comparison_chart(runs: Mapping[str, Mapping[str, Run]], theme: Theme, records: int) -> str:
    """Return an SVG with a bar for each copier in three panels."""
    panels = {
        "Requests for 65 changes": [
            float(each["65 changes"]["requests"]) for each in runs.values()
        ],
        "Rows wrong, quiet again": [
            float(sum(count_wrong_rows(each[name]) for name in _QUIET)) for each in runs.values()
        ],
        "Processor seconds, first load": [
            each["first load"]["processor_seconds"] for each in runs.values()
        ],
    }
    colours = _theme_colours(theme)
    width = _LABELS + 3 * _PANEL + 2 * _GAP + 12
    height = _TOP + len(runs) * _ROW + 16
    inside = [
        f'<rect width="{width}" height="{height}" rx="8" fill="{colours["card"]}"/>',
        _svg_text(16, 26, f"One copy of {records:,} records, kept by:", colours["muted"]),
        *_copier_labels(runs, colours),
    ]
    for place, (title, values) in enumerate(panels.items()):
        inside += _bar_panel(_LABELS + place * (_PANEL + _GAP), title, values, colours)
    return _svg_document("Beside other tools", width, height, inside)


def _copier_labels(runs: Iterable[str], colours: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of the copiers as SVG texts, one for each row of bars."""
    for row, copier in enumerate(runs):
        weight = ' font-weight="700"' if copier == OURS else ""
        yield _svg_text(16, _TOP + row * _ROW + 17, copier, colours["ink"], weight)


def _bar_panel(
    left: int, title: str, values: list[float], colours: Mapping[str, str]
) -> Iterator[str]:
    """Yield the SVG elements of one panel: a title, and a bar and a number for each value."""
    yield _svg_text(left, 50, title, colours["muted"])
    most = max(values) or 1
    for row, value in enumerate(values):
        top = _TOP + row * _ROW
        length = max(2.0, value / most * (_PANEL - 48)) if value else 0.0
        colour = colours["first"] if row == 0 else colours["third"]
        yield f'<rect x="{left}" y="{top + 4}" width="{length:.1f}" height="17" fill="{colour}"/>'
        shown = f"{value:,.0f}" if value == int(value) else f"{value:.1f}"
        yield _svg_text(left + length + 5, top + 17, shown, colours["ink"])


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

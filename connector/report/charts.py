"""The kinds of chart that the report draws, as Vega-Lite specifications; nothing is drawn here.

All are made for one width, at which their text is readable on a phone; the page scales them up
to the width of a column and never beyond reading size.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import vl_convert

from connector.report.figure import Chart

# -- Drawing ---------------------------------------------------------------------------------------
# Charts as pictures in the page: Vega-Lite in, plain SVG out, with no script and no address.


_VERSION = "5.21"
"""The Vega-Lite that the specifications are written in; the library carries several."""

_TAG = re.compile(r"<[^>]*>")
_NOISE = re.compile(
    r"""\s(?:xmlns(?::\w+)?|version|role|aria-\w+|pointer-events|opacity="1"|class
    |font-family)(?:="[^"]*")?(?=[\s/>])""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"(\d+\.\d{2})\d{3,}")


def draw(chart: Chart) -> str:
    """The chart as an `svg` element to be put into a page of HTML.

    What the picture says to a screen reader is left out of it: the page has a text of its own in
    its place. The text in it takes the page's font, and its colours are the page's variables.
    """
    drawn = vl_convert.vegalite_to_svg(
        dict(chart.specification), vl_version=_VERSION, allowed_base_urls=[]
    )
    slim = _TAG.sub(lambda tag: _NUMBER.sub(r"\1", _NOISE.sub("", tag.group())), drawn)
    return slim.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)


# -- Palette ---------------------------------------------------------------------------------------
# The report's colours, each once for the light theme and once for the dark one.
#
# Charts and styles name them as CSS variables, so that one drawing serves both themes and print.
# Blue, orange and grey differ in lightness as well as in hue: they stay apart for readers who see
# no red or no green, and on a printer without colour.


Theme = Literal["light", "dark"]


class Shade(NamedTuple):
    """One colour in both themes, as #rrggbb."""

    light: str
    dark: str


PALETTE: Mapping[str, Shade] = {
    "paper": Shade("#f7f5f0", "#14171b"),
    "card": Shade("#ffffff", "#1c2026"),
    "ink": Shade("#1c2127", "#ecebe7"),
    "muted": Shade("#555d67", "#a8b0ba"),
    "line": Shade("#dedad1", "#353b44"),
    "link": Shade("#0f5683", "#7fbfec"),
    "first": Shade("#0e4f7d", "#5aaee4"),
    "second": Shade("#c0610f", "#f0b064"),
    "third": Shade("#8b949e", "#7d8792"),
    "fourth": Shade("#2b2b33", "#e4e1f7"),
    "warn": Shade("#93400b", "#f3b27a"),
}
"""Every colour by its name. `paper` and `card` are surfaces, `ink`, `muted`, `link` and `warn` are
written on them, `first` to `fourth` are what charts draw with.
"""

SURFACES = ("paper", "card")
TEXTS = ("ink", "muted", "link", "warn")
SERIES = ("first", "second", "third", "fourth")


def variable(name: str) -> str:
    """The colour as charts and styles write it. Raises `KeyError` for one that is not declared."""
    assert name in PALETTE, name
    return f"var(--{name})"


# -- Charts ----------------------------------------------------------------------------------------
#


WIDTH = 360
"""Pixels across, which is what a phone has; text is 13 pixels high."""

_STEP = 30
_HEIGHT = 190
_FONT = "system-ui, sans-serif"
_TEXT = 13
_LABEL_MAX = 136
"""Pixels across of the longest label before a bar, so that room is left for the bars."""

_PLACE = "place"
_TICKS_MAX = 5
_PADDING = 4
_GAP = 6
_ROWS_TOLD = 12
_DAYS = "days"

Rows = Sequence[Mapping[str, Any]]


def bars(
    rows: Rows,
    label: str,
    value: str,
    text: str,
    *,
    unit: str,
    most: float = 0,
    room: float = _LABEL_MAX,
) -> Chart:
    """Horizontal bars in the order of the rows, each with its `text` at its end.

    `unit` says what is counted; `most` is the axis's end where it has one, such as 1 for shares;
    `room` is how many pixels the labels may take.
    """
    top = most or max((float(row[value]) for row in rows), default=0) or 1
    y = _category(rows, label, room=room)
    across = WIDTH - y["axis"]["minExtent"] - 2 * _PADDING
    texts = max((_width(str(row[text])) for row in rows), default=0) + 2 * _GAP
    scale = {"domain": [0, top * across / (across - texts)], "nice": False}
    layers = [
        {
            "mark": {"type": "bar", "color": variable("first"), "height": 18},
            "encoding": {
                "x": {"field": value, "type": "quantitative", "scale": scale, "axis": None}
            },
        },
        {
            "mark": {"type": "text", "align": "left", "dx": _GAP, "color": variable("ink")},
            "encoding": {
                "x": {"field": value, "type": "quantitative"},
                "text": {"field": text, "type": "nominal"},
            },
        },
    ]
    told = _told(f"{row[label]} {row[text]}" for row in rows)
    return _chart(
        rows,
        {"height": {"step": _STEP}, "encoding": {"y": y}, "layer": layers},
        f"Bar chart of {unit}: {told}",
    )


def stacked(
    rows: Rows, label: str, parts: Mapping[str, str], *, unit: str, is_upright: bool = False
) -> Chart:
    """Bars made of parts: each column of `parts`, with its word in the legend, as one colour.

    Upright ones are for time, which runs to the right.
    """
    shown = {column: word for column, word in parts.items() if any(row[column] for row in rows)}
    shown = shown or dict(parts)
    places = list(parts)
    long = [
        {"part": word, "value": float(row[column] or 0), "order": order, _PLACE: place}
        for place, row in enumerate(rows)
        for order, (column, word) in enumerate(shown.items())
        if row[column]
    ]
    colours = [variable(SERIES[places.index(column)]) for column in shown]
    colour = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": list(shown.values()), "range": colours},
        "legend": None,
    }
    measure = {
        "field": "value",
        "type": "quantitative",
        "stack": "zero",
        "title": unit,
        "axis": _amounts(max((sum(row[c] or 0 for c in shown) for row in rows), default=0)),
    }
    category = _category(rows, label, is_upright=is_upright)
    mark = {"type": "bar", "stroke": variable("card"), "strokeWidth": 1}
    x, y = (category, measure) if is_upright else (measure, category)
    told = _told(
        f"{row[label]} " + ", ".join(f"{row[c] or 0:,.0f} {word}" for c, word in shown.items())
        for row in rows
    )
    return _chart(
        long,
        {
            "height": _HEIGHT if is_upright else {"step": _STEP},
            "mark": mark if is_upright else {**mark, "height": 18},
            "encoding": {"x": x, "y": y, "color": colour, "order": {"field": "order"}},
        },
        f"Stacked bar chart of {unit}: {told}",
        tuple(zip(colours, shown.values(), strict=True)) if len(parts) > 1 else (),
    )


def uprights(rows: Rows, label: str, value: str, *, unit: str, across: str) -> Chart:
    """Upright bars, for bands of a measure or for months; `across` names what runs to the right."""
    x = {**_category(rows, label, is_upright=True), "title": across}
    y = {
        "field": value,
        "type": "quantitative",
        "title": unit,
        "axis": _amounts(max((row[value] for row in rows), default=0)),
    }
    mark = {"type": "bar", "color": variable("first")}
    told = _told(f"{row[label]} {row[value]:,.0f}" for row in rows)
    return _chart(
        rows,
        {"height": _HEIGHT, "mark": mark, "encoding": {"x": x, "y": y}},
        f"Bar chart of {unit} by {across}: {told}",
    )


def ranges(rows: Rows, label: str, *, unit: str) -> Chart:
    """Distributions side by side: a line from the tenth to the ninetieth of a hundred, a thick
    one for the middle half, and the median with its figure. The rows have p10_days to p90_days.
    """
    y = _category(rows, label)
    x: dict[str, Any] = {"type": "quantitative", "title": _DAYS, "axis": {"tickCount": 5}}
    band = {"y": y, "x": {**x, "field": "p10_days"}, "x2": {"field": "p90_days"}}
    half = {"y": y, "x": {**x, "field": "p25_days"}, "x2": {"field": "p75_days"}}
    median = {"y": y, "x": {**x, "field": "p50_days"}}
    layers = [
        {"mark": {"type": "rule", "color": variable("third"), "strokeWidth": 2}, "encoding": band},
        {"mark": {"type": "bar", "color": variable("first"), "height": 14}, "encoding": half},
        {
            "mark": {
                "type": "tick",
                "color": variable("second"),
                "opacity": 1,
                "thickness": 4,
                "height": 22,
            },
            "encoding": median,
        },
    ]
    told = _told(
        f"{row[label]} median {row['p50_days']:,.1f}, middle half {row['p25_days']:,.1f} to "
        f"{row['p75_days']:,.1f}"
        for row in rows
    )
    legend = (
        (variable("third"), "all but the quickest and slowest tenth"),
        (variable("first"), "the middle half"),
        (variable("second"), "the median"),
    )
    body = {"height": {"step": _STEP}, "layer": layers}
    return _chart(rows, body, f"Ranges of {unit} in days: {told}", legend)


def _category(
    rows: Rows, label: str, *, is_upright: bool = False, room: float = _LABEL_MAX
) -> dict[str, Any]:
    """The axis along which rows stand by their places, since two may have the same label."""
    labels = [_short(str(row[label]), room) for row in rows]
    axis: dict[str, Any] = {
        "grid": False,
        "domain": False,
        "ticks": False,
        "labelExpr": f"{json.dumps(labels)}[datum.value]",
    }
    if is_upright:
        axis |= {"labelAngle": 0, "labelOverlap": "parity", "labelSeparation": 12, "domain": True}
    else:
        axis["minExtent"] = max((_width(each) for each in labels), default=0) + 8
    scale = {"domain": list(range(len(rows)))}
    return {"field": _PLACE, "type": "ordinal", "scale": scale, "title": None, "axis": axis}


def _width(text: str) -> float:
    """Pixels across of the text in the widest font that a reader may have: what is drawn is
    measured with another one.
    """
    return sum(_letter(each) for each in text)


def _letter(letter: str) -> float:
    if letter in "MWmw@%" or unicodedata.east_asian_width(letter) in "WF":
        return 13.5
    return 10.0 if letter.isupper() else 8.0


def _short(label: str, room: float) -> str:
    """A label that leaves room for the bars; the table has it whole."""
    if _width(label) <= room:
        return label
    kept = label
    while _width(kept) > room - _letter("W"):
        kept = kept[:-1]
    return kept.rstrip() + "…"


def _amounts(most: float) -> dict[str, Any]:
    """The axis of what is counted or paid: short, as in 20k, and never in parts of one."""
    return {
        "format": "~s",
        "tickMinStep": 1,
        "tickCount": max(1, min(_TICKS_MAX, int(most))),
        "labelExpr": "datum.value === 0 ? '0' : datum.label",
    }


def _told(parts: Any) -> str:
    told = list(parts)
    more = f"; and {len(told) - _ROWS_TOLD} more" if len(told) > _ROWS_TOLD else ""
    return "; ".join(told[:_ROWS_TOLD]) + more + "."


def _chart(
    rows: Rows, body: Mapping[str, Any], alternative: str, legend: tuple[tuple[str, str], ...] = ()
) -> Chart:
    text = {"labelFontSize": _TEXT, "titleFontSize": _TEXT, "titleFontWeight": "normal"}
    values = [
        {_PLACE: place, **{key: _value(value) for key, value in row.items()}}
        for place, row in enumerate(rows)
    ]
    # Under upright bars the last label is wider than its bar.
    beyond = _PADDING if "layer" in body or body["encoding"]["y"]["type"] == "ordinal" else 18
    specification = {
        "data": {"values": values},
        "width": WIDTH,
        "autosize": {"type": "fit", "contains": "padding"},
        **body,
        "config": {
            "background": None,
            "font": _FONT,
            "padding": {**dict.fromkeys(("left", "top", "bottom"), _PADDING), "right": beyond},
            "view": {"stroke": None},
            "text": {"fontSize": _TEXT},
            "axis": {
                **text,
                "labelColor": variable("muted"),
                "titleColor": variable("muted"),
                "gridColor": variable("line"),
                "domainColor": variable("third"),
                "tickColor": variable("third"),
                "labelLimit": 0,
                "labelPadding": 6,
            },
        },
    }
    return Chart(specification, alternative, legend)


def _value(value: Any) -> Any:
    """The value as JSON has it: whatever is no text, number or null becomes one."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)

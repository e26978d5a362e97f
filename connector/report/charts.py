"""Charts of the report: Vega-Lite specifications, and their SVG.

All charts are made for one width, at which their text is readable on a phone. The page scales them
up to the width of a column.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from connector.extras import extra_missing
from connector.report.figure import Chart, format_count
from connector.report.published import printable

# -- Drawing ---------------------------------------------------------------------------------------
# Converts Vega-Lite to plain SVG, without scripts and addresses.


_VERSION = "5.21"
"""Version of Vega-Lite in which the specifications are written; the library supports several."""

_TAG = re.compile(r"<[^>]*>")
_NOISE = re.compile(
    r"""\s(?:xmlns(?::\w+)?|version|role|aria-\w+|pointer-events|opacity="1"|class
    |font-family)(?:="[^"]*")?(?=[\s/>])""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"(\d+\.\d{2})\d{3,}")


def render_svg(chart: Chart) -> str:
    """Return the chart as an `svg` element for an HTML page.

    Text for screen readers is removed because the page has its own. Texts use the font of the page,
    and colors are the variables of the page.

    Raises `ConnectorError` if the drawing library is not installed.
    """
    try:
        # An extra of 84 MB, which is only needed for drawing.
        import vl_convert  # noqa: PLC0415
    except ImportError as error:
        raise extra_missing("the report's charts need", "report", error) from error
    drawn = vl_convert.vegalite_to_svg(
        dict(chart.specification), vl_version=_VERSION, allowed_base_urls=[]
    )
    slim = _TAG.sub(lambda tag: _NUMBER.sub(r"\1", _NOISE.sub("", tag.group())), drawn)
    return slim.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)


# -- Palette ---------------------------------------------------------------------------------------
# Colors of the report, for the light and the dark theme.
#
# Charts and styles refer to them as CSS variables, so that one drawing works for both themes and
# for print. Blue, orange and grey differ in lightness as well as in hue, so that color-blind
# readers and monochrome printers can distinguish them.


Theme = Literal["light", "dark"]


class ThemeColor(NamedTuple):
    """Color in the light and in the dark theme, as #rrggbb."""

    light: str
    dark: str


PALETTE: Mapping[str, ThemeColor] = {
    "paper": ThemeColor("#f7f5f0", "#14171b"),
    "card": ThemeColor("#ffffff", "#1c2026"),
    "ink": ThemeColor("#1c2127", "#ecebe7"),
    "muted": ThemeColor("#555d67", "#a8b0ba"),
    "line": ThemeColor("#dedad1", "#353b44"),
    "link": ThemeColor("#0f5683", "#7fbfec"),
    "first": ThemeColor("#0e4f7d", "#5aaee4"),
    "second": ThemeColor("#c0610f", "#f0b064"),
    "third": ThemeColor("#8b949e", "#7d8792"),
    "fourth": ThemeColor("#2b2b33", "#e4e1f7"),
    "warn": ThemeColor("#93400b", "#f3b27a"),
}
"""All colors by name. `paper` and `card` are backgrounds, `ink`, `muted`, `link` and `warn` are
text colors, `first` to `fourth` are for charts.
"""

SERIES = ("first", "second", "third", "fourth")


def color_variable(name: str) -> str:
    """Return the CSS expression for a color of `PALETTE`, as in var(--ink)."""
    assert name in PALETTE, name
    return f"var(--{name})"


# -- Charts ----------------------------------------------------------------------------------------

WIDTH = 360
"""Width in pixels, suitable for a phone; text is 13 pixels high."""

_STEP = 30
_STEP_DOUBLED = 36
"""Pixels between two bars whose labels have two lines."""

_STEP_MIN = 18
_HEIGHT = 190
_TEXT = 13
_LINE = 14
_LABEL_MAX = 136
"""Maximum width of a label before a bar, in pixels."""

_TICKS_MAX = 5
_APART = {"labelFlush": False, "labelOverlap": "greedy", "labelSeparation": 8}
"""Labels of a number axis are at their ticks; labels that would overlap are omitted."""
_PADDING = 4
_GAP = 6
_ROWS_TOLD = 12

Rows = Sequence[Mapping[str, Any]]


def bar_chart(
    rows: Rows,
    label: str,
    value: str,
    *,
    unit: str,
    text: Callable[[Mapping[str, Any]], str] | None = None,
    maximum: float = 0,
    label_width: float = _LABEL_MAX,
    height: float = 0,
) -> Chart:
    """Return a chart of horizontal bars in the order of the rows, each with its `text`.

    Args:
        rows: Rows of the figure.
        label: Column of the labels.
        value: Column of the values.
        unit: What is counted.
        text: Returns the text of a row's bar. Default: the value.
        maximum: End of the axis, if fixed, such as 1 for shares.
        label_width: Maximum width of labels, in pixels.
        height: Height of all bars together in pixels; 0 for the usual height of each bar.
    """
    texts = [printable(text(row)) if text else format_count(row[value]) for row in rows]
    top = maximum or max((float(row[value]) for row in rows), default=0) or 1
    y = _category_axis(rows, label, width=label_width)
    across = WIDTH - y["axis"]["minExtent"] - 2 * _PADDING
    beside = max((_text_width(each) for each in texts), default=0) + 2 * _GAP
    scale = {"domain": [0, top * across / (across - beside)], "nice": False}
    x = {"field": "value", "type": "quantitative"}
    labels = wrap_labels([printable(str(row[label])) for row in rows], label_width)
    usual = _STEP_DOUBLED if any(len(lines) > 1 for lines in labels) else _STEP
    step = max(_STEP_MIN, min(_STEP, height / max(1, len(rows)))) if height else usual
    bar = {"type": "bar", "color": color_variable("first"), "height": step * 0.6}
    words = {"type": "text", "align": "left", "dx": _GAP, "color": color_variable("ink")}
    layers = [
        {"mark": bar, "encoding": {"x": {**x, "scale": scale, "axis": None}}},
        {"mark": words, "encoding": {"x": x, "text": {"field": "text", "type": "nominal"}}},
    ]
    values = [
        {"place": place, "value": float(row[value]), "text": texts[place]}
        for place, row in enumerate(rows)
    ]
    alternative_text = _join_first_rows(
        f"{row[label]} {texts[place]}" for place, row in enumerate(rows)
    )
    body = {"height": {"step": step}, "encoding": {"y": y}, "layer": layers}
    return _build_chart(values, body, f"Bar chart of {unit}: {alternative_text}")


def stacked_bar_chart(
    rows: Rows, label: str, legends: Mapping[str, str], *, unit: str, is_upright: bool = False
) -> Chart:
    """Return a chart of stacked bars; `legends` has the columns to stack, each with its legend.

    Upright bars are for time, from left to right.
    """
    shown = {column: word for column, word in legends.items() if any(row[column] for row in rows)}
    shown = shown or dict(legends)
    values = [
        {"part": word, "value": float(row[column]), "order": order, "place": place}
        for place, row in enumerate(rows)
        for order, (column, word) in enumerate(shown.items())
        if row[column]
    ]
    # A part keeps its color even if another part is missing.
    colours = [color_variable(SERIES[list(legends).index(column)]) for column in shown]
    scale = {"domain": list(shown.values()), "range": colours}
    maximum = max((sum(row[column] or 0 for column in shown) for row in rows), default=0)
    measure = {**_value_axis(unit, maximum), "stack": "zero"}
    category = _category_axis(rows, label, is_upright=is_upright)
    mark = {"type": "bar", "stroke": color_variable("card"), "strokeWidth": 1}
    alternative_text = _join_first_rows(
        f"{row[label]} " + ", ".join(f"{row[c] or 0:,.0f} {word}" for c, word in shown.items())
        for row in rows
    )
    body = {
        "height": _HEIGHT if is_upright else {"step": _STEP},
        "mark": mark if is_upright else {**mark, "height": 18},
        "encoding": {
            "x": category if is_upright else measure,
            "y": measure if is_upright else category,
            "color": {"field": "part", "type": "nominal", "scale": scale, "legend": None},
            "order": {"field": "order"},
        },
    }
    legend = tuple(zip(colours, shown.values(), strict=True)) if len(legends) > 1 else ()
    return _build_chart(values, body, f"Stacked bar chart of {unit}: {alternative_text}", legend)


def column_chart(
    rows: Rows,
    label: str,
    value: str,
    *,
    unit: str,
    across: str,
    height: float = _HEIGHT,
    highlighted: Sequence[int] | None = None,
) -> Chart:
    """Return a chart of upright bars, for bands or months; `across` is the title of the axis below.

    If `highlighted` has indexes of rows, the other bars are pale.
    """
    x = {**_category_axis(rows, label, is_upright=True), "title": across}
    y = _value_axis(unit, max((row[value] for row in rows), default=0))
    encoding: dict[str, Any] = {"x": x, "y": y}
    if highlighted is not None:
        pale = {
            "test": f"indexof({list(highlighted)}, datum.place) < 0",
            "value": color_variable("third"),
        }
        encoding = {
            "x": {**x, "title": None},
            "y": {**y, "title": None},
            "color": {"condition": pale, "value": color_variable("first")},
        }
    mark = {"type": "bar", "color": color_variable("first")}
    values = [{"place": place, "value": float(row[value])} for place, row in enumerate(rows)]
    alternative_text = _join_first_rows(f"{row[label]} {row[value]:,.0f}" for row in rows)
    body = {"height": height, "mark": mark, "encoding": encoding}
    return _build_chart(values, body, f"Bar chart of {unit} by {across}: {alternative_text}")


def range_chart(rows: Rows, label: str, *, unit: str) -> Chart:
    """Return distributions of rows with p10_days to p90_days, and of current waiting times.

    A line extends from the 10th to the 90th percentile, a thick line from the 25th to the 75th, and
    a tick is the median. A circle is current_p50_days, the median of current waiting times. The
    axis ends at twice the largest median; a circle beyond it is drawn at its end, with its days.
    """
    p10, p25, p50, p75, p90 = "p10_days", "p25_days", "p50_days", "p75_days", "p90_days"
    waiting = "current_p50_days"
    so_far = [row[waiting] for row in rows if row[waiting] is not None]
    medians = [row[p50] for row in rows if row[p50] is not None] or so_far
    ends = [row[each] for row in rows for each in (p75, p90) if row[each] is not None]
    # Long tails and long waiting times are cut off, so that the medians can be distinguished.
    top = min(float(max((*medians, *ends), default=1)), 2 * float(max(medians, default=1))) or 1
    axis = {"tickCount": 5, **_APART}
    scale = {"domain": [0, top], "nice": False}
    x = {"type": "quantitative", "title": "days", "axis": axis, "scale": scale}

    def layer(mark: Mapping[str, Any], begins: str, ends: str = "") -> dict[str, Any]:
        known = " && ".join(f"isValid(datum.{each})" for each in (begins, ends) if each)
        across = {"x": {**x, "field": begins}, **({"x2": {"field": ends}} if ends else {})}
        return {"mark": mark, "encoding": across, "transform": [{"filter": known}]}

    tick = {
        "type": "tick",
        "color": color_variable("second"),
        "opacity": 1,
        "thickness": 4,
        "height": 22,
    }
    circle = {
        "type": "point",
        "stroke": color_variable("fourth"),
        "fill": color_variable("card"),
        "opacity": 1,
    }
    layers = [
        layer({"type": "rule", "color": color_variable("third"), "strokeWidth": 2}, p10, "most"),
        layer({"type": "bar", "color": color_variable("first"), "height": 14}, p25, "upper"),
        layer(tick, p50),
        layer({**circle, "size": 60, "strokeWidth": 2}, waiting),
    ]
    words = {"type": "text", "align": "right", "dx": -2 * _GAP, "color": color_variable("ink")}
    beyond = layer(words, waiting, "beyond")
    beyond["encoding"] = {"x": {**x, "field": waiting}, "text": {"field": "beyond"}}
    if any(each > top for each in so_far):
        layers.append(beyond)
    values = []
    for place, row in enumerate(rows):
        known = {n: float(row[n]) for n in (p10, p25, p50, p75, p90) if row[n] is not None}
        # A bar needs both ends.
        if p25 in known and p75 in known:
            known["upper"] = min(known[p75], top)
        if p10 in known and p90 in known:
            known["most"] = min(known[p90], top)
        waits: dict[str, Any] = {}
        if row[waiting] is not None:
            waits[waiting] = min(float(row[waiting]), top)
            if row[waiting] > top:
                waits["beyond"] = f"{row[waiting]:,.0f} days"
        values.append({"place": place, **known, **waits})
    alternative_text = _join_first_rows(
        f"{row[label]} median {_days_in_words(row[p50])}, "
        f"still in the stage {_days_in_words(row[waiting])}"
        for row in rows
    )
    parts = {
        "most": ("third", "10th to 90th percentile"),
        "upper": ("first", "25th to 75th percentile"),
        p50: ("second", "median"),
        waiting: ("fourth", "median so far of candidates still in the stage"),
    }
    drawn = {name for each in values for name in each}
    legend = tuple((color_variable(c), word) for name, (c, word) in parts.items() if name in drawn)
    encoding = {"y": _category_axis(rows, label)}
    body = {"height": {"step": _STEP}, "encoding": encoding, "layer": layers}
    return _build_chart(values, body, f"Ranges of {unit} in days: {alternative_text}", legend)


def _days_in_words(value: float | None) -> str:
    """Return the number of days with one decimal, or "not known"."""
    return "not known" if value is None else f"{value:,.1f}"


def _category_axis(
    rows: Rows, label: str, *, is_upright: bool = False, width: float = _LABEL_MAX
) -> dict[str, Any]:
    """Return the Vega-Lite axis with the label of each row, at the row's index.

    Labels cannot be the positions, because two rows may have the same label.
    """
    texts = [printable(str(row[label])) for row in rows]
    labels = [[text] for text in texts] if is_upright else wrap_labels(texts, width)
    axis: dict[str, Any] = {
        "grid": False,
        "domain": is_upright,
        "ticks": False,
        "labelExpr": f"{json.dumps(labels)}[datum.value]",
    }
    if is_upright:
        axis |= {"labelAngle": 0, "labelOverlap": "parity", "labelSeparation": 12}
    else:
        lines = list(itertools.chain.from_iterable(labels))
        indexes = [place for place, each in enumerate(labels) if len(each) > 1]
        higher = {"test": f"indexof({indexes}, datum.value) >= 0", "value": -_LINE / 2}
        axis |= {"minExtent": max(map(_text_width, lines), default=0) + 8, "labelLineHeight": _LINE}
        axis["labelOffset"] = {"condition": higher, "value": 0}
    scale = {"domain": list(range(len(rows)))}
    return {"field": "place", "type": "ordinal", "scale": scale, "title": None, "axis": axis}


_SHORT_FROM = 10_000
"""Number above which axes have short labels."""


def _value_axis(unit: str, maximum: float) -> dict[str, Any]:
    """Return the Vega-Lite axis of counts or amounts: whole numbers, and 20k instead of 20,000."""
    axis = {
        "format": ",d" if maximum < _SHORT_FROM else "~s",
        "tickMinStep": 1,
        "tickCount": max(1, min(_TICKS_MAX, int(maximum))),
        "labelExpr": "datum.value === 0 ? '0' : datum.label",
        **_APART,
    }
    return {"field": "value", "type": "quantitative", "title": unit, "axis": axis}


def _text_width(text: str) -> float:
    """Return the width of the text in pixels, in the widest font that a reader may have.

    The drawing library measures with its own font and would cut off text in a wider one.
    """
    return sum(_letter_width(each) for each in text)


def _letter_width(letter: str) -> float:
    """Return an upper limit for the width of a letter in pixels."""
    if letter in "MWmw@%" or unicodedata.east_asian_width(letter) in "WF":
        return 13.5
    return 10.0 if letter.isupper() else 8.0


def wrap_labels(texts: Sequence[str], width: float) -> list[list[str]]:
    """Return one or two lines for each label, at most `width` pixels wide; equal labels are
    numbered.
    """
    found: list[list[str]] = []
    for text in texts:
        numbered = (wrap_label(f"{text} ({number})", width) for number in itertools.count(2))
        shown = itertools.chain([wrap_label(text, width)], numbered)
        found.append(next(each for each in shown if each not in found))
    return found


def wrap_label(text: str, width: float) -> list[str]:
    """Return the label on one or two lines of at most `width` pixels.

    A longer label is cut in the middle, because names with the same beginning have different ends.
    """
    if _text_width(text) <= width:
        return [text]
    first = text
    while _text_width(first) > width:
        first = first[:-1].rpartition(" ")[0] or first[:-1]
    end = text[len(first) :].strip()
    ending = end
    while _text_width(ending) > width - (_letter_width("…") if ending != end else 0):
        ending = ending.partition(" ")[2] or ending[1:]
    return [first, ending if ending == end else f"…{ending.lstrip()}"]


def _join_first_rows(parts: Iterable[str]) -> str:
    """Return the first texts, separated by semicolons, and the number of further ones."""
    texts = list(parts)
    more = f"; and {len(texts) - _ROWS_TOLD} more" if len(texts) > _ROWS_TOLD else ""
    return "; ".join(texts[:_ROWS_TOLD]) + more + "."


def _build_chart(
    values: list[dict[str, Any]],
    body: Mapping[str, Any],
    alternative_text: str,
    legend: tuple[tuple[str, str], ...] = (),
) -> Chart:
    """Return the chart of the data `values`, with a Vega-Lite `body` and the common style."""
    text = {
        "labelFontSize": _TEXT,
        "titleFontSize": _TEXT,
        "titleFontWeight": "normal",
        "titlePadding": 10,
    }
    # Below upright bars, the last label is wider than its bar.
    beyond = _PADDING if body["encoding"]["y"]["type"] == "ordinal" else 18
    specification = {
        "data": {"values": values},
        "width": WIDTH,
        "autosize": {"type": "fit", "contains": "padding"},
        **body,
        "config": {
            "background": None,
            "font": "system-ui, sans-serif",
            "padding": {**dict.fromkeys(("left", "top", "bottom"), _PADDING), "right": beyond},
            "view": {"stroke": None},
            "text": {"fontSize": _TEXT},
            "axis": {
                **text,
                "labelColor": color_variable("muted"),
                "titleColor": color_variable("muted"),
                "gridColor": color_variable("line"),
                "domainColor": color_variable("third"),
                "tickColor": color_variable("third"),
                "labelLimit": 0,
                "labelPadding": 6,
            },
        },
    }
    return Chart(specification, alternative_text, legend)

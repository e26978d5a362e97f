"""Charts of the report as SVG, drawn by Vega-Lite.

Colors are CSS variables of the page, so that one drawing serves the light and the dark theme.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from connector.extras import extra_missing

WIDTH = 360
"""Width in pixels at which text is readable on a phone; the page scales a chart up."""

STEP, HEIGHT, LABEL_MAX = 28, 190, 140

_VERSION = "5.21"
"""Version of Vega-Lite in which the specifications are written; the library supports several."""

_NOISE = re.compile(r'\s(?:aria-\w+|role|font-family)="[^"]*"')


def draw_chart(rows: Sequence[tuple[str, float, str]], *, by_month: bool) -> str:
    """Return a bar chart as an `svg` element.

    The table that a browser shows with it is its description, so the drawing is hidden from screen
    readers. Each bar shows its text, so a long bar does not hide a short one.

    Args:
        rows: Label, length and text of each bar, in order.
        by_month: Draw upright bars; else horizontal ones.

    Raises:
        ConnectorError: The drawing library is not installed.
    """
    try:
        # An extra of 84 MB, which only the report needs.
        import vl_convert  # noqa: PLC0415
    except ImportError as error:
        raise extra_missing("the report's charts need", "report", error) from error
    values = [{"n": n, "label": row[0], "value": row[1], "text": row[2]}
              for n, row in enumerate(rows)]  # fmt: skip
    named = "{" + ",".join(f"{n}:{_quoted(row[0])}" for n, row in enumerate(rows)) + "}"
    axis = {"labelExpr": f"{named}[datum.value]", "labelLimit": LABEL_MAX, "labelAngle": 0,
            "labelOverlap": by_month, "ticks": False, "title": None}  # fmt: skip
    # Rows are placed by number, because two rows may have the same label.
    place = {"field": "n", "type": "ordinal", "axis": axis}
    length = {"field": "value", "type": "quantitative", "axis": None, "scale": {"zero": True}}
    x, y = (place, length) if by_month else (length, place)
    text = {"type": "text", "dx": 0 if by_month else 4, "dy": -7 if by_month else 0,
            "align": "center" if by_month else "left", "color": "var(--muted)"}  # fmt: skip
    specification = {
        "data": {"values": values},
        "width": WIDTH,
        "height": HEIGHT if by_month else STEP * len(rows),
        "encoding": {"x": x, "y": y},
        "layer": [
            {"mark": {"type": "bar", "color": "var(--first)"}},
            {"mark": text, "encoding": {"text": {"field": "text"}}},
        ],
        "config": {
            "background": None,
            # The library measures with another font than the page's, which may be wider.
            "padding": {"left": 20, "right": 20, "top": 4, "bottom": 4},
            "view": {"stroke": None},
            "text": {"fontSize": 12},
            "axis": {
                "labelFontSize": 12,
                "labelColor": "var(--ink)",
                "domainColor": "var(--line)",
                "grid": False,
            },
        },
    }
    svg = vl_convert.vegalite_to_svg(specification, vl_version=_VERSION, allowed_base_urls=[])
    return _NOISE.sub("", svg).replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)


def _quoted(text: str) -> str:
    """Return the text as a string of a Vega expression."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", " ") + "'"

"""Charts as pictures in the page: Vega-Lite in, plain SVG out, with no script and no address."""

from __future__ import annotations

import re

import vl_convert

from connector.report.figure import Chart

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

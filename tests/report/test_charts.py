"""Layout of charts: long waits next to short medians, and labels of two lines."""

from __future__ import annotations

import json
from typing import Any

from connector.report import charts
from connector.report.figure import Chart

NAMES = ("10", "25", "50", "75", "90")


def make_stage(stage: str, median: float | None, so_far: float | None) -> dict[str, Any]:
    """Return a row of the chart: a stage with percentiles of its days and the median `so_far`."""
    around = {f"p{name}_days": median and median * int(name) / 50 for name in NAMES}
    return {"stage": stage, **around, "current_p50_days": so_far}


def read_axis_end(chart: Chart) -> float:
    """Return the last number on the axis of days."""
    first = chart.specification["layer"][0]["encoding"]["x"]
    end = first["scale"]["domain"][1]
    assert isinstance(end, float)
    return end


def test_a_long_wait_does_not_extend_the_axis_of_the_medians() -> None:
    rows = [
        make_stage("screening", 5, 4),
        make_stage("interviewing", 11, 8),
        make_stage("on hold", None, 312),
    ]

    chart = charts.range_chart(rows, "stage", unit="stays")

    # The 90th percentile of interviewing is 19.8.
    assert 19.8 == read_axis_end(chart)
    *_, on_hold = chart.specification["data"]["values"]
    assert {"place": 2, "current_p50_days": 19.8, "beyond": "312 days"} == on_hold
    assert "on hold median not known, still in the stage 312.0" in chart.alternative_text


def test_the_axis_ends_at_the_longest_wait_if_no_median_is_known() -> None:
    rows = [make_stage("screening", None, 40), make_stage("on hold", None, 312)]

    chart = charts.range_chart(rows, "stage", unit="stays")

    assert 312 == read_axis_end(chart)
    assert not any("beyond" in each for each in chart.specification["data"]["values"])


def test_bars_are_further_apart_if_a_label_has_two_lines() -> None:
    def step(*names: str) -> int:
        rows = [{"name": name, "number": 1} for name in names]
        chart = charts.bar_chart(rows, "name", "number", unit="jobs")
        height = chart.specification["height"]["step"]
        assert isinstance(height, int)
        return height

    assert step("Acme", "Beta") + 6 == step("Acme", "O'Malley and Sons Holdings plc")


def test_a_long_label_is_shortened_between_words() -> None:
    name = "Northgate Logistics International Holdings plc"

    assert ["Northgate", "…Holdings plc"] == charts.wrap_label(name, 130)
    assert ["Ben", "…er-Montgomery"] == charts.wrap_label("Ben Fairweather-Montgomery", 130)


def test_an_axis_of_counts_has_whole_numbers() -> None:
    def axis(number: int) -> str:
        rows = [{"month": "May 26", "value": number}]
        chart = charts.column_chart(rows, "month", "value", unit="fees", across="month")
        return json.dumps(chart.specification)

    assert '"format": ",d"' in axis(1_050)
    assert '"format": "~s"' in axis(20_000)

"""`connector report`: the path and permissions of the page, and errors without data."""

from __future__ import annotations

import stat
from pathlib import Path

import duckdb
import pytest

from connector.report.page import REPORT_FILE
from tests.support.command import call, variables


def test_the_report_is_written_next_to_the_published_file(published_file: Path) -> None:
    folder = published_file.parent
    page = folder / REPORT_FILE
    page.write_text("an old page", encoding="utf-8")
    page.chmod(0o644)
    before = {each.name for each in folder.iterdir()}

    called = call(["report"], variables(None, folder, None))

    assert (0, f"{page}\n") == (called.status, called.out)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert 0o600 == stat.S_IMODE(page.stat().st_mode)
    assert before == {each.name for each in folder.iterdir()}


def test_report_json_has_the_path_and_the_key_figures(
    published_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    def show(url: str) -> bool:
        shown.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", show)
    out = tmp_path / "board.html"

    called = call(
        ["report", "--json", "--open", "--out", str(out)],
        variables(None, published_file.parent, None),
    )

    assert str(out) == called.object["file"]
    assert "2026-03-06T00:00:00+00:00" == called.object["as_of"]
    assert "2026-02-01" == called.object["period"]["begins"]
    assert called.object["key_figures"]["placements"]["value"] > 0
    assert [out.as_uri()] == shown
    assert out.exists()


@pytest.mark.parametrize(
    ("options", "expected_message"),
    [
        (["--period", "2026-13"], "'2026-13' is not a period."),
        (["--period", "2026-04"], "April 2026 has not begun: the data ends on 2026-03-06"),
        (["--compare", "last-weak"], "'last-weak' is not a period."),
        (["--compare", "2025-Q4"], "Q4 2025 is a quarter, but February 2026 is a month"),
        (["--compare", "2025-01", "--compare", "2025-02", "--compare", "2025-03"], "3 periods are"),
    ],
)
def test_invalid_periods_are_rejected_and_no_page_is_written(
    published_file: Path, tmp_path: Path, options: list[str], expected_message: str
) -> None:
    out = tmp_path / "page.html"

    called = call(
        ["report", "--out", str(out), "--json", *options],
        variables(None, published_file.parent, None),
    )

    assert 2 == called.status
    assert expected_message in called.object["error"]["message"]
    assert called.object["error"]["action"]
    assert not out.exists()


def test_a_report_without_a_published_file_fails_and_suggests_a_pull(tmp_path: Path) -> None:
    called = call(["report", "--json"], variables(None, tmp_path / "data", None))

    assert 1 == called.status
    assert "nothing_published" == called.object["error"]["code"]
    assert "connector pull" in called.object["error"]["action"]
    assert [] == list(tmp_path.iterdir())


def test_a_report_of_a_file_without_marts_fails_and_names_the_setting(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "recruitment.duckdb")).close()

    called = call(["report", "--json"], variables(None, tmp_path, None))

    assert 1 == called.status
    assert "marts_missing" == called.object["error"]["code"]
    assert "CONNECTOR_MODELS" in called.object["error"]["action"]
    assert not (tmp_path / REPORT_FILE).exists()


def test_a_page_that_cannot_be_written_leaves_no_file(published_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "gone" / "page.html"

    called = call(["report", "--out", str(out)], variables(None, published_file.parent, None))

    assert 1 == called.status
    assert str(out) in called.err
    assert [] == list(tmp_path.iterdir())

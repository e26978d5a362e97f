"""A published file for all tests of the report, built once from invented records."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from connector.publishing.build import build
from connector.publishing.project_loader import load_project
from connector.publishing.publication import publish
from connector.report.charts import render_svg
from connector.report.figure import Chart
from connector.report.page import ReportPage, make_page
from connector.report.published import open_published
from connector.settings.model import load_settings
from connector.warehouse.schema import complete_tables
from tests.publishing.marts import jobs_and_placements, people
from tests.publishing.marts.world import NOW, ModelWorld
from tests.report.document import Document

MARKUP = "<img src=x onerror=alert(1)> & <b>\"Sons'</b>"
"""A name that contains HTML markup, which the report must escape."""

WRITTEN_AT = datetime(2026, 3, 8, 12, tzinfo=UTC)
"""Time of the report, two and a half days after the records' present."""

Change = Callable[[duckdb.DuckDBPyConnection], object]


def render_page(file: Path, period: str = "last-month", compare: Sequence[str] = ()) -> ReportPage:
    """Render the report of a published file as of `WRITTEN_AT`."""
    with open_published(file) as published_file:
        return make_page(
            published_file, written_at=WRITTEN_AT, account="acme", period=period, compare=compare
        )


@pytest.fixture(scope="session", autouse=True)
def _cache_drawn_charts() -> Iterator[None]:
    """Cache drawn charts: pages of these tests mostly differ in text."""
    drawn: dict[str, str] = {}

    def draw_once(chart: Chart) -> str:
        key = json.dumps(chart.specification)
        if key not in drawn:
            drawn[key] = render_svg(chart)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("connector.report.page.render_svg", draw_once)
        yield


@pytest.fixture(scope="session")
def published_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file published by `publish`: candidates, jobs, contracts and leads."""
    folder = tmp_path_factory.mktemp("report")
    world = ModelWorld(folder)
    with world.warehouse.keep_open():
        people.load_people(world)
        jobs_and_placements.load_jobs_and_placements(world)
        world.load_details("2026-03-05 10:00", companies={"acme": {"name": MARKUP}})
        world.mark_verified(NOW)
    world.warehouse.release()
    names = "".join(f'{id},"{name}",North\n' for id, name in PEOPLE.items())
    (world.seeds / "people.csv").write_text(f"id,name,team\n{names}", encoding="utf-8")
    environ = {"CONNECTOR_DATA_DIR": str(folder), "CONNECTOR_MODELS": "on"}
    return publish(load_settings({}, environ, folder)).file


PEOPLE = {"u1": MARKUP.replace('"', '""'), "u2": "Ben"}
"""Consultants by id, with quotes doubled as in a CSV file."""


@pytest.fixture(scope="session")
def page(published_file: Path) -> ReportPage:
    """The report of `published_file` about the last month."""
    return render_page(published_file)


@pytest.fixture(scope="session")
def document(page: ReportPage) -> Document:
    """The parsed report of `published_file`."""
    return Document.parse(page.html)


@pytest.fixture
def change_file(published_file: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """Return a function that copies the published file and applies a change to the copy."""

    def change(what: Change) -> Path:
        copy = tmp_path / "recruitment.duckdb"
        shutil.copyfile(published_file, copy)
        with duckdb.connect(str(copy)) as connection:
            what(connection)
        return copy

    return change


@pytest.fixture(scope="session")
def empty_page(tmp_path_factory: pytest.TempPathFactory) -> ReportPage:
    """The report of a file with all marts and no records."""
    file = tmp_path_factory.mktemp("empty") / "recruitment.duckdb"
    with duckdb.connect(str(file)) as connection:
        complete_tables(connection, str(file))
    build(file, load_project())
    return render_page(file)

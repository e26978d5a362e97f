"""`connector models`: its lists, tests, seeds and exit statuses."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from connector.catalog import CATALOG
from connector.catalog.lead import Lead
from connector.warehouse.stream import Commit, FoundDetail, Stream
from connector.warehouse.user_query import query
from connector.warehouse.warehouse import Warehouse
from tests.support.command import call
from tests.support.command import variables as without_models

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data folder with one loaded lead and every model built and published."""
    folder = tmp_path_factory.mktemp("models")
    create_warehouse_with_lead(folder)
    built = call(["publish", "--json"], make_environ(folder))
    assert 0 == built.status, built.err
    return folder


def make_environ(folder: Path) -> dict[str, str]:
    """Return the environment of a command that builds models."""
    return {**without_models(None, folder), "CONNECTOR_MODELS": "on"}


def create_warehouse_with_lead(folder: Path) -> Warehouse:
    """Create a warehouse with one loaded lead."""
    warehouse = Warehouse(folder)
    warehouse.prepare()
    stamps = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z"}
    lead = Lead({"id": "lead-1", "email": "a@b.example", "lead_status_id": "status-1", **stamps})
    commit = Commit(records=(FoundDetail(lead, NOW),))
    warehouse.commit(Stream(CATALOG["leads"]), commit, "run-1", NOW)
    return warehouse


@pytest.mark.slow
def test_models_test_checks_the_published_models(folder: Path) -> None:
    tested = call(["models", "test", "--json"], make_environ(folder))
    failed = {each["name"]: each for each in tested.object["checks"] if not each["passed"]}

    assert ((1,),) == query(
        Warehouse(folder).published, "SELECT count(*) FROM staging.stg_leads"
    ).rows
    assert 0 == tested.status
    assert ["status-1"] == failed["seeds_are_complete"]["examples"]


def test_models_seeds_shows_and_writes_the_missing_rows(folder: Path) -> None:
    shown = call(["models", "seeds"], make_environ(folder))
    first = call(["models", "seeds", "--write", "--json"], make_environ(folder))
    again = call(["models", "seeds", "--write"], make_environ(folder))
    file = folder / "seeds" / "lead_statuses.csv"

    assert ["lead_statuses", "status-1"] == shown.row("lead_statuses")
    assert "--write" in shown.err
    assert [str(file)] == [each["file"] for each in first.object["written"]]
    assert "status-1,," in file.read_text()
    assert "has 0 new rows for you to fill in" in again.err


def test_an_unknown_model_is_a_usage_error(folder: Path) -> None:
    for arguments in (["models", "test", "fct_placemnts"], ["models", "list", "fct_placemnts"]):
        called = call(arguments, make_environ(folder))
        assert (2, True) == (called.status, "Did you mean 'fct_placements'?" in called.err)
    called = call(["models", "seeds", "peple", "--write"], make_environ(folder))
    assert (2, True) == (called.status, "Did you mean 'people'?" in called.err)

"""An unreachable lakehouse is reported, and does not stop the publication of the file."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from connector.cli import main
from connector.errors import LakehouseError, SettingsError
from connector.operations.alert_check import due_alerts
from connector.operations.doctor import diagnose
from connector.publishing import lakehouse_connection
from connector.publishing.lakehouse_publication import publish_to_lakehouse
from connector.publishing.lakehouse_status import read_status
from connector.publishing.publication import publish
from connector.settings.model import Settings, load_settings
from tests.lakehouse.group import AccountGroup
from tests.lakehouse.pool import ConnectionPool
from tests.support.errors import has_code

WRONG = "wrong-pass-word"


def find_lakehouse_alerts(settings: Settings) -> list[str]:
    """Return the codes of the due alerts about the lakehouse."""
    alerts = due_alerts(settings, (), datetime.now(UTC))
    return [each.code for each in alerts if each.code == "lakehouse_behind"]


def read_lakehouse_check_states(settings: Settings) -> list[str]:
    """Return the states of the lakehouse checks of `doctor`: ok, warning or failed."""
    found = asyncio.run(diagnose(settings))
    return [each.state for each in found.checks if each.name == "lakehouse"]


@pytest.mark.slow
def test_the_file_is_published_although_the_lakehouse_is_unreachable(group: AccountGroup) -> None:
    group.insert_rows("acme", "jobs", {"id": "j1", "title": "Nurse"})
    given = group.environ("acme")
    refused = {
        **given,
        "CONNECTOR_LAKEHOUSE": group.server.connection_string(group.database, WRONG),
    }

    def call(environ: dict[str, str], *arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, arguments, env=environ)
        assert WRONG not in result.output
        assert group.server.password not in result.output
        return result.exit_code, result.output

    status, output = call(refused, "publish")

    assert 3 == status
    assert "the file is published, but not in the lakehouse" in output
    assert group.published_file("acme").exists()
    assert "is not in the lakehouse" in call(given, "status")[1]
    away = group.settings("acme", CONNECTOR_LAKEHOUSE=refused["CONNECTOR_LAKEHOUSE"])
    assert ["warning"] == read_lakehouse_check_states(away)
    assert ["lakehouse_behind"] == find_lakehouse_alerts(group.settings("acme"))

    assert 0 == call(given, "publish")[0]
    assert [("j1",)] == group.query("SELECT id FROM lake.landing.jobs")
    assert "Published to the lakehouse" in call(given, "status")[1]
    assert ["ok"] == read_lakehouse_check_states(group.settings("acme"))
    assert [] == find_lakehouse_alerts(group.settings("acme"))


@pytest.mark.slow
def test_a_lakehouse_with_another_data_path_is_refused(group: AccountGroup) -> None:
    group.insert_rows("acme", "jobs", {"id": "j1"})
    group.publish("acme")
    elsewhere = group.folder / "elsewhere"

    with pytest.raises(
        LakehouseError, match=r"names another place for its files than .*elsewhere"
    ) as caught:
        publish_to_lakehouse(group.settings("acme", CONNECTOR_LAKEHOUSE_DATA=str(elsewhere)))

    assert "CONNECTOR_LAKEHOUSE_DATA" in caught.value.action
    assert [] == list(elsewhere.rglob("*"))


def make_offline_settings(folder: Path, **more: str) -> Settings:
    """Return settings with a lakehouse whose server refuses connections."""
    return load_settings(
        {},
        {
            "CONNECTOR_LAKEHOUSE": f"postgresql://p:{WRONG}@127.0.0.1:1/lake",
            "CONNECTOR_LAKEHOUSE_DATA": str(folder / "lake"),
            **more,
        },
        folder,
    )


def test_a_publication_while_the_lakehouse_is_offline_reports_the_error(tmp_path: Path) -> None:
    settings = make_offline_settings(tmp_path, CONNECTOR_MODELS="off")
    settings.make_folder()
    from connector.warehouse.warehouse import Warehouse  # noqa: PLC0415

    Warehouse(settings.folder).prepare()
    published = publish(settings)
    assert published.lakehouse_error is not None
    assert "lakehouse_offline" == published.lakehouse_error.code
    assert WRONG not in str(published.lakehouse_error)


@pytest.mark.parametrize(
    "connection_string",
    ["postgresql://p:{}@127.0.0.1:1/lake", "host=127.0.0.1 port=1 user=p password='{} x'"],
)
def test_no_lakehouse_error_shows_the_password(tmp_path: Path, connection_string: str) -> None:
    settings = make_offline_settings(tmp_path, CONNECTOR_LAKEHOUSE=connection_string.format(WRONG))

    with pytest.raises(
        LakehouseError, match="Connection refused", check=has_code("lakehouse_offline")
    ) as caught:
        read_status(settings)

    assert WRONG not in str(caught.value)


def test_an_invalid_connection_string_is_not_shown(tmp_path: Path) -> None:
    settings = make_offline_settings(
        tmp_path, CONNECTOR_LAKEHOUSE=f"host=db password={WRONG} {WRONG}"
    )

    with pytest.raises(LakehouseError, match="cannot be read") as caught:
        read_status(settings)

    assert WRONG not in str(caught.value)


def test_a_missing_lakehouse_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: ConnectionPool
) -> None:
    monkeypatch.setattr(lakehouse_connection, "connect_with_extensions", pool.connect_unpooled)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "duckdb_extension_ducklake", None)

    with pytest.raises(LakehouseError, match="duckdb_extension_ducklake") as caught:
        read_status(make_offline_settings(tmp_path))

    assert "docs/service/requirements/lakehouse.txt" in caught.value.action


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"CONNECTOR_LAKEHOUSE": "host=db dbname=lake"}, "CONNECTOR_LAKEHOUSE_DATA"),
        ({"CONNECTOR_LAKEHOUSE_DATA": "lake"}, "CONNECTOR_LAKEHOUSE_FILE"),
        (
            {"CONNECTOR_LAKEHOUSE": "host=db", "CONNECTOR_LAKEHOUSE_DATA": "data/lake"},
            "outside data_dir",
        ),
        (
            {"CONNECTOR_LAKEHOUSE": "host=db", "CONNECTOR_LAKEHOUSE_DATA": "gs://bucket/lake"},
            "s3://bucket/lake",
        ),
        ({"CONNECTOR_LAKEHOUSE": WRONG, "CONNECTOR_LAKEHOUSE_DATA": "lake"}, "postgresql://"),
    ],
)
def test_invalid_lakehouse_settings_are_refused(
    environ: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({}, environ, tmp_path)

    assert message in f"{caught.value} {caught.value.action}"
    assert WRONG not in f"{caught.value} {caught.value.action}"


def test_lakehouse_paths_are_parsed_as_object_storage_or_folders(tmp_path: Path) -> None:
    settings = make_offline_settings(
        tmp_path, CONNECTOR_LAKEHOUSE_DATA="s3://group-lake/recruitment/"
    )
    assert "s3://group-lake/recruitment" == settings.lakehouse_data.value
    (tmp_path / "connector.toml").write_text(
        'lakehouse_file = "lake.txt"\nlakehouse_data = "shared/lake"\n', encoding="utf-8"
    )
    (tmp_path / "lake.txt").write_text(f"host=db password={WRONG}\n", encoding="utf-8")
    (tmp_path / "lake.txt").chmod(0o600)

    settings = load_settings({}, {}, tmp_path)

    assert str(tmp_path / "shared" / "lake") == settings.lakehouse_data.value
    assert settings.lakehouse.value is not None
    assert f"host=db password={WRONG}" == settings.lakehouse.value.get_secret_value()
    shown = {name: value for name, value, _ in settings.display_rows()}
    assert "set" == shown["lakehouse"]
    assert WRONG not in f"{shown} {settings!r}"

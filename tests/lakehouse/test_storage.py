"""The files of the lake in object storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from connector.errors import SettingsError
from connector.privacy.erase import erase
from connector.publishing import lakehouse_erasure
from connector.publishing.lakehouse_connection import ENDPOINT, URL_STYLE, url_style
from connector.publishing.lakehouse_publication import publish_to_lakehouse
from connector.publishing.publication import publish
from tests.lakehouse.group import Group
from tests.lakehouse.server import PostgresServer
from tests.lakehouse.storage import SECRET, Storage, storing
from tests.lakehouse.test_erasing import sharing
from tests.privacy.populated_agency import EMAIL, NOW, TRACES, populated_agency


@pytest.fixture
def storage() -> Iterator[Storage]:
    """Storage at an address of its own."""
    with storing() as running:
        yield running


@dataclass
class StoredGroup:
    """A group whose lake is in a bucket that is not there yet."""

    group: Group
    storage: Storage
    bucket: str

    def objects(self) -> dict[str, bytes]:
        """Return the names of the objects in the bucket."""
        return self.storage.objects(self.bucket)


@pytest.fixture
def stored(
    server: PostgresServer, tmp_path: Path, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> StoredGroup:
    """Nothing is published yet."""
    for name, value in storage.variables.items():
        monkeypatch.setenv(name, value)
    made = StoredGroup(Group(server, tmp_path), storage, storage.new_name())
    made.group.given["CONNECTOR_LAKEHOUSE_DATA"] = f"s3://{made.bucket}/lake/of/agencies/"
    return made


@pytest.mark.slow
def test_a_lake_in_object_storage_is_published_read_and_rid_of_a_person(
    stored: StoredGroup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "agency"
    populated_agency(home)
    settings = sharing(home, stored.group)
    refused = publish(settings)
    assert refused.shared is not None
    assert "failed" == refused.shared.outcome
    assert SECRET not in str(refused.shared.error)

    stored.storage.make(stored.bucket)
    assert "published" == publish_to_lakehouse(settings).outcome
    assert stored.group.rows("SELECT id FROM lake.landing.candidates")
    assert all(name.startswith("lake/of/agencies/") for name in stored.objects())
    orphan = "lake/of/agencies/landing/candidates/account=_unnamed/ducklake-cut-off.parquet"
    stored.storage.put(stored.bucket, orphan, f"half of a file with {EMAIL}".encode())
    needles = [each.lower().encode() for each in TRACES]

    def held() -> list[str]:
        return [n for n, b in stored.objects().items() if any(e in b.lower() for e in needles)]

    assert orphan in held()
    assert len(held()) > 1

    monkeypatch.setattr(lakehouse_erasure, "GRACE", timedelta(0))
    done = erase(settings, EMAIL, applies=True, now=lambda: NOW)

    (receipt,) = done.receipts
    assert () == receipt.waiting
    assert [] == held()
    assert stored.objects()


@pytest.mark.parametrize(
    ("environ", "style"),
    [
        ({}, "vhost"),
        ({ENDPOINT: "storage.example:9000"}, "path"),
        ({ENDPOINT: "storage.example:9000", URL_STYLE: "vhost"}, "vhost"),
        ({URL_STYLE: "path"}, "path"),
    ],
)
def test_buckets_are_addressed_as_their_storage_wants_it(
    environ: dict[str, str], style: str
) -> None:
    assert style == url_style(environ)


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(SettingsError, match="DUCKDB_S3_URL_STYLE is 'hosted'") as told:
        url_style({URL_STYLE: "hosted"})
    assert "path or to vhost" in told.value.action

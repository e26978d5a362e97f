"""A lakehouse whose files are in object storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from connector.errors import SettingsError
from connector.privacy.erase import erase
from connector.publishing import lakehouse_erasure
from connector.publishing.lakehouse_connection import ENDPOINT, URL_STYLE, storage_url_style
from connector.publishing.lakehouse_publication import publish_to_lakehouse
from connector.publishing.publication import publish
from tests.lakehouse.group import AccountGroup
from tests.lakehouse.server import PostgresServer
from tests.lakehouse.storage import SECRET, ObjectStorage, run_object_storage
from tests.lakehouse.test_erasing import load_lakehouse_settings
from tests.privacy.populated_agency import EMAIL, NOW, TRACES, copy_populated_agency


@pytest.fixture
def storage() -> Iterator[ObjectStorage]:
    """Running object storage without buckets."""
    with run_object_storage() as running:
        yield running


@dataclass
class ObjectStorageGroup:
    """Accounts whose lakehouse is in a bucket of object storage. The test creates the bucket."""

    group: AccountGroup
    storage: ObjectStorage
    bucket: str

    def read_objects(self) -> dict[str, bytes]:
        """Return the content of each object in the bucket by name."""
        return self.storage.read_objects(self.bucket)


@pytest.fixture
def stored_group(
    server: PostgresServer, tmp_path: Path, storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> ObjectStorageGroup:
    """Accounts without publications whose lakehouse is in object storage."""
    for name, value in storage.variables.items():
        monkeypatch.setenv(name, value)
    made = ObjectStorageGroup(AccountGroup(server, tmp_path), storage, "agency-files")
    made.group.shared_environ["CONNECTOR_LAKEHOUSE_DATA"] = f"s3://{made.bucket}/lake/of/agencies/"
    return made


@pytest.mark.slow
def test_a_lakehouse_in_object_storage_can_be_published_read_and_erased_from(
    stored_group: ObjectStorageGroup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "agency"
    copy_populated_agency(home)
    settings = load_lakehouse_settings(home, stored_group.group)
    refused = publish(settings)
    assert refused.lakehouse is not None
    assert "failed" == refused.lakehouse.outcome
    assert SECRET not in str(refused.lakehouse.error)

    stored_group.storage.create_bucket(stored_group.bucket)
    assert "published" == publish_to_lakehouse(settings).outcome
    assert stored_group.group.query("SELECT id FROM lake.landing.candidates")
    assert all(name.startswith("lake/of/agencies/") for name in stored_group.read_objects())
    orphan = "lake/of/agencies/landing/candidates/account=_unnamed/ducklake-cut-off.parquet"
    stored_group.storage.put_object(
        stored_group.bucket, orphan, f"half of a file with {EMAIL}".encode()
    )
    needles = [each.lower().encode() for each in TRACES]

    def find_objects_with_person() -> list[str]:
        return [
            n
            for n, b in stored_group.read_objects().items()
            if any(e in b.lower() for e in needles)
        ]

    assert orphan in find_objects_with_person()
    assert len(find_objects_with_person()) > 1

    monkeypatch.setattr(lakehouse_erasure, "GRACE", timedelta(0))
    done = erase(settings, EMAIL, applies=True, now=lambda: NOW)

    (receipt,) = done.receipts
    assert () == receipt.waiting
    assert [] == find_objects_with_person()
    assert stored_group.read_objects()


@pytest.mark.parametrize(
    ("environ", "style"),
    [
        ({}, "vhost"),
        ({ENDPOINT: "storage.example:9000"}, "path"),
        ({ENDPOINT: "storage.example:9000", URL_STYLE: "vhost"}, "vhost"),
        ({URL_STYLE: "path"}, "path"),
    ],
)
def test_buckets_are_addressed_in_the_style_of_their_storage(
    environ: dict[str, str], style: str
) -> None:
    assert style == storage_url_style(environ)


def test_an_unknown_address_style_is_refused() -> None:
    with pytest.raises(SettingsError, match="DUCKDB_S3_URL_STYLE is 'hosted'") as caught:
        storage_url_style({URL_STYLE: "hosted"})
    assert "path or to vhost" in caught.value.action

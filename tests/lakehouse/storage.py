"""Object storage for tests, on a free local port and in the memory of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3  # type: ignore[import-untyped]
from moto.server import ThreadedMotoServer

SECRET = "storage-secret-key"


@dataclass(frozen=True)
class ObjectStorage:
    """S3 storage at `host` (address and port) that accepts every key."""

    host: str

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that make the connector use the storage."""
        return {
            "AWS_ACCESS_KEY_ID": "publisher",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "DUCKDB_S3_ENDPOINT": self.host,
            "DUCKDB_S3_USE_SSL": "false",
        }

    def create_bucket(self, bucket: str) -> None:
        self._s3_client.create_bucket(Bucket=bucket)

    def put_object(self, bucket: str, name: str, content: bytes) -> None:
        """Create an object."""
        self._s3_client.put_object(Bucket=bucket, Key=name, Body=content)

    def read_objects(self, bucket: str) -> dict[str, bytes]:
        """Return the content of each object in the bucket by name."""
        pages = self._s3_client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        names = [each["Key"] for page in pages for each in page.get("Contents", ())]
        return {
            name: self._s3_client.get_object(Bucket=bucket, Key=name)["Body"].read()
            for name in names
        }

    @cached_property
    def _s3_client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=f"http://{self.host}",
            aws_access_key_id="reader",
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )


@contextmanager
def run_object_storage() -> Iterator[ObjectStorage]:
    """Run an empty storage in this process during the `with` block."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield ObjectStorage(f"{host}:{port}")
    finally:
        server.stop()

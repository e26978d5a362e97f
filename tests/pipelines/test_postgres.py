"""Dagster's storage in PostgreSQL, with the configuration of docs/service."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository import ROOT

pytestmark = pytest.mark.slow

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
"""Folder of PostgreSQL's programs in Debian's package."""

STORE_RUN = """
import dagster as dg

@dg.op
def nothing(): ...

@dg.job
def empty(): nothing()

with dg.DagsterInstance.get() as instance:
    done = empty.execute_in_process(instance=instance)
    print(type(instance.run_storage).__name__, instance.get_run_by_id(done.run_id).status.value)
"""


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Environment for a new PostgreSQL server, which runs as the user postgres."""
    if PROGRAMS is None or os.getuid() != 0:
        pytest.skip("needs PostgreSQL from Debian's packages, and root to change the user")
    pytest.importorskip("dagster_postgres", reason="needs the extra postgres")
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    shutil.chown(folder, "postgres")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    as_user = ("runuser", "-u", "postgres", "--")
    control = (*as_user, str(PROGRAMS / "pg_ctl"), "-D", str(folder), "-w")
    subprocess.run(
        [*as_user, str(PROGRAMS / "initdb"), "-D", str(folder), "-A", "trust"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    options = f"-p {port} -k {folder} -c fsync=off"
    subprocess.run(
        [*control, "-o", options, "-l", str(folder / "log"), "start"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield {
            "DAGSTER_PG_HOST": "127.0.0.1",
            "DAGSTER_PG_DB": "postgres",
            "DAGSTER_PG_USER": "postgres",
            "DAGSTER_PG_PASSWORD": "any",
            "DAGSTER_HOME": str(tmp_path),
            "PORT": str(port),
        }
    finally:
        subprocess.run([*control, "stop", "-m", "immediate"], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(folder)


def test_the_documented_storage_starts_and_stores_a_run(
    tmp_path: Path, postgres: dict[str, str]
) -> None:
    text = (ROOT / "docs" / "service" / "dagster.yaml").read_text(encoding="utf-8")
    assert "port: 5432" in text
    text = text.replace("port: 5432", f"port: {postgres['PORT']}")
    (tmp_path / "dagster.yaml").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", STORE_RUN],
        env={**os.environ, **postgres},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "PostgresRunStorage SUCCESS" in done.stdout, done.stderr

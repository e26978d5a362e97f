"""PostgreSQL server for tests, on a free local port and in a temporary folder."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from connector.publishing.lakehouse_connection import connect_with_extensions
from connector.warehouse.duckdb_file import literal
from tests.support.processes import find_free_port

USER = "publisher"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "30",
    "shared_buffers": "16MB",
}
_USERS = ("postgres", "nobody")


@dataclass(frozen=True)
class PostgresServer:
    """Running PostgreSQL server with its data folder. Connections need the password."""

    folder: Path
    port: int
    password: str

    def connection_string(self, database: str = "postgres", password: str | None = None) -> str:
        """Return the connection string of a database, with the valid password by default."""
        word = self.password if password is None else password
        return f"postgresql://{USER}:{word}@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """Create an empty database and return its name."""
        name = f"lake_{next(_NUMBERS)}"
        self.query("postgres", f"CREATE DATABASE {name}")
        return name

    def query(self, database: str, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement, and return the rows if it is a SELECT."""
        function, options = "postgres_query", ""
        if not sql.startswith("SELECT"):
            function, options = "postgres_execute", ", use_transaction => false"
        with connect_with_extensions(("postgres_scanner",)) as connection:
            connection.execute(
                f"ATTACH '{self.connection_string(database)}' AS asked (TYPE postgres)"
            )
            return connection.execute(
                f"FROM {function}('asked', {literal(sql)}{options})"
            ).fetchall()


_NUMBERS = count(1)


def find_postgres_programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, or None if it is not installed."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return folders[-1].parent if folders else None


@contextmanager
def run_postgres(programs: Path) -> Iterator[PostgresServer]:
    """Run a new server in a temporary folder during the `with` block."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    as_user: dict[str, Any] = {"cwd": folder}
    if os.geteuid() == 0:
        user = next(each for name in _USERS if (each := _find_user(name)) is not None)
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    password = secrets.token_hex(12)
    data = folder / "data"

    def call(*arguments: str, **options: Any) -> None:
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, **as_user, **options)

    try:
        word = folder / "password"
        word.write_text(password)
        word.chmod(0o644)
        call(
            *(str(programs / "initdb"), "-D", str(data), "-U", USER, "-A", "scram-sha-256"),
            *("--pwfile", str(word), "--no-sync", "-E", "UTF8", "--locale", "C"),
        )
        port = find_free_port()
        options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        control = (str(programs / "pg_ctl"), "-D", str(data), "-w", "-s")
        call(*control, "-l", str(folder / "log"), "-o", f"-p {port} -k {folder} {options}", "start")
        try:
            yield PostgresServer(data, port, password)
        finally:
            call(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _find_user(name: str) -> pwd.struct_passwd | None:
    """Return the system user of this name, or None if it does not exist."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None

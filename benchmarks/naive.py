"""Short scripts without limits, retries or change detection, for comparison with the connector.

`python -m benchmarks.naive pull URL KEY FILE` reads all candidates in eight threads with httpx and
inserts them into a DuckDB file. `push URL KEY CSV` creates a candidate for each row with httpx, and
keeps each answer in a SQLite file. `check CSV` makes the checks of a preview with pandas, and `copy
OLD NEW` copies a DuckDB file.
"""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

PARALLEL = 8


def pull(base_url: str, key: str, file: str) -> None:
    """Copy all candidates into a DuckDB file with httpx, in eight threads."""
    import httpx  # noqa: PLC0415  # each script pays for its own imports

    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"{base_url}/api/v1", headers=headers, timeout=60) as client:
        ids, page, pages = [], 1, 1
        while page <= pages:
            response = client.get("/candidates", params={"page": page, "per_page": 100})
            body = response.raise_for_status().json()
            pages = body["pagination"]["total_pages"]
            ids += [each["id"] for each in body["data"]]
            page += 1

        def read(id: str) -> dict[str, Any]:
            record: dict[str, Any] = client.get(f"/candidates/{id}").raise_for_status().json()
            return record

        with ThreadPoolExecutor(PARALLEL) as threads:
            records = list(threads.map(read, ids))
    _replace_candidates_table(records, file)


def _replace_candidates_table(records: list[dict[str, Any]], file: str) -> None:
    """Write the records to the table `candidates` of a DuckDB file, which replaces earlier rows."""
    import duckdb  # noqa: PLC0415
    import pandas as pd  # noqa: PLC0415

    records = [each.get("data", each) for each in records]
    rows = pd.DataFrame(  # noqa: F841  # DuckDB finds it by its name
        {"id": [each["id"] for each in records], "record": [json.dumps(each) for each in records]}
    )
    with duckdb.connect(file) as connection:
        connection.execute("CREATE OR REPLACE TABLE candidates AS SELECT * FROM rows")


def push(base_url: str, key: str, file: str) -> None:
    """Create a candidate for each row of a CSV file.

    The SQLite file `FILE.sqlite` gets each row before its request, and each answer after it.
    """
    import httpx  # noqa: PLC0415

    journal = sqlite3.connect(f"{file}.sqlite")
    journal.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE answers (number INTEGER PRIMARY KEY, sent TEXT, status INTEGER, answer TEXT)"
    )
    headers = {"Authorization": f"Bearer {key}"}
    with (
        open(file, encoding="utf-8", newline="") as opened,
        httpx.Client(base_url=f"{base_url}/api/v1", headers=headers, timeout=60) as client,
    ):
        for number, row in enumerate(csv.DictReader(opened)):
            with journal:
                journal.execute(
                    "INSERT INTO answers (number, sent) VALUES (?, ?)", (number, json.dumps(row))
                )
            response = client.post("/candidates", json=row).raise_for_status()
            with journal:
                journal.execute(
                    "UPDATE answers SET status = ?, answer = ? WHERE number = ?",
                    (response.status_code, response.text, number),
                )


def check(file: str) -> None:
    """Make the checks of a preview for whole columns, and write the invalid rows to a file."""
    import pandas as pd  # noqa: PLC0415

    rows = pd.read_csv(file, dtype=str, keep_default_na=False)
    invalid = (rows["first_name"].str.strip() == "") | (rows["last_name"].str.strip() == "")
    invalid |= ~rows["email"].str.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+")
    invalid |= ~rows["employment_type"].str.lower().isin(["permanent", "contractor", "interim"])
    invalid |= rows["email"].str.lower().duplicated()
    assert invalid.sum() == -(-len(rows) // 100)
    rows[invalid].to_csv(f"{file}.invalid", index=False)


def copy(old: str, new: str) -> None:
    """Copy all tables of a DuckDB file."""
    import duckdb  # noqa: PLC0415

    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{old}' AS old (READ_ONLY)")
        connection.execute(f"ATTACH '{new}' AS new")
        connection.execute("COPY FROM DATABASE old TO new")


if __name__ == "__main__":
    scripts: dict[str, Callable[..., None]]
    scripts = {"pull": pull, "push": push, "check": check, "copy": copy}
    scripts[sys.argv[1]](*sys.argv[2:])

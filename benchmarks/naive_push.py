"""Naive push, as anybody would write it: what the connector's is held against.

It reads candidates from a csv or xlsx with pandas. For each row it commits an intent to SQLite, on
the disk before the request leaves, sends it with httpx, and commits the answer. It checks nothing,
finds no duplicates, repeats nothing, and writes no report. As a process:
`python -m benchmarks.naive_push people.csv journal.sqlite http://127.0.0.1:8000 KEY`.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import httpx
import pandas

_TABLE = (
    "CREATE TABLE rows (number INTEGER PRIMARY KEY, body TEXT NOT NULL, status INTEGER,"
    " record_id TEXT, answer TEXT)"
)


def push(file: Path, journal: Path, base_url: str, key: str) -> int:
    """Create a candidate for each row of the file; how many the API accepted."""
    read = pandas.read_excel if file.suffix == ".xlsx" else pandas.read_csv
    rows = read(file, dtype=str, keep_default_na=False).to_dict("records")
    connection = sqlite3.connect(journal)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(_TABLE)
    accepted = 0
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
    with httpx.Client(base_url=base_url, headers=headers) as client:
        for number, row in enumerate(rows, 1):
            body = {name: value for name, value in row.items() if value}
            with connection:
                connection.execute(
                    "INSERT INTO rows (number, body) VALUES (?, ?)", (number, json.dumps(body))
                )
            answer = client.post("/api/v1/candidates", json=body)
            id = answer.json()["data"]["id"] if answer.is_success else None
            accepted += answer.is_success
            with connection:
                connection.execute(
                    "UPDATE rows SET status = ?, record_id = ?, answer = ? WHERE number = ?",
                    (answer.status_code, id, answer.text, number),
                )
    connection.close()
    return accepted


if __name__ == "__main__":
    print(push(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]))

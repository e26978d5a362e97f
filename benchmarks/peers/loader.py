"""End of a Singer or Airbyte pipe: `python -m benchmarks.peers.loader FILE STATE replace|merge`.

It reads the messages of either, keeps the records of `candidates` in a DuckDB table, and writes the
last state. A real destination does more and takes longer, so this favours both. `replace` makes the
table what was read, if the source says that it read everything; `merge` replaces rows by their id.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

Records = dict[str, str]


def read_messages(lines: Iterable[str]) -> tuple[Records, Any]:
    """Return the records as JSON by id, and the last state, of Singer or Airbyte messages."""
    records: Records = {}
    state: Any = None
    for line in lines:
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        kind, record = message.get("type"), message.get("record", {})
        if kind == "RECORD" and "candidates" in (message.get("stream"), record.get("stream")):
            found = record.get("data", record)
            records[found["id"]] = json.dumps(found)
        elif kind == "STATE":
            state = message["value"] if "value" in message else [message["state"]]
    return records, state


def main(file: str, state_file: str, disposition: str) -> None:
    """Load the messages of standard input into a DuckDB file, and write their last state.

    `disposition` is "replace" to delete earlier rows, or "merge" to replace rows by id.
    """
    records, state = read_messages(sys.stdin)
    rows = pd.DataFrame({"id": [*records], "record": [*records.values()]}, dtype="str")
    with duckdb.connect(file) as connection:
        connection.register("read", rows)
        connection.execute("CREATE TABLE IF NOT EXISTS candidates (id VARCHAR, record JSON)")
        connection.begin()
        if disposition == "replace":
            connection.execute("DELETE FROM candidates")
        connection.execute("DELETE FROM candidates WHERE id IN (SELECT id FROM read)")
        connection.execute("INSERT INTO candidates SELECT id, record FROM read")
        connection.commit()
    if state is not None:
        Path(state_file).write_text(json.dumps(state), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

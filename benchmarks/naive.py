"""The script that anybody would write first: `python -m benchmarks.naive URL KEY FILE [RESOURCE]`.

It lists a resource, reads every record in eight threads with httpx, and inserts what it read into
a DuckDB file. It knows nothing of limits, failures or changes. `processor_time.py` measures the
connector against it.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import httpx
import pandas as pd

THREADS = 8


def main(base_url: str, key: str, file: str, resource: str = "candidates") -> int:
    """Read the resource whole into a table of the file; returns the number of its records."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"{base_url}/api/v1", headers=headers, timeout=60) as client:
        ids, page, pages = [], 1, 1
        while page <= pages:
            answer = client.get(f"/{resource}", params={"page": page, "per_page": 100})
            listed = answer.raise_for_status().json()
            pages = listed["pagination"]["total_pages"]
            ids += [each["id"] for each in listed["data"]]
            page += 1

        def read(id: str) -> dict[str, Any]:
            record: dict[str, Any] = client.get(f"/{resource}/{id}").raise_for_status().json()
            return record

        with ThreadPoolExecutor(THREADS) as threads:
            records = [each.get("data", each) for each in threads.map(read, ids)]
    rows = pd.DataFrame(  # noqa: F841  # DuckDB finds it by its name
        {"id": [each["id"] for each in records], "record": [json.dumps(each) for each in records]}
    )
    with duckdb.connect(file) as connection:
        connection.execute(f"CREATE OR REPLACE TABLE {resource} AS SELECT * FROM rows")
    return len(records)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))

"""A large first load is exact and costs no request too many.

The answers are computed (`arithmetic.py`), so that the connector alone bounds the size. Its
memory, at sizes that take minutes, is measured by `python -m benchmarks.scale`.
"""

from __future__ import annotations

import asyncio
import json
from math import ceil
from pathlib import Path

from connector.pulls.run import pull
from connector.settings import load_settings
from tests.pulls.arithmetic import BEGAN, format_id, make_client_factory, make_record
from tests.support.agency import published, rows

COUNT = 1_500
PAGES = ceil(COUNT / 100)


def test_a_large_first_load_is_exact(tmp_path: Path) -> None:
    """Each record is read once, each list page twice. The second pull sends two requests."""
    environ = {
        "CONNECTOR_BASE_URL": "http://127.0.0.1:9",
        "CONNECTOR_API_KEY": "arithmetic",
        "CONNECTOR_DATA_DIR": str(tmp_path / "data"),
        "CONNECTOR_MODELS": "off",
    }
    settings = load_settings({}, environ, tmp_path)
    first, second = (
        asyncio.run(pull(settings, ["candidates"], connect=make_client_factory(COUNT)))
        for _ in range(2)
    )

    loaded = first.resources["candidates"]
    assert (True, COUNT, COUNT, 0) == (loaded.proven, loaded.live, loaded.new, loaded.pending)
    assert COUNT + 2 * PAGES + 1 + 2 == first.requests
    assert (True, 2) == (second.resources["candidates"].proven, second.requests)
    found = rows(
        published(tmp_path),
        "SELECT id, created_at, email, current_salary, _record FROM landing.candidates "
        "WHERE _deleted_at IS NULL ORDER BY created_at",
    )
    assert [format_id(number) for number in range(COUNT)] == [row["id"] for row in found]
    for number, row in enumerate(found):
        record = make_record(number)
        assert record == json.loads(row["_record"])
        assert (record["email"], record["current_salary"]) == (row["email"], row["current_salary"])
    assert BEGAN == found[0]["created_at"]
    ((versions,),) = (
        tuple(each.values())
        for each in rows(published(tmp_path), "SELECT count(*) FROM history.candidates")
    )
    assert COUNT == versions

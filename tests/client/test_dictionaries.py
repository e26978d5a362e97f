"""The public client: plain dictionaries, and the examples of docs/API_NOTES.md."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.client.client import Client
from connector.errors import NotFound
from connector.sandbox.server import Sandbox
from tests.repository import ROOT

PAGE = (ROOT / "docs" / "API_NOTES.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COUNTS = {"jobs": 120, "candidates": 3, "leads": 2, "content_types": 2, "content_items": 5}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_client_page_runs(
    example: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        monkeypatch.setenv("CONNECTOR_BASE_URL", sandbox.base_url)
        monkeypatch.setenv("CONNECTOR_API_KEY", sandbox.key)
        exec(compile(example, "example", "exec"), {"__name__": "__main__"})  # noqa: S102  # our own

    assert capsys.readouterr().out.strip()


def test_the_public_client_returns_plain_dictionaries() -> None:
    async def act(sandbox: Sandbox) -> None:
        async with Client(sandbox.base_url, sandbox.key) as api:
            jobs: list[dict[str, Any]] = [job async for job in api.jobs.list(sort="created_at")]
            assert sorted(sandbox.store.records("jobs")) == sorted(job["id"] for job in jobs)
            assert {each.name for each in CATALOG["jobs"].item_fields} == set(jobs[0])

            (first, *_) = [each async for each in api.content_types.list()]
            items = [each async for each in api.content_items(first["slug"]).list()]
            assert all({"id", "title"} <= set(item) for item in items)

            (lead, *_) = [each async for each in api.leads.list()]
            assert "active" == (await api.leads.convert(lead["id"]))["status"]

            changed = await api.jobs.update(jobs[0]["id"], {"title": "Plumber"})
            assert "Plumber" == changed["title"]
            await api.jobs.delete(jobs[0]["id"])
            with pytest.raises(NotFound):
                await api.jobs.get(jobs[0]["id"])

    with Sandbox(counts=COUNTS) as sandbox:
        asyncio.run(act(sandbox))


def test_an_unknown_resource_raises_an_attribute_error() -> None:
    client = Client("http://127.0.0.1:9", "key")

    with pytest.raises(AttributeError, match=r"no resource 'job'. Resources: .*jobs"):
        _ = client.job
    asyncio.run(client.aclose())

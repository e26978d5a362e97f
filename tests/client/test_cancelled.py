"""A request that is cancelled at any step leaves no connection open."""

from __future__ import annotations

import asyncio
import gc

import pytest
from pydantic import SecretStr

from connector.catalog import declaration
from connector.client.messages import build_list_request
from connector.client.session import HttpSession, Limits
from connector.sandbox.server import Sandbox

CONNECTIONS = 4


@pytest.mark.parametrize("steps", range(8))
def test_a_cancelled_request_leaves_no_connection_open(steps: int) -> None:
    request = build_list_request(declaration("jobs"))

    async def cancel_after(sandbox: Sandbox) -> None:
        key = SecretStr(sandbox.key)
        session = HttpSession(sandbox.base_url, key, Limits(), connections=CONNECTIONS)
        await asyncio.gather(*(session.exchange(request) for _ in range(CONNECTIONS)))
        # The next request finds that the server has closed the idle connections, and closes them.
        sandbox.stop()
        sandbox.start()
        cancelled = asyncio.ensure_future(session.exchange(request))
        for _ in range(steps):
            await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await session.aclose()

    with Sandbox(counts={"jobs": 2}) as sandbox:
        asyncio.run(cancel_after(sandbox))
    # An open connection is a warning here, and so an error.
    gc.collect()

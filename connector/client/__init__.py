"""The typed, asynchronous client of the API: the only place that knows httpx.

    async with Client("https://acme.example", key) as client:
        page = await client.candidates.list(sort="updated_at")
        candidate = await client.candidates.get(page.items[0].id)

Every request has a total deadline and a cap on the answer's size; no redirect is followed, no
cookie is kept and no proxy of the environment is used. All requests of a client share one pace.
Reads are repeated within bounds of count and time. A write is repeated only when it is certain
that nothing was applied; otherwise it raises `InDoubt`.
"""

from __future__ import annotations

from connector.client.client import Client
from connector.client.sending import Limits, Observer, Unobserved

__all__ = ["Client", "Limits", "Observer", "Unobserved"]

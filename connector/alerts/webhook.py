"""Alerts to a webhook: one POST each, at one address, which is shown nowhere."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import httpx
from pydantic import SecretStr

from connector.alert_settings import Style
from connector.alerts.telling import generic, slack
from connector.errors import NotDelivered
from connector.ledger.alerts import MessageRecord

_SHAPES = {"generic": generic, "slack": slack}


class _WithoutAddress(logging.Filter):
    """Keeps out of httpx's log what it sends where while a webhook is posted to: the path of the
    address may be a secret.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Refuse the record."""
        return False


class Webhook:
    """A webhook that is sent messages of an account. `seconds` is how long one may take."""

    name = "webhook"

    def __init__(
        self, address: SecretStr, style: Style, account: str | None, *, seconds: float
    ) -> None:
        self._address, self._account, self._seconds = address, account, seconds
        self._shape = _SHAPES[style]

    def send(self, message: MessageRecord) -> None:
        """Post the message. Any answer from 200 to 299 says that it has arrived; redirects are not
        followed. Raises `NotDelivered`, which holds nothing of the address or of the answer.
        """
        self._post(self._shape(message, self._account))

    def _post(self, body: Mapping[str, Any]) -> None:
        quiet, logger = _WithoutAddress(), logging.getLogger("httpx")
        logger.addFilter(quiet)
        try:
            status = asyncio.run(self._answer(json.dumps(body).encode("ascii")))
        except (TimeoutError, httpx.TimeoutException):
            said = f"the webhook has not answered in {self._seconds:g} s"
            raise NotDelivered(said) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise NotDelivered(f"the webhook was not reached ({type(error).__name__})") from None
        finally:
            logger.removeFilter(quiet)
        if not 200 <= status < 300:
            raise NotDelivered(f"the webhook answered {status}")

    async def _answer(self, body: bytes) -> int:
        """The answer's status. Its body is nothing to us, and could be of any length."""
        address = self._address.get_secret_value()
        headers = {"Content-Type": "application/json", "User-Agent": "recruitment-connector"}
        async with (
            asyncio.timeout(self._seconds),
            httpx.AsyncClient(trust_env=False, timeout=self._seconds) as client,
            client.stream("POST", address, content=body, headers=headers) as response,
        ):
            return response.status_code

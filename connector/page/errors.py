"""Errors of the page, and the sentences that users see."""

from __future__ import annotations

import logging
import re
import traceback
from pathlib import Path

from connector.errors import ConnectorError
from connector.settings.folders import IMPORTS_FOLDER

_LOGGER = logging.getLogger(__name__)
_FOLDER = re.compile(rf"\S*/{IMPORTS_FOLDER}/[0-9a-f]{{16}}/")


class PageError(Exception):
    """A request that the page refuses, with a sentence for the user and a next step."""

    def __init__(self, message: str, action: str = "", status: int = 422) -> None:
        super().__init__(message)
        self.action, self.status = action, status


def describe(error: BaseException) -> list[str]:
    """Return the sentence and the next step for an error. An unexpected one is logged.

    The log has the places in the code but not the message, which may contain personal data.
    """
    if isinstance(error, PageError | ConnectorError):
        return [_FOLDER.sub("", str(error)), error.action]
    frames = traceback.extract_tb(error.__traceback__)
    places = " > ".join(f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in frames)
    text = "the import page failed: %s at %s"
    event = {"event": "page_request_failed"}
    _LOGGER.error(text, type(error).__name__, places, extra=event)
    return ["An unexpected error occurred.", "Try again. If it stays, ask your administrator."]

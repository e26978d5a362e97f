"""Deletions that a pull did not believe; everything else of it landed.

None of these is raised: a pull that kept deletions back ends as partial, with the code.
"""

from __future__ import annotations

from connector.errors.api import TryAgain
from connector.errors.root import ConnectorError

_ACCEPT = "run 'connector pull --accept-deletes'"


class DeletionsRefused(ConnectorError):
    """So many records are missing that no deletion of this pull was believed."""

    code = "deletions_refused"
    action = f"Look in the application; if the records are meant to be gone, {_ACCEPT}."


class ListShrank(DeletionsRefused):
    """The list is suddenly much shorter than it was, or empty."""

    code = "list_shrank"
    action = (
        f"Look in the application: if the records are meant to be gone, {_ACCEPT}; if not, let the"
        " key see them again (its scopes, its user)."
    )


class ListUnfamiliar(DeletionsRefused):
    """The list shows hardly any of the records that are landed."""

    code = "list_unfamiliar"
    action = (
        "Check that CONNECTOR_BASE_URL and CONNECTOR_API_KEY belong to the workspace whose records"
        f" are landed; if they do, and its records were replaced, {_ACCEPT}."
    )


class DetailsGone(DeletionsRefused):
    """Single records are said to be gone, and the lists still show them."""

    code = "details_gone"
    action = (
        "Open one of them in the application: if it is there, let the key read single records; if"
        " not, tell the platform's support. The next pull reads them again."
    )


class DeletionsWaiting(TryAgain):
    """Many records are said to be gone, and the lists were not read since."""

    code = "deletions_waiting"
    action = (
        "Run the same command again: it reads every list first, and takes for deleted what none of"
        " them shows."
    )

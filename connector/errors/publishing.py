"""What can keep a warehouse from being published."""

from __future__ import annotations

from collections.abc import Sequence

from connector.errors.files import WarehouseError
from connector.errors.root import ConnectorError
from connector.words import counted

_NAMED_MAX = 5


class PublishingRefused(ConnectorError):
    """Checks that block have failed: analysts keep the file that they have. `failed` names them."""

    code = "publishing_refused"
    action = (
        "Correct what the checks have found, or the seeds, then run 'connector publish'; analysts "
        "keep the file that they have until then."
    )

    def __init__(self, failed: Sequence[tuple[str, int | None]]) -> None:
        """`failed` has each check with the number of rows that it found, None where that is not
        known any more.
        """
        self.failed = tuple(name for name, _ in failed)
        shown = [
            name if rows is None else f"{name} ({counted(rows, 'row')})"
            for name, rows in failed[:_NAMED_MAX]
        ]
        more = [f"{len(failed) - _NAMED_MAX} more"] if len(failed) > _NAMED_MAX else []
        checks = counted(len(failed), "check has", "checks have")
        super().__init__(f"nothing was published: {checks} failed: {', '.join(shown + more)}")


class NothingPublished(WarehouseError):
    """There is no published file yet, so that nothing can be read from it."""

    code = "nothing_published"
    action = "Run 'connector pull', which publishes when it is done, then run this again."


class MartsMissing(WarehouseError):
    """The published file has no marts: models are off, or the file goes without them."""

    code = "marts_missing"
    action = (
        "Set CONNECTOR_MODELS to on and take marts out of CONNECTOR_PUBLISH_WITHOUT, then run "
        "'connector publish'."
    )

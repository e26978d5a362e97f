"""Publishers in separate processes, several at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.repository import ROOT
from tests.support.processes import ForkServer, kill_this_process, serve_forks

DIES = "dies"
"""Variable of an account: the publisher kills itself before it commits this account."""


class LakehouseForkServer(ForkServer):
    """Fork server for publishers. Each child publishes a list of accounts."""

    def __init__(self) -> None:
        super().__init__(__name__)


# -- in the server process ------------------------------------------------------------------------


def serve() -> None:
    """Fork a publisher for each list of accounts that is read from the input."""
    # Imported before the first fork.
    import connector.publishing.lakehouse_erasure  # noqa: PLC0415
    import connector.publishing.publication  # noqa: F401, PLC0415

    serve_forks(_publish_accounts)


def _publish_accounts(accounts: Sequence[Mapping[str, str]]) -> int:
    """Publish each account to its local file and to the lakehouse, one after the other."""
    from connector.publishing import lakehouse_connection  # noqa: PLC0415
    from connector.publishing import lakehouse_publication as lake_publish  # noqa: PLC0415
    from connector.publishing.publication import publish  # noqa: PLC0415
    from connector.settings.model import load_settings  # noqa: PLC0415
    from tests.lakehouse.pool import ConnectionPool  # noqa: PLC0415

    lakehouse_connection.connect_with_extensions = ConnectionPool().connect  # type: ignore[assignment]
    for environ in accounts:
        if DIES in environ:
            setattr(lake_publish._ENTRIES, "insert", kill_this_process)  # noqa: B010
        given = {name: value for name, value in environ.items() if name != DIES}
        done = publish(load_settings({}, given, ROOT))
        if done.lakehouse is None or done.lakehouse.outcome != "published":
            raise RuntimeError(str(done.lakehouse_error))
    return 0

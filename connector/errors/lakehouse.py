"""What can go wrong with the shared lakehouse, and with the claims of pushes in its database."""

from __future__ import annotations

from connector.errors.root import ConnectorError


class LakehouseError(ConnectorError):
    """The lakehouse cannot be used as it is set up; analysts have their own file all the same."""

    code = "lakehouse"
    action = (
        "Correct what is named (docs/LAKEHOUSE.md), then run 'connector lakehouse publish'; "
        "recruitment.duckdb is published all the same."
    )


class LakehouseOffline(LakehouseError):
    """The lakehouse's database, or the place of its files, did not answer."""

    code = "lakehouse_offline"
    action = (
        "Check that the lakehouse's database and the place of its files can be reached from here; "
        "the next publication, or 'connector lakehouse publish', makes it good."
    )


class LakehouseBusy(LakehouseError):
    """Others have held the lakehouse for longer than the connector waits."""

    code = "lakehouse_busy"
    action = (
        "Wait until the others have ended, then run 'connector lakehouse publish'; the next "
        "publication makes it good as well."
    )


class LakehouseDiffers(LakehouseError):
    """A column has one type in the lakehouse and another in the published file."""

    code = "lakehouse_differs"
    action = (
        "Publish every account with the same version of the connector and the same models; where "
        "the new type is meant, drop the table in the lakehouse as docs/LAKEHOUSE.md shows, then "
        "run 'connector lakehouse publish --all'."
    )


class PushJournalUnreached(ConnectorError):
    """The database in which folders share their claims on creates cannot be used."""

    code = "push_journal"
    action = (
        "Check that the lakehouse's database can be reached from here, then run the same command "
        "again: no create is sent without it."
    )

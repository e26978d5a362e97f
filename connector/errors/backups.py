"""What can be wrong with a backup, and with what was restored from one."""

from __future__ import annotations

from connector.errors.root import ConnectorError


class BackupError(ConnectorError):
    """A backup cannot be written, or cannot be restored here."""

    code = "backup"
    action = (
        "Check that the folder is there, and that this user may write to it; nothing was changed."
    )


class BackupDamaged(BackupError):
    """The file is no backup, or not as it was written: it was cut off, changed or damaged."""

    code = "backup_damaged"
    action = "Take another backup: 'connector restore FILE --check' says whether one is whole."


class RestoredUnpulled(ConnectorError):
    """The ledger came from a backup, and the resource was not pulled since. What was pushed after
    the backup would not be known again, and be created twice.
    """

    code = "restored_unpulled"
    action = "Run 'connector pull', and push again once the resource is proven."

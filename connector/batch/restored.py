"""What a push must know of a folder that was restored: an older ledger knows fewer pushes.

Rows that were sent after the backup are not in its journal. Once a pull has proven the resource,
their records are landed, and the rows are told as duplicates; before that they would be created
a second time.
"""

from __future__ import annotations

from connector.engine.quota import shown
from connector.errors import RestoredUnpulled
from connector.ledger import Ledger
from connector.ledger.backups import Backups
from connector.warehouse import Warehouse


def check_pulled(ledger: Ledger, warehouse: Warehouse, resource: str) -> None:
    """Raise `RestoredUnpulled` where the ledger came from a backup, and no pull has proven the
    resource since.
    """
    restored = Backups(ledger).last_restore(is_ledger_older=True)
    if restored is None:
        return
    before, proven_at = restored.proven.get(resource), warehouse.standing_of(resource).proven_at
    if proven_at is not None and (before is None or proven_at > before):
        return
    raise RestoredUnpulled(
        f"the ledger is from a backup of {shown(restored.made_at)}, and no pull has proven"
        f" {resource} since: what was pushed to it after the backup would not be known again"
    )

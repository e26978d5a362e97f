"""Which ledger stays: the one that is here, which knows what happened since, or the backup's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from connector.engine.quota import shown
from connector.errors import BackupError, LedgerDamaged, NotALedger
from connector.ledger.copying import check_ledger, continues, is_blank

Name = Literal["kept", "restored"]


@dataclass(frozen=True, slots=True)
class Choice:
    """`kept`: the ledger that is here stays, and nothing that it knows is lost; `restored`: the
    backup's takes its place. `can_read_live` says whether the one that is here can be read.
    """

    name: Name
    can_read_live: bool

    @property
    def keeps_live(self) -> bool:
        """Whether the ledger that is here stays."""
        return self.name == "kept"

    def lost(self, made_at: datetime) -> Iterator[str]:
        """Sentences on what is not known any more."""
        when = shown(made_at)
        yield (
            f"The history has no version that came and went after {when}; what is so now is read"
            " again by the next pull."
        )
        if self.keeps_live:
            return
        yield (
            f"The journal does not know what was pushed after {when}. Nothing is pushed to a"
            " resource before a pull has proven it: then rows that were sent since meet their own"
            " records, and are told as duplicates."
        )
        yield (
            f"Requests that were sent after {when} are not counted: until the billing cycle ends,"
            " lower monthly_requests by them."
        )


def choose(live: Path, staged: Path, *, takes: bool) -> Choice:
    """Choose between the ledger at `live` and the backup's, which is taken where it `takes` it.

    Raises `BackupError` where the ledger that is here is not the one that the backup was made of
    and holds something of its own, and a `WarehouseError`.
    """
    if not live.exists():
        return Choice("restored", can_read_live=False)
    try:
        check_ledger(live)
    except (LedgerDamaged, NotALedger):
        return Choice("restored", can_read_live=False)
    if not staged.exists():
        return Choice("kept", can_read_live=True)
    if not takes and continues(live, staged):
        return Choice("kept", can_read_live=True)
    if not takes and not is_blank(live):
        raise BackupError(
            f"{live} is not the ledger that the backup was made of, and knows of pushes or erasures"
            " that the backup does not",
            action="Look whether it is the right backup and folder; --with-ledger moves the ledger"
            " aside and takes the backup's.",
        )
    return Choice("restored", can_read_live=True)

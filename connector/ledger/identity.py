"""Identity of a data folder: the work file and the ledger of one folder have the same one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity that each file of a data folder holds.

    Attributes:
        folder: Random name of the folder, made by its first run.
        address: Address of the workspace whose records are in the folder.
        written_by: Version of the connector that wrote the file last.
    """

    folder: str
    address: str
    written_by: str

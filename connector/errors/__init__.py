"""Everything that can go wrong, grouped by what the caller should do about it.

    ConnectorError
    ├── Misused                  change the command or the settings (exit 2)
    │   ├── SettingsError        a setting is missing, malformed or unsafe
    │   └── UnknownName          a resource, field, sort or option that does not exist
    ├── Answered                 an error that the API answered with: Denied, Refused, ServerFailed
    ├── Denied                   ask for access; repeating will not help
    │   ├── Unauthorized         401: the key is missing or not accepted
    │   └── Forbidden            403: the key lacks the scope of this operation
    ├── Refused                  change what was sent; repeating will not help
    │   ├── InvalidRequest       400: the request is malformed
    │   ├── NotFound             404: there is no such record
    │   ├── ValidationFailed     422: fields were refused, with messages by field
    │   └── UnexpectedStatus     a status that the API does not document
    ├── TryAgain                 nothing was applied; the same request may be repeated later
    │   ├── RateLimited          429: the minute's or the month's allowance is spent
    │   ├── Unreachable          no connection could be made
    │   ├── NoAnswer             the answer to a read did not arrive whole and in time
    │   ├── ServerFailed         5xx to a read
    │   ├── LeaseHeld            another run of this account is under way
    │   └── DeletionsWaiting     a pull has yet to read all lists before it believes deletions
    ├── NotTheApi                the answer cannot come from this API: check the address
    │   ├── Redirected           3xx: redirects are never followed
    │   ├── UnreadableAnswer     not JSON, or JSON of another shape
    │   └── AnswerTooLarge       the body passed the cap
    ├── InDoubt                  a write was sent and its fate is unknown: look before repeating
    ├── Stopped                  a limit was reached; run again to continue (exit 4)
    │   ├── BudgetSpent          the run's own limit of requests
    │   ├── QuotaSpent           the month's allowance
    │   └── LeaseLost            another run has taken over
    ├── DeletionsRefused         a pull has landed all but deletions that it did not believe
    │   ├── ListShrank           the list is suddenly much shorter
    │   ├── ListUnfamiliar       it shows hardly any landed record
    │   └── DetailsGone          it shows what is said to be gone
    ├── WarehouseError           the data folder or a file in it cannot be used
    │   ├── NotAWarehouse        the file is not a DuckDB database, or not one of ours
    │   ├── WorkLost             the work file is gone, and cannot be made of the published one
    │   ├── DamagedLog           the log of the last commits cannot be read back
    │   ├── NotALedger           the file is not a ledger of this version
    │   ├── LedgerDamaged        the ledger cannot be read any more
    │   ├── ErasuresUnknown      the list of erased people, its key or a receipt is lost
    │   ├── WarehouseBusy        another process holds the file
    │   ├── DiskFull             there is no room left to write
    │   ├── NothingPublished     there is no published file yet
    │   └── MartsMissing         the published file has no marts
    ├── BackupError              a backup cannot be written, or restored here
    │   └── BackupDamaged        the file is no backup, or not as it was written
    ├── RestoredUnpulled         the ledger came from a backup: pull before pushing
    ├── NotDelivered             an alert did not arrive; it waits and is sent again
    ├── LakehouseError           the lakehouse cannot be used as it is set up
    │   ├── LakehouseOffline     its database or the place of its files did not answer
    │   ├── LakehouseBusy        others have held it for too long
    │   └── LakehouseDiffers     a column has another type there
    ├── PushJournalUnreached     the database in which folders share claims cannot be used
    ├── PublishingRefused        checks that block have failed; the old file stays
    ├── ModelError               a model, seed, test or audit cannot be used (exit 2)
    │   ├── ModelInvalid         a file is not as models are written
    │   ├── ReferenceUnknown     a ref() or source() names nothing
    │   ├── ModelsCircular       models refer to each other in a ring
    │   ├── ModelTwice           two have the same name
    │   ├── SeedInvalid          a seed cannot be read as it is declared
    │   └── ModelFailed          DuckDB did not build it (exit 1)
    └── SpreadsheetError         a spreadsheet cannot be read or written (exit 2)
        ├── NotASpreadsheet      no such file, or none that can be read
        ├── DamagedSpreadsheet   it cannot be read to its end
        ├── UnsafeWorkbook       it would grow without measure, or reaches out of itself
        ├── EncodingUnknown      the text's encoding is not certain
        ├── DelimiterUnknown     no delimiter, or more than one, fits the rows
        ├── HeadingsRefused      a heading is missing, empty or there twice
        ├── NoRows               nothing stands below the headings
        ├── SheetUnknown         which sheet is meant is not clear
        ├── SpreadsheetChanged   somebody wrote to the file meanwhile
        └── ReportRefused        a report would not say what happened

Exceptions carry objects, and text is made at the edge: `str(error)` is one sentence on what
happened and where, `error.action` is one on what to do next, `error.code` is stable and
documented. No error ever holds the API key, and none but `EncodingUnknown.samples`, which only the
person with the file is shown, the value of a personal field.
"""

from __future__ import annotations

# The order is that of docs/ERRORS.md.
# isort: off
from connector.errors.root import (
    ConnectorError,
    Misused,
    SettingsError,
    UnknownName,
)
from connector.errors.api import (
    Answered,
    Denied,
    Unauthorized,
    Forbidden,
    Refused,
    InvalidRequest,
    NotFound,
    ValidationFailed,
    UnexpectedStatus,
    TryAgain,
    RateLimited,
    Unreachable,
    NoAnswer,
    ServerFailed,
    NotTheApi,
    Redirected,
    UnreadableAnswer,
    AnswerTooLarge,
    InDoubt,
)
from connector.errors.limits import (
    Stopped,
    BudgetSpent,
    QuotaSpent,
    LeaseHeld,
    LeaseLost,
)
from connector.errors.deletions import (
    DeletionsRefused,
    ListShrank,
    ListUnfamiliar,
    DetailsGone,
    DeletionsWaiting,
)
from connector.errors.files import (
    WarehouseError,
    NotAWarehouse,
    WorkLost,
    DamagedLog,
    NotALedger,
    LedgerDamaged,
    ErasuresUnknown,
    WarehouseBusy,
    DiskFull,
)
from connector.errors.backups import (
    BackupError,
    BackupDamaged,
    RestoredUnpulled,
)
from connector.errors.alerting import NotDelivered
from connector.errors.publishing import (
    NothingPublished,
    MartsMissing,
    PublishingRefused,
)
from connector.errors.lakehouse import (
    LakehouseError,
    LakehouseOffline,
    LakehouseBusy,
    LakehouseDiffers,
    PushJournalUnreached,
)
from connector.errors.models import (
    ModelError,
    ModelInvalid,
    ReferenceUnknown,
    ModelsCircular,
    ModelTwice,
    SeedInvalid,
    ModelFailed,
)
from connector.errors.spreadsheet import (
    SpreadsheetError,
    NotASpreadsheet,
    DamagedSpreadsheet,
    UnsafeWorkbook,
    EncodingUnknown,
    DelimiterUnknown,
    HeadingsRefused,
    NoRows,
    SheetUnknown,
    SpreadsheetChanged,
    ReportRefused,
)
# isort: on

__all__ = [
    "AnswerTooLarge",
    "Answered",
    "BackupDamaged",
    "BackupError",
    "BudgetSpent",
    "ConnectorError",
    "DamagedLog",
    "DamagedSpreadsheet",
    "DeletionsRefused",
    "DeletionsWaiting",
    "DelimiterUnknown",
    "Denied",
    "DetailsGone",
    "DiskFull",
    "EncodingUnknown",
    "ErasuresUnknown",
    "Forbidden",
    "HeadingsRefused",
    "InDoubt",
    "InvalidRequest",
    "LakehouseBusy",
    "LakehouseDiffers",
    "LakehouseError",
    "LakehouseOffline",
    "LeaseHeld",
    "LeaseLost",
    "LedgerDamaged",
    "ListShrank",
    "ListUnfamiliar",
    "MartsMissing",
    "Misused",
    "ModelError",
    "ModelFailed",
    "ModelInvalid",
    "ModelTwice",
    "ModelsCircular",
    "NoAnswer",
    "NoRows",
    "NotALedger",
    "NotASpreadsheet",
    "NotAWarehouse",
    "NotDelivered",
    "NotFound",
    "NotTheApi",
    "NothingPublished",
    "PublishingRefused",
    "PushJournalUnreached",
    "QuotaSpent",
    "RateLimited",
    "Redirected",
    "ReferenceUnknown",
    "Refused",
    "ReportRefused",
    "RestoredUnpulled",
    "SeedInvalid",
    "ServerFailed",
    "SettingsError",
    "SheetUnknown",
    "SpreadsheetChanged",
    "SpreadsheetError",
    "Stopped",
    "TryAgain",
    "Unauthorized",
    "UnexpectedStatus",
    "UnknownName",
    "Unreachable",
    "UnreadableAnswer",
    "UnsafeWorkbook",
    "ValidationFailed",
    "WarehouseBusy",
    "WarehouseError",
    "WorkLost",
]

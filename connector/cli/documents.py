"""Documents of `--json`, each with a schema.

The schemas are in docs/schemas, made from this file by `make generate`. Their number is raised
where a field goes or changes its type, which docs/VERSIONS.md says when may be; a new field is no
reason to. What is deep inside a document is described where it is made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from connector.engine.quota import Month
from connector.operations.backup_file import BackupEntry
from connector.operations.renaming import Renamed
from connector.privacy.receipt import PersonPlace
from connector.pulls.price import Schedule
from connector.spreadsheet.problems import FileQuestion
from connector.suppression.person import Mention

VERSION = 1
"""The number of all schemas together."""

Entry = dict[str, Any]
"""An object within a document."""


class ErrorTold(TypedDict):
    """Error: its code (docs/ERRORS.md), what happened, what to do next."""

    code: str
    message: str
    action: NotRequired[str]
    exit_status: NotRequired[int]


class PullDocument(TypedDict):
    """Document of `pull`, `sweep` and each account of `pull --all`."""

    outcome: str
    run_id: str
    seconds: float
    waited_seconds: float
    requests: int
    rate_limited: int
    resources: dict[str, Entry]
    notices: NotRequired[list[str]]
    month: NotRequired[Entry]
    published: NotRequired[Entry]
    unpublished: NotRequired[Entry]
    error: NotRequired[ErrorTold]
    exit_status: NotRequired[int]


class PullAllDocument(TypedDict):
    """Document of `pull --all`: by account, each with its own exit status."""

    accounts: dict[str, Entry]
    exit_status: int


class StatusDocument(TypedDict):
    """Document of `status`."""

    folder: str
    resources: dict[str, Entry]
    runs: list[Entry]
    alerts: list[Entry]
    alerts_waiting: list[Entry]
    is_lost: NotRequired[bool]
    silent: NotRequired[str | None]
    published: NotRequired[Entry]
    unpublished: NotRequired[Entry | None]
    lakehouse: NotRequired[Entry | None]
    left: NotRequired[Entry | None]
    month: NotRequired[Entry]
    limit_per_minute: NotRequired[int | None]
    leases: NotRequired[list[Entry]]


class AccountsDocument(TypedDict):
    """Document of `status`, `backup`, `alerts` and `doctor` of all accounts."""

    accounts: list[Entry]
    exit_status: NotRequired[int]


class HealthDocument(TypedDict):
    """Document of `health`."""

    well: bool
    at: str
    accounts: list[Entry]


class DoctorDocument(TypedDict):
    """Document of `doctor`: every check, its state, and what to do."""

    settings: list[Entry]
    checks: list[Entry]
    requests: int
    exit_status: int


class BackupDocument(TypedDict):
    """Document of `backup`."""

    file: str
    account: str | None
    made_at: str
    files: int
    bytes: int
    removed: list[str]


class MetricsDocument(TypedDict):
    """Document of `metrics`."""

    metrics: list[Entry]
    runs: int


class RowCounts(TypedDict, total=False):
    """Counts of a push's rows, by what became or would become of them."""

    created: int
    updated: int
    converted: int
    unchanged: int
    duplicate: int
    invalid: int
    rejected: int
    not_applied: int
    conflict: int
    held: int
    not_sent: int
    create: int
    update: int
    convert: int


class PushDocument(RowCounts):
    """Document of `push` with one file, and of each file of several."""

    outcome: str
    batch: str | None
    resource: str
    file: str
    rows: int
    requests: int
    requests_foreseen: int
    seconds: float
    merged: list[str]
    missing: list[str]
    unmapped: list[str]
    notices: list[str]
    questions: list[FileQuestion]
    warned: int
    changes: list[Entry]
    report: str | None
    error: ErrorTold | None
    unpublished: Entry | None


class PushFilesDocument(TypedDict):
    """Document of `push` with several files."""

    files: list[PushDocument]


class UndoDocument(TypedDict):
    """Document of `undo`."""

    outcome: str
    batch: str
    applied: bool
    rows: list[Entry]
    counts: dict[str, int]
    requests: int
    seconds: float
    error: ErrorTold | None
    unpublished: Entry | None


class InDoubtDocument(TypedDict):
    """Document of `resolve` without a decision: the rows in doubt."""

    rows: list[Entry]


class ResolveDocument(RowCounts):
    """Document of `resolve` with a decision; `settled` has each row's outcome."""

    outcome: str
    batch: str
    rows: int
    requests: int
    seconds: float
    waited_seconds: float
    rate_limited: int
    settled: dict[str, str]
    error: NotRequired[ErrorTold]
    unpublished: NotRequired[Entry]


class TemplateDocument(TypedDict):
    """Document of `template`."""

    file: str
    columns: int


class WhereisDocument(TypedDict):
    """Document of `whereis`."""

    found: bool
    records: dict[str, int]
    places: list[PersonPlace]
    batches: list[str]
    by_hand: list[str]
    not_searched: list[str]
    rows_in_doubt: int
    shared_identifiers: int
    texts: list[Mention]


class ReceiptsDocument(TypedDict):
    """Document of `erase --apply` without a person."""

    applied: bool
    unended: int
    receipts: list[Entry]
    files: list[str]


class EraseDocument(WhereisDocument, ReceiptsDocument):
    """Document of `erase` with a person: where the person is, or was."""


class ReleaseDocument(TypedDict):
    """Document of `erase --release`: how many hashes were taken off the list."""

    released: int


class RetentionDocument(TypedDict):
    """Document of `retention`; nothing is `erased` without --apply."""

    rules: list[Entry]
    erased: EraseDocument | ReceiptsDocument | None


class LakePublicationDocument(TypedDict):
    """Publication to the lakehouse, or removal from it, of one account."""

    applied: NotRequired[bool]
    account: str
    outcome: str
    publication: str | None
    snapshot: int | None
    tables: int
    inserted: int
    removed: int
    seconds: float
    error: NotRequired[ErrorTold]


class LakehousePublishDocument(TypedDict):
    """Document of `lakehouse publish`."""

    accounts: list[LakePublicationDocument]


class LakehouseStatusDocument(TypedDict):
    """Document of `lakehouse status`."""

    data: str
    snapshots: list[Entry]
    files: int
    bytes: int
    accounts: list[Entry]


class LakehouseMaintainDocument(TypedDict):
    """Document of `lakehouse maintain`; a preview does not know some counts."""

    applied: bool
    keeps_from: str
    kept: int
    expired: int
    removed_files: int
    rewritten: int | None
    joined: int | None


class LakehouseRemovePreviewDocument(TypedDict):
    """Document of `lakehouse remove` without --apply: the rows by table."""

    applied: bool
    account: str
    rows: dict[str, int]


class ModelsListDocument(TypedDict):
    """Document of `models list`."""

    models: list[Entry]


class ModelsTestDocument(TypedDict):
    """Document of `models test`."""

    checks: list[Entry]


class ModelsBuildDocument(ModelsListDocument, ModelsTestDocument):
    """Document of `models build`."""


class ModelsSeedsDocument(TypedDict):
    """Document of `models seeds`; `unmapped` has values by seed."""

    unmapped: dict[str, list[str]]
    written: list[Entry]


class PublishDocument(TypedDict):
    """Document of `publish`."""

    outcome: str
    file: str
    true_of: str | None
    models: int | None
    checks: int | None
    failed_checks: list[str]
    personal: str | None
    bytes: int | None
    seconds: float | None
    lakehouse: NotRequired[LakePublicationDocument]
    parquet: NotRequired[Entry]


class ReportDocument(TypedDict):
    """Document of `report`."""

    file: str
    as_of: str
    period: Entry
    key_figures: dict[str, Entry]


class PlanDocument(TypedDict):
    """Document of `plan`."""

    requests: int
    minutes: float | None
    month_share: float | None
    limit_per_minute: int | None
    spent: int
    resources: dict[str, Entry]
    skipped: list[str]
    month: Month | None
    schedule: Schedule | None


class VerifyDocument(TypedDict):
    """Document of `verify`."""

    equal: bool
    requests: int
    seconds: float
    streams: dict[str, Entry]
    harmed_by_erasures: NotRequired[dict[str, int]]
    error: NotRequired[ErrorTold]


class RestoreDocument(TypedDict):
    """Document of `restore`."""

    made_at: str
    version: str
    files: int
    ledger: str
    lost: list[str]
    aside: str | None
    erased_again: list[Entry]
    waiting: list[str]
    error: ErrorTold | None


class RestoreCheckDocument(TypedDict):
    """Document of `restore --check`: the backup's manifest."""

    whole: bool
    made_at: str
    account: str | None
    version: str
    work: int | None
    ledger: int | None
    entries: list[BackupEntry]
    format: int
    digest: str


class AlertsTestDocument(TypedDict):
    """Document of `alerts --test`."""

    tests: list[Entry]


class DemoDocument(TypedDict):
    """Document of `demo`."""

    folder: str
    published: str
    report: str | None
    sandbox: str
    dagster: Entry
    seconds: float
    models: int | None
    checks: int | None
    warnings: list[str]
    resources: dict[str, Entry]
    answers: list[Entry]


class PageDocument(TypedDict):
    """Document of `page`: where it is served."""

    address: str
    link: str


class CompletionDocument(TypedDict):
    """Document of `completion`."""

    shell: str
    script: str


class ManualDocument(TypedDict):
    """Document of `manual`."""

    files: list[str]


class ErrorDocument(TypedDict):
    """Document of any command that came to nothing."""

    error: ErrorTold


DOCUMENTS: Mapping[str, type] = {
    "error": ErrorDocument,
    "pull": PullDocument,
    "pull-all": PullAllDocument,
    "status": StatusDocument,
    "accounts": AccountsDocument,
    "health": HealthDocument,
    "doctor": DoctorDocument,
    "backup": BackupDocument,
    "metrics": MetricsDocument,
    "push": PushDocument,
    "push-files": PushFilesDocument,
    "undo": UndoDocument,
    "resolve": InDoubtDocument,
    "resolve-settled": ResolveDocument,
    "template": TemplateDocument,
    "whereis": WhereisDocument,
    "erase": EraseDocument,
    "erase-unended": ReceiptsDocument,
    "erase-release": ReleaseDocument,
    "retention": RetentionDocument,
    "lakehouse-publish": LakehousePublishDocument,
    "lakehouse-status": LakehouseStatusDocument,
    "lakehouse-maintain": LakehouseMaintainDocument,
    "lakehouse-remove": LakePublicationDocument,
    "lakehouse-remove-preview": LakehouseRemovePreviewDocument,
    "models-build": ModelsBuildDocument,
    "models-list": ModelsListDocument,
    "models-test": ModelsTestDocument,
    "models-seeds": ModelsSeedsDocument,
    "publish": PublishDocument,
    "report": ReportDocument,
    "plan": PlanDocument,
    "verify": VerifyDocument,
    "restore": RestoreDocument,
    "restore-check": RestoreCheckDocument,
    "account-rename": Renamed,
    "alerts-test": AlertsTestDocument,
    "demo": DemoDocument,
    "page": PageDocument,
    "completion": CompletionDocument,
    "manual": ManualDocument,
}
"""Every document that has a schema, by the schema's name: the command's, with what it is of."""


def validate(name: str, document: Mapping[str, Any]) -> None:
    """Hold a document against its schema; raises `pydantic.ValidationError`.

    A field that the schema does not name is an error here, and none for those who read documents.
    """
    # Strict Python has no text for a moment and no object for a dataclass; strict JSON has.
    text = json.dumps(document)
    TypeAdapter(DOCUMENTS[name]).validate_json(text, strict=True, extra="forbid")


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document."""
    made = TypeAdapter(DOCUMENTS[name]).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"connector-{name}-{VERSION}",
        **made,
    }

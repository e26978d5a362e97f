"""Documents of `--json` that machines read night after night, each with a schema.

The schemas are in docs/schemas, made from this file by `make generate`. Their number is raised
where a field goes or changes its type, which docs/VERSIONS.md says when may be; a new field is no
reason to. What is deep inside a document is described where it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

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
}
"""Every document that has a schema, by the schema's name."""


def validate(name: str, document: Mapping[str, Any]) -> None:
    """Hold a document against its schema; raises `pydantic.ValidationError`.

    A field that the schema does not name is an error here, and none for those who read documents.
    """
    TypeAdapter(DOCUMENTS[name]).validate_python(dict(document), strict=True, extra="forbid")


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document."""
    made = TypeAdapter(DOCUMENTS[name]).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"connector-{name}-{VERSION}",
        **made,
    }

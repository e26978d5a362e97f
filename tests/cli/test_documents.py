"""The documents of `--json` are as their schemas say, in success and in failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from connector.cli.documents import DOCUMENTS, VERSION, schema, validate
from connector.sandbox.server import Sandbox
from tests.cli.calling import COUNTS, KEY, call, variables


def test_every_document_is_as_its_schema_says(tmp_path: Path) -> None:
    """Of an account before its first pull, after it, after one that failed, and of all accounts."""
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        for name, words, more in (
            ("status", "status", {}),
            ("pull", "pull", {}),
            ("pull", "pull jobs --budget 1", {}),
            ("pull", "pull jobs", {"CONNECTOR_API_KEY": "refused"}),
            ("pull", "sweep jobs", {}),
            ("status", "status --max-age 1h", {"CONNECTOR_MONTHLY_REQUESTS": "500"}),
            ("health", "health", {}),
            ("doctor", "doctor", {}),
            ("backup", f"backup {tmp_path / 'backups'}", {}),
            ("metrics", "metrics", {}),
            ("accounts", "alerts", {}),
            ("accounts", "status --all", {}),
            ("accounts", "doctor --all", {}),
            ("error", "pull nothing", {}),
            ("error", "restore nowhere.tar --check", {}),
        ):
            called = call([*words.split(), "--json"], environ | more)
            validate(name, called.object)


def test_a_document_that_differs_is_refused() -> None:
    """A field that is missing, that has another type or that no schema names is an offence."""
    good = {"error": {"code": "failed", "message": "No."}}
    validate("error", good)

    for wrong in ({}, {"error": {"code": 1, "message": "No."}}, {**good, "new": 1}):
        with pytest.raises(ValidationError):
            validate("error", wrong)


def test_each_schema_has_its_number() -> None:
    """The number of a schema is in its name, and readers may meet fields that it does not name."""
    for name in DOCUMENTS:
        made = schema(name)
        assert made["$id"] == f"connector-{name}-{VERSION}"
        assert "additionalProperties" not in made

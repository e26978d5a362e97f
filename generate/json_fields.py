"""The fields of each command's `--json` object, for the page of commands.

A test compares the list with the output.

A command prints one object. A field with a question mark is there only if it applies. Where an
option changes the object, the option has a separate entry.
"""

from __future__ import annotations

from collections.abc import Mapping

_ROW_OUTCOMES = (
    "created? updated? converted? unchanged? duplicate? invalid? rejected? not_applied? conflict?"
    " held? not_sent? create? update? convert?"
)
_PULL = (
    "outcome run_id seconds waited_seconds requests rate_limited resources notices? month?"
    " published? unpublished? error? exit_status?"
)

_UNDONE = (
    "delete? restore? deleted? restored? undone? nothing? partly? conflict? irreversible? refused?"
    " held? unread? not_reached?"
)

JSON_FIELDS: Mapping[str, Mapping[str, str]] = {
    "demo": {
        "": "folder published report sandbox dagster seconds models checks warnings resources"
        " answers"
    },
    "doctor": {"": "settings checks requests exit_status", "--all": "accounts exit_status"},
    "pull": {
        "": _PULL,
        "--plan": "requests minutes month_share limit_per_minute spent resources skipped month",
        "--all": "accounts exit_status",
    },
    "verify": {"": "equal requests seconds streams error?"},
    "template": {"": "file columns"},
    "push": {
        "": "outcome batch resource file rows requests requests_expected seconds merged missing"
        " unmapped notices questions warned changes report error unpublished " + _ROW_OUTCOMES,
        "a --query that returns no rows": "resource rows requests error",
    },
    "page": {"": "address link"},
    "resolve": {
        "": "rows",
        "BATCH": "outcome batch rows requests seconds settled error? unpublished? " + _ROW_OUTCOMES,
    },
    "undo": {"": "outcome batch applied rows requests seconds error unpublished " + _UNDONE},
    "models list": {"": "models"},
    "models test": {"": "checks"},
    "models seeds": {"": "unmapped written"},
    "publish": {
        "": "outcome file true_of models checks failed_checks personal bytes seconds parquet? xlsx?"
    },
    "report": {"": "file"},
    "person find": {"": "places not_searched"},
    "person purge": {"": "ids applied rows files places not_searched backups"},
    "backup": {"": "account file bytes removed", "--all": "accounts"},
    "restore": {
        "": "manifest waiting purges",
        "--check": "whole made_at account version files format",
    },
    "status": {
        "": "folder resources runs problems is_lost? published? left? month? limit_per_minute?"
        " running?",
        "--all": "accounts exit_status?",
        "--check": "ok at accounts",
    },
}
"""Fields by command and option, each with "?" if it can be missing; "" is the plain command."""


def required_and_optional(fields: str) -> tuple[set[str], set[str]]:
    """Return the names of required and of optional fields in an entry of `JSON_FIELDS`."""
    words = fields.split()
    return (
        {word for word in words if not word.endswith("?")},
        {word.removesuffix("?") for word in words if word.endswith("?")},
    )

"""Values of settings: accepted, normalized and refused ones, each by its environment variable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster._utils.schedules import is_valid_cron_string

from connector.errors import SettingsError
from connector.settings import ENVIRONMENT, load_settings
from connector.settings.model import redact_address

ACCEPTED: dict[str, dict[str, Any]] = {
    "base_url": {
        "https://acme.example": "https://acme.example",
        "https://acme.example//": "https://acme.example",
        "https://acme.example/api/v1/": "https://acme.example",
        "https://ACME.example:8443": "https://acme.example:8443",
        "https://acme.example/Workspace/": "https://acme.example/Workspace",
        "https://acme.example/Workspace/api/v1": "https://acme.example/Workspace",
        "  https://acme.example\n": "https://acme.example",
        "http://localhost:8000": "http://localhost:8000",
        "http://127.8.9.1": "http://127.8.9.1",
        "http://[::1]:8000/": "http://[::1]:8000",
    },
    "proxy": {
        "http://Proxy.example:3128/": "http://proxy.example:3128",
        "http://[::1]:3128": "http://[::1]:3128",
    },
    "region": {"us": "US", "DE": "DE"},
    "publish_without": {
        "push, sync": ("sync", "push"),
        "staging.stg_jobs,push,marts.dim_jobs.title": (
            "push",
            "staging.stg_jobs",
            "marts.dim_jobs.title",
        ),
    },
    "time_zone": {"Europe/Berlin": "Europe/Berlin"},
    "nightly_cron": {
        " 15  2 * * * ": "15 2 * * *",
        "*/5 * * * *": "*/5 * * * *",
        "0 7-18 * * 1-5": "0 7-18 * * 1-5",
        "5/10 1,3 1-15/2 * 7": "5/10 1,3 1-15/2 * 7",
        "off": "off",
    },
    "record_url": {"https://a.example/{resource}/{id}": "https://a.example/{resource}/{id}"},
}

_ADDRESS = "such as https://acme.example"
_CRON = "a cron expression (minute, hour, day of the month, month, day of the week) such as"
_WHOLE = "a whole number from 1 to"
REFUSED: dict[str, dict[str, str]] = {
    "account": {
        **dict.fromkeys(("Acme", "../acme", "-acme", "a" * 65), "at most 64 of a-z, 0-9, '-'"),
        "inbox": "another name, because the connector uses the folders inbox",
    },
    "base_url": {
        **dict.fromkeys(("acme.example", "ftp://x.example", "https://", "https:///a"), _ADDRESS),
        **dict.fromkeys(
            ("http://acme.example", "http://10.0.0.1", "http://localhost.acme.example"),
            "only this machine may use http",
        ),
        "https://me:secret@acme.example": "without a user name or a password",
        "https://me@acme.example": "without a user name or a password",
        "https://acme.example?x=1": "without '?' or '#'",
        "https://acme.example#x": "without '?' or '#'",
        "https://acme.example?": "without '?' or '#'",
        "https://acme.example/api/v1/jobs": "the part of the address before /api/v1",
        "https://acme.example:99999": "with a port from 1 to 65535",
        "https://acme.example:0": _ADDRESS,
        "https://acme.example:x": "with a port from 1 to 65535",
        "https://ac me.example": "without spaces or backslashes",
        "https://acme.example\\@evil.example": "without spaces or backslashes",
        "https://[::1": "with a port from 1 to 65535",
    },
    "proxy": dict.fromkeys(
        ("proxy.example:3128", "http://proxy.example", "http://u:p@p.example:1", "http://p:99999"),
        "the address of a proxy such as",
    ),
    "region": {"UK": "a country code of two letters such as GB, DE or US"},
    "monthly_requests": dict.fromkeys(("0", "1e5", "50,000"), f"{_WHOLE} 1000000000"),
    "billing_day": dict.fromkeys(("32", "-1", "\N{ARABIC-INDIC DIGIT ONE}"), f"{_WHOLE} 31"),
    "connections": {"33": f"{_WHOLE} 32"},
    "lateness_seconds": {"86401": "a whole number from 0 to 86400"},
    "models": {"yes": "'on' or 'off'"},
    "publish_personal": {"masked": "'keep', 'drop' or 'hash'"},
    "publish_without": {
        "push,pull": "some of: landing, history, sync, push, staging, marts",
        "push,candidates.notes": "SCHEMA.TABLE.COLUMN, not 'candidates.notes'",
        "mart.dim_jobs.title": "SCHEMA.TABLE.COLUMN, not 'mart.dim_jobs.title'",
    },
    "max_age": dict.fromkeys(("0h", "367d", "26", "1 week"), "a duration of at most 366 days"),
    "time_zone": dict.fromkeys(
        ("Europe/Brelin", "CEST+", "../UTC", "/etc/localtime", "Europe/", "Europe"),
        "the name of a time zone such as UTC",
    ),
    "verification_cron": dict.fromkeys(
        (
            *("often", "@daily", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *"),
            *("* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *", "*/0 * * * *"),
            *("1-2-3 * * * *", "-1 * * * *", "0 0 * * MON"),
        ),
        _CRON,
    ),
    "record_url": dict.fromkeys(
        ("https://a.example/", "http://a.example/{id}", "https://a.example/{id}/{x}"),
        "an address such as https://app.example/{resource}/{id}",
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_value_is_accepted_and_normalized(tmp_path: Path, name: str) -> None:
    for written, value in ACCEPTED[name].items():
        settings = load_settings({}, {ENVIRONMENT[name]: written}, tmp_path)
        assert value == getattr(settings, name)
        again = load_settings({name: getattr(settings, name)}, {}, tmp_path)
        assert value == getattr(again, name)


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_is_refused_with_its_origin_and_the_allowed_values(
    tmp_path: Path, name: str
) -> None:
    for written, allowed in REFUSED[name].items():
        with pytest.raises(SettingsError) as caught:
            load_settings({}, {ENVIRONMENT[name]: written}, tmp_path)
        received = redact_address(written) if name == "base_url" else repr(written)
        message = str(caught.value)
        assert message.startswith(f"{name} is {received} (from {ENVIRONMENT[name]}): it must be ")
        assert allowed in message
        assert "secret" not in message
        assert 2 == caught.value.exit_status


@pytest.mark.parametrize("cron", ACCEPTED["nightly_cron"].values())
def test_schedule_times_are_in_dagsters_format(cron: str) -> None:
    assert "off" == cron or is_valid_cron_string(cron)


def test_a_refused_address_is_shown_without_user_and_query() -> None:
    assert "'https://acme.example/x'" == redact_address("https://u:p@acme.example/x?key=1#f")
    assert "a value without 'https://'" == redact_address("0123456789")

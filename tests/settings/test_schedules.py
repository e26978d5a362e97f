"""Schedule settings: accepted and refused times and time zones."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster._utils.schedules import is_valid_cron_string

from connector.errors import SettingsError
from connector.settings import load_settings

TAKEN = (
    "15 2 * * *",
    "*/5 * * * *",
    "0 7-18 * * 1-5",
    "5/10 1,3 1-15/2 * 7",
    "0 0 29 2 *",
    "0 0 31 1,4 *",
)
REFUSED = (
    "",
    "often",
    "@daily",
    "* * * *",
    "* * * * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * * 13 *",
    "* * * * 8",
    "5-1 * * * *",
    "*/0 * * * *",
    "1-2-3 * * * *",
    "-1 * * * *",
    "0 0 * * MON",
    "0 0 30 2 *",
    "0 0 31 4,6 *",
)


@pytest.mark.parametrize("cron", TAKEN)
def test_schedule_times_are_accepted_in_dagsters_format(tmp_path: Path, cron: str) -> None:
    settings = load_settings({"nightly_cron": f" {cron.replace(' ', '  ')} "}, {}, tmp_path)

    assert cron == settings.nightly_cron
    assert is_valid_cron_string(settings.nightly_cron)


@pytest.mark.parametrize("cron", REFUSED)
def test_an_invalid_schedule_time_is_refused_with_the_allowed_formats(
    tmp_path: Path, cron: str
) -> None:
    (tmp_path / "connector.toml").write_text(f"verification_cron = '{cron}'\n", encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        load_settings({}, {}, tmp_path)

    message = f"verification_cron is '{cron}' (from connector.toml): it must be a cron expression"
    assert str(caught.value).startswith(message)
    assert "such as '15 2 * * *' for 02:15 every day; or 'off'" in str(caught.value)


def test_off_disables_a_schedule(tmp_path: Path) -> None:
    environ = {f"CONNECTOR_{name}_CRON": "off" for name in ("NIGHTLY", "INTRADAY", "VERIFICATION")}
    settings = load_settings({}, environ, tmp_path)

    found = (settings.nightly_cron, settings.intraday_cron, settings.verification_cron)
    assert ("off",) * 3 == found


def test_an_unknown_time_zone_is_refused(tmp_path: Path) -> None:
    assert "Europe/Berlin" == load_time_zone("Europe/Berlin", tmp_path)
    for wrong in ("Europe/Brelin", "CEST+", "../UTC", "/etc/localtime", "Europe/", "Europe"):
        with pytest.raises(SettingsError, match="must be the name of a time zone such as UTC"):
            load_time_zone(wrong, tmp_path)


def load_time_zone(name: str, folder: Path) -> str:
    """Return the time zone that the settings read from this name."""
    return load_settings({}, {"CONNECTOR_TIME_ZONE": name}, folder).time_zone


def test_an_accounts_own_times_override_those_of_the_top_level(tmp_path: Path) -> None:
    (tmp_path / "connector.toml").write_text(
        "nightly_cron = '0 1 * * *'\ntime_zone = 'Europe/Berlin'\n"
        "[accounts.acme]\n[accounts.globex]\nnightly_cron = '0 4 * * *'\n",
        encoding="utf-8",
    )
    acme, globex = (load_settings({"account": n}, {}, tmp_path) for n in ("acme", "globex"))

    assert ("0 1 * * *", "0 4 * * *") == (acme.nightly_cron, globex.nightly_cron)
    assert "Europe/Berlin" == acme.time_zone == globex.time_zone

"""The page of settings has every setting, variable, bound and default as the code has it."""

from __future__ import annotations

import re
from pathlib import Path

from connector.settings import CONFIG_VARIABLE, ENVIRONMENT, load_settings
from tests.catalog.document import list_quoted_words, parse_tables
from tests.repository import ROOT, Repository

SETTINGS_PAGE = (ROOT / "docs" / "SETTINGS.md").read_text(encoding="utf-8")


def test_environment_variables_in_documents_exist() -> None:
    known = {*ENVIRONMENT.values(), CONFIG_VARIABLE}
    unknown = [
        f"{document.path}: {name}"
        for document in Repository(ROOT).select(".md")
        for name in re.findall(r"\bCONNECTOR_[A-Z_]+\b", document.text)
        if name not in known
    ]

    assert [] == unknown


def test_the_settings_page_lists_every_setting() -> None:
    table = next(t for t in parse_tables(SETTINGS_PAGE) if t.header[0] == "Setting")
    stated = {
        list_quoted_words(row["Setting"])[0]: list_quoted_words(row["Variable"])[0]
        for row in table.rows_as_dicts()
    }

    assert list(stated.items()) == list(ENVIRONMENT.items())
    assert CONFIG_VARIABLE in SETTINGS_PAGE


def test_the_settings_page_states_defaults_and_limits(tmp_path: Path) -> None:
    table = next(t for t in parse_tables(SETTINGS_PAGE) if t.header[0] == "Setting")
    shown = {name: value for name, value, _ in load_settings({}, {}, tmp_path).display_rows()}
    for row in table.rows_as_dicts():
        (name,) = list_quoted_words(row["Setting"])
        bounds = re.fullmatch(r"(\d+) to (\d+)", row["Allowed"])
        for bound in bounds.groups() if bounds else ():
            settings = load_settings({name: bound}, {}, tmp_path)
            assert int(bound) == getattr(settings, name)
        stated = re.fullmatch(r"`([^`]+)`|(\d+)", row["Default"])
        if stated:
            assert shown[name].endswith(stated[1] or stated[2])
        elif row["Default"] != "all three" and name in shown:
            assert shown[name] == "not set"


def test_the_documented_project_file_is_accepted(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", SETTINGS_PAGE, re.DOTALL)
    (tmp_path / "connector.toml").write_text(example, encoding="utf-8")
    for name in ("acme", "globex"):
        (tmp_path / f"{name}.key").write_text(f"key-of-{name}\n", encoding="utf-8")
        (tmp_path / f"{name}.key").chmod(0o600)

    globex = load_settings({"account": "globex"}, {}, tmp_path)

    assert ("acme", "globex") == globex.accounts
    assert 10_000 == globex.monthly_requests
    assert "https://globex.example" == globex.connection()[0]
    assert () == globex.warnings

"""docs/PERSONAL_DATA.md: its example rules are valid."""

from __future__ import annotations

import re
from pathlib import Path

from connector.privacy.retention import parse_rules
from connector.settings.model import load_settings
from tests.repository import ROOT

PAGE = ROOT / "docs" / "PERSONAL_DATA.md"


def test_documented_retention_rules_are_accepted(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "connector.toml").write_text(example, encoding="utf-8")
    for account, count in ((None, 2), ("acme", 1)):
        rules = load_settings({"account": account}, {}, tmp_path).retention

        assert count == len(parse_rules(rules.value, rules.origin))

"""docs/PERSONAL_DATA.md says of every declared field which class it has and whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from connector.catalog import CATALOG
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field, Personal
from connector.privacy.retention import read_rules
from connector.settings.model import load_settings
from tests.house.tree import ROOT

PAGE = ROOT / "docs" / "PERSONAL_DATA.md"
CLASSES = (*get_args(Personal), "none")


def classes() -> Iterator[str]:
    """The table of classes: a row for each resource, a column for each class."""
    yield f"| Resource | {' | '.join(f'`{each}`' for each in CLASSES)} |"
    yield "|---" * (len(CLASSES) + 1) + "|"
    for resource in CATALOG.values():
        yield f"| `{resource.name}` | {' | '.join(_by_class(resource.fields.values()))} |"
    parts = ContentTypeField.fields_declared.values()
    yield f"| `content_type_fields` | {' | '.join(_by_class(parts))} |"


def _by_class(fields: Iterable[Field]) -> Iterator[str]:
    known = list(fields)
    for each in CLASSES:
        yield ", ".join(f"`{f.name}`" for f in known if (f.personal or "none") == each) or "-"


def owners() -> Iterator[str]:
    """The table of owners: a row for each group of fields."""
    yield "| Resource | Whose | Known by | Fields |"
    yield "|---|---|---|---|"
    for name, resource in CATALOG.items():
        for group in resource.owners:
            known = ", ".join(f"`{each}`" for each in (*group.ids, *group.emails))
            personal = [f.name for f in resource.fields.values() if f.personal is not None]
            is_all = set(personal) == set(group.fields)
            fields = "all personal fields" if is_all else ", ".join(f"`{e}`" for e in group.fields)
            yield f"| `{name}` | {group.about} | {known} | {fields} |"


def _table(name: str) -> list[str]:
    page = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"<!-- {name}: .*?-->\n(.*?)<!-- end of {name} -->", page, re.DOTALL)
    assert found is not None, name
    return found[1].strip().splitlines()


def test_every_field_is_listed_with_its_class() -> None:
    """The table of classes is what the declarations say, of every declared field."""
    assert list(classes()) == _table("classes")


def test_every_group_is_listed_with_its_fields() -> None:
    """The table of owners is what is erased together, and by what it is known."""
    assert list(owners()) == _table("owners")


def test_rules_of_the_page_are_accepted(tmp_path: Path) -> None:
    """The example of retention is a project file whose rules are read."""
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "connector.toml").write_text(example, encoding="utf-8")
    for account, count in ((None, 2), ("acme", 1)):
        rules = load_settings({"account": account}, {}, tmp_path).retention

        assert count == len(read_rules(rules.value, rules.origin))

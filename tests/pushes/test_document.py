"""The pages about pushes agree with the code: states, problems, outcomes, mapping and inbox."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from connector.pushes.inbox import KEYS, read_instructions
from connector.pushes.row import DOUBTS, UNANSWERED
from connector.sandbox.server import Sandbox
from connector.spreadsheet.mapping_file import load_map
from connector.state.row import Mode, Operation, Outcome, State
from tests.catalog.document import parse_tables
from tests.repository import ROOT
from tests.support.command import call, variables

PAGE, EXPLANATION = (
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("IMPORT.md", "PUSH.md")
)


def read_code_block(language: str) -> str:
    """Return the only code block of a language on the page of imports."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_every_row_state_is_documented() -> None:
    (table,) = (each for each in parse_tables(EXPLANATION) if each.header[0] == "State")

    assert [f"`{state}`" for state in get_args(State)] == [
        row["State"] for row in table.rows_as_dicts()
    ]


def test_every_doubt_code_is_documented() -> None:
    (table,) = (each for each in parse_tables(PAGE) if each.header[0] == "Doubt")
    documented = {row["Doubt"].strip("`"): row["What is known"] for row in table.rows_as_dicts()}

    known = {code: text.format(answered=UNANSWERED) for code, text in DOUBTS.items()}
    assert {code: f"{text[0].upper()}{text[1:]}." for code, text in known.items()} == documented


def test_every_outcome_and_mode_is_documented() -> None:
    outcomes = [
        row for each in parse_tables(PAGE) for row in each.rows_as_dicts() if "Outcome" in row
    ]
    modes = [row for each in parse_tables(PAGE) for row in each.rows_as_dicts() if "Mode" in row]

    assert set(get_args(Outcome)) - set(get_args(Operation)) == {
        name.strip(" `") for row in outcomes for name in row["Outcome"].split(",")
    }
    assert set(get_args(Mode)) == {row["Mode"].strip("`") for row in modes}


def test_the_documented_push_toml_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "push.toml").write_text(read_code_block("text"), encoding="utf-8")
    (tmp_path / "people.toml").write_text(read_code_block("toml"), encoding="utf-8")
    orders = read_instructions(tmp_path)

    mapping = str(tmp_path / "people.toml")
    wanted = {"mode": "upsert", "match": ("email",), "apply": True, "mapping_file": mapping}
    assert wanted == orders


def test_every_key_of_push_toml_is_documented() -> None:
    (documented,) = re.findall(r"^`push\.toml` takes .*?\n\n", PAGE, re.DOTALL | re.MULTILINE)
    keys = re.findall(r"`([a-z_]+)`", documented.split(":", 1)[1])
    assert list(KEYS) == keys


def test_the_documented_mapping_file_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(read_code_block("toml"), encoding="utf-8")
    saved = load_map(tmp_path / "map.toml")
    assert {"Kind of work", "Town"} == set(saved.columns)
    (tmp_path / "people.csv").write_text(
        "first_name,last_name,email,Kind of work,Town,date_of_birth,Favourite colour\n"
        "Eve,Orr,eve@people.example,Perm,Leeds,03/04/1991,blue\n",
        encoding="utf-8",
    )
    with Sandbox(counts={"jobs": 1}) as sandbox:
        words = ["push", "candidates", str(tmp_path / "people.csv"), "--mode", "create"]
        words += ["--mapping", str(tmp_path / "map.toml"), "--apply"]
        done = call(words, variables(sandbox.base_url, tmp_path, sandbox.key))
        (made,) = sandbox.store.records("candidates").values()

    assert 0 == done.status, done.err
    assert ("permanent", "Leeds", "1991-04-03", "Spring fair") == tuple(
        made[name] for name in ("employment_type", "city", "date_of_birth", "source")
    )
    assert "Favourite colour" not in done.err

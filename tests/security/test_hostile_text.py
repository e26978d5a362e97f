"""Hostile texts of the API in every field of every record, from the pull to the output files."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import openpyxl
import pytest

from connector.catalog import CATALOG
from connector.client.messages import Response, build_request, response_error
from connector.errors import ValidationFailed
from connector.log import UNSAFE
from connector.sandbox.server import Sandbox
from tests.support.command import KEY, CommandResult, call, variables

COUNTS = {"jobs": 6, "candidates": 12, "companies": 3, "bookings": 6, "leads": 4}
COUNTS |= {"content_types": 2, "content_items": 4}
HOSTILE = (
    "</td></script><script>alert(1)</script><img src=x onerror=alert(1)>"
    "\x1b[2J\x1b]0;owned\x07\u202e\r\n'\"; DROP TABLE landing.jobs; --{{7*7}}${7*7}../../../etc/x"
)
FORMULA = f'=HYPERLINK("http://evil.example"){HOSTILE}'
_PLAIN = re.compile(r"[\d:TZ.+-]+|[0-9a-f-]{36}|[A-Z]{2,3}|[\w.+-]+@[\w.-]+")
"""Timestamps, ids, codes and addresses stay unchanged, because the models calculate with them."""
_FILE_NAME = re.compile(r"[\w.-]+")


def make_hostile(value: Any) -> Any:
    """Return a copy of a JSON value in which every text, except ids and codes, is hostile."""
    match value:
        case str() if not _PLAIN.fullmatch(value):
            return HOSTILE + value
        case dict():
            return {name: make_hostile(each) for name, each in value.items()}
        case list():
            return [make_hostile(each) for each in value]
    return value


def make_records_hostile(sandbox: Sandbox) -> None:
    """Replace every text of every record by a hostile one; some start like a formula."""
    for resource in COUNTS:
        for id, record in sandbox.store.records(resource).items():
            changes = {name: make_hostile(value) for name, value in record.items() if name != "id"}
            for name in ("first_name", "source", "assigned_to_name"):
                if name in record:
                    changes[name] = FORMULA
            sandbox.store.change_silently(resource, id, changes)
    (first, second) = sandbox.store.records("content_types").items()
    for (id, record), keeps_keys in ((first, False), (second, True)):
        options = {"config": json.dumps({"options": [FORMULA, HOSTILE]}), "field_type": "select"}
        plain = [{"field_key": f"plain_{n}"} if keeps_keys else {} for n in range(99)]
        fields = [{**f, **options, **key} for f, key in zip(record["fields"], plain, strict=False)]
        sandbox.store.change_silently("content_types", id, {"fields": fields})


def read_texts(path: Path) -> Iterator[str]:
    """Yield the text of a file that users open, or of each part of a workbook."""
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as book:
            yield from (book.read(name).decode() for name in book.namelist())
    elif path.suffix in (".html", ".csv", ".json", ".toml", ".txt"):
        yield path.read_text(encoding="utf-8-sig")


def find_unsafe_characters(text: str) -> set[str]:
    """Return control and formatting characters in a text, except line ends and tabs."""
    return set(UNSAFE.findall(text)) - {"\n", "\r", "\t"}


class HostileRun(NamedTuple):
    """Folder and results of commands that met hostile text in every record."""

    folder: Path
    results: list[CommandResult]


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> HostileRun:
    """Commands from the first pull to the last publication, two of which build the models."""
    folder = tmp_path_factory.mktemp("hostile")
    results: list[CommandResult] = []
    people = folder / "people.csv"
    people.write_text(
        "First name,Last name,Email,Employment type\n"
        "Ann,Lee,ann@new.example,permanent\nBo,Lee,bo@,freelance\n"
    )
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        make_records_hostile(sandbox)
        odd, plain = sandbox.store.records("content_types")
        environ = variables(sandbox.base_url, folder / "data")
        with_models = environ | {"CONNECTOR_MODELS": "on"}
        template = ("template", "content_items", "--type")
        push = ("push", "candidates", str(people), "--mode", "create")
        for words, environment in (
            (("pull",), environ),
            (push, environ),
            ((*push, "--apply", "--json"), environ),
            (("person", "find", "ann@new.example"), environ),
            (("undo", "last", "--apply"), environ),
            (("pull", "--reverify", "40", "--json", "--debug"), with_models),
            (("status",), with_models),
            (("status", "--json"), with_models),
            (("verify",), with_models),
            (("models", "seeds", "--write"), with_models),
            (("report", "--out", str(folder / "report.html"), "--json"), with_models),
            ((*template, plain, "--out", str(folder / "new.xlsx")), environ),
            ((*template, plain, "--out", str(folder / "new.csv")), environ),
            ((*template, odd, "--out", str(folder / "odd.csv")), environ),
            (("publish", "--parquet", str(folder / "parquet"), "--schema", "marts"), with_models),
        ):
            results.append(call(words, environment))
            assert results[-1].status in (0, 3), (words, results[-1])
    return HostileRun(folder, results)


@pytest.mark.slow
def test_hostile_text_is_escaped_on_the_terminal(hostile_run: HostileRun) -> None:
    texts = [text for each in hostile_run.results for text in (each.out, each.err)]

    assert any("\\x1b" in text or "\\u001b" in text for text in texts)
    assert [] == [text for text in texts if find_unsafe_characters(text)]


@pytest.mark.slow
def test_hostile_text_is_escaped_in_the_report(hostile_run: HostileRun) -> None:
    text = (hostile_run.folder / "report.html").read_text(encoding="utf-8")
    tags: list[tuple[str, list[tuple[str, str | None]]]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append((tag, attrs))  # type: ignore[method-assign]
    parser.feed(text)

    assert "&lt;script&gt;alert(1)" in text
    assert {"html", "table"} <= {tag for tag, _ in tags}
    assert not {"script", "img", "iframe"} & {tag for tag, _ in tags}
    assert [] == [name for _, attrs in tags for name, _ in attrs if name.startswith("on")]


@pytest.mark.slow
def test_hostile_text_loses_no_table_of_the_published_file(hostile_run: HostileRun) -> None:
    with duckdb.connect(
        str(hostile_run.folder / "data" / "recruitment.duckdb"), read_only=True
    ) as published:
        names = published.execute("SELECT first_name FROM landing.candidates").fetchall()
        counted = {
            each: published.execute(f"SELECT count(*) FROM landing.{each}").fetchall()[0][0]
            for each in COUNTS
        }
        views = published.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal")
        named = [name for (name,) in views.fetchall()]

    assert names.count((FORMULA,)) == COUNTS["candidates"]
    assert {**COUNTS, "candidates": counted["candidates"]} == counted
    assert any(name.startswith("content_td_script") for name in named), named
    assert [] == [name for name in named if not re.fullmatch(r"[a-z_0-9]+", name)]


@pytest.mark.slow
def test_hostile_text_is_escaped_in_files_and_unused_in_paths(hostile_run: HostileRun) -> None:
    files = [path for path in hostile_run.folder.rglob("*") if path.is_file()]
    seeds = list((hostile_run.folder / "data" / "seeds").glob("*.csv"))

    assert {"report.html", "new.xlsx", "recruitment.duckdb"} <= {each.name for each in files}
    assert [] == [each.name for each in files if not _FILE_NAME.fullmatch(each.name)]
    assert [] == [
        each.name for each in files if any(find_unsafe_characters(t) for t in read_texts(each))
    ]
    assert seeds
    assert [] == [s.name for s in seeds if re.search(r'(^|[,;])"?[=+@]', s.read_text(), re.M)]
    assert [] == [
        t for t in read_texts(hostile_run.folder / "new.xlsx") if "<f>" in t or "<script" in t
    ]
    assert ["Rows"] == openpyxl.load_workbook(hostile_run.folder / "new.xlsx").sheetnames


def test_hostile_error_messages_of_the_api_are_escaped() -> None:
    body = b'{"message": "\\u001b[2J\\nforged", "errors": {"a\\u0007b": ["c\\u202ed"]}}'
    error = response_error(build_request(CATALOG["jobs"], "get", "5d1c"), Response(422, {}, body))

    assert isinstance(error, ValidationFailed)
    assert "\\x1b[2J\\nforged" in str(error)
    assert {"a\\x07b": ("c\\u202ed",)} == error.errors

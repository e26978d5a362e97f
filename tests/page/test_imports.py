"""Imports over HTTP: answers and edits, sending, results, undo and reports."""

from __future__ import annotations

import asyncio
import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import openpyxl
import pytest

from connector.page.imports import Import
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.page.serving import HEADINGS, OpenImport, Server, User, make_csv, serve
from tests.pushes.pushing import create_lead
from tests.support.agency import settings_of
from tests.support.processes import OtherProcess

BO = "Bo,Li,bo@example.com,permanent"
CY = "Cy,Lo,cy@example.com,permanent"


def people(sandbox: Sandbox) -> list[str]:
    """Return the first names of all candidates."""
    return sorted(str(each["first_name"]) for each in sandbox.store.records("candidates").values())


def add_person(sandbox: Sandbox, **values: str) -> str:
    """Create a candidate on the platform and return its id."""
    body = {"first_name": "Bo", "last_name": "Li", "employment_type": "permanent", **values}
    return str(sandbox.store.create("candidates", body).record["id"])


def column(heading: str, **decided: Any) -> dict[str, Any]:
    """Return a change of the column mapping."""
    return {"columns": {heading: decided}}


# -- answers and edits -----------------------------------------------------------------------------


def test_an_edit_is_the_text_that_the_user_typed(ann: User) -> None:
    opened = ann.upload(make_csv(f'{BO},"Flat 2\n12 Mill Lane"', headings=f"{HEADINGS},Address"))

    found = opened.change(cells=[[2, 4, "Flat 3\n12 Mill Lane "]])

    assert ["Flat 3\n12 Mill Lane ", [4]] == [found_cell(opened, 4), opened.show()["rows"][0][2]]
    assert ["create"] == [row["outcome"] for row in found["check"]["rows"].values()]
    opened.change(cells=[[2, 4, "Flat 2\n12 Mill Lane"]])
    assert [] == opened.show()["rows"][0][2], "the cell is as in the file again"


def found_cell(opened: OpenImport, index: int) -> str:
    """Return a cell of the first row."""
    return str(opened.show()["rows"][0][1][index])


def test_the_older_of_two_tabs_is_refused(ann: User) -> None:
    first = ann.upload(make_csv(BO, CY))
    second = OpenImport(ann, first.id)
    first.change(cells=[[2, 0, "Bob"]])

    refused = second.change(409, cells=[[2, 0, "Bea"]])

    assert "another tab" in refused["error"]
    assert "Bob" == found_cell(first, 0)
    second.start_sending(status=409)
    second.load()
    second.change(cells=[[2, 0, "Bea"]])
    assert "Bea" == found_cell(first, 0)


def test_of_two_saves_at_the_same_time_one_is_refused(
    ann: User, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = ann.upload(make_csv(BO))
    both_began, columns = Barrier(2, timeout=30), server.imports.columns

    def columns_later(each: Import) -> Any:
        both_began.wait()
        return columns(each)

    def save(text: str) -> int:
        said = {"version": 1, "cells": [[2, 0, text]]}
        return ann.send_request(opened.path, json.dumps(said).encode()).status_code

    monkeypatch.setattr(server.imports, "columns", columns_later)
    with ThreadPoolExecutor(2) as pool:
        assert [200, 409] == sorted(pool.map(save, ("Bob", "Bea")))


def test_a_save_whose_answer_was_lost_can_be_repeated(ann: User) -> None:
    opened = ann.upload(make_csv(BO))
    said = {"version": opened.version, "key": "a save", "cells": [[2, 0, "Bob"]]}

    one, two = ann.post(opened.path, said), ann.post(opened.path, said)

    assert one["check"]["version"] == two["check"]["version"] == opened.version + 1


@pytest.mark.parametrize(
    "said",
    [
        column("Employment type", field="employment_type", values={"frei": "wonderful"}),
        {"constants": {"status": "wonderful"}},
        column("First name", field="no_such_field"),
        {**column("First name", field="last_name"), "constants": {"last_name": "Li"}},
        column("Email", field="email", date_format="tomorrow"),
        column("Email", field="email", policy="always"),
        {"columns": []},
        {"columns": {"Email": 1}},
        {"constants": {"city": None}},
        {"region": "XX"},
    ],
    ids=str,
)
def test_an_answer_that_is_not_allowed_is_saved_nowhere(ann: User, said: dict[str, object]) -> None:
    opened = ann.upload(make_csv("Bo,Li,bo@example.com,frei"))
    before = opened.show()

    assert opened.change(422, mapping=said)["error"]

    assert before == opened.show()


@pytest.mark.parametrize(
    "body",
    [
        b"{}", b"[]", b"\xff", b'{"version": "1"}', b'{"version": 1, "cells": [[2, 0]]}',
        b'{"version": 1, "cells": [[99, 0, "x"]]}', b'{"version": 1, "cells": [[2, -1, "x"]]}',
        b'{"version": 1, "cells": [[2, "", "x"]]}', b'{"version": 1, "more": 1}',
        b'{"version": %s}' % (b"9" * 5_000), b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_change_that_no_page_sends_is_refused(ann: User, body: bytes) -> None:
    opened = ann.upload(make_csv(BO))

    for path in (opened.path, f"{opened.path}/send"):
        assert ann.send_request(path, body).status_code in (400, 409, 422), path

    assert 1 == opened.show()["version"]


def test_equal_cells_get_one_answer_and_the_next_file_remembers_it(
    sandbox: Sandbox, ann: User
) -> None:
    rows = [f"P{n},Li,p{n}@example.com,frei,red" for n in range(3)]
    first = ann.upload(make_csv(*rows, headings=f"{HEADINGS},Colour"))
    asked = {each["code"] for each in first.check()["questions"]}
    assert {"columns_lost", "values"} == asked
    answer = column("Employment type", field="employment_type", values={"frei": "contract"})
    first.change(mapping={"ignored": ["Colour"], **answer})
    assert {"create"} == {*first.outcomes().values()}
    assert ["created"] * 3 == [*first.send().values()]

    again = ann.upload(make_csv("Zoe,Li,zoe@example.com,frei,blue", headings=f"{HEADINGS},Colour"))

    assert again.load()["is_remembered"]
    assert {"2": "create"} == again.outcomes()
    assert [] == again.check()["questions"]
    assert {"contractor"} == {
        each["employment_type"] for each in sandbox.store.records("candidates").values()
    }


def test_a_correction_of_a_persons_cell_is_not_remembered(ann: User, server: Server) -> None:
    opened = ann.upload(make_csv("Bo,Li,bo at example.com,permanent"))
    opened.change(cells=[[2, 2, "bo@example.com"]])
    opened.send()

    maps = [*server.imports.settings.folder.rglob("*.toml")]
    assert not any("bo@" in path.read_text() or "bo at" in path.read_text() for path in maps)


def test_a_value_for_all_rows_fills_a_missing_field(ann: User) -> None:
    opened = ann.upload(make_csv("Bo,Li,bo@example.com", headings="First name,Last name,Email"))
    assert ["employment_type"] == opened.show()["columns"]["missing"]

    found = opened.change(mapping={"constants": {"employment_type": "permanent"}})

    (row,) = found["check"]["rows"].values()
    assert ["employment_type", None, "permanent"] in row["changes"]


def test_the_user_chooses_the_sheet_and_the_header_row(ann: User) -> None:
    book = openpyxl.Workbook()
    for name in ("Old", "New"):
        sheet = book.create_sheet(name)
        for line in (["List of people"], HEADINGS.split(","), BO.split(",")):
            sheet.append(line)
    content = io.BytesIO()
    book.save(content)
    refused = ann.start("people.xlsx", content.getvalue(), status=422)
    assert ["Old", "New"] == refused.json()["names"]
    said: dict[str, Any] = {"name": "people.xlsx", "reading": {"sheet": "New"}}
    opened = ann.upload(content.getvalue(), **said)
    assert {"3": "create"} == opened.outcomes()

    opened.change(422, reading={"sheet": "Other"})
    opened.change(400, reading={"header_row": 0})
    opened.change(cells=[[3, 0, "Bob"]])
    opened.change(reading={"sheet": "New", "header_row": 1})
    assert "List of people" == opened.show()["headings"][0]
    assert "Bo" == opened.show()["rows"][1][1][0], "another reading drops the edits"


def test_a_row_can_be_left_out_and_brought_back(sandbox: Sandbox, ann: User) -> None:
    opened = ann.upload(make_csv(BO, CY, CY))
    assert "duplicate" == opened.outcomes()["4"]
    opened.change(cells=[[3, "out", "yes"], [4, "out", "yes"]])
    assert {"2": "create"} == opened.outcomes()
    opened.change(cells=[[3, "out", ""]])

    opened.send()

    assert ["Bo", "Cy"] == people(sandbox)


# -- sending ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_good_rows_are_sent_and_the_others_later_but_no_row_twice(
    sandbox: Sandbox, ann: User
) -> None:
    """Not even if an answer that changes every row is given in between."""
    opened = ann.upload(make_csv(BO, "Cy,Lo,cy(at)example.com,permanent"))
    assert {"2": "create", "3": "invalid"} == opened.outcomes()
    assert {"2": "created", "3": "invalid"} == opened.send()

    opened.change(cells=[[3, 2, "cy@example.com"]])
    opened.change(mapping={"constants": {"city": "Bath"}})
    assert {"2": "created", "3": "create"} == opened.outcomes()
    assert "already imported" in opened.change(409, cells=[[2, 0, "Bob"]])["error"]
    assert {"2": "created", "3": "created"} == opened.send()

    assert ["Bo", "Cy"] == people(sandbox)


def test_a_sent_import_cannot_be_sent_again(sandbox: Sandbox, ann: User) -> None:
    opened = ann.upload(make_csv(BO))
    stale = opened.version
    opened.send()

    opened.version, latest = stale, opened.version
    opened.start_sending(status=409)
    opened.version = latest
    assert {} == opened.outcomes() or opened.send()

    assert ["Bo"] == people(sandbox)


@pytest.mark.slow
def test_rows_with_warnings_stay_back_unless_they_are_accepted(sandbox: Sandbox, ann: User) -> None:
    odd = "Cy,Lo,cy@example.com,permanent,Mon 1.2.1995"
    opened = ann.upload(make_csv(f"{BO},1985-01-01", odd, headings=f"{HEADINGS},Date of birth"))
    assert ["weekday_differs"] == [each["code"] for each in opened.check()["rows"]["3"]["problems"]]

    assert {"2": "created", "3": "not_sent"} == opened.send()
    opened.change()
    assert "create" == opened.outcomes()["3"]
    assert {"2": "created", "3": "created"} == opened.send("warnings")

    assert ["Bo", "Cy"] == people(sandbox)


def test_a_warning_about_the_whole_file_is_confirmed_first(sandbox: Sandbox, ann: User) -> None:
    lines = (f"{BO},2026-04-03", f"{CY},25/12/2026")
    opened = ann.upload(make_csv(*lines, headings=f"{HEADINGS},Available from"))
    assert ["mixed_dates"] == [each["code"] for each in opened.check()["questions"]]

    opened.start_sending()
    opened.wait()
    assert "a question is open" in opened.load()["error"][0]
    assert [] == people(sandbox)
    opened.send("mixed_dates")

    dates = [e["available_from"] for e in sandbox.store.records("candidates").values()]
    assert ["2026-04-03", "2026-12-25"] == sorted(map(str, dates))


def test_the_user_chooses_one_of_several_records(sandbox: Sandbox, tmp_path: Path) -> None:
    ids = [add_person(sandbox, email="bo@example.com", city=city) for city in ("Bath", "Leeds")]
    asyncio.run(pull(settings_of(sandbox, tmp_path), ["candidates"]))
    with serve(sandbox, tmp_path) as server, User(server) as user:
        content = make_csv("bo@example.com,York", headings="Email,City")
        opened = user.upload(content, mode="update", match="email")
        found = opened.check()
        assert (
            {*ids} == {*found["rows"]["2"]["problems"][0]["found"].split()} == {*found["records"]}
        )
        assert "Leeds" in found["records"][ids[1]]

        opened.change(cells=[[2, "record", ids[1]]])
        assert {"2": "updated"} == opened.send()

    cities = [sandbox.store.records("candidates")[id]["city"] for id in ids]
    assert ["Bath", "York"] == cities


def test_a_conversion_needs_its_own_confirmation(sandbox: Sandbox, tmp_path: Path) -> None:
    create_lead(sandbox, "li")
    asyncio.run(pull(settings_of(sandbox, tmp_path), ["leads"]))
    with serve(sandbox, tmp_path) as server, User(server) as user:
        opened = user.upload(
            b"Email\nli@example.com\n", resource="leads", mode="convert", match="email"
        )
        assert {"2": "convert"} == opened.outcomes()
        opened.start_sending(status=422)
        assert {"2": "converted"} == opened.send("convert")


def test_a_push_waits_for_another_process_and_says_for_what(
    sandbox: Sandbox, server: Server, ann: User
) -> None:
    opened = ann.upload(make_csv(BO))
    opened.check()
    other = OtherProcess(server.imports.settings.folder)
    try:
        opened.start_sending()
        waiting = opened.wait_for("phase", "waits")
        while not waiting["waits_for"]:
            waiting = opened.wait_for("phase", "waits")
        assert f"pull (process {other.process.pid}," in waiting["waits_for"]
        assert [] == people(sandbox)
    finally:
        other.kill()
    opened.wait()
    assert ["Bo"] == people(sandbox)


def test_an_interrupted_push_is_continued_by_the_next_server(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve(sandbox, tmp_path) as server, User(server) as user:
        opened = user.upload(make_csv(BO, "Cy,Lo,cy at example.com,permanent"))
        opened.change(cells=[[3, 2, "cy@example.com"]])
        opened.check()
        # The server is killed right after it stored that the import is being sent.
        server.imports._start = lambda *_: None  # type: ignore[method-assign]
        opened.start_sending()
        assert [] == people(sandbox)
    with serve(sandbox, tmp_path) as server, User(server) as user:
        opened.user = user
        opened.wait()
        assert ["Bo", "Cy"] == people(sandbox)
        assert ["created", "created"] == [row["outcome"] for row in opened.results().values()]


# -- results ---------------------------------------------------------------------------------------


def test_imports_are_deleted_by_the_user_or_after_some_days(ann: User, server: Server) -> None:
    first, second = ann.upload(make_csv(BO)), ann.upload(make_csv(CY))
    ann.post(f"{first.path}/delete", {})
    assert [second.id] == [each["id"] for each in ann.get("/api/start")["open"]]
    each = server.imports.load(second.id)
    path = server.imports.folder / second.id / "import.json"
    path.write_text(path.read_text().replace(str(each.changed_at.year), "2020", 1))

    assert [] == ann.get("/api/start")["open"]
    assert not path.exists()

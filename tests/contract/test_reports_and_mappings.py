"""The report can be corrected and pushed again; templates and mappings describe a file."""

from __future__ import annotations

import csv
from pathlib import Path

import openpyxl
import pytest

from tests.contract.kit import Account, candidate, plain

CREATE = ("--mode", "create")


def correct(report: Path, wrong: str, right: str) -> Path:
    """Write a copy of the report in which a cell is corrected."""
    copy = report.with_name("corrected.csv")
    text = report.read_text(encoding="utf-8-sig")
    assert wrong in text
    copy.write_text(text.replace(wrong, right), encoding="utf-8-sig")
    return copy


def test_a_corrected_report_sends_the_corrected_row_only(account: Account) -> None:
    rows = [candidate(1), candidate(2, employment_type="sometimes"), candidate(3)]
    done = account.push("candidates", account.csv("a.csv", rows), *CREATE, status=3)
    account.server.forget()
    again = account.push("candidates", correct(done.report, "sometimes", "permanent"), *CREATE)
    assert ["ann2@people.example"] == [each.fields["email"] for each in account.server.sent()]
    assert "created" in again.outcomes
    for number in (1, 2, 3):
        assert 1 == account.server.emails().count(f"ann{number}@people.example")


def test_a_row_that_the_platform_refused_has_its_message_and_is_sent_again_alone(
    account: Account,
) -> None:
    body = b'{"message": "Invalid.", "errors": {"city": ["is not a city of this country"]}}'
    account.server.rule("POST *", plain(422, body), times=1)
    file = account.csv("a.csv", [candidate(1, city="Atlantis"), candidate(2, city="Atlantis")])
    done = account.push("candidates", file, *CREATE, status=3)
    (refused,) = (row for row in done.rows if row["_outcome"] == "rejected")
    assert "city: is not a city of this country" in refused["_problem"]
    account.server.forget()
    again = account.push("candidates", correct(done.report, "Atlantis", "Atlantis"), *CREATE)
    assert [refused["email"]] == [each.fields["email"] for each in account.server.sent()]
    assert ["created", "unchanged"] == sorted(again.outcomes)


def test_a_report_has_the_columns_of_the_file(account: Account) -> None:
    rows = [candidate(1, employment_type="sometimes", notes="Line one\nline two")]
    done = account.push("candidates", account.csv("a.csv", rows), *CREATE, status=3)
    (row,) = done.rows
    assert rows[0] == {name: row[name] for name in rows[0]}
    assert row["_code"]
    assert row["_problem"]
    assert row["_fix"]


def test_no_cell_of_a_report_is_a_formula(account: Account) -> None:
    texts = ["=1+1", "+44 20 7946 0000", "-x", "@cmd", "\tx"]
    rows = [candidate(n, employment_type="sometimes", notes=text) for n, text in enumerate(texts)]
    done = account.push("candidates", account.csv("a.csv", rows), *CREATE, status=3)
    for row in done.rows:
        assert not row["notes"].startswith(("=", "+", "-", "@", "\t"))
    account.push("candidates", correct(done.report, "sometimes", "permanent"), *CREATE)
    sent = {each.fields["email"]: each.fields["notes"] for each in account.server.sent()}
    assert {row["email"]: row["notes"].strip() for row in rows} == {
        email: notes.strip() for email, notes in sent.items()
    }


@pytest.mark.parametrize(("resource", "form"), [("candidates", "csv"), ("bookings", "xlsx")])
def test_a_template_can_be_filled_and_pushed(empty: Account, resource: str, form: str) -> None:
    path = empty.folder / f"t.{form}"
    assert 0 == empty.run("template", resource, "--out", path).status
    if form == "csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            headings = next(csv.reader(file))
    else:
        book = openpyxl.load_workbook(path)
        assert book.active is not None
        headings = [str(each.value) for each in next(book.active.iter_rows())]
    assert len(headings) > 5
    if resource == "candidates":
        row = candidate(1)
        assert {*row} <= {*headings}
        lines = path.read_text("utf-8-sig").splitlines()
        given = [",".join(str(row.get(heading, "")) for heading in headings)]
        filled = empty.folder / "filled.csv"
        filled.write_text("\n".join([lines[0], *given]), encoding="utf-8")
        empty.push(resource, filled, *CREATE)
        assert [row] == [each.fields for each in empty.server.sent()]
    else:
        result = empty.run("push", resource, path, *CREATE, "--no-pull", "--apply")
        assert result.status in (2, 3), "a template has no rows, or its example"
        assert [] == empty.server.sent()


def test_a_mapping_file_sets_fields_values_and_constants(account: Account) -> None:
    mapping = account.folder / "map.toml"
    mapping.write_text(
        'resource = "candidates"\nignored = ["Colour"]\n[constants]\nsource = "Spring fair"\n'
        '[columns."Kind of work"]\nfield = "employment_type"\nvalues = { "P" = "permanent" }\n'
        '[columns."Where"]\nfield = "city"\n'
    )
    row = candidate(1)
    del row["employment_type"]
    file = account.csv("a.csv", [{**row, "Kind of work": "P", "Where": "Leeds", "Colour": "red"}])
    account.push("candidates", file, *CREATE, "--mapping", str(mapping))
    (request,) = account.server.sent()
    assert candidate(1, city="Leeds", source="Spring fair") == request.fields


@pytest.mark.parametrize("policy", ["fill", "never"])
def test_a_policy_keeps_a_value_of_the_platform(account: Account, policy: str) -> None:
    id = account.server.ids("candidates")[0]
    account.server.api("PUT", f"/candidates/{id}", city="York")
    account.pull("candidates")
    account.server.forget()
    mapping = account.folder / "map.toml"
    mapping.write_text(
        f'resource = "candidates"\n[columns."Town"]\nfield = "city"\npolicy = "{policy}"\n'
    )
    file = account.csv("a.csv", [{"id": id, "Town": "Leeds"}])
    account.run(
        "push", "candidates", file, "--mode", "update", "--apply", "--mapping", mapping, "--no-pull"
    )
    assert "York" == account.server.api("GET", f"/candidates/{id}")["city"]


def test_an_unknown_column_stops_the_push_until_it_is_ignored(account: Account) -> None:
    file = account.csv("a.csv", [candidate(1) | {"Favourite colour": "red"}])
    account.run("push", "candidates", file, *CREATE, "--apply", "--no-pull")
    assert [] == account.server.sent()
    account.push("candidates", file, *CREATE, "--ignore", "Favourite colour")
    assert 1 == len(account.server.sent())


def test_a_mapping_is_remembered_for_the_same_headings(account: Account) -> None:
    mapping = account.folder / "map.toml"
    mapping.write_text('resource = "candidates"\n[columns."Where"]\nfield = "city"\n')
    first = account.csv("a.csv", [candidate(1) | {"Where": "Leeds"}])
    account.push("candidates", first, *CREATE, "--mapping", str(mapping))
    second = account.csv("b.csv", [candidate(2) | {"Where": "York"}])
    account.push("candidates", second, *CREATE)
    assert "York" == account.server.sent()[-1].fields["city"]


def test_the_mapping_that_a_preview_saves_can_be_given(account: Account) -> None:
    file = account.csv("a.csv", [candidate(1)])
    mapping = account.folder / "saved.toml"
    account.preview("candidates", file, *CREATE, "--save-mapping", str(mapping))
    account.push("candidates", file, *CREATE, "--mapping", str(mapping))
    assert candidate(1) == account.server.sent()[0].fields


@pytest.mark.parametrize("text", ["x = ", 'resource = "jobs"\n', 'resource = "candidates"\n'
    '[columns."city"]\nfield = "town"\n'])  # fmt: skip
def test_a_wrong_mapping_is_refused(account: Account, text: str) -> None:
    mapping = account.folder / "map.toml"
    mapping.write_text(text)
    file = account.csv("a.csv", [candidate(1)])
    words = (*CREATE, "--mapping", mapping, "--apply", "--no-pull")
    assert 2 == account.run("push", "candidates", file, *words).status
    assert [] == account.server.sent()


UPDATE = "SELECT id, 'Leeds' AS city FROM landing.candidates ORDER BY id LIMIT 2"


def test_a_query_of_the_published_file_is_pushed(account: Account) -> None:
    given = ("push", "candidates", "--query", UPDATE, "--mode", "update")
    assert 0 == account.run(*given).status
    assert [] == account.server.sent()
    assert 0 == account.run(*given, "--apply").status
    assert [{"city": "Leeds"}] * 2 == [each.fields for each in account.server.sent("PUT")]
    account.server.forget()
    assert 0 == account.run(*given, "--apply").status
    assert [] == account.server.sent()


@pytest.mark.parametrize("is_cleared", [False, True])
def test_a_null_of_a_query_empties_a_field_only_on_request(
    account: Account, *, is_cleared: bool
) -> None:
    id = account.server.ids("candidates")[0]
    account.server.api("PUT", f"/candidates/{id}", city="Leeds")
    account.pull("candidates")
    query = f"SELECT '{id}' AS id, NULL::VARCHAR AS city"
    words = ("--mode", "update", "--apply", *(["--clear-nulls"] if is_cleared else []))
    account.run("push", "candidates", "--query", query, *words)
    city = account.server.api("GET", f"/candidates/{id}")["city"]
    assert city in ((None, "") if is_cleared else ("Leeds",))


@pytest.mark.parametrize("query", [
    "DROP TABLE landing.candidates", "SELECT * FROM read_csv('/etc/passwd')", "SELECT 1; SELECT 2",
    "ATTACH '/tmp/x.duckdb'", "COPY (SELECT 1) TO '/tmp/contract-copy.csv'", "SELECT", "nonsense",
    "INSERT INTO landing.jobs SELECT * FROM landing.jobs", "SELECT 1 AS unknown_field",
])  # fmt: skip
def test_another_query_is_refused(account: Account, query: str) -> None:
    given = ("push", "candidates", "--query", query, "--mode", "update", "--apply", "--no-pull")
    assert account.run(*given).status in (1, 2, 3)
    assert [] == account.server.sent()
    assert not Path("/tmp/contract-copy.csv").exists()  # noqa: S108


def test_a_query_reads_only_the_published_file(account: Account) -> None:
    other = account.csv("other.csv", [{"id": account.server.ids("candidates")[0], "city": "Leeds"}])
    query = f"SELECT * FROM read_csv('{other}')"
    given = ("push", "candidates", "--query", query, "--mode", "update", "--apply", "--no-pull")
    result = account.run(*given)
    assert (2, True) == (result.status, "can read only the published file" in result.err)
    assert [] == account.server.sent()

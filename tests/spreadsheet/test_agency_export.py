"""Candidates from an agency's old system: few questions, and one answer for all equal cells."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from itertools import cycle, islice
from pathlib import Path

from connector.pushes.options import PushOptions
from connector.pushes.preview import Preview, preview, unanswered_values
from connector.spreadsheet.mapping import to_saved_map
from connector.spreadsheet.mapping_file import save_map
from connector.spreadsheet.report import ProblemGroup
from tests.spreadsheet.corpus.files import encode_csv
from tests.support.agency import settings_at

ROWS, QUESTIONS_MAX, NOTICES_MAX = 60, 4, 10
COLUMNS = {
    "Cand Ref": ("C1",),
    "Forename(s)": ("Siân", "Niamh"),
    "Surname": ("Ní Dhomhnaill", "O'Brien", "de Souza"),
    "Home Tel": ("(0113) 496 0430", "01632 960116 ext 12", ""),
    "Mobile": ("07700-900-113", "7700900267", "0044 7700 900169", "tbc"),
    "Addr 1": ("55 High St", "Flat 2\r\n12 Mill Lane"),
    "D.O.B.": ("06/07/73", "19/08/1973", "06-Aug-1991"),
    "RTW": ("ILR", "British citizen", "Y"),
    "Perm/Contract": ("Perm", "P", "Contract", "C", "Temp", "Both", "FTC"),
    "IR35": ("Inside", "O/S", "", "n/a", "Either"),
    "Current Sal": ("£38,500.00", "45000", "£45k", "neg", "£60K + car"),
    "Desired Sal": ("£48,000 pa", "£60,000", "Neg", "50-55k"),
    "Day Rate": ("£450/day", "£600pd", "£500 p/d", "£400 per day", "£450-£500", "£350 + VAT"),
    "Notice": ("4 weeks", "1 month", "Immediate", "None", "N/A"),
    "Availability": ("1st Feb 2027", "01/09/2026", "ASAP", "Now", "End of Jan"),
    "Relocate?": ("Y", "No", "", "UK only", "Poss"),
    "Consultant": ("Kelly", "JS", "KH", "TBA"),
    "Notes": ("Interviewed 03/11/25:\r\n\t* £££ driven", "=see CV"),
}
ANSWERS = {
    "Temp": "interim",
    "Both": "contractor",
    "FTC": "contractor",
    "n/a": "not_applicable",
    "Either": "unknown",
    "50-55k": "50000",
    "£60K + car": "60000",
    "£350 + VAT": "350",
    "£450-£500": "450",
    "ASAP": "today",
    "Now": "today",
    "End of Jan": "2027-01-31",
    "UK only": "no",
    "Poss": "no",
    "JS": "u-2",
    "KH": "u-3",
}


def write_export(folder: Path, *emails: str) -> Path:
    """Write a cp1252 file in which each value of a column occurs several times."""
    columns = [list(islice(cycle(cells), ROWS)) for cells in COLUMNS.values()]
    addresses = [emails[n] if n < len(emails) else f"p{n}@x.example" for n in range(ROWS)]
    path = folder / "export.csv"
    lines = zip(*columns, addresses, strict=True)
    path.write_bytes(encode_csv([(*COLUMNS, "E-Mail"), *lines], "cp1252"))
    seeds = settings_at("http://127.0.0.1:9", folder, "unused-key").folder / "seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    text = "id,name,team\nu-1,Kelly,\nu-2,,\nu-3,,\n"
    (seeds / "people.csv").write_text(text, encoding="utf-8")
    return path


def preview_export(folder: Path, path: Path, mapping: Path | None = None) -> Preview:
    """Preview the file; the column without a field is ignored."""
    options = PushOptions("create", mapping=mapping, ignore=("Cand Ref",))
    settings = settings_at("http://127.0.0.1:9", folder, "unused-key")
    return preview(settings, options.push_file("candidates", path))


def open_groups(found: Preview) -> list[ProblemGroup]:
    """Return the problems that no answer to a question solves."""
    return [each for each in found.summary.problems.values() if not each.is_answered_by_value]


def test_an_export_has_few_questions_and_each_value_is_answered_once(tmp_path: Path) -> None:
    path = write_export(tmp_path, "ann at x.example", "")
    found = preview_export(tmp_path, path)
    assert len(found.questions) <= QUESTIONS_MAX
    assert len(found.notices) + len(found.summary.warnings) <= NOTICES_MAX
    assert ["email_format", "required"] == [each.problem.code for each in open_groups(found)]
    (asked,) = [each for each in found.questions if each.code == "values"]
    columns = {"Perm/Contract", "IR35", "Current Sal", "Desired Sal", "Day Rate"}
    columns |= {"Availability", "Relocate?"}
    assert {*columns, "Consultant"} == {column for column, _ in asked.choices}

    mapping = tmp_path / "export.map.toml"
    saved = to_saved_map(found.columns)
    save_map(mapping, replace(saved, unanswered=unanswered_values(found.summary)))
    text = mapping.read_text(encoding="utf-8")
    answered = re.sub(
        r'^# (values\."(.*)") = ""$',
        lambda line: f'{line[1]} = "{ANSWERS[line[2]]}"',
        text,
        flags=re.MULTILINE,
    )
    assert len(ANSWERS) == answered.count("\nvalues.")
    mapping.write_text(answered, encoding="utf-8")

    right = preview_export(tmp_path, path, mapping)
    assert {"create": ROWS - 2, "invalid": 2} == dict(right.summary.counts)
    assert [] == [each for each in right.questions if each.code == "values"]
    row = next(each.values for each in right.rows if each.number == 4)
    assert ("u-3", date.today().isoformat()) == (row["assigned_to"], row["available_from"])
    assert (0, "+447700900169") == (row["notice_period_days"], row["mobile"])

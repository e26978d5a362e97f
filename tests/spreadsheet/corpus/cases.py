"""Sample files with unusual cells, and the record to send for each row. All people are invented."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from tests.spreadsheet.corpus.files import (
    SKIP,
    Record,
    Rows,
    SampleFile,
    encode_csv,
    make_ods,
    make_old_workbook,
    make_workbook,
)

NAMES = (("Ann", "Lee"), ("Zoe", "Berg"), ("Tom", "Marsh"), ("Ida", "Wren"), ("Max", "Hill"))
_AT_WORK = {"current_company": "Wren", "current_job_title": "Nurse"}
HEAD = ("First name", "Last name", "Email", "Employment type")


def person_cells(n: int) -> tuple[str, str, str, str]:
    """Return name, surname, email and employment type of candidate `n`."""
    first, last = NAMES[n % len(NAMES)]
    return first, last, f"{first}.{last}{n}@people.example".lower(), "permanent"


def person_record(n: int, **more: Any) -> Record:
    """Return the fields of candidate `n`, and more fields."""
    names = ("first_name", "last_name", "email", "employment_type")
    return {**dict(zip(names, person_cells(n), strict=True)), **more}


def people_rows(count: int) -> Rows:
    """Return the rows of the first `count` candidates, without headings."""
    return [person_cells(n) for n in range(count)]


def column_file(
    name: str, heading: str, key: str, *pairs: tuple[Any, Any], **more: Any
) -> SampleFile:
    """Return a file of candidates with one additional column, given as pairs of cell and value.

    For the value None the row must be rejected; a mapping sets several fields. `form` is the number
    format of a workbook's column; `encoding` and `delimiter` are those of a CSV file.
    """
    rows: list[Sequence[Any]] = [(*HEAD, heading)]
    sent: list[Record | None] = []
    for n, (cell, value) in enumerate(pairs):
        rows.append((*person_cells(n), cell))
        if value is None:
            sent.append(None)
        else:
            sent.append(person_record(n, **(value if isinstance(value, dict) else {key: value})))
    form = more.pop("form", None)
    if form is not None or more.pop("is_book", False):
        return SampleFile(
            f"{name}.xlsx", make_workbook(rows, {"E": form} if form else None), sent, **more
        )
    made = encode_csv(rows, more.pop("encoding", "utf-8"), more.pop("delimiter", ","))
    return SampleFile(f"{name}.csv", made, sent, **more)


def unchanged_column(name: str, heading: str, key: str, *cells: str, **more: Any) -> SampleFile:
    """Return a file with a column whose cells are sent unchanged."""
    return column_file(name, heading, key, *((each, each) for each in cells), **more)


def empty_column(name: str, heading: str, key: str, *cells: str) -> SampleFile:
    """Return a file with a column whose cells mean that no value is sent."""
    return column_file(name, heading, key, *((each, {key: SKIP}) for each in cells))


def _number_files() -> Iterator[SampleFile]:
    firms = [("Name", "Email", "Fee %")]
    wanted = [
        {"name": "Wren", "email": "wren@firms.example", "fee_percentage": 17.5},
        {"name": "Lark", "email": "lark@firms.example", "fee_percentage": 20},
    ]
    two = [("Wren", "wren@firms.example"), ("Lark", "lark@firms.example")]
    shares = [(*two[0], 0.175), (*two[1], 0.2)]
    yield SampleFile(
        "percent.xlsx", make_workbook([*firms, *shares], {"C": "0.0%"}), wanted, "companies"
    )
    yield SampleFile(
        "percent whole.xlsx", make_workbook([*firms, *shares], {"C": "0%"}), wanted, "companies"
    )
    written = [(*two[0], "17,5 %"), (*two[1], "20%")]
    yield SampleFile("percent.csv", encode_csv([*firms, *written]), wanted, "companies")
    cells = [(*two[0], ("percentage", 0.175)), (*two[1], ("percentage", 0.2))]
    yield SampleFile("percent.ods", make_ods([*firms, *cells]), wanted, "companies")
    old = [
        {**wanted[0], "name": "Wren GmbH", "email": "office@wren.example"},
        {**wanted[1], "name": "Lark BV", "email": "office@lark.example"},
    ]
    for n, each in enumerate(old, 1):
        each["contract_start_date"] = f"2026-03-0{n}"
    yield SampleFile("old.xls", make_old_workbook(), old, "companies")
    pay, key = "Desired salary", "expected_salary"
    euro = {key: 45000, "salary_currency": "EUR"}
    pound = {key: 45000, "salary_currency": "GBP"}
    yield column_file("euro", pay, key, (45000, euro), form="#,##0 [$€-407]")
    yield column_file("pound", pay, key, (45000, pound), form='"£"#,##0')
    large = [(each, None) for each in (1.7976931348623151e308, 1e307, -1e18, 10**18)]
    for name, form in (("plain", None), ("percent", "0%"), ("money", '"£"#,##0'), ("k", '0,"k"')):
        yield column_file(f"too large {name}", pay, key, *large, form=form or "General")
    yield column_file("too large", pay, key, ("9" * 19, None), ("9" * 60 + ".5", None))
    huge = [(kind, number) for kind in ("float", "percentage") for number in ("1e308", "1e999")]
    filled: Rows = [(*HEAD, pay), *((*person_cells(n), each) for n, each in enumerate(huge))]
    yield SampleFile("too large.ods", make_ods(filled), [None] * len(huge))
    yield column_file("rounded", pay, key, (45000.7, None), (45000, 45000), form="#,##0")
    yield column_file("in thousands", pay, key, (45000, None), form='#,##0,"k"')
    yield column_file("unseen", pay, key, (45000, {key: SKIP}), form=";;;")
    yield column_file(
        "mask", "Mobile", "mobile", (7700900123, "+447700900123"), form="00000 000000"
    )
    yield column_file("percent pay", pay, key, (0.45, None), form="0%")
    yield column_file(
        "pounds", pay, key, ("£45,000", pound), ("£ 45000", pound), ("GBP 45,000.00", pound)
    )
    comma = {"answer": {"decimal": "comma"}}
    yield column_file("euros", pay, key, ("45.000 €", euro), ("45.000,00 EUR", euro), **comma)
    yield column_file(
        "comma", pay, key, ("45000,50", 45000.5), ("45.000", 45000), ("1.250,5", 1250.5), **comma
    )
    yield column_file(
        "dot", pay, key, ("45000.50", 45000.5), ("45,000", 45000), ("1,250.5", 1250.5)
    )
    yield column_file("thin", pay, key, ("45000.50", 45000.5), ("45.000", None), ("45,000", 45000))
    either = (("45,000", 45000), ("52,500", 52500))
    yield column_file("either", pay, key, *either, answer={"decimal": "dot"})
    yield column_file("blanks", pay, key, ("1 250 000", 1250000), ("45'000", 45000), ("45k", 45000))
    yield column_file(
        "ranges", pay, key, ("45-50k", None), ("c. 45", None), ("45k+", None), ("45000 pa", 45000)
    )
    yield column_file(
        "post", "Post code", "postal_code", (123, "00123"), (1067, "01067"), form="00000"
    )
    yield column_file("science", "Mobile", "mobile", ("4.479E+11", None), ("4,47701E+11", None))


def _email_and_link_files() -> Iterator[SampleFile]:
    emails = (
        "mailto:ann@people.example",
        "Ann Lee <ann@people.example>",
        '"Lee, Ann" <ann@people.example>',
        "ann@people.example;",
        "<ann@people.example>",
        " ann@people.example ",
        "ann@people.example, ",
    )
    for n, cell in enumerate(emails):
        rows = [HEAD, (*person_cells(0)[:2], cell, "permanent")]
        yield SampleFile(
            f"email {n}.csv", encode_csv(rows), [person_record(0, email="ann@people.example")]
        )
    bad = (
        "ann(at)people.example",
        "ann@people",
        "call me",
        "ann@a.example bob@b.example",
        "tbc",
        "n/a",
        "ann@people,example",
    )
    rows = [HEAD, *((*person_cells(n)[:2], cell, "permanent") for n, cell in enumerate(bad))]
    yield SampleFile("emails bad.csv", encode_csv(rows), [None] * len(bad))


def _phone_files() -> Iterator[SampleFile]:
    wrong = (
        "call agent",
        "7700900123.0",
        "447,700,900,123",
        "07700 900123 / 07700 900124",
        "12",
        "07700 900123 or 07700 900124",
        "07700900123, 07700900124",
        "agent: Bob",
        "0770O900123",
        "07700900123;07700900124",
        "077009001230770090012412",
        "+44 7700 900123\n+44 7700 900124",
    )
    yield column_file("phones bad", "Mobile", "mobile", *((each, None) for each in wrong))
    region = {"given": {"region": "GB"}}
    yield column_file("phones bad gb", "Tel", "phone", *((each, None) for each in wrong), **region)
    good = (
        "+44 7700 900123",
        "07700 900123",
        "(020) 7946-0123",
        "0044 20 7946 0123",
        "+44 (0)20 7946 0123",
        "020 7946 0123 ext. 12",
        "+49 30 23125-000",
    )
    with_code = (
        *("+44 7700 900123", "+447700900123", "+442079460123", "+442079460123"),
        *("+44 (0)20 7946 0123", "+442079460123 ext. 12", "+49 30 23125-000"),
    )
    yield column_file("phones", "Mobile", "mobile", *zip(good, with_code, strict=True))
    in_e164 = (
        *("+447700900123", "+447700900123", "+442079460123", "+442079460123", "+442079460123"),
        *("+442079460123 ext. 12", "+493023125000"),
    )
    yield column_file("phones gb", "Telephone", "phone", *zip(good, in_e164, strict=True), **region)
    tidy = (
        ("tel:+447700900123", "+447700900123"),
        ("'07700900123", "+447700900123"),
        ('="07700900123"', "+447700900123"),
        ("+44\u00a07700\u00a0900123", "+44 7700 900123"),
    )
    yield column_file("phones tidy", "Mobile", "mobile", *tidy)
    yield column_file(
        "phones typed", "Mobile", "mobile", (7700900123, None), (447700900123.0, None), is_book=True
    )


def _empty_value_files() -> Iterator[SampleFile]:
    work, key = "Current employer", "current_company"
    words = {
        "en": (
            "n/a",
            "N/A",
            "NA",
            "-",
            "--",
            "none",
            "null",
            "tbc",
            "TBA",
            "?",
            "unknown",
            "nil",
            "not provided",
        ),
        "de": ("k.A.", "keine Angabe", "keine", "unbekannt", "entfällt", "nicht bekannt"),
        "fr": ("néant", "aucun", "s.o.", "inconnu", "non renseigné", "à confirmer"),
        "es": ("ninguno", "desconocido", "sin datos", "no aplica", "pendiente"),
        "nl": ("n.v.t.", "geen", "onbekend", "nvt", "niet bekend"),
        "it": ("nessuno", "sconosciuto", "non disponibile", "n.d."),
    }
    for language, cells in words.items():
        yield empty_column(f"nothing {language}", work, key, *cells)
    yield empty_column(
        "nothing pay", "Desired salary", "expected_salary", "n/a", "-", "tbc", "k.A."
    )
    yield empty_column("nothing born", "Date of birth", "date_of_birth", "n/a", "?", "unbekannt")
    yield empty_column("nothing phone", "Mobile", "mobile", "TBC", "none", "-", "keine")
    yield unchanged_column(
        "names", "Current employer", key, "None of Us Ltd", "N/A Systems", "Nil by Mouth", "A-Z"
    )


def _date_files() -> Iterator[SampleFile]:
    born, key = "Date of birth", "date_of_birth"
    yield column_file("dmy", born, key, ("25/12/1985", "1985-12-25"), ("03/04/1985", "1985-04-03"))
    mdy = (("12/25/1985", "1985-12-25"), ("03/04/1985", "1985-03-04"))
    yield column_file("mdy", born, key, *mdy, answer={"date_format": "mdy"})
    yield column_file("dots", born, key, ("25.12.1985", "1985-12-25"), ("3.4.1985", "1985-04-03"))
    unsure = (("03/04/1985", "1985-04-03"), ("05/06/1990", "1990-06-05"))
    yield column_file("unsure", born, key, *unsure, answer={"date_format": "dmy"})
    short = (("25/12/85", "1985-12-25"), ("03/04/90", "1990-04-03"))
    yield column_file("short", born, key, *short)
    yield column_file("ymd", born, key, ("1985/12/25", "1985-12-25"), ("1985/04/03", "1985-04-03"))
    words = (
        "1st March 1986",
        "1. März 1986",
        "1 mars 1986",
        "1 de marzo de 1986",
        "1 maart 1986",
        "1 marzo 1986",
        "March 1, 1986",
        "Mar 1st, 1986",
        "01-Mar-1986",
        "1er mars 1986",
        "Sat, 1 March 1986",
        "1 Mär. 1986",
        "1986-03-01T00:00:00",
    )
    yield column_file("words", born, key, *((each, "1986-03-01") for each in words))
    parts = ("March 1986", "12.1985", "1985", "spring 1985", "31/02/1985", "32 March 1985")
    yield column_file("parts", born, key, *((each, None) for each in parts))
    yield column_file("typed", born, key, (date(1985, 12, 25), "1985-12-25"), form="dd.mm.yy")
    for form in ("mmm-yy", "yyyy", "d-mmm", "h:mm"):
        yield column_file(f"typed {form[0]}", born, key, (date(1985, 12, 25), None), form=form)
    yield column_file("future", born, key, ("2125-01-01", None), ("1985-01-01", "1985-01-01"))
    mixed = (("25/12/1985", "1985-12-25"), ("12/25/1985", "1985-12-25"), ("03/04/1985", None))
    yield column_file("mixed", born, key, *mixed)


def _encoding_files() -> Iterator[SampleFile]:
    town = "Town"
    yield unchanged_column(
        "letters", town, "city", "Zürich", "Malmö", "São Paulo", encoding="utf-16"
    )
    yield unchanged_column(
        "one reading", town, "city", "Zürich", "Köln", "Düsseldorf", encoding="cp1252"
    )
    west = {"encoding": "cp1252", "answer": {"encoding": "cp1252"}}
    yield unchanged_column("western", town, "city", "Malmø", "Nîmes", "São Paulo", **west)
    east = {"encoding": "cp1250", "answer": {"encoding": "cp1250"}}
    yield unchanged_column("eastern", town, "city", "Plzeň", "Łódź", "Kraków", **east)
    apple = {"encoding": "mac-roman", "answer": {"encoding": "mac-roman"}}
    yield unchanged_column("apple", town, "city", "Zürich", "Köln", **apple)
    dos = {"encoding": "cp850", "answer": {"encoding": "cp850"}}
    yield unchanged_column("dos", town, "city", "Zürich", "Köln", **dos)
    broken = [each.encode().decode("cp1252") for each in ("Zürich", "Köln", "São Paulo")]
    yield column_file("mojibake", town, "city", *((each, None) for each in broken))
    yield column_file(
        "invisible", town, "city", ("Le\u200beds", "Leeds"), ("New\u00a0York", "New York")
    )
    yield column_file("turned", "Notes", "notes", ("paid \u202e0001", None))
    yield unchanged_column("semicolon", town, "city", "Leeds, UK", "York", delimiter=";")
    yield unchanged_column("pipe", town, "city", "Leeds; UK", "York, UK", delimiter="|")
    yield unchanged_column("lines", "Notes", "notes", "Two\nlines", 'He said "yes"', "=1+1")


def _title_and_total_files() -> Iterator[SampleFile]:
    """Yield tables with titles, groups of headings, totals, repeated headings or other tables."""
    two, sent = people_rows(2), [person_record(0), person_record(1)]
    yield SampleFile("title.xlsx", make_workbook([("Spring fair 2026",), (), HEAD, *two]), sent)
    yield SampleFile("title.csv", encode_csv([("Spring fair 2026", "", "", ""), HEAD, *two]), sent)
    notes = 'Notes:\n"When exporting your data, some addresses may be missing."\n\n'
    yield SampleFile("preamble.csv", encode_csv([HEAD, *two], before=notes), sent)
    yield SampleFile("sep.csv", encode_csv([HEAD, *two], delimiter=";", before="sep=;\n"), sent)
    groups = [
        ("Person", "", "Contact", "Work"),
        ("First name", "Last name", "Email", "Employment type"),
    ]
    yield SampleFile("groups.xlsx", make_workbook([*groups, *two], merged=["A1:B1"]), sent)
    top = [
        ("First name", "Last name", "Email", "Employment type", "Salary", ""),
        ("", "", "", "", "Current", "Expected"),
    ]
    paid = [person_record(n, current_salary=40000, expected_salary=45000) for n in range(2)]
    rows = [*top, *((*person_cells(n), 40000, 45000) for n in range(2))]
    yield SampleFile("two headings.xlsx", make_workbook(rows, merged=["E1:F1"]), paid)
    total = [HEAD, *two, ("Total", 2, "", "")]
    yield SampleFile("total.xlsx", make_workbook(total), sent)
    yield SampleFile(
        "total.csv",
        encode_csv([(*HEAD, "Desired salary"), (*two[0], 40000), ("Summe", "", "", "", 40000)]),
        [person_record(0, expected_salary=40000)],
    )
    sums: Rows = [(*HEAD, "Desired salary"), (*two[0], 40000), ("Total", "", "", "", 40000)]
    euro = person_record(0, expected_salary=40000, salary_currency="EUR")
    yield SampleFile("total paid.xlsx", make_workbook(sums, {"E": "#,##0 [$€-407]"}), [euro])
    yield SampleFile("pages.csv", encode_csv([HEAD, two[0], HEAD, two[1]]), sent)
    second = [HEAD, *two, (), ("Company", "Town"), ("Wren", "Leeds")]
    yield SampleFile("two tables.xlsx", make_workbook(second), [])
    yield SampleFile(
        "cover.xlsx", make_workbook([HEAD, *two], cover=[("Partner list",), ("made in May",)]), sent
    )


def _hidden_or_misnamed_files() -> Iterator[SampleFile]:
    """Yield files with hidden rows, and files whose extension is of another format."""
    two, sent = people_rows(2), [person_record(0), person_record(1)]
    yield SampleFile(
        "hidden.xlsx", make_workbook([HEAD, *two], hidden=[3]), [person_record(0), None]
    )
    yield SampleFile("people.ods", make_ods([HEAD, *two]), sent)
    yield SampleFile("really a book.csv", make_workbook([HEAD, *two]), sent)
    yield SampleFile("really text.xlsx", encode_csv([HEAD, *two]), sent)
    yield SampleFile("really tabs.xls", encode_csv([HEAD, *two], "utf-16", "\t"), sent)
    page = "<html><table>" + "".join(
        f"<tr>{''.join(f'<td>{each}</td>' for each in row)}</tr>" for row in (HEAD, *two)
    )
    yield SampleFile("web page.xls", page.encode(), [])


def _unused_column_files() -> Iterator[SampleFile]:
    """Yield files with missing columns, or with columns that no field takes."""
    two, sent = people_rows(2), [person_record(0), person_record(1)]
    gap = [(*HEAD, "", "Town"), *((*person_cells(n), "x", "York") for n in range(2))]
    yield SampleFile(
        "gap.csv", encode_csv(gap), [person_record(n, city="York") for n in range(2)], lost=True
    )
    spare = [(*HEAD, "", ""), *((*person_cells(n), "", "") for n in range(2))]
    yield SampleFile("spare.csv", encode_csv(spare), sent)
    twins = [(*HEAD, "Email"), *((*person_cells(n), "other@people.example") for n in range(2))]
    yield SampleFile("twins.csv", encode_csv(twins), sent, lost=True)
    alike = [
        (*HEAD, "Mobile", "Cell phone"),
        *((*person_cells(n), "+44 7700 900123", "+44 7700 900124") for n in range(2)),
    ]
    yield SampleFile(
        "alike.csv",
        encode_csv(alike),
        [person_record(n, mobile="+44 7700 900123") for n in range(2)],
        lost=True,
    )
    yield SampleFile(
        "lost.csv",
        encode_csv([(*HEAD, "Favourite colour"), (*two[0], "blue")]),
        [person_record(0)],
        lost=True,
    )
    yield SampleFile("missing.csv", encode_csv([row[:3] for row in (HEAD, *two)]), [None, None])


_HEADINGS = """
german|festangestellt|Vorname|Nachname|E-Mail-Adresse|Beschäftigungsart|Telefon|Ort|Geburtsdatum
french|CDI|Prénom|Nom|Adresse e-mail|Type de contrat|Téléphone|Ville|Date de naissance
spanish|fijo|Nombre|Apellidos|Correo|Tipo de contrato|Teléfono|Ciudad|Fecha de nacimiento
dutch|vast|Voornaam|Achternaam|E-mailadres|Dienstverband|Telefoonnummer|Woonplaats|Geboortedatum
italian|permanente|Nome|Cognome|Posta elettronica|Tipo di contratto|Telefono|Città|Data di nascita
"""
_KINDS = "perm|Perm|permanente|Festanstellung|full-time permanent|CDI|tiempo|whatever"
_TRUTHS = "yes|ja|Oui|sí|nein|non|nee|no|x?"


def _language_files() -> Iterator[SampleFile]:
    first, last, email, _ = person_cells(0)
    wanted = person_record(0, phone="+44 20 7946 0123", city="Leeds", date_of_birth="1986-03-01")
    for line in _HEADINGS.split("\n")[1:-1]:
        language, kind, *names = line.split("|")
        cells = (first, last, email, kind, "+44 20 7946 0123", "Leeds", "1986-03-01")
        yield SampleFile(f"{language}.csv", encode_csv([names, cells], delimiter=";"), [wanted])
    kinds = _KINDS.split("|")
    rows = [HEAD, *((*person_cells(n)[:3], each) for n, each in enumerate(kinds))]
    yield SampleFile("kinds.csv", encode_csv(rows), [*map(person_record, range(6)), None, None])
    truths: list[Any] = [True] * 4 + [False] * 4 + [None]
    pairs = zip(_TRUTHS.split("|"), truths, strict=True)
    yield column_file("truths", "Relocate", "willing_to_relocate", *pairs)
    whole = ("Ann Lee", "Berg, Zoe", "Tom van der Marsh", "Ida")
    split = [person_record(0), person_record(1), person_record(2, last_name="van der Marsh"), None]
    for heading in ("Name", "Full name", "Candidate", "Vollständiger Name"):
        named = [(each, *person_cells(n)[2:]) for n, each in enumerate(whole)]
        yield SampleFile(f"whole {heading}.csv", encode_csv([(heading, *HEAD[2:]), *named]), split)


# The first line is the headings, the second the cells of the person 0.
_EXPORTS = {
    "connections": (
        "First Name|Last Name|URL|Email Address|Company|Position|Connected On|Employment type",
        "Ann|Lee|https://www.network.example/in/ann|{}|Wren|Nurse|12 Mar 2026|permanent",
        {"network_url": "https://www.network.example/in/ann", **_AT_WORK},
    ),
    "bullhorn": (
        "ID|First Name|Last Name|Email 1|Mobile Phone|Current Company|Title|Employment Preference"
        "|Date Added",
        "1042|Ann|Lee|{}|+44 7700 900123|Wren|Nurse|Permanent|2026-03-01",
        {"mobile": "+44 7700 900123", **_AT_WORK},
    ),
    "indeed": (
        "name|email|phone|candidate location|relevant experience|job title|source|employment type",
        "Ann Lee|{}|+44 7700 900123|Leeds|Nurse at Wren|Nurse|Board|permanent",
        {"phone": "+44 7700 900123", "source": "Board"},
    ),
    "greenhouse": (
        "Candidate Name|Candidate Email|Phone Numbers|Current Title|Current Company|Applied On"
        "|Employment type",
        "Ann Lee|{}|+44 7700 900123|Nurse|Wren|2026-03-01|permanent",
        {"phone": "+44 7700 900123", **_AT_WORK},
    ),
}


def _export_files() -> Iterator[SampleFile]:
    before = 'Notes:\r\n"When exporting connections, some addresses are missing."\r\n\r\n'
    for name, (headings, cells, more) in _EXPORTS.items():
        rows = [each.format(person_cells(0)[2]).split("|") for each in (headings, cells)]
        notes = before if name == "connections" else ""
        yield SampleFile(
            f"{name}.csv", encode_csv(rows, before=notes), [person_record(0, **more)], lost=True
        )


# Number formats, with what a number of each shows; None if the format is not interpreted.
_FORMS: tuple[tuple[str, str, Any, Any], ...] = (
    ('0"k"', "expected_salary", 45, None),
    ('0"000"', "expected_salary", 45, None),
    ('"$"#,##0', "expected_salary", 45000, None),
    ("[$kr-41D] #,##0", "expected_salary", 45000, None),
    ('#,##0 "CHF"', "expected_salary", 45000, {"salary_currency": "CHF"}),
    ('#,##0 "p.a."', "expected_salary", 45000, None),
    ('0 "per day"', "expected_salary", 350, None),
    ("0;0", "expected_salary", -45000, None),
    ('0 "years"', "years_of_experience", 5, None),
    ('"No";;"Yes"', "willing_to_relocate", 1, None),
    ('[=1]"Yes";"No"', "willing_to_relocate", 1, None),
    ('[=4]"high";0', "notes", 4, None),
    ('"0"0', "mobile", 7700900123, None),
    ('"+"0', "mobile", 447700900123, None),
    ("[<=9999999]###-####;(###) ###-####", "mobile", 2025550123, None),
    ('"City of "@', "city", "Leeds", None),
    ('"D-"00000', "postal_code", 1067, None),
    ("@", "mobile", 447700900123, None),
)


def _number_format_files() -> Iterator[SampleFile]:
    for n, (form, key, cell, value) in enumerate(_FORMS):
        wanted = {key: cell, **value} if isinstance(value, dict) else value
        yield column_file(f"shown {n}", key, key, (cell, wanted), form=form)
    periods = ("350 per day", "350/day", "350 p.d.", "350 pro Tag")
    yield column_file(
        "per day", "Desired day rate", "expected_day_rate", *((p, 350) for p in periods)
    )
    others = ("350 per day", "25 per hour", "4000 monthly", "£350/day", "4000 mtl")
    yield column_file("of a day", "Desired salary", "expected_salary", *((p, None) for p in others))
    yearly = ("45000 p.a.", "45k a year", "45000/Jahr", "45000,- €")
    euro = {"expected_salary": 45000, "salary_currency": "EUR"}
    # A column has one currency.
    pairs = ((each, euro) for each in yearly)
    yield column_file("a year", "Desired salary", "expected_salary", *pairs)
    days = (("30 days", 30), ("30 Tage", 30), ("4 weeks", 28), ("1 month", 30), ("30", 30))
    yield column_file("days", "Notice period (days)", "notice_period_days", *days)
    yield SampleFile(
        "titles.csv",
        encode_csv([(*HEAD, "Title"), (*person_cells(0), "Mr")]),
        [person_record(0)],
        lost=True,
    )
    fees = [("Name", "Email", "Fee %"), ("Wren", "wren@firms.example", "1750")]
    yield SampleFile("fee large.csv", encode_csv(fees), [None], "companies")


def _person_name_files() -> Iterator[SampleFile]:
    pairs: tuple[tuple[str, tuple[str, str] | None], ...] = (
        ("Lee, Ann", ("Ann", "Lee")),
        ("ANN LEE", ("ANN", "LEE")),
        ("LEE Ann", None),
        ("Frau Zoe Berg", None),
        ("Ann & Bob Lee", None),
        ("Ann Lee (Smith)", None),
        ("Ann Lee - Nurse", None),
        ("Ann Lee Jr.", None),
    )
    rows = [(whole, *person_cells(n)[2:]) for n, (whole, _) in enumerate(pairs)]
    sent = [
        None if parts is None else person_record(n, first_name=parts[0], last_name=parts[1])
        for n, (_, parts) in enumerate(pairs)
    ]
    yield SampleFile("whole odd.csv", encode_csv([("Name", *HEAD[2:]), *rows]), sent)
    mails: tuple[tuple[str, str | None], ...] = (
        ("Sean O'Brien <sean.o'brien@people.example>", "sean.o'brien@people.example"),
        ("'ann@people.example", None),
        ("e-mail: zoe@people.example", None),
        ('="tom@people.example"', "tom@people.example"),
        ("ann lee@people.example", None),
        ("ann@people.example 07700 900123", None),
        ("mailto:ann@people.example?subject=hi", None),
        ("\u0430nn@people.example", None),
    )
    by_mail = [(*person_cells(n)[:2], cell, "permanent") for n, (cell, _) in enumerate(mails)]
    sent = [None if m is None else person_record(n, email=m) for n, (_, m) in enumerate(mails)]
    yield SampleFile("emails odd.csv", encode_csv([HEAD, *by_mail]), sent)
    phones = (
        ("+44 7700 900123 (mobile)", None),
        ("M: 07700 900123", None),
        ("(+44) 7700 900123", "(+44) 7700 900123"),
        ("0000000000", None),
    )
    yield column_file("phones odd", "Mobile", "mobile", *phones)
    ditto = ('"', "''", "\u2033", "ditto")
    yield column_file("ditto", "Town", "city", *((each, None) for each in ditto))
    signs = (("£", "GBP"), ("€", "EUR"), ("Euro", "EUR"), ("$", None))
    yield column_file("signs", "Currency of salary", "salary_currency", *signs)
    wide = "https://www.people.example/ann"
    pages = (("www.people.example/ann", wide), ("photo.jpg", None))
    yield column_file("addresses", "Portfolio", "portfolio_url", *pages)


def _damaged_letter_files() -> Iterator[SampleFile]:
    town = "Town"
    for codec in ("cp1250", "cp437", "cp1251", "mac-roman"):
        broken = "Zürich".encode().decode(codec)
        yield column_file(f"mojibake {codec}", town, "city", (broken, None))
    codes = (("Fish &amp; chips", "Fish & chips"), ("M&uuml;ller", "Müller"), ("AT&T", "AT&T"))
    yield column_file("codes", "Notes", "notes", *codes)
    lost = ("Z?rich", "Z\ufffdrich", "£ódŸ", "L\u0435eds")
    yield column_file("lost letters", town, "city", *((each, None) for each in lost))
    for codec, *cells in (
        ("shift_jis", "東京", "大阪"),
        ("gb18030", "北京", "上海"),
        ("cp1251", "Москва", "Казань"),
        ("cp1254", "İstanbul", "Şişli"),
        ("cp1257", "Rīga", "Šiauliai"),
        ("iso8859-2", "Łódź", "Kęty"),
        ("cp1252", "L'Île-d'Yeu", "Orléans"),
    ):
        more: Any = {"encoding": codec, "answer": {"encoding": codec}}
        yield unchanged_column(f"read {codec}", town, "city", *cells, **more)


def _unusual_table_files() -> Iterator[SampleFile]:
    """Yield tables with several parts, wrong numbers of cells, footers, or marks in headings."""
    two, sent = people_rows(2), [person_record(0), person_record(1)]
    spaced = [", ".join(f'"{cell}"' for cell in row) for row in (HEAD, *two)]
    yield SampleFile("spaced.csv", "\n".join(spaced).encode(), sent)
    ragged = [(*HEAD, "Town"), *two, (*person_cells(2), "York")]
    yield SampleFile("ragged.csv", encode_csv(ragged), [None, None, person_record(2, city="York")])
    footer = [HEAD, *two, (), ("Page 1 of 1",), ("Made in May",)]
    yield SampleFile("footer.csv", encode_csv(footer), [*sent, None, None])
    marked = ("First name *", "Last name (required)", "Email*", "Employment type (required)")
    yield SampleFile("marked.csv", encode_csv([marked, *two]), sent)
    yield SampleFile("no headings.csv", encode_csv(two), [None])
    company = [(*HEAD, "Current employer"), (*person_cells(0), "Wren"), person_cells(1)]
    merged = make_workbook(company, merged=["E2:E3"])
    yield SampleFile(
        "merged.xlsx", merged, [person_record(n, current_company="Wren") for n in range(2)]
    )
    means = [HEAD, *two, ("Average", "", "", ""), ("Total", "", "", "2")]
    yield SampleFile("mean.csv", encode_csv(means), sent)
    named = [
        ("Name", "Email", "Phone"),
        ("Total", "te@firms.example", "+33 1 47 44 45 46"),
        ("Total", "", "+33 1 47 44 45 46"),
    ]
    total = {"name": "Total", "email": "te@firms.example", "phone": "+33 1 47 44 45 46"}
    yield SampleFile("named total.csv", encode_csv(named), [total, None], "companies")
    firm = [("Firma", "E-Mail"), ("Wren", "wren@firms.example")]
    wren = {"name": "Wren", "email": "wren@firms.example"}
    yield SampleFile("firma.csv", encode_csv(firm), [wren], "companies")


def list_sample_files() -> list[SampleFile]:
    """Return all sample files."""
    parts = (
        _number_files,
        _email_and_link_files,
        _phone_files,
        _empty_value_files,
        _date_files,
        _encoding_files,
        _title_and_total_files,
        _hidden_or_misnamed_files,
        _unused_column_files,
        _language_files,
        _export_files,
        _number_format_files,
        _person_name_files,
        _damaged_letter_files,
        _unusual_table_files,
    )
    return [each for part in parts for each in part()]

"""Files of recruiters: exports of former systems, jobs below a title, placements with names."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import openpyxl

PEOPLE = 120
WRONG = {
    30: ("E-Mail", "tom at mail.example"),
    44: ("E-Mail", ""),
    61: ("Mobile", "07700 900630 / 07700 900631"),
    77: ("D.O.B.", "30/02/1985"),
    90: ("E-Mail", "ann@mail.example; ann@work.example"),
}
"""By the place of a person in the British export, a column with a cell of unknown meaning."""

_BRITISH: dict[str, Sequence[str]] = {
    "Surname": ("Van der Berg", "Ashworth", "O'Brien", "Ní Dhomhnaill", "Kowalska"),
    "Forename(s)": ("Oluwaseun", "Priya", "Siân", "Graham", "Łukasz"),
    "Addr 1": ("55 High St", "Flat 2\r\n12 Mill Lane", "1 Church Rd"),
    "Town": ("Leeds", "London", "Bristol"),
    "Post Code": ("LS1 4AP", "ec1a 1bb", "BS1 5TR"),
    "D.O.B.": ("26/12/1985", "09/08/1973", "", "31/01/1990"),
    "Perm/Contract": ("Perm", "Contract", "Both", "FTC", "P"),
    "Job Title": ("Quantity Surveyor", "PA/EA", "RGN"),
    "Current Sal": ("£45k", "£38,500.00", "£60K + car"),
    "Desired Sal": ("£60,000", "£65k basic / 90k OTE", "50-55k"),
    "Day Rate": ("£600pd", "£350 + VAT", "£55 ph"),
    "Notice": ("1 month", "4 weeks", "Immediate", "2 wks"),
    "Availability": ("01/06/2027", "ASAP", "End of Jan"),
    "Relocate?": ("Y", "N", "UK only"),
    "Key Skills": ("C#|.NET|Azure", "CSCS, SMSTS"),
    "Consultant": ("JS", "KH", "TBA"),
    "Reg. Date": ("01/01/2019", "02/02/2020"),
    "Notes": ("=see CV", 'Ref from Kelly; "superb"', ""),
}


def write_british_export(path: Path) -> Path:
    """Write an export of 120 candidates, five of them twice, as their former system wrote it."""
    draw = random.Random(4)
    headings = ["Cand Ref", *_BRITISH, "E-Mail", "Mobile"]
    rows = []
    for place in range(PEOPLE - 5):
        row = {name: draw.choice(values) for name, values in _BRITISH.items()}
        row |= {"Cand Ref": f"C{place}", "E-Mail": f"p{place}@mail.example"}
        row["Mobile"] = f"07700 900{place:03d}"
        if place in WRONG:
            row[WRONG[place][0]] = WRONG[place][1]
        rows.append([row[name] for name in headings])
    rows += rows[:5]
    return write_csv(path, [headings, *rows])


def write_german_export(path: Path) -> Path:
    """Write 40 candidates with German headings, dates and amounts, in a Windows encoding."""
    headings = "Vorname Nachname E-Mail Mobil Geburtsdatum Anstellungsart Gehaltswunsch Merkfeld"
    rows = [
        [
            ("Jörg", "Käthe", "Änne")[n % 3],
            ("Müller", "Groß", "Özdemir")[n % 3],
            f"k{n}@beispiel.example",
            f"0049 171 {2_000_000 + n}",
            f"{1 + n % 28:02d}.{1 + n % 12:02d}.{1962 + n}",
            ("Festanstellung", "Freiberuflich")[n % 2],
            ("65.000 €", "72.500,00", "58000")[n % 3],
            f"K-{n}",
        ]
        for n in range(40)
    ]
    return write_csv(path, [headings.split(), *rows], ";", "cp1252")


def write_jobs(path: Path) -> Path:
    """Write jobs below a title and headings in two rows, of which the upper one is merged."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    jobs = [[f"Engineer {n}", "Leeds", 40_000 + n, 50_000 + n] for n in range(8)]
    headings = ["Job", "", "Salary", ""], ["Title", "Location", "Min", "Max"]
    rows: list[list[Any]] = [["Open jobs, week 48"], [], *headings, *jobs, ["Total", 8]]
    for row in rows:
        sheet.append(row)
    sheet.merge_cells("A3:B3")
    sheet.merge_cells("C3:D3")
    book.save(path)
    return path


def write_placements(path: Path, people: Sequence[Any], companies: Sequence[Any], job: str) -> Path:
    """Write 30 placements with the names of candidates and companies, one of them unknown."""
    rows = [["Contractor", "Client", "Job Ref", "Title", "Start", "End"]]
    for n, person in enumerate(people[:30]):
        name = f"{person['first_name']} {person['last_name']}"
        client = "Nobody & Sons" if n == 4 else str(companies[n % 5]["name"])
        days = f"{1 + n % 28:02d}/03/2027", "01/06/2027"
        rows.append([name, client, job, f"Placement {n}", *days])
    return write_csv(path, rows)


def write_csv(
    path: Path, rows: Iterable[Sequence[Any]], delimiter: str = ",", encoding: str = "utf-8"
) -> Path:
    """Write rows as delimited text."""
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path

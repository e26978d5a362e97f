"""A messy file of candidates, generated from a seed.

It has a byte order mark, semicolons, unusual headings, unknown columns, blank rows, accents, and
several ways to write a date or a telephone number. Some rows have known problems. All people are
invented.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

HEADINGS = (
    *("Forename", "SURNAME", "E-mail", "Mobile No.", "Tel", "Current Employer", "Job title"),
    *("employment type", "Jobseeker status", "Desired salary", "Salary Currency", "DOB"),
    *("Date available", "Notice period (days)", "Relocate", "Portfolio", "Post code", "Town"),
    *("Comments", "Favourite colour", "Consultant's verdict"),
)
"""The file's headings. The last two are of columns without a field."""


_FIRST = ("Zoë", "José", "Łukasz", "Siân", "Anaïs", "Priya", "Søren", "李娜", "Ελένη", "Mary Anne")
_LAST = ("O'Brien", "Müller", "García", "Nguyễn", "Kowalski", "Ó Súilleabháin", "van der Berg")
_WORK = ("Wren & Co", "Müller; Söhne", 'The "Hidden" Market', "1-2 Recruit", "Été", "")
_TITLES = ("Data Engineer", "Nurse", "C# developer", "Head of People", "")
_KINDS = ("Permanent", "PERMANENT", "contractor", "Interim", " permanent ")
_SEARCH = ("Actively looking", "open_to_offers", "Passive", "not-looking", "")
_NOTES = (
    *("1-2", "TRUE", "00123", "Speaks Welsh.\nAnd Irish.", '💪 keen; "very"', "שלום, بخير", ""),
    *("1-2", "A-Z", "=not a formula", "Größe geprüft", "x" * 300),
)


@dataclass(frozen=True, order=True)
class PlantedProblem:
    """A problem that the generator put into the file. Row 1 is the headings."""

    row: int
    column: str
    code: str


@dataclass(frozen=True)
class MessyFile:
    """A messy file: its bytes, its rows, the problems in them, and the correct cells of those."""

    content: bytes
    rows: tuple[tuple[str, ...], ...]
    planted: tuple[PlantedProblem, ...]
    corrected: Mapping[tuple[int, str], str]

    @property
    def bad_rows(self) -> frozenset[int]:
        """Numbers of the rows with a problem."""
        return frozenset(each.row for each in self.planted)

    @property
    def filled_row_count(self) -> int:
        """Number of rows that are not blank."""
        return sum(any(cell.strip() for cell in row) for row in self.rows)

    def corrected_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the rows with the correct cells instead of the wrong ones."""
        return tuple(
            tuple(
                self.corrected.get((number, heading), cell)
                for heading, cell in zip(HEADINGS, row, strict=True)
            )
            for number, row in enumerate(self.rows, 2)
        )


Flaw = tuple[str, str, str]
"""Heading of a column, the code of its problem, and the wrong cell."""

FLAWS: tuple[Flaw, ...] = (
    ("E-mail", "required", "   "),
    ("E-mail", "email_format", "anna.example.com"),
    ("E-mail", "several_emails", "anna@people.example; berg@people.example"),
    ("E-mail", "hidden_character", "anna@people.example\u202e"),
    ("SURNAME", "required", ""),
    ("Mobile No.", "scientific", "4.479E+11"),
    ("Tel", "scientific", "4,47701E+11"),
    ("Post code", "hidden_character", "LS1\u200e4AP"),
    ("employment type", "unknown_value", "Some"),
    ("employment type", "value_not_accepted", "Freelance"),
    ("employment type", "required", ""),
    ("Jobseeker status", "unknown_value", "looking"),
    ("DOB", "date_format", "May 1985"),
    ("DOB", "no_such_date", "1985-02-30"),
    ("Date available", "time_in_date", "2026-04-03T14:30"),
    ("Desired salary", "ambiguous_number", "45.000"),
    ("Desired salary", "currency_differs", "¥45000"),
    ("Desired salary", "percent_sign", "45%"),
    ("Desired salary", "not_a_number", "45-50k"),
    ("Tel", "phone_format", "call agent"),
    ("Mobile No.", "phone_format", "07700 900123 / 07700 900124"),
    ("Salary Currency", "currency_format", "$"),
    ("Notice period (days)", "not_a_number", "two weeks"),
    ("Notice period (days)", "not_whole", "4.5"),
    ("Relocate", "not_true_or_false", "perhaps"),
    ("Portfolio", "url_format", "example.com/work"),
    ("Current Employer", "scientific", "########"),
    ("Comments", "control_character", "rang\x07 twice"),
)
"""Every problem that the generator plants, except duplicates."""


def make_messy_file(
    seed: int, rows: int = 3000, *, bad_share: float = 0.12, existing_emails: Sequence[str] = ()
) -> MessyFile:
    """Return a file with this number of rows; `bad_share` of the non-blank rows are invalid.

    Some of the `existing_emails` occur in invalid rows, as duplicates of records in the warehouse.
    """
    draw = random.Random(seed)
    making = _MessyFileBuilder(draw, existing_emails)
    for _ in range(rows):
        if draw.random() < 0.02:
            making.add_blank_row()
        elif draw.random() < bad_share:
            making.add_invalid_row()
        else:
            making.add_valid_row()
    making.add_unused_flaws()
    return making.build()


class _MessyFileBuilder:
    """Rows of a messy file so far, and the problems in them."""

    def __init__(self, draw: random.Random, existing_emails: Sequence[str]) -> None:
        self._draw = draw
        self._landed = list(existing_emails)
        self._rows: list[dict[str, str]] = []
        self._good_emails: list[str] = []
        self._planted: list[PlantedProblem] = []
        self._corrected: dict[tuple[int, str], str] = {}
        self._serial = 0
        self._flaws = self._repeat_flaws()

    def add_blank_row(self) -> None:
        self._rows.append(dict.fromkeys(HEADINGS, self._draw.choice(("", " ", "\t"))))

    def add_valid_row(self) -> None:
        """Add a row without problems, whose email later duplicates can have."""
        person = self._make_valid_row()
        self._good_emails.append(person["E-mail"].strip())
        self._rows.append(person)

    def add_invalid_row(self) -> None:
        """Add a row with one or two flaws, or a duplicate of a row or of an existing record."""
        chance = self._draw.random()
        if chance < 0.1 and self._good_emails:
            self._add_duplicate(self._draw.choice(self._good_emails), "duplicate_in_file")
        elif chance < 0.15 and self._landed:
            # Once each: a second time it would be there twice in the file as well.
            email = self._landed.pop(self._draw.randrange(len(self._landed)))
            self._add_duplicate(email, "duplicate_in_warehouse")
        else:
            flaws = [next(self._flaws)]
            if chance > 0.7:
                # Two things wrong with one row, in different columns.
                flaws += [f for f in self._draw.sample(FLAWS, 1) if f[0] != flaws[0][0]]
            self._add_row_with_flaws(flaws)

    def add_unused_flaws(self) -> None:
        """Add a row for each flaw that the file does not have yet."""
        there = {(each.column, each.code) for each in self._planted}
        for flaw in FLAWS:
            if flaw[:2] not in there:
                self._add_row_with_flaws([flaw])

    def build(self) -> MessyFile:
        """Return the file with all rows so far."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=";", lineterminator="\r\n")
        writer.writerow(HEADINGS)
        rows = tuple(tuple(row[heading] for heading in HEADINGS) for row in self._rows)
        writer.writerows(rows)
        content = text.getvalue().encode("utf-8-sig")
        return MessyFile(content, rows, tuple(sorted(self._planted)), self._corrected)

    def _repeat_flaws(self) -> Iterator[Flaw]:
        """Yield all flaws in random order, again and again."""
        while True:
            yield from self._draw.sample(FLAWS, len(FLAWS))

    def _add_row_with_flaws(self, flaws: Sequence[Flaw]) -> None:
        person = self._make_valid_row(complete=True)
        for column, code, wrong in flaws:
            self._expect_problem(column, code, person[column])
            person[column] = wrong
        self._rows.append(person)

    def _add_duplicate(self, email: str, code: str) -> None:
        """Add a row with this email in another case, and the problem code that it causes."""
        person = self._make_valid_row()
        self._expect_problem("E-mail", code, person["E-mail"])
        person["E-mail"] = self._draw.choice((str.upper, str.title, str))(email)
        self._rows.append(person)

    def _expect_problem(self, column: str, code: str, right: str) -> None:
        # The row is about to be added behind the others, and the headings are row 1.
        """Record the problem of the next row in a column, and the correct cell."""
        number = len(self._rows) + 2
        self._planted.append(PlantedProblem(number, column, code))
        self._corrected[number, column] = right

    def _make_valid_row(self, *, complete: bool = False) -> dict[str, str]:
        """Return a new valid row by heading. With `complete`, no optional cell is blank."""
        draw, self._serial = self._draw, self._serial + 1

        def maybe(make: Callable[[], str]) -> str:
            return make() if complete or draw.random() < 0.7 else draw.choice(("", " "))

        year, month, day = draw.randint(1950, 2006), draw.randint(1, 12), draw.randint(1, 28)
        born, free = f"{year}-{month:02}-{day:02}", f"2026-{month:02}-{day:02}"
        number = f"{draw.randint(0, 999):03}"
        cells = (
            draw.choice(_FIRST),
            f"{draw.choice(_LAST)} {self._serial}",
            draw.choice(("", " ")) + f"person{self._serial}.{number}@people.example",
            maybe(lambda: draw.choice((f"+44 7700 900{number}", f"07700900{number}"))),
            maybe(lambda: draw.choice((f"(0161) 496 0{number}", f"0161 496 0{number}"))),
            maybe(lambda: draw.choice(_WORK)),
            maybe(lambda: draw.choice(_TITLES)),
            draw.choice(_KINDS),
            maybe(lambda: draw.choice(_SEARCH)),
            maybe(lambda: draw.choice((str(draw.randint(20, 90) * 1000), "45000.50", "0"))),
            maybe(lambda: draw.choice(("GBP", "eur", "USD"))),
            maybe(lambda: draw.choice((born, f"{born}T00:00:00", f"{born} 00:00"))),
            maybe(lambda: free),
            maybe(lambda: draw.choice(("0", "30", "90"))),
            maybe(lambda: draw.choice(("yes", "No", "TRUE", "false", "1", "0"))),
            maybe(lambda: f"https://work.example/{self._serial}?a=b&c=é"),
            maybe(lambda: draw.choice(("LS1 4AP", "00123", "D02 X285"))),
            maybe(lambda: draw.choice(("Leeds", "Kraków", "Zürich", "東京"))),
            maybe(lambda: draw.choice(_NOTES)),
            maybe(lambda: draw.choice(("green", "#N/A", "£1,000"))),
            maybe(lambda: draw.choice(("4.479E+11", "good"))),
        )
        return dict(zip(HEADINGS, cells, strict=True))

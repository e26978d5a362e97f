"""The columns of a table: letters, headings that tell them apart, and those that a report adds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from connector.errors import HeadingsRefused
from connector.spreadsheet.texts import unmark

REPORT_HEADINGS = ("_row", "_outcome", "_code", "_problem", "_fix", "_id")
"""What a report has behind the input's own columns, in this order."""

_SHOWN_CHARACTERS = 60
_LISTED_PAIRS = 5


@dataclass(frozen=True, slots=True)
class Columns:
    """A table's own headings as they stand in the file, and whether it is a report of ours.

    Behind the own columns a report has its six; they are not among `headings`.
    """

    headings: tuple[str, ...]
    is_report: bool

    @property
    def count(self) -> int:
        """How many columns of the file have a heading, a report's own six among them."""
        return len(self.headings) + (len(REPORT_HEADINGS) if self.is_report else 0)


def letter(index: int) -> str:
    """The letters that a spreadsheet shows above the column: 0 is A, 26 is AA."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def folded(heading: str) -> str:
    """What is the same for headings that a person would read as the same.

    Case, width and composition of letters, invisible characters, and how many blanks there are
    make no difference.
    """
    compatible = unicodedata.normalize("NFKC", heading)
    visible = "".join(
        c for c in compatible if unicodedata.category(c) not in ("Cf", "Cc") or c in "\t\r\n"
    )
    return unicodedata.normalize("NFKC", re.sub(r"\s+", " ", visible).strip().casefold())


def read_headings(path: Path, first_row: Sequence[str]) -> Columns:
    """The columns of the table whose first row this is, without empty cells at its end.

    Raises `HeadingsRefused`, naming columns by letter and text: none at all, an empty one, two
    that are the same, or columns of a report that are not its last six.
    """
    cells = _filled(first_row)
    if not cells:
        raise HeadingsRefused(f"{path}: row 1 is blank, and the headings must be there")
    is_report = is_of_report(cells)
    if is_report:
        cells = [unmark(cell) for cell in cells[: -len(REPORT_HEADINGS)]]
    _refuse_empty(path, cells)
    _refuse_twins(path, cells)
    strays = [i for i, cell in enumerate(cells) if folded(cell) in REPORT_HEADINGS]
    if strays:
        named = ", ".join(_named(i, cells[i]) for i in strays)
        raise HeadingsRefused(
            f"{path}: {named}: a report's own columns must be its last six, in their order",
            action=f"Put them back to the end ({' '.join(REPORT_HEADINGS)}), or delete them all.",
        )
    if not cells:
        raise HeadingsRefused(f"{path}: there are a report's own columns and no others")
    return Columns(tuple(cells), is_report)


def is_of_report(first_row: Sequence[str]) -> bool:
    """Whether the row has the headings of a report."""
    return tuple(_filled(first_row)[-len(REPORT_HEADINGS) :]) == REPORT_HEADINGS


def _filled(cells: Sequence[str]) -> list[str]:
    """The cells up to the last that shows anything."""
    filled = list(cells)
    while filled and not folded(filled[-1]):
        filled.pop()
    return filled


def _refuse_empty(path: Path, cells: Sequence[str]) -> None:
    empty = [i for i, cell in enumerate(cells) if not folded(cell)]
    if not empty:
        return
    letters = ", ".join(letter(i) for i in empty[:_LISTED_PAIRS])
    before = next((f", behind {_named(i - 1, cells[i - 1])}" for i in empty[:1] if i), "")
    plural = "columns" if len(empty) > 1 else "column"
    raise HeadingsRefused(f"{path}: {plural} {letters}{before}: the heading is empty")


def _refuse_twins(path: Path, cells: Sequence[str]) -> None:
    first: dict[str, int] = {}
    pairs = []
    for i, cell in enumerate(cells):
        before = first.setdefault(folded(cell), i)
        if before != i:
            pairs.append(f"{_named(before, cells[before])} and {_named(i, cell)}")
    if pairs:
        raise HeadingsRefused(
            f"{path}: two columns have the same heading: {'; '.join(pairs[:_LISTED_PAIRS])}"
        )


def _named(index: int, heading: str) -> str:
    return f"column {letter(index)} {heading[:_SHOWN_CHARACTERS]!r}"


# -- Headings --------------------------------------------------------------------------------------
# Headings as people write them, brought into one form, and how alike two of them are.


_NOT_WORD = re.compile(r"[^a-z0-9]+")

ALIKE_MIN = 0.8
"""From which likeness on, of 1, a heading is taken for a misspelling worth suggesting."""


def words(heading: str) -> tuple[str, ...]:
    """The heading's words: letter case, accents and punctuation aside.

    A heading in letters that have no Latin base keeps them, so that two of them stay two.
    """
    plain = unicodedata.normalize("NFKD", heading).casefold()
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    if not plain.isascii():
        return tuple(re.findall(r"\w+", plain.replace("_", " ")))
    return tuple(each for each in _NOT_WORD.split(plain) if each)


def plain(heading: str) -> str:
    """The heading without case, blanks, underscores, punctuation and accents: "Mobile No." is
    "mobileno".
    """
    return "".join(words(heading))


def likeness(one: str, other: str) -> float:
    """How alike two plain headings are, from 0 to 1."""
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


# -- Aliases ---------------------------------------------------------------------------------------
# Other headings under which people know a column, and headings that could be several columns.
#
# `ALIASES` are certain enough to be used; each resource looks up only the columns that it has, so
# "Company" is a company's `name` and a lead's `company_name`. `HINTS` are not certain: they are
# suggested with their reason, and never used by themselves.


ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": ("Record id", "Uuid"),
    # People and how to reach them.
    "first_name": ("Forename", "Given name", "Christian name", "First", "Vorname", "Prénom"),
    "last_name": ("Surname", "Family name", "Last", "Nachname", "Nom de famille"),
    "email": ("Email address", "E-mail address", "Mail", "E-mail id", "Primary email"),
    "phone": ("Telephone", "Tel", "Phone number", "Phone no", "Telephone number", "Landline"),
    "mobile": ("Mobile no", "Mobile number", "Mobile phone", "Cell", "Cell phone", "Cellphone"),
    "date_of_birth": ("DOB", "Birth date", "Birthday", "Born"),
    "nationality": ("Citizenship",),
    # Addresses.
    "address_line1": ("Address", "Street", "Street address", "Address 1", "Addr 1"),
    "address_line2": ("Address 2", "Addr 2"),
    "address": ("Street", "Street address"),
    "city": ("Town", "Town or city", "Town/city", "City/town"),
    "county": ("State", "Province", "Region"),
    "state_province": ("State", "Province", "County", "Region", "State or province"),
    "postal_code": ("Postcode", "Post code", "Zip", "Zip code", "ZIP/postal code"),
    "postcode": ("Post code", "Postal code", "Zip", "Zip code"),
    "country": ("Country of residence",),
    "billing_address": ("Invoice address",),
    "billing_city": ("Invoice city", "Billing town"),
    "billing_county": ("Invoice county",),
    "billing_postcode": ("Invoice postcode", "Billing post code", "Billing postal code"),
    "billing_country": ("Invoice country",),
    "billing_email": ("Invoice email", "Accounts email", "Invoicing email"),
    # Addresses on the web.
    "website": ("Web site", "Web", "Homepage", "Web address"),
    "network_url": ("Professional profile", "Network profile", "Profile URL"),
    "code_host_url": ("Code profile", "Code hosting profile"),
    "portfolio_url": ("Portfolio", "Portfolio site", "Portfolio link"),
    "social_url": ("Social profile", "Social media"),
    # Work.
    "employment_type": ("Type of employment", "Contract or permanent", "Perm/contract"),
    "employment_status": ("Job search status", "Jobseeker status"),
    "current_job_title": ("Job title", "Current role", "Current position", "Current title"),
    "job_title": ("Position held",),
    "current_company": ("Current employer", "Employer", "Present employer"),
    "current_salary": ("Present salary",),
    "expected_salary": ("Desired salary", "Salary expectation", "Salary expectations"),
    "current_day_rate": ("Present day rate",),
    "expected_day_rate": ("Desired day rate", "Day rate expectation"),
    "notice_period_days": ("Notice days", "Notice period (days)", "Notice in days"),
    "available_from": ("Availability date", "Date available", "Available date", "Start from"),
    "years_of_experience": ("Years experience", "Experience (years)", "Yrs experience"),
    "skills": ("Key skills", "Skill set", "Skillset"),
    "industry": ("Sector", "Industry sector"),
    "source": ("Lead source", "Candidate source", "How found", "Where found"),
    "rating": ("Score", "Stars"),
    "preferred_locations": ("Preferred location", "Desired location", "Desired locations"),
    "willing_to_relocate": ("Relocate", "Will relocate", "Relocation"),
    "right_to_work": ("RTW", "Work permit", "Work authorisation", "Work authorization"),
    "security_clearance": ("Clearance", "Clearance level"),
    "languages": ("Languages spoken", "Language skills"),
    "ir35_status": ("IR35",),
    "umbrella_company": ("Umbrella",),
    "limited_company_name": ("Ltd company", "Limited company", "Ltd company name"),
    "notes": ("Note", "Comments", "Comment", "Remarks"),
    "internal_notes": ("Internal comments", "Private notes", "Internal note"),
    "tags": ("Labels", "Keywords"),
    # Companies.
    "name": ("Company name", "Company", "Client", "Client name", "Organisation", "Organization"),
    "legal_name": ("Registered name",),
    "trading_name": ("Trading as", "T/A"),
    "company_number": ("Company no", "Registration number", "Company reg no"),
    "company_size": ("Employees", "Number of employees", "Headcount", "Size"),
    "founded_year": ("Founded", "Year founded"),
    "primary_contact_name": ("Contact", "Contact name", "Main contact"),
    "primary_contact_email": ("Contact email", "Main contact email"),
    "primary_contact_phone": ("Contact phone", "Contact number", "Main contact phone"),
    "primary_contact_title": ("Contact job title", "Contact title"),
    "payment_terms": ("Terms", "Terms of payment"),
    "contract_start_date": ("Contract start", "Contract from"),
    "contract_end_date": ("Contract end", "Contract until"),
    # Jobs.
    "jobs.title": ("Job title", "Vacancy", "Position", "Vacancy title"),
    "content_items.title": ("Headline", "Item title"),
    "bookings.title": ("Event", "Event title", "Subject"),
    "reference_code": ("Job reference", "Job ref", "Reference", "Ref", "Vacancy reference"),
    "location": ("Work location", "Place of work"),
    "remote_type": ("Remote", "Remote working", "Working model"),
    "experience_level": ("Seniority",),
    "salary_min": ("Minimum salary", "Min salary", "Salary from"),
    "salary_max": ("Maximum salary", "Max salary", "Salary to"),
    "salary_currency": ("Currency of salary",),
    "salary_type": ("Salary period",),
    "day_rate_min": ("Minimum day rate", "Min day rate", "Day rate from"),
    "day_rate_max": ("Maximum day rate", "Max day rate", "Day rate to"),
    "rate_currency": ("Currency of day rate", "Day rate currency"),
    "fee_percentage": ("Fee %", "Fee percent", "Percentage fee"),
    "jobs.description": ("Job description",),
    "companies.description": ("About", "About the company"),
    "positions_available": ("Openings", "Number of positions", "Vacancies", "Headcount"),
    "application_deadline": ("Closing date", "Deadline", "Apply by"),
    "start_date": ("Job start date", "Starts on"),
    # Bookings.
    "booking_type": ("Event type", "Type of booking"),
    "start_datetime": ("Starts at", "Start time", "Start date and time"),
    "end_datetime": ("Ends at", "End time", "End date and time"),
    "day_rate": ("Rate per day",),
    "annual_salary": ("Salary per year", "Yearly salary"),
    "timezone": ("Time zone",),
    # References, by the words that people use for them.
    "company_name": ("Company", "Client", "Client name", "Client company"),
    "company_email": ("Client email",),
    "candidate_email": ("Candidate", "Candidate e-mail address"),
    "job_reference_code": ("Job reference", "Job ref", "Vacancy reference"),
    "job_id": ("Job record id",),
    # Leads.
    "lead_status_id": ("Lead status",),
    "customer_type": ("Type of customer",),
}
"""By a column's own name, other headings for it; with the resource before it, there alone."""

HINTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "name": (
        ("first_name", "last_name", "company_name"),
        "a whole name cannot be split without guessing: give each part a column of its own",
    ),
    "fullname": (
        ("first_name", "last_name"),
        "a whole name cannot be split without guessing: give each part a column of its own",
    ),
    "company": (("current_company", "limited_company_name"), "it can be either"),
    "salary": (
        ("expected_salary", "current_salary", "salary_min", "salary_max", "annual_salary"),
        "it can be any of them",
    ),
    "rate": (
        ("expected_day_rate", "current_day_rate", "day_rate_min", "day_rate_max", "day_rate"),
        "it can be any of them",
    ),
    "dayrate": (
        ("expected_day_rate", "current_day_rate", "day_rate_min", "day_rate_max"),
        "it can be any of them",
    ),
    "currency": (("salary_currency", "rate_currency"), "it can be either"),
    "notice": (("notice_period_days",), "that field is in days, and people give weeks or months"),
    "noticeperiod": (
        ("notice_period_days",),
        "that field is in days, and people give weeks or months",
    ),
    "experience": (
        ("years_of_experience", "experience_level"),
        "it can be years or a text",
    ),
    "type": (
        ("employment_type", "booking_type", "customer_type", "contract_type"),
        "it is often called so",
    ),
    "contract": (("employment_type", "contract_type"), "it is often called so"),
    "contracttype": (("employment_type",), "it is often called so"),
    "jobtype": (("employment_type",), "it is often called so"),
    "date": (("start_datetime", "start_date", "available_from"), "it can be any of them"),
    "start": (("start_datetime", "start_date", "available_from"), "it can be any of them"),
    "startdate": (("start_datetime", "available_from"), "a time may be needed as well"),
    "end": (("end_datetime", "contract_end_date"), "it can be any of them"),
    "enddate": (("end_datetime", "contract_end_date"), "a time may be needed as well"),
    "available": (("available_from",), "that field is a date"),
    "availability": (("available_from",), "that field is a date"),
    "contact": (("contact_name", "primary_contact_name"), "it can be a name or an address"),
    "job": (("job_reference_code", "job_title", "current_job_title"), "it can be any of them"),
    "role": (("current_job_title", "title"), "it is often called so"),
    "owner": (("assigned_to", "account_manager_id"), "that field is an id: map names to ids"),
    "recruiter": (("assigned_to", "account_manager_id"), "that field is an id: map names to ids"),
    "consultant": (("assigned_to", "account_manager_id"), "that field is an id: map names to ids"),
    "state": (("status", "county", "state_province"), "it can be a place or a status"),
    "url": (("website", "network_url", "portfolio_url"), "it can be any of them"),
    "cv": ((), "files cannot be sent: the API takes none"),
    "resume": ((), "files cannot be sent: the API takes none"),
}
"""By a plain heading, the columns that it may stand for and why it is not used by itself."""

"""Words of the page: what people call things, in the language of their browser.

English stands in the code and in the templates; a catalogue of each other language has what it is
there. A text without a translation is shown in English.
"""

from __future__ import annotations

import gettext
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

from babel import Locale, negotiate_locale
from babel.dates import format_datetime
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

from connector.catalog import CATALOG
from connector.engine.push_plan import Problem
from connector.spreadsheet.contacts import REGIONS
from connector.spreadsheet.problems import PROBLEMS, WARNINGS

LANGUAGES = ("en", "de", "fr")
"""Languages of the page; the first is that of whoever speaks none of them."""

_LOCALE_FOLDER = Path(__file__).parent / "locale"


def N_(text: str) -> str:  # noqa: N802 # the mark of gettext
    """Mark a text that is translated where it is shown."""
    return text


MODES: Mapping[str, tuple[str, str]] = {
    "create": (N_("Add new ones"), N_("What is there already is left as it is.")),
    "update": (N_("Change what is there"), N_("Nothing new is added.")),
    "upsert": (N_("Both"), N_("What is there is changed, and the rest is added.")),
    "convert": (N_("Convert leads"), N_("A lead that was converted cannot be put back.")),
}
"""What can be done with a file, by mode."""

OUTCOMES: Mapping[str, str] = {
    "create": N_("New"),
    "update": N_("Changed"),
    "convert": N_("To convert"),
    "created": N_("Added"),
    "updated": N_("Changed"),
    "converted": N_("Converted"),
    "unchanged": N_("Nothing to do"),
    "duplicate": N_("There already"),
    "invalid": N_("Left out"),
    "rejected": N_("Refused"),
    "not_applied": N_("Not as sent"),
    "conflict": N_("Changed by somebody else"),
    "held": N_("In doubt"),
    "not_sent": N_("Not sent"),
}
"""What becomes of a row, by outcome."""

ABOUT: Mapping[str, str] = {
    "create": N_("They are added."),
    "update": N_("They are there, and these fields change."),
    "unchanged": N_("They have all of it already."),
    "duplicate": N_("They are there already, or twice in this file. They are not sent."),
    "invalid": N_("Something in them is not right. They are not sent."),
    "rejected": N_("The system refused them. Put them right in the report, and import that."),
    "conflict": N_("Somebody else changed them since you looked. They were left alone."),
    "held": N_("They were sent, and no answer came. Please look for them in the system."),
    "not_sent": N_("The import ended before their turn. Send it again to go on."),
    "not_applied": N_("The system took them, and shows something else."),
}
"""What an outcome means, in a sentence."""

UNDONE: Mapping[str, str] = {
    "delete": N_("would be deleted again"),
    "restore": N_("would be as before"),
    "deleted": N_("deleted again"),
    "restored": N_("as before"),
    "undone": N_("taken back before"),
    "nothing": N_("nothing to take back"),
    "partly": N_("only in part: somebody changed something since"),
    "conflict": N_("stays: somebody changed it since"),
    "redacted": N_("stays: it was erased"),
    "irreversible": N_("stays: a conversion cannot be undone"),
    "refused": N_("refused by the system"),
    "held": N_("stays: in doubt"),
    "unread": N_("could not be looked at"),
    "not_reached": N_("not reached"),
}
"""What becomes of a row that is taken back."""

ACTIONS: Mapping[str, str] = {
    "sheet_unknown": N_("Choose a sheet below."),
    "encoding_unknown": N_("Choose below how its letters are written."),
    "delimiter_unknown": N_("Choose below what parts its columns."),
    "headings_refused": N_("Choose below the row that names the columns."),
    "unsafe_workbook": N_("Save the sheet as a csv file, and give that."),
    "lease_held": N_("Somebody else is sending just now. Wait a little, and try again."),
    "record_unknown": N_("Correct the cell, or add them instead."),
    "ambiguous_date": N_("Answer the question about this column, or write it as 2025-04-03."),
    "date_format": N_("Write it as 2025-04-03."),
    "two_digit_year": N_("Answer the question about this column, or write four digits."),
    "ambiguous_number": N_("Answer the question about this column, or write it plainly."),
    "unknown_value": N_("Choose one that is allowed."),
    "duplicate_in_warehouse": N_("They are left out. To change them, choose “Both” instead."),
    "duplicate_in_file": N_("The second one is left out, unless you take the first one out."),
    "no_time_zone": N_("Write it in UTC with a Z, as 2025-04-03T09:00Z."),
    "says_nothing": N_("It counts as empty."),
    "person_erased": N_("Take the row out."),
    "record_not_read": N_("Ask whoever looks after the connector to bring it up to date."),
}
"""What to do about an error or a problem, where the command's own words name its options."""


WRONG: Mapping[str, str] = {
    "required": N_("It must not be empty."),
    "duplicate_in_warehouse": N_("They are there already."),
    "unknown_value": N_("It is none of the values that are allowed."),
    "record_unknown": N_("Nobody is there whom the row could mean."),
    "record_not_read": N_("It is not known yet what would change."),
    "value_erased": N_("The cell stands for something that was erased."),
}
"""What is wrong, by code, where the command's own words name fields or ids."""


@dataclass(frozen=True, slots=True)
class PageLanguage:
    """One language: its code, and how texts, numbers and moments are written in it."""

    code: str
    gettext: Callable[[str], str]
    ngettext: Callable[[str, str, int], str]

    def number(self, value: float) -> str:
        """A number as people write it."""
        return format_decimal(value, locale=self.code)

    def moment(self, text: str | datetime | None, zone: str = "UTC") -> str:
        """A moment as people write it, in the account's time zone."""
        if not text:
            return ""
        at = datetime.fromisoformat(text) if isinstance(text, str) else text
        zoned = at.astimezone(ZoneInfo(zone))
        return format_datetime(zoned, "d MMM y, HH:mm", locale=self.code)

    def field(self, name: str) -> str:
        """What people call a field: its name in words."""
        plain = name.removeprefix("fields.").replace("_", " ")
        return self.gettext(plain[:1].upper() + plain[1:])

    def value(self, value: str) -> str:
        """What people call a value of a choice, with the value itself where that differs."""
        return self.gettext(value.replace("_", " "))

    def wrong(self, problem: Problem) -> str:
        """What is wrong, by the problem's code; its own words where the code has none."""
        if problem.code in WRONG:
            return self.gettext(WRONG[problem.code])
        known = PROBLEMS.get(problem.code) or WARNINGS.get(problem.code)
        if known is None or self.code == LANGUAGES[0]:
            return problem.message
        return self.gettext(known.partition(": ")[0] + ".")

    def cure(self, problem: Problem) -> str:
        """What to do about it."""
        if problem.code in ACTIONS:
            return self.gettext(ACTIONS[problem.code])
        known = PROBLEMS.get(problem.code) or WARNINGS.get(problem.code)
        cure = known.partition(": ")[2] if known else problem.fix or ""
        return self.gettext(cure[:1].upper() + cure[1:])

    def regions(self) -> list[tuple[str, str]]:
        """The countries of telephone numbers, by name."""
        names = Locale(self.code).territories
        found = ((code, names.get(code, code)) for code in REGIONS if code in names)
        return sorted(found, key=lambda each: each[1])


def language_of(accepted: str) -> PageLanguage:
    """The language that a browser would have best, by its header."""
    wanted = []
    for part in accepted.split(",")[:20]:
        tag, _, quality = part.partition(";q=")
        try:
            wanted.append((-float(quality or 1), tag.strip().partition("-")[0]))
        except ValueError:
            continue
    tags = [tag for _, tag in sorted(wanted, key=lambda each: each[0])]
    return language(negotiate_locale(tags, list(LANGUAGES)) or LANGUAGES[0])


@cache
def language(code: str) -> PageLanguage:
    """One of the languages."""
    path = _LOCALE_FOLDER / f"{code}.po"
    if not path.exists():
        plain = gettext.NullTranslations()
        return PageLanguage(code, plain.gettext, plain.ngettext)
    with path.open("rb") as file:
        catalogue = read_po(file, locale=code)
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    known = gettext.GNUTranslations(compiled)
    return PageLanguage(code, known.gettext, known.ngettext)


def resource_names() -> list[str]:
    """The resources that a file can be imported into."""
    writes = {"create", "update", "convert"}
    return [name for name, each in CATALOG.items() if writes & set(each.operations)]

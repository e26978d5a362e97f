"""Words in cells and headings, read from `words.toml`.

Each word has one meaning wherever it is the only word of a cell. `values` in a mapping file take
precedence.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from importlib.resources import files

_DATA = tomllib.loads(files(__package__).joinpath("words.toml").read_text("utf-8"))


def _words(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in re.split(r"[|\n]", text) if each.strip())


def _by_word(name: str) -> dict[str, str]:
    return {word: key for key, text in _DATA[name].items() for word in _words(text)}


_SETS = {name: frozenset(_words(text)) for name, text in _DATA.items() if isinstance(text, str)}
_PERIODS = _by_word("periods")
_NOTHING_CHARACTERS_MAX = 30

TRUTHS: Mapping[str, bool] = {
    **dict.fromkeys(_SETS["yes"], True),
    **dict.fromkeys(_SETS["no"], False),
}
"""Words for True and False."""

MONTHS: Mapping[str, int] = {word: int(number) for word, number in _by_word("months").items()}
WEEKDAYS: Mapping[str, int] = {word: int(number) for word, number in _by_word("weekdays").items()}
"""Number of a month, and of a day of the week, Monday first, by name or abbreviation."""

CHOICES: Mapping[str, str] = _by_word("choices")
"""Value of the API by another word for it."""

NO_AMOUNT, IMMEDIATELY = _SETS["no_amount"], _SETS["immediately"]
"""Words for an amount that is not agreed, and for "immediately"."""

TITLES, DEGREES, PARTICLES = _SETS["titles"], _SETS["degrees"], _SETS["particles"]
"""Words before a name, after it, and before the last word of a last name."""

LEGAL_FORMS = _SETS["legal_forms"]
"""Words of a company's name that two spellings of it may differ in."""

RULES: Mapping[str, str] = _DATA["rules"]
"""What a template says about a column, by the kind or format of its field."""

WHOLE_NAMES, OTHER_HEADINGS = _SETS["whole_names"], _SETS["headings"]
"""Normalized headings of a column with first and last name, and usual ones that fit no field."""

SUGGESTED = {heading: _words(text) for heading, text in _DATA["suggested"].items()}
"""By normalized heading, fields that it may mean. They are suggested and never used automatically.
"""

FIVE_DIGIT_COUNTRIES = frozenset(_words(_DATA["countries"]["five_digits"]))
CURRENCY_CODES = frozenset(_words(_DATA["codes"]["currencies"]))
EXAMPLE_NUMBERS = tuple(_DATA["countries"]["example_numbers"].split())

_NOT_WORD = re.compile(r"[^a-z0-9]+")
_MARKS = re.compile(r"([-\u2013\u2014_.?*/])\1{0,4}").fullmatch
# Words in brackets cannot be names of people.
_BRACKETED = re.compile(
    r"[(\[{<]\s*(?:blank|empty|missing|null|none|nil|undefined|no value|leer|vide|vac[ií]o|leeg)?"
    r"\s*[)\]}>]",
    re.IGNORECASE,
).fullmatch
# Words that programs write for an empty value, and dates that were never set.
_OF_PROGRAMS = re.compile(
    r"\\N|NaT|#[¡¿]?(?:[A-ZÄÖÜÉ/0_]+[!?]|N/A(?: N/A)?|N/?[VBD]|GETTING_DATA)"
    r"|(?:0000-00-00|0001-01-01|1899-12-3[01]|1900-01-00)(?:[T ]00:00(?::00(?:\.0+)?)?Z?)?"
    r"|(?:0?0[/.-]0?0[/.-](?:00)?00|0?1[/.-]0?1[/.-]0001|0?0[/.-]0?1[/.-]1900"
    r"|0?1[/.-]0?0[/.-]1900|3[01][/.-]12[/.-]1899|12[/.-]3[01][/.-]1899)(?: 0?0:00(?::00)?)?"
).fullmatch
_BEGINNINGS = frozenset("([{<\\N#013")
_IN_NO_EMPTY = re.compile("[0-9@#&]").search
_PER = re.compile(r"(?:per|a|each|pro|im|am|par|al|por|all|p) ").match
is_ditto = re.compile(
    r"(?:[\"\u2033\u3003\u201c-\u201f]|''|,,|ditto|dito|idem)[.]?", re.IGNORECASE
).fullmatch
begins_totals = re.compile(
    rf"(?:{'|'.join(sorted(_SETS['totals'], key=len, reverse=True))})\b", re.IGNORECASE
).match


def without_accents(text: str) -> str:
    """Return the text in lower case, with letters without their accents."""
    if text.isascii():
        return text.casefold()
    separated = unicodedata.normalize("NFKD", text).casefold()
    return "".join(each for each in separated if not unicodedata.combining(each))


def normalized_words(text: str) -> str:
    """Return the text in lower case, without accents, with one blank between words."""
    return _NOT_WORD.sub(" ", without_accents(text)).strip()


@lru_cache(maxsize=2_000)
def means_nothing(text: str) -> bool:
    """Return True if the cell is a word or a sign for an empty value."""
    if len(text) > _NOTHING_CHARACTERS_MAX:
        return False
    if text[:1] in _BEGINNINGS and (_BRACKETED(text) or _OF_PROGRAMS(text)):
        return True
    # No other word for an empty value contains a digit or one of these signs.
    if _IN_NO_EMPTY(text) is not None:
        return False
    return _MARKS(text) is not None or normalized_words(text) in _SETS["nothing"]


def period_of(text: str) -> str | None:
    """Return the time unit of words after a number: day for "per day". None for other words."""
    normalized = normalized_words(text)
    found = _PERIODS.get(normalized)
    return found or (_PERIODS.get(normalized.partition(" ")[2]) if _PER(normalized) else None)


# -- Countries -------------------------------------------------------------------------------------

DEFAULT_REGION = "GB"
"""Country whose customs decide ambiguous cells, unless the user names another."""

_CURRENCY_OF = {
    region: code for code, regions in _DATA["currencies"].items() for region in regions.split()
}


def currency_of_region(region: str | None) -> str | None:
    """Return the currency code of a country; None if unknown."""
    return _CURRENCY_OF.get(region or DEFAULT_REGION)


def date_order_of_region(region: str | None) -> str:
    """Return the order in which people of a country write a date: dmy or mdy."""
    is_mdy = (region or DEFAULT_REGION) in _DATA["countries"]["month_first"].split()
    return "mdy" if is_mdy else "dmy"


def decimal_of_region(region: str | None) -> str:
    """Return the decimal separator of a country."""
    return "," if (region or DEFAULT_REGION) in _DATA["countries"]["decimal_comma"].split() else "."


def timezone_of_region(region: str | None) -> str | None:
    """Return the time zone of a country; None for a country with several, or an unknown one."""
    zone: str | None = _DATA["timezones"].get(region or DEFAULT_REGION)
    return zone


# -- Typing errors ---------------------------------------------------------------------------------

_SHORT_WORD = 5
_DIGITS = re.compile("[0-9]+").findall


def is_typing_error(text: str, name: str) -> bool:
    """Return True if the text is the name with one or two wrong letters, and begins alike.

    Both are words in lower case, separated by blanks. A word that turns or narrows the meaning,
    such as "not", "min" or "manager", must be in both or in neither, and digits must be equal.
    """
    is_turned = ({*text.split()} ^ {*name.split()}) & _SETS["turning"]
    if is_turned or text[:2] != name[:2] or _DIGITS(text) != _DIGITS(name):
        return False
    one, other = text.replace(" ", ""), name.replace(" ", "")
    limit = 1 if min(len(one), len(other)) <= _SHORT_WORD else 2
    return abs(len(one) - len(other)) <= limit and _count_differences(one, other) <= limit


def _count_differences(one: str, other: str) -> int:
    """Return the number of letters of the longer text that are not in order in the other one."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return max(len(one), len(other)) - sum(each.size for each in blocks)

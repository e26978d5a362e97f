"""Words in cells, in English, German, French, Spanish, Dutch and Italian.

Each word has one meaning wherever it is the only word of a cell. `values` in a mapping file take
precedence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

_NOT_WORD = re.compile(r"[^a-z0-9]+")
_MARKS = re.compile(r"([-\u2013\u2014_.?*/])\1{0,4}").fullmatch
_EMPTY_WORDS = """
    na|n a|not applicable|not available|not provided|not known|not given|not specified|not stated
    none|null|nil|nan|nothing|unknown|unkown|tbc|tba|tbd|to be confirmed|to be advised|pending
    k a|keine|keiner|kein|keine angabe|keine angaben|ohne angabe|nicht bekannt|nicht angegeben
    unbekannt|entfallt|nicht zutreffend|offen|nicht vorhanden|leer
    neant|aucun|aucune|sans objet|s o|n c|non renseigne|non renseignee|non communique
    inconnu|inconnue|a confirmer|a definir|vide|rien
    ninguno|ninguna|desconocido|desconocida|sin datos|sin dato|no aplica|no disponible|pendiente
    por confirmar|vacio|nada
    nvt|n v t|geen|onbekend|niet bekend|niet van toepassing|niet beschikbaar|nog te bepalen|leeg
    nessuno|nessuna|sconosciuto|sconosciuta|non disponibile|non noto|n d|da confermare|vuoto
    non applicabile|niente
    undefined|object object|invalid date|not set|false
"""
# Words that programs write for an empty value. Words in brackets cannot be names of people.
_BRACKETED = re.compile(
    r"[(\[{<]\s*(?:blank|empty|missing|null|none|nil|undefined|no value|leer|vide|vac[ií]o|leeg)?"
    r"\s*[)\]}>]",
    re.IGNORECASE,
).fullmatch
_OF_PROGRAMS = re.compile(
    r"\\N|NaT|#[¡¿]?(?:[A-ZÄÖÜÉ/0_]+[!?]|N/A(?: N/A)?|N/?[VBD]|GETTING_DATA)"
    # A date that was never set, with or without a time.
    r"|(?:0000-00-00|0001-01-01|1899-12-3[01]|1900-01-00)(?:[T ]00:00(?::00(?:\.0+)?)?Z?)?"
    r"|(?:0?0[/.-]0?0[/.-]0000|0?1[/.-]0?1[/.-]0001|0?0[/.-]0?1[/.-]1900|0?1[/.-]0?0[/.-]1900"
    r"|3[01][/.-]12[/.-]1899|12[/.-]3[01][/.-]1899)(?: 0?0:00(?::00)?)?"
).fullmatch

_EMPTY = frozenset(
    each.strip() for line in _EMPTY_WORDS.splitlines() for each in line.split("|") if each.strip()
)
_EMPTY_CHARACTERS_MAX = 30
_BEGINNINGS = frozenset("([{<\\N#013")
_IN_NO_EMPTY = re.compile("[0-9@#&]").search

_CHOICE_WORDS = {
    "permanent": "perm|permanently|permanent position|full time permanent|permanent full time|"
    "festangestellt|festanstellung|unbefristet|fest|feste anstellung|cdi|"
    "permanente|contrat a duree indeterminee|indefinido|contrato indefinido|fijo|"
    "vast|vast dienstverband|vaste baan|onbepaalde tijd|tempo indeterminato|"
    "indeterminato|a tempo indeterminato",
    "contractor": "contract|contracting|contract role|day rate|outside ir35 contractor|"
    "auftragnehmer|freiberuflich|freiberufler|prestataire|contratista|zzp|"
    "zzper|collaboratore|libero professionista",
    "interim": "interim management|interim manager|interimsmanager|ad interim",
    "on_site": "office|in office|onsite|vor ort|sur site|presencial|op locatie",
    "remote": "home|home office|homeoffice|teletravail|remoto|thuiswerken",
    "hybrid": "hybride|hibrido|ibrido|partly remote",
    "annual": "per year|yearly|pa|p a|jahrlich|annuel|anual|jaarlijks",
    "monthly": "per month|monatlich|mensuel|mensual|maandelijks|mensile",
    "hourly": "per hour|stundlich|horaire|por hora|per uur|orario",
    "actively_looking": "aktiv suchend|en recherche active|busca activa",
}
CHOICES: Mapping[str, tuple[str, ...]] = {
    value: tuple(words.split("|")) for value, words in _CHOICE_WORDS.items()
}
"""By value of the API, other words with certainly the same meaning."""

TRUTHS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "yes", "y", "1", "ja", "oui", "si", "vrai", "wahr", "waar"), True),
    **dict.fromkeys(("false", "no", "n", "0", "nein", "non", "nee", "faux", "falsch"), False),
}
"""Words for True and False."""

_IMMEDIATE_WORDS = (
    "sofort|ab sofort|per sofort|umgehend|immediate|immediately|asap|as soon as possible|at once"
    "|immediat|immediatement|des que possible|de suite|tout de suite|inmediato|inmediata"
    "|inmediatamente|de inmediato|cuanto antes|per direct|direct beschikbaar|immediato|da subito"
    "|immediatamente|subito"
)
_IMMEDIATE = frozenset(_IMMEDIATE_WORDS.split("|"))

_PERIODS = {
    "year": "pa|p a|annum|year|years|yr|yrs|y|annual|annually|yearly|jahr|jahre|jahren|jahrlich|an"
    "|ans|ano|anos|anual|jaar|jaarlijks|anno|anni|annui",
    "month": "pm|p m|pcm|month|months|monthly|monat|monate|monatlich|mois|mes|meses|maand|mese",
    "week": "pw|p w|week|weeks|weekly|wk|wks|woche|wochen|semaine|semaines|semana|semanas|weken",
    "day": "pd|p d|day|days|daily|d|tag|tage|tagen|jour|jours|dia|dias|dag|dagen|giorno|giorni",
    "hour": "ph|p h|hour|hours|hourly|hr|hrs|h|stunde|stunden|std|heure|heures|hora|horas|uur|ora",
}
_PERIOD_OF = {word: each for each, words in _PERIODS.items() for word in words.split("|")}
_PER = re.compile(r"(?:per|a|each|pro|im|am|par|al|por|all|p) ").match

_MONTH_NAMES = (
    "january januar janvier enero januari gennaio jan janv ene gen",
    "february februar fevrier febrero februari febbraio feb fevr fev",
    "march marz maerz mars marzo maart mar mrz mrt",
    "april avril abril aprile apr avr abr",
    "may mai mayo mei maggio mag",
    "june juni juin junio giugno jun giu",
    "july juli juillet julio luglio jul juil lug",
    "august aout agosto augustus aug ago",
    "september septembre septiembre settembre sep sept set",
    "october oktober octobre octubre ottobre oct okt ott",
    "november novembre noviembre nov",
    "december dezember decembre diciembre dicembre dec dez dic",
)
MONTHS: Mapping[str, int] = {
    name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()
}
"""Number of a month by its name or abbreviation, in lower case without accents."""

_NAME_WORDS = (
    "mr mrs ms miss mx dr prof herr hr frau monsieur mme mlle madame sr sra srta dhr mevr mw sig"
    " dott dottssa sigra sir dame med",
    "phd md mba bsc msc ba beng rn cpa acca ing llm jd mcips cipd jr jnr snr ii iii iv",
    "van von der den de del della di da dos du la le el al bin ten ter zu zur st mc",
)
TITLES, DEGREES, PARTICLES = (frozenset(each.split()) for each in _NAME_WORDS)
"""Words before a name, after it, and before the last word of a last name."""

TOTALS = re.compile(
    r"(?:grand |sub)?total[es]?\b|sum\b|summe\b|gesamt|zwischensumme|somme\b|suma\b|totaal\b|"
    r"totale\b|anzahl\b|count\b|average\b|durchschnitt\b|moyenne\b|gemiddelde\b",
    re.IGNORECASE,
).match
"""Return a match if a cell begins a line of totals."""

TOTALS_INITIALS = "acdgmstz"
"""Letters with which these words begin."""


def without_accents(text: str) -> str:
    """Return the text in lower case, with letters without their accents."""
    if text.isascii():
        return text.casefold()
    separated = unicodedata.normalize("NFKD", text).casefold()
    return "".join(each for each in separated if not unicodedata.combining(each))


def normalized_words(text: str) -> str:
    """Return the text in lower case, without accents, with one blank between words."""
    return _NOT_WORD.sub(" ", without_accents(text)).strip()


def means_empty(text: str) -> bool:
    """Return True if the cell is a word or a sign for an empty value."""
    if len(text) > _EMPTY_CHARACTERS_MAX:
        return False
    if text[:1] in _BEGINNINGS and (_BRACKETED(text) or _OF_PROGRAMS(text)):
        return True
    # No other word for an empty value contains a digit or one of these signs.
    if _IN_NO_EMPTY(text) is not None:
        return False
    return _MARKS(text) is not None or normalized_words(text) in _EMPTY


def period_of(text: str) -> str | None:
    """Return the time unit of words after a number: day for "per day". None for other words."""
    normalized = normalized_words(text)
    found = _PERIOD_OF.get(normalized)
    return found or (_PERIOD_OF.get(normalized.partition(" ")[2]) if _PER(normalized) else None)


def means_immediately(text: str) -> bool:
    """Return True if the cell is a word for "immediately"."""
    return len(text) <= _EMPTY_CHARACTERS_MAX and normalized_words(text) in _IMMEDIATE


_DITTO = re.compile(r"(?:[\"\u2033\u3003\u201c-\u201f]|''|,,|ditto|dito|idem)[.]?", re.IGNORECASE)


def means_ditto(text: str) -> bool:
    """Return True if the cell is a word for "same as above"."""
    return _DITTO.fullmatch(text) is not None


_CHOICE_OF = {word: value for value, words in CHOICES.items() for word in words}


def find_choice(text: str) -> str | None:
    """Return the value of the API that the word means; None for other words."""
    return _CHOICE_OF.get(normalized_words(text))

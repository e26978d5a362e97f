"""Identifiers of people, the person of an erasure, and the list of erased people."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, Self, get_args
from urllib.parse import quote

from connector.atomic_files import write_atomically
from connector.catalog import subjects_of
from connector.catalog.field import MARK, DataSubject
from connector.catalog.resource import Declaration, Resource
from connector.errors import LedgerError, WarehouseError, convert_file_errors
from connector.settings.layers import RECEIPTS_FOLDER

# -- Identifiers ----------------------------------------------------------------------------------
# Identifiers of people: ids, email addresses, telephone numbers and profile addresses.
#
# They are compared without differences of letter case, blanks and ways to write a number.


IdentifierKind = Literal["id", "email", "phone", "profile"]

PHONE_DIGITS = 9
"""Number of digits that are compared, from the end: with or without the country code."""

PHONE_DIGITS_MIN = 7
"""A number with fewer digits identifies no one."""

# Each run of characters is tried once, from its start: files may have runs of millions.
EMAIL = re.compile(
    r"(?<![^\s<>,;:\"'()\[\]|\\])[^\s<>,;:\"'()\[\]|\\]+"
    r"@[^\s<>,;:\"'()\[\]|\\@]+[^\s<>,;:\"'()\[\]|\\@.!?]"
)
PHONE = re.compile(r"(?<!\w)(?<!\w[-/_#])\+?\(?\d[\d ().\-/\u00a0]{5,}\d(?!\w)(?![-/_]\w)")

_DIGITS_MAX = 15
"""Maximum number of digits of a telephone number. A longer one is a code or an account."""

_BEFORE = re.compile(r"0?\d{0,3}|(?:\+|00)\d{0,5}")
"""Maximum number of digits before the compared ones: country and area."""

_WORDS_MAX = 8
"""Maximum number of groups of digits in a written number."""

_SCHEME = re.compile(r"^(?:https?://)?(?:www\.)?")


def normalize_identifier(kind: IdentifierKind, value: str) -> str:
    """Return the identifier in the form in which it is compared; empty if it identifies no one."""
    if kind == "phone":
        digits = re.sub(r"\D", "", value)
        return digits[-PHONE_DIGITS:] if len(digits) >= PHONE_DIGITS_MIN else ""
    text = value.strip().casefold()
    if kind == "profile":
        is_address = "." in text and "@" not in text and not any(map(str.isspace, text))
        return _SCHEME.sub("", text).rstrip("/") if is_address else ""
    return text


def has_known_identifier(text: str, is_known: Callable[[IdentifierKind, str], bool]) -> bool:
    """Return True if the text contains an email address or a telephone number for which `is_known`.

    An address or a number that is part of a longer one, or of a code, does not count.
    """
    if "@" in text and any(is_known("email", each) for each in EMAIL.findall(text)):
        return True
    return any(
        is_known("phone", each)
        for run in PHONE.findall(text)
        for each in _possible_phone_numbers(run)
    )


def _possible_phone_numbers(run: str) -> Iterator[str]:
    """Yield the parts of a text of digits and separators that may each be a telephone number."""
    words = run.split()
    for first in range(len(words)):
        for end in range(first + 1, min(first + _WORDS_MAX, len(words)) + 1):
            written = " ".join(words[first:end])
            digits = re.sub(r"\D", "", written)
            before = ("+" if "+" in written else "") + digits[:-PHONE_DIGITS]
            if PHONE_DIGITS_MIN <= len(digits) <= _DIGITS_MAX and _BEFORE.fullmatch(before):
                yield written


# -- Key -------------------------------------------------------------------------------------------
# Erased people are listed as hashes with a random key, which only the owner of the folder can read.
# Addresses could be guessed from hashes without a key. If the key is lost, the list is useless.


KEY_FILE = "suppression.key"
"""The key's file in an account's folder."""

_KEY_BYTES = 32
_KEY = re.compile(rb"[0-9a-f]{64}\s*")

KEY_LOST = (
    f"Restore {KEY_FILE} from a backup. Without a backup, move the ledger and the folder "
    f"{RECEIPTS_FOLDER}/ away, and run 'connector doctor --new-ledger'. Then run "
    "'connector pull', and erase the same people again."
)
"""What to do if the key is lost."""


def read_suppression_key(folder: Path) -> bytes | None:
    """Return the key that hashes erased people; None if no one was ever erased in this folder.

    Raises a `WarehouseError`, also for a file without a complete key.
    """
    path = folder / KEY_FILE
    with convert_file_errors(path):
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
    if not _KEY.fullmatch(text):
        raise WarehouseError(
            f"{path} is not a key of {2 * _KEY_BYTES} hexadecimal digits, so erased "
            "people would not be recognized",
            action=KEY_LOST,
            code="erasures_unknown",
        )
    return bytes.fromhex(text.decode("ascii"))


def key_fingerprint(key: bytes) -> str:
    """Return a text that identifies the key in a receipt without disclosing it."""
    return hmac.new(key, b"fingerprint", hashlib.sha256).hexdigest()


def read_or_create_key(folder: Path) -> bytes:
    """Return the key that hashes erased people. Creates it if the folder has none.

    Raises a `WarehouseError`.
    """
    key = read_suppression_key(folder)
    if key is not None:
        return key
    path = folder / KEY_FILE
    with convert_file_errors(path), write_atomically(path) as file:
        file.write(secrets.token_hex(_KEY_BYTES).encode("ascii"))
    made = read_suppression_key(folder)
    assert made is not None, path
    return made


def hash_identifier(key: bytes, kind: IdentifierKind, value: str) -> str:
    """Return the HMAC-SHA-256 of an identifier and its kind; empty if it identifies no one."""
    text = normalize_identifier(kind, value)
    return hmac.new(key, f"{kind}\0{text}".encode(), hashlib.sha256).hexdigest() if text else ""


# -- Person ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Mention:
    """Place of a text in another person's record or row that names the person.

    `where` is a table or a file. `row` is a record id, or the position of the row in the file. The
    text is not kept.
    """

    where: str
    row: str
    field: str

    @property
    def is_past(self) -> bool:
        """Return True if the text is in an earlier version or in the journal, where no one can edit
        it.
        """
        return self.where.startswith(("history.", "push."))


@dataclass(frozen=True)
class Person:
    """Normalized identifiers of a person, and full names.

    Names only find texts that mention the person. They identify no one.
    """

    ids: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    phones: frozenset[str] = frozenset()
    profiles: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def has_identifier(self, kind: IdentifierKind, value: str) -> bool:
        """Return True if the identifier is one of the person's."""
        known = self._values_by_kind[kind]
        return bool(known) and normalize_identifier(kind, value) in known

    def is_named_in(self, text: str) -> bool:
        """Return True if the text contains an identifier or a full name of the person."""
        return has_known_identifier(text, self.has_identifier) or (
            self._name_or_profile_pattern is not None
            and self._name_or_profile_pattern.search(text) is not None
        )

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Return True if any cell is exactly an identifier of the person, of any kind."""
        return any(
            self.has_identifier(kind, cell) for cell in cells for kind in self._values_by_kind
        )

    def identifiers(self) -> Iterable[tuple[IdentifierKind, str]]:
        """Return each identifier with its kind, sorted within a kind. Names are not included."""
        return (
            (kind, each) for kind, known in self._values_by_kind.items() for each in sorted(known)
        )

    def without(self, other: Person) -> Self:
        """Return the person without email addresses, telephone numbers and profiles of the other.

        Ids and names stay.
        """
        return replace(
            self,
            emails=self.emails - other.emails,
            phones=self.phones - other.phones,
            profiles=self.profiles - other.profiles,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the identifiers and names as JSON, for the record of an unfinished erasure."""
        return {each.name: sorted(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_json(cls, noted: Mapping[str, Any]) -> Self:
        """Return the person from the result of `as_json`."""
        return cls(**{name: frozenset(values) for name, values in noted.items()})

    @cached_property
    def _values_by_kind(self) -> dict[IdentifierKind, frozenset[str]]:
        """Identifiers of the person by kind."""
        return {
            "id": self.ids,
            "email": self.emails,
            "phone": self.phones,
            "profile": self.profiles,
        }

    @cached_property
    def _name_or_profile_pattern(self) -> re.Pattern[str] | None:
        """Pattern of any name or profile of the person; None without names and profiles."""
        patterns = [
            *map(_name_regex, sorted(self.names)),
            *map(_profile_regex, sorted(self.profiles)),
        ]
        return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def _name_regex(name: str) -> str:
    """Return a pattern of the name as whole words, also with the last name first."""
    words = [re.escape(each) for each in name.split()]
    forms = [r"\s+".join(words)]
    if len(words) > 1:
        forms.append(rf"{words[-1]},\s*" + r"\s+".join(words[:-1]))
    # "Joann Lee" and "Ann Lee-Jones" are other people; "Ann Lee's" is of this one.
    return rf"(?<!\w)(?<!\w['\u2019-])(?:{'|'.join(forms)})(?!\w)(?!-\w)(?!['\u2019](?!s\b)\w)"


def _profile_regex(profile: str) -> str:
    """Return a pattern of the profile's complete address."""
    return rf"(?<![\w@-])(?<!(?<!www)\.)(?<!\w/){re.escape(profile)}/?(?![-./~%?#=&@+]*\w)"


# -- Removal from records --------------------------------------------------------------------------
# Fields that an erasure removes from a record. The same fields are removed from stored records and
# from every record that is read later, so that an unchanged answer is an unchanged row.


class PersonMatcher(Protocol):
    """Recognizes identifiers: those of one person, or of everyone on the list of erased people."""

    def has_identifier(self, kind: IdentifierKind, value: str) -> bool:
        """Return True if the identifier is one of theirs."""


def group_describes(group: DataSubject, values: Mapping[str, Any], who: PersonMatcher) -> bool:
    """Return True if an id or an email address in the group's fields is one of `who`.

    A telephone number is not enough: many people have one switchboard, and numbers are reassigned.
    """
    kinds: tuple[tuple[IdentifierKind, tuple[str, ...]], ...] = (
        ("id", group.ids),
        ("email", group.emails),
    )
    return any(
        _has_identifier(kind, values.get(name), who) for kind, names in kinds for name in names
    )


def groups_describing(
    resource: str, values: Mapping[str, Any], who: PersonMatcher
) -> tuple[DataSubject, ...]:
    """Return those groups of a record's fields whose id or email address is one of `who`."""
    return tuple(group for group in subjects_of(resource) if group_describes(group, values, who))


def fields_to_remove(
    declaration: Declaration,
    values: Mapping[str, Any],
    who: PersonMatcher,
    groups: tuple[DataSubject, ...] | None = None,
) -> set[str]:
    """Return the names of the fields that an erasure of `who` removes from a record.

    They are all fields of the `groups` that describe the person (by default found by id or email
    address). In another person's contact fields, they are the exact telephone number and profile
    address. In the person's own record, they include every undeclared field.
    """
    groups = groups_describing(declaration.name, values, who) if groups is None else groups
    gone = {name for group in groups for name in group.fields if name in values}
    for group in subjects_of(declaration.name):
        if group.is_other_person:
            urls = [each for each in group.fields if declaration.fields[each].format == "url"]
            gone |= {
                name for name in group.phones if _has_identifier("phone", values.get(name), who)
            }
            gone |= {name for name in urls if _has_identifier("profile", values.get(name), who)}
    if any(group.is_record for group in groups):
        gone |= values.keys() - declaration.fields.keys()
    return gone


def without_person(
    declaration: Declaration, values: Mapping[str, Any], who: PersonMatcher
) -> dict[str, Any]:
    """Return a record or a body without the fields that an erasure removes."""
    gone = fields_to_remove(declaration, values, who)
    return {name: value for name, value in values.items() if name not in gone}


def mark_removed_fields(
    declaration: Declaration,
    values: Mapping[str, Any],
    who: PersonMatcher,
    groups: tuple[DataSubject, ...],
) -> dict[str, Any]:
    """Return a record with `MARK` in place of each value that an erasure of `who` removes.

    So a removed value differs from an empty one. Removed fields that are not declared are left out.
    """
    gone = fields_to_remove(declaration, values, who, groups)
    return {
        name: value if name not in gone or value is None else MARK
        for name, value in values.items()
        if name not in gone or name in declaration.fields
    }


def find_mentions(
    where: str, row: str, values: Mapping[str, Any], person: Person
) -> Iterator[Mention]:
    """Yield a mention for each field of a record whose text names the person."""
    for name, value in values.items():
        if any(map(person.is_named_in, texts_in(value))):
            yield Mention(where, row, name)


def identifiers_in_record(declaration: Declaration, values: Mapping[str, Any]) -> Person:
    """Return the email addresses, telephone numbers and profiles that a record has as its own.

    Those of its contact fields are left out.
    """
    groups = [group for group in subjects_of(declaration.name) if not group.is_other_person]
    elsewhere = {
        name
        for group in subjects_of(declaration.name)
        if group.is_other_person
        for name in group.fields
    }
    urls = [
        each.name
        for each in declaration.fields.values()
        if each.format == "url" and each.name not in elsewhere
    ]
    return Person(
        emails=_normalized_values(
            "email", values, (name for group in groups for name in group.emails)
        ),
        phones=_normalized_values(
            "phone", values, (name for group in groups for name in group.phones)
        ),
        profiles=_normalized_values("profile", values, urls),
    )


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_in(each)


def _has_identifier(kind: IdentifierKind, value: object, who: PersonMatcher) -> bool:
    """Return True if the value is a text and an identifier of `who`."""
    return isinstance(value, str) and who.has_identifier(kind, value)


def _normalized_values(
    kind: IdentifierKind, values: Mapping[str, Any], names: Iterable[str]
) -> frozenset[str]:
    """Return the normalized identifiers in the fields `names`, without empty ones."""
    shown = (values.get(name) for name in names)
    return frozenset(
        normalize_identifier(kind, each) for each in shown if isinstance(each, str)
    ) - {""}


# -- List of erased people -------------------------------------------------------------------------
# `ledger/erasures.py` writes the list. Pulls and pushes read it here, and load no erased person.


_BUSY_SECONDS = 10.0
_LEDGER_FILE = "ledger.sqlite"


@dataclass(frozen=True)
class SuppressionList:
    """Keyed hashes of people who were erased from one account and not released."""

    key: bytes
    tokens: frozenset[str]

    @classmethod
    def read_from(cls, folder: Path) -> Self | None:
        """Return the list of the account in this folder; None if it is empty.

        If no one was ever erased, this only checks for the key's file. Raises a `WarehouseError`.
        """
        key = read_suppression_key(folder)
        if key is None:
            return None
        tokens = _read_hashes(folder / _LEDGER_FILE)
        return cls(key, tokens) if tokens else None

    def has_identifier(self, kind: IdentifierKind, value: str) -> bool:
        """Return True if the identifier is one of an erased person."""
        return hash_identifier(self.key, kind, value) in self.tokens

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Return True if a cell contains an erased person's email address, telephone number or
        profile.
        """
        return any(
            has_known_identifier(cell, self.has_identifier) or self.has_identifier("profile", cell)
            for cell in cells
        )

    def describes_erased(self, resource: str, values: Mapping[str, Any]) -> bool:
        """Return True if a record, or a row for one, has the id or email address of an erased
        person.
        """
        return bool(groups_describing(resource, values, self))

    def strip(self, record: Resource) -> Resource:
        """Return the record without data of erased people: the same object if it has none."""
        left = without_person(record.declaration, record.raw, self)
        if left == record.raw:
            return record
        return type(record)(left, is_item=record.is_item, served_at=record.served_at)


@dataclass(slots=True)
class SuppressionFilter:
    """List of erased people that collects in `found` each of its identifiers that was asked for."""

    suppressed: SuppressionList
    found: set[tuple[IdentifierKind, str]] = field(default_factory=set)

    def has_identifier(self, kind: IdentifierKind, value: str) -> bool:
        """Return True if the identifier is on the list, and add it to `found`."""
        is_known = self.suppressed.has_identifier(kind, value)
        if is_known:
            self.found.add((kind, normalize_identifier(kind, value)))
        return is_known

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Return True if any cell is exactly an identifier on the list. Adds all of them to
        `found`.
        """
        found = [
            self.has_identifier(kind, cell) for cell in cells for kind in get_args(IdentifierKind)
        ]
        return any(found)

    def as_person(self) -> Person:
        """Return one `Person` with all identifiers in `found`, to search for them."""
        return person_of(self.found)


def person_of(identifiers: Iterable[tuple[IdentifierKind, str]]) -> Person:
    """Return a `Person` with these identifiers and without names."""
    of: dict[IdentifierKind, set[str]] = {kind: set() for kind in get_args(IdentifierKind)}
    for kind, value in identifiers:
        of[kind].add(value)
    return Person(*map(frozenset, of.values()))


def _read_hashes(path: Path) -> frozenset[str]:
    """Return all hashes on the list in the ledger; empty if there is no ledger."""
    if not path.exists():
        return frozenset()
    uri = f"file:{quote(str(path))}?mode=rw"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as connection:
            return frozenset(t for (t,) in connection.execute("SELECT token FROM suppressed"))
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return frozenset()
        raise WarehouseError(f"{path} cannot be read: {error}") from error
    except (sqlite3.Error, ValueError) as error:
        raise LedgerError(f"{path} is damaged: {type(error).__name__}") from error

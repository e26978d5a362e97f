"""Where somebody is: every table, file and batch that holds them, in counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from connector.catalog import CATALOG
from connector.errors import LakehouseError, SpreadsheetError
from connector.lakehouse.forget import InLakehouse, look_for
from connector.ledger.erasures import Erasures
from connector.ledger.journal_persons import InJournal, journal_contents
from connector.ledger.ledger import LEDGER_FILE, Ledger
from connector.privacy.folder_files import InFiles, search, tables_in
from connector.privacy.known_person import KnownPerson, find, seed_of
from connector.privacy.receipt import PersonPlace, Whereabouts
from connector.settings.model import Settings
from connector.spreadsheet.persons import rows_about
from connector.suppression.identifiers import Kind, token
from connector.suppression.listed import Noticing, Suppressed
from connector.suppression.person import Person, reduced
from connector.warehouse.duckdb_file import opened
from connector.warehouse.persons import PersonRows, every_version, named_rows, take_out
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse

LAKEHOUSE = "lakehouse"
"""What the shared lakehouse is called among the files."""


def whereis(settings: Settings, asked: str) -> Whereabouts:
    """Everything in the account's folder that holds the person of an address or id.

    Nothing is changed or sent. Raises `Misused` for what is no address and no id, or is that of
    too many people, and a `WarehouseError`.
    """
    known = find(settings, seed_of(asked))
    return places_of(settings, known)


def places_of(settings: Settings, known: KnownPerson) -> Whereabouts:
    """Everything that holds somebody who is known already. Raises a `WarehouseError`."""
    folder, person = settings.folder, known.person
    if not folder.is_dir():
        return Whereabouts()
    with Ledger(folder) as ledger:
        journal = Erasures(ledger).look(person) if ledger.exists else InJournal()
    work, files = _in_work(folder, person), search(folder, person)
    published = Warehouse(folder).published
    not_reached: list[str] = []
    try:
        lakehouse = look_for(settings, person)
    except LakehouseError as error:
        # That keeps nobody from looking at the rest.
        lakehouse = InLakehouse()
        not_reached.append(f"{LAKEHOUSE} ({error})")
    places = [
        *_places(WORK_FILE, work.rows),
        *_places(LEDGER_FILE, +journal.counts),
        *_places(PUBLISHED_FILE, named_rows(published, person) if published.exists() else {}),
        *files.places(folder),
        *_places(LAKEHOUSE, dict(sorted(lakehouse.rows.items()))),
    ]
    return Whereabouts(
        records={name: len(ids) for name, ids in known.records.items()},
        places=tuple(places),
        batches=tuple(sorted(journal.batches)),
        by_hand=tuple(_by_hand(folder, person, journal, files)),
        not_searched=(
            *(str(each.relative_to(folder)) for each in files.not_searched),
            *lakehouse.unreadable,
            *not_reached,
        ),
        in_doubt=len(journal.in_doubt),
        shared=known.shared,
        mentions=tuple(sorted(work.mentions | journal.mentions)),
    )


def _places(file: str, counts: Mapping[str, int]) -> Iterator[PersonPlace]:
    return (PersonPlace(file, table, rows) for table, rows in counts.items())


def _in_work(folder: Path, person: Person) -> PersonRows:
    warehouse = Warehouse(folder)
    if not warehouse.exists:
        return PersonRows()
    with opened(warehouse.work) as connection:
        return take_out(connection, person, None)


def _by_hand(folder: Path, person: Person, journal: InJournal, files: InFiles) -> Iterator[str]:
    for path in files.by_hand:
        yield f"{person.without(str(path.relative_to(folder)))} holds the person: correct it."
    here = {each.name for each in files.tables}
    for batch, name in sorted(journal.files.items()):
        if name not in here:
            yield (
                f"The file {person.without(name)} of the push {batch}, and the report beside it,"
                " are wherever they were put: look there."
            )


# -- Returned --------------------------------------------------------------------------------------
# People who were erased and are here again, since an older state of the files was restored.
#
# They are known by the list of hashes alone: whatever in the files is on it, and was not taken out,
# tells of one of them. Erasing them once more needs nobody to remember who they were.


Identifier = tuple[Kind, str]


def returned(settings: Settings) -> list[Person]:
    """Everybody who was erased and is in the account's files again.

    Raises a `WarehouseError`.
    """
    suppressed = Suppressed.of(settings.folder)
    if suppressed is None:
        return []
    found: set[Identifier] = set()
    for resource, record in _every_record(settings):
        noticing = Noticing(suppressed)
        if reduced(CATALOG[resource], record, noticing) != record:
            found |= noticing.met
    for path in tables_in(settings.folder):
        noticing = Noticing(suppressed)
        try:
            if rows_about(path, noticing).rows:
                found |= noticing.met
        except SpreadsheetError:
            continue  # No table after all: whoever is in it is looked for as in any other file.
    return _persons(settings, suppressed, found)


def _every_record(settings: Settings) -> Iterable[tuple[str, dict[str, object]]]:
    """Every record and body that the account's databases hold, with its resource."""
    warehouse = Warehouse(settings.folder)
    if warehouse.exists:
        warehouse.prepare()
        with opened(warehouse.work) as connection:
            yield from every_version(connection)
    with Ledger(settings.folder) as ledger, ledger.reading() as journal:
        yield from journal_contents(journal)


def _persons(
    settings: Settings, suppressed: Suppressed, found: Iterable[Identifier]
) -> list[Person]:
    """What was found, by the person that it was listed with."""
    with Ledger(settings.folder) as ledger:
        names = Erasures(ledger).listed()
    theirs: dict[str, dict[Kind, set[str]]] = {}
    for kind, value in found:
        name = names[token(suppressed.key, kind, value)]
        theirs.setdefault(name, {"id": set(), "email": set(), "phone": set()})[kind].add(value)
    return [
        Person(frozenset(each["id"]), frozenset(each["email"]), frozenset(each["phone"]))
        for _, each in sorted(theirs.items())
    ]

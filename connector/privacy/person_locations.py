"""Search for a person in records, rows of tables and files, and texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from connector.catalog import CATALOG
from connector.catalog.field import MARK
from connector.errors import LakehouseError, SpreadsheetError
from connector.ledger.erasures import Erasures
from connector.ledger.journal_persons import JournalMatches, journal_contents
from connector.ledger.ledger import LEDGER_FILE, Ledger
from connector.ledger.person import (
    IdentifierKind,
    Person,
    SuppressionFilter,
    SuppressionList,
    identifier_hash,
    person_of,
    without_person,
)
from connector.privacy.folder_files import FileMatches, relative_path, search_files, table_files_in
from connector.privacy.locate import LocatedPerson, find_named, find_person, may_be_id, seed_of
from connector.privacy.receipt import FoundRecord, PersonLocations, PersonPlace
from connector.publishing.lakehouse_erasure import LakehouseMatches, find_in_lakehouse
from connector.settings.model import Settings
from connector.spreadsheet.persons import count_rows_about
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.persons import PersonRows, all_versions, count_person_rows, remove_person
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse

LAKEHOUSE = "lakehouse"
"""Name of the shared lakehouse among the files."""


def locate_person(settings: Settings, address_id_or_name: str) -> PersonLocations:
    """Find all data in the account's folder about the person with an address, an id or a name.

    If several people have the name, all of them are found. Changes and sends nothing. Raises
    `Misused` for an address of too many people, and a `WarehouseError`.
    """
    text = address_id_or_name.strip()
    if text and "@" not in text:
        named = find_named(settings, text)
        if named.person.ids or not may_be_id(text):
            return find_locations(settings, named)
    return find_locations(settings, find_person(settings, seed_of(text)))


def find_locations(settings: Settings, located: LocatedPerson) -> PersonLocations:
    """Find all data about a located person. Raises a `WarehouseError`."""
    folder, person = settings.folder, located.person
    if not folder.is_dir():
        return PersonLocations()
    with Ledger(folder) as ledger:
        journal = Erasures(ledger).find_person(person) if ledger.exists else JournalMatches()
    work, files = _find_in_work_file(folder, person), search_files(folder, person)
    published = Warehouse(folder).published
    not_reached: list[str] = []
    try:
        lakehouse = find_in_lakehouse(settings, person)
    except LakehouseError as error:
        # The other places are still searched.
        lakehouse = LakehouseMatches()
        not_reached.append(f"{LAKEHOUSE} ({error})")
    places = [
        *_count_by_place(WORK_FILE, work.rows),
        *_count_by_place(LEDGER_FILE, +journal.counts),
        *_count_by_place(
            PUBLISHED_FILE, count_person_rows(published, person) if published.exists() else {}
        ),
        *files.places(folder),
        *_count_by_place(LAKEHOUSE, dict(sorted(lakehouse.rows.items()))),
    ]
    return PersonLocations(
        records=tuple(
            FoundRecord(*key, tuple(sorted(fields))) for key, fields in sorted(work.fields.items())
        ),
        places=tuple(places),
        batches=tuple(sorted(journal.batches)),
        by_hand=tuple(_places_to_clean_by_hand(folder, person, journal, files)),
        not_searched=(
            *(relative_path(each, folder) for each in files.not_searched),
            *lakehouse.unreadable,
            *not_reached,
        ),
        in_doubt=len(journal.in_doubt),
        shared=located.shared,
        mentions=tuple(sorted({*work.mentions, *journal.mentions, *files.mentions})),
        whole_files=tuple(relative_path(each, folder) for each in files.workbooks),
    )


def _count_by_place(file: str, counts: Mapping[str, int]) -> Iterator[PersonPlace]:
    return (PersonPlace(file, table, rows) for table, rows in counts.items())


def _find_in_work_file(folder: Path, person: Person) -> PersonRows:
    warehouse = Warehouse(folder)
    if not warehouse.exists:
        return PersonRows()
    with open_file(warehouse.work) as connection:
        return remove_person(connection, person, None)


def _places_to_clean_by_hand(
    folder: Path, person: Person, journal: JournalMatches, files: FileMatches
) -> Iterator[str]:
    for path in files.by_hand:
        is_named = person.is_named_in(path.stem)
        name = relative_path(path.with_name(MARK + path.suffix) if is_named else path, folder)
        yield f"{name} contains data of the person: correct or delete the file."
    here = {each.name for each in files.tables}
    for batch, name in sorted(journal.files.items()):
        if name not in here:
            file = MARK if person.is_named_in(Path(name).stem) else name
            yield (
                f"The file {file} of the push {batch} and its report are outside the account's"
                " folder: delete the person's rows there."
            )


# -- Returned people -------------------------------------------------------------------------------
# Finds erased people who are in the files again because an older backup was restored.
#
# They are recognized by the list of hashes: an identifier in the files that is on the list belongs
# to an erased person.


Identifier = tuple[IdentifierKind, str]


def find_returned(settings: Settings) -> list[Person]:
    """Find everyone who was erased and is in the account's files again.

    Raises a `WarehouseError`.
    """
    suppressed = SuppressionList.of(settings.folder)
    if suppressed is None:
        return []
    found: set[Identifier] = set()
    for resource, record in _every_record(settings):
        noticing = SuppressionFilter(suppressed)
        if without_person(CATALOG[resource], record, noticing) != record:
            found |= noticing.met
    for path in table_files_in(settings.folder):
        noticing = SuppressionFilter(suppressed)
        try:
            if count_rows_about(path, noticing):
                found |= noticing.met
        except SpreadsheetError:
            continue  # Not a table: it is searched like any other file.
    return _group_by_person(settings, suppressed, found)


def _every_record(settings: Settings) -> Iterable[tuple[str, dict[str, object]]]:
    """Yield every record and body in the account's databases, with its resource."""
    warehouse = Warehouse(settings.folder)
    if warehouse.exists:
        warehouse.prepare()
        with open_file(warehouse.work) as connection:
            yield from all_versions(connection)
    with Ledger(settings.folder) as ledger, ledger.reading() as journal:
        yield from journal_contents(journal)


def _group_by_person(
    settings: Settings, suppressed: SuppressionList, found: Iterable[Identifier]
) -> list[Person]:
    """Group the findings by the person with whom they were listed."""
    with Ledger(settings.folder) as ledger:
        names = Erasures(ledger).listed()
    theirs: dict[str, set[Identifier]] = {}
    for kind, value in found:
        theirs.setdefault(names[identifier_hash(suppressed.key, kind, value)], set()).add(
            (kind, value)
        )
    return [person_of(each) for _, each in sorted(theirs.items())]

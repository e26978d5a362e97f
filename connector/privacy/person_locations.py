"""Search for a person in records, rows of tables and files, and texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from connector.catalog import CATALOG
from connector.catalog.field import MARK
from connector.errors import SpreadsheetError
from connector.ledger.erasures import Erasures
from connector.ledger.journal_persons import JournalMatches, journal_contents
from connector.ledger.ledger import LEDGER_FILE, Ledger
from connector.ledger.person import (
    IdentifierKind,
    Person,
    SuppressionFilter,
    SuppressionList,
    hash_identifier,
    person_of,
    without_person,
)
from connector.privacy.folder_files import (
    FileMatches,
    find_spreadsheets,
    relative_path,
    search_files,
)
from connector.privacy.locate import (
    IdentifiedPerson,
    find_people_named,
    find_person,
    may_be_id,
    parse_address_or_id,
)
from connector.privacy.receipt import FoundRecord, PersonLocations, PersonPlace
from connector.settings.model import Settings
from connector.spreadsheet.persons import count_rows_about
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.persons import PersonRows, all_versions, count_person_rows, remove_person
from connector.warehouse.warehouse import PUBLISHED_FILE, WORK_FILE, Warehouse


def locate_person(settings: Settings, address_id_or_name: str) -> PersonLocations:
    """Find all data in the account's folder about the person with an address, an id or a name.

    All people with the name are found. Writes and sends nothing. Raises `Misused` for an address of
    several people, and a `WarehouseError`.
    """
    text = address_id_or_name.strip()
    if text and "@" not in text:
        named = find_people_named(settings, text)
        if named.person.ids or not may_be_id(text):
            return find_locations(settings, named)
    return find_locations(settings, find_person(settings, parse_address_or_id(text)))


def find_locations(settings: Settings, identified: IdentifiedPerson) -> PersonLocations:
    """Search the databases and the files for an identified person. Raises a `WarehouseError`."""
    folder, person = settings.folder, identified.person
    if not folder.is_dir():
        return PersonLocations()
    with Ledger(folder) as ledger:
        journal = Erasures(ledger).find_person(person) if ledger.exists else JournalMatches()
    work, files = _find_in_work_file(folder, person), search_files(folder, person)
    published = Warehouse(folder).published
    places = [
        *_to_places(WORK_FILE, work.rows),
        *_to_places(LEDGER_FILE, +journal.counts),
        *_to_places(
            PUBLISHED_FILE, count_person_rows(published, person) if published.exists() else {}
        ),
        *files.changed_places(folder),
    ]
    return PersonLocations(
        records=tuple(
            FoundRecord(*key, tuple(sorted(fields))) for key, fields in sorted(work.fields.items())
        ),
        places=tuple(places),
        batches=tuple(sorted(journal.batches)),
        by_hand=tuple(_manual_steps(folder, person, journal, files)),
        not_searched=tuple(relative_path(each, folder) for each in files.not_searched),
        rows_in_doubt=len(journal.in_doubt),
        shared_identifiers=identified.shared,
        mentions=tuple(sorted({*work.mentions, *journal.mentions, *files.mentions})),
        whole_files=tuple(relative_path(each, folder) for each in files.workbooks),
    )


def _to_places(file: str, counts: Mapping[str, int]) -> Iterator[PersonPlace]:
    """Yield a place in the file for each table with its number of rows."""
    return (PersonPlace(file, table, rows) for table, rows in counts.items())


def _find_in_work_file(folder: Path, person: Person) -> PersonRows:
    """Return the person's rows in the work file; none if the file does not exist."""
    warehouse = Warehouse(folder)
    if not warehouse.exists:
        return PersonRows()
    with open_file(warehouse.work) as connection:
        return remove_person(connection, person, None)


def _manual_steps(
    folder: Path, person: Person, journal: JournalMatches, files: FileMatches
) -> Iterator[str]:
    """Yield a sentence for each file, here or outside, that the user must correct."""
    for path in files.by_hand:
        is_named = person.is_named_in(path.stem)
        name = relative_path(path.with_name(MARK + path.suffix) if is_named else path, folder)
        yield f"{name} contains data of the person: correct or delete the file."
    here = {each.name for each in files.spreadsheets}
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


def find_returned_people(settings: Settings) -> list[Person]:
    """Find erased people who are in the account's files again. Raises a `WarehouseError`."""
    suppressed = SuppressionList.read_from(settings.folder)
    if suppressed is None:
        return []
    found: set[Identifier] = set()
    for resource, record in _all_records(settings):
        noticing = SuppressionFilter(suppressed)
        if without_person(CATALOG[resource], record, noticing) != record:
            found |= noticing.found
    for path in find_spreadsheets(settings.folder):
        noticing = SuppressionFilter(suppressed)
        try:
            if count_rows_about(path, noticing):
                found |= noticing.found
        except SpreadsheetError:
            continue  # Not a table: it is searched like any other file.
    return _group_by_person(settings, suppressed, found)


def _all_records(settings: Settings) -> Iterable[tuple[str, dict[str, object]]]:
    """Yield each version of a record and each body in the journal, with its resource."""
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
    """Return a person for each erasure whose identifiers were found, with these identifiers."""
    with Ledger(settings.folder) as ledger:
        names = {each.token: name for each, name in Erasures(ledger).listed_hashes()}
    theirs: dict[str, set[Identifier]] = {}
    for kind, value in found:
        theirs.setdefault(names[hash_identifier(suppressed.key, kind, value)], set()).add(
            (kind, value)
        )
    return [person_of(each) for _, each in sorted(theirs.items())]

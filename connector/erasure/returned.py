"""People who were erased and are here again, since an older state of the files was restored.

They are known by the list of hashes alone: whatever in the files is on it, and was not taken out,
tells of one of them. Erasing them once more needs nobody to remember who they were.
"""

from __future__ import annotations

from collections.abc import Iterable

from connector.catalog import CATALOG
from connector.erasure.files import tables_in
from connector.errors import SpreadsheetError
from connector.ledger import Ledger
from connector.ledger.erasures import Erasures
from connector.ledger.journal_persons import everything_kept
from connector.settings import Settings
from connector.spreadsheet.persons import rows_about
from connector.suppression import Kind, Noticing, Person, Suppressed, reduced
from connector.suppression.key import token
from connector.warehouse import Warehouse
from connector.warehouse.file import opened
from connector.warehouse.persons import every_version

Identifier = tuple[Kind, str]


def returned(settings: Settings) -> list[Person]:
    """Everybody who was erased and whom the account's files hold again, each by what was found of
    them. Raises a `WarehouseError`.
    """
    suppressed = Suppressed.of(settings.folder)
    if suppressed is None:
        return []
    found: set[Identifier] = set()
    for resource, record in _kept(settings):
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


def _kept(settings: Settings) -> Iterable[tuple[str, dict[str, object]]]:
    """Every record and body that the account's databases hold, with its resource."""
    warehouse = Warehouse(settings.folder)
    if warehouse.exists:
        warehouse.prepare()
        with opened(warehouse.work) as connection:
            yield from every_version(connection)
    with Ledger(settings.folder) as ledger, ledger.reading() as journal:
        yield from everything_kept(journal)


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

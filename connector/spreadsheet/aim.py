"""What a person asks of a file: which resource, in which mode, how rows find their records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

from connector.catalog import ContentTypeField, declaration
from connector.engine.task import Mode
from connector.errors import Misused, UnknownName
from connector.resource import Declaration
from connector.spreadsheet.lookups import Lookups
from connector.spreadsheet.slots import Slot, slots
from connector.value import Kind

_MATCHABLE = (Kind.STRING, Kind.UUID, Kind.INTEGER, Kind.DATE, Kind.DATETIME)


@dataclass(frozen=True, slots=True)
class Aim:
    """What is asked of a file; `aim` makes one.

    `match` are the fields by which a row finds its record, empty where a column `id` does.
    `clear` is the text that empties a field. `parent` is the content type's slug or id, as given,
    and `slots` are the places that columns can fill.
    """

    resource: Declaration
    mode: Mode
    match: tuple[str, ...] = ()
    clear: str | None = None
    parent: str | None = None
    slots: tuple[Slot, ...] = field(default=(), repr=False)


def aim(
    resource: str,
    mode: Mode,
    lookups: Lookups,
    *,
    match: Sequence[str] = (),
    clear: str | None = None,
    parent: str | None = None,
) -> Aim:
    """What is asked, once it is known to make sense.

    Raises `UnknownName` for a resource, mode, field or content type that is not there, and
    `Misused` where the resource does not take the mode or the mode needs what was not said.
    """
    declared = declaration(resource)
    if mode not in get_args(Mode):
        raise UnknownName("mode", mode, get_args(Mode))
    needed = {"create": ("create",), "update": ("update",), "convert": ("convert",)}
    for operation in needed.get(mode, ("create", "update")):
        if operation not in declared.operations:
            raise Misused(
                f"{resource} cannot be written with --mode {mode}: the API has no {operation} for"
                f" {'it' if operation == 'convert' else 'them'}",
                action="Choose another resource or mode; 'convert' is for leads.",
            )
    made = slots(declared, mode, _content_fields(declared, parent, lookups))
    if mode == "upsert" and not match:
        raise Misused(
            "--mode upsert was asked for without a field to find records by",
            action="Say --match FIELD, for example --match email.",
        )
    if mode == "create" and match:
        raise Misused(
            "--match was given, and --mode create looks for no records",
            action="Leave --match out, or say --mode update or upsert.",
        )
    for name in match:
        _check_match(declared, name)
    if clear is not None and not clear.strip():
        raise Misused(
            "the text that clears a field is blank, and blank cells leave fields alone",
            action="Give --clear a text that no cell holds otherwise, for example --clear NULL.",
        )
    cleared = None if clear is None else clear.strip()
    return Aim(declared, mode, tuple(dict.fromkeys(match)), cleared, parent, made)


def _content_fields(
    declared: Declaration, parent: str | None, lookups: Lookups
) -> Sequence[ContentTypeField]:
    if declared.parent is None:
        if parent is not None:
            raise Misused(
                f"a content type was given, and {declared.name} are of none",
                action="Leave it out.",
            )
        return ()
    if parent is None:
        raise Misused(
            f"{declared.name} were asked for without their content type",
            action="Say which content type they are of, by its slug.",
        )
    fields = lookups.content_fields(parent)
    if fields is None:
        raise Misused(
            f"no content type {parent!r} has been pulled",
            action="Check the slug, or run 'connector pull content_types' and try again.",
        )
    return fields


def _check_match(declared: Declaration, name: str) -> None:
    allowed = [
        each.name
        for each in declared.detail_fields
        if each.kind in _MATCHABLE and (each.create.accepted or each.update.accepted)
    ]
    if name not in allowed:
        raise UnknownName(f"field that {declared.name} can be matched by", name, allowed)

"""Anything in the inbox but a regular file is refused, reported and left in place."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from connector.errors import Misused, SpreadsheetChanged
from connector.pushes.inbox import KEYS, Inbox, PushInstructions, read_instructions
from connector.pushes.options import PUSH_OPTIONS, PushOptions
from tests.pushes.inboxes import BAD, GOOD, preview_file, scan_twice

SECRET = "first_name,last_name,email,employment_type\nTop,Secret,top@example.com,permanent\n"


def read_tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return mode, modification time and content of every file and folder below the folder. The
    content of a link is its target.
    """
    found: dict[str, tuple[int, int, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        status, held = path.lstat(), b""
        if stat.S_ISREG(status.st_mode):
            held = path.read_bytes()
        elif path.is_symlink():
            held = os.fsencode(path.readlink())
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, held)
    return found


# -- what is refused ------------------------------------------------------------------------------


def _write_good_file(path: Path, _: Path) -> None:
    """Write the CSV file `GOOD`."""
    path.write_text(GOOD, encoding="utf-8")


def _bind_socket(path: Path, _: Path) -> None:
    """Create a Unix socket, with a relative path because the length of its path is limited."""
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


BAD_NAME = "has a name with characters that are not allowed. Rename it"
HOSTILE: dict[str, tuple[str, Callable[[Path, Path], None], str]] = {
    "symlink": (
        "people.csv",
        lambda path, outside: path.symlink_to(outside),
        "is not a regular file",
    ),
    "hard link": (
        "people.csv",
        lambda path, outside: path.hardlink_to(outside),
        "is also linked from another folder",
    ),
    "pipe": ("people.csv", lambda path, _: os.mkfifo(path), "is not a regular file"),
    "device": ("people.csv", lambda path, _: path.symlink_to("/dev/zero"), "is not a regular file"),
    "socket": ("people.csv", _bind_socket, "is not a regular file"),
    "folder": ("people.csv", lambda path, _: path.mkdir(), "is not a regular file"),
    "0 bytes": ("people.csv", lambda path, _: path.touch(), "is empty"),
    "newline": ("people\n2026.csv", _write_good_file, BAD_NAME),
    "quotes": ("'; DROP TABLE candidates; --.csv", _write_good_file, BAD_NAME),
    "backslash": ("..\\people.csv", _write_good_file, ""),
    "backslash within": ("a\\..\\people.csv", _write_good_file, BAD_NAME),
    "not Unicode": (os.fsdecode(b"people\xff.csv"), _write_good_file, BAD_NAME),
    "turned round": ("people\u202evsc.csv", _write_good_file, BAD_NAME),
    "option": ("-rf.csv", _write_good_file, BAD_NAME),
    "too long": ("p" * 200 + ".csv", _write_good_file, "more than 180 bytes"),
    "partial": ("people.csv.part", _write_good_file, "is a temporary file of another program"),
    "partial within": (
        "people.part.csv",
        _write_good_file,
        "is a temporary file of another program",
    ),
    "lock": ("~$people.xlsx", _write_good_file, "is a temporary file of another program"),
    "program": ("people.sh", _write_good_file, "has another file type than .csv"),
    "hidden": (".people.csv", _write_good_file, ""),
}
"""Name of a file, how it is created, and why it is refused; files without a reason are ignored."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_anything_but_a_regular_file_is_refused_and_left_in_place(
    tmp_path: Path, inbox: Path, kind: str
) -> None:
    name, make, reason = HOSTILE[kind]
    outside = tmp_path / "outside.csv"
    outside.write_text(SECRET, encoding="utf-8")
    make(inbox / name, outside)
    (inbox / "zeal.csv").write_text(GOOD, encoding="utf-8")
    before = read_tree(tmp_path)

    look = scan_twice(tmp_path)
    digest = hashlib.sha256((GOOD if make is _write_good_file else SECRET).encode()).hexdigest()
    with pytest.raises(Misused):
        preview_file(tmp_path, "candidates", name, digest)

    assert ["zeal.csv"] == [each.name for each in look.waiting]
    if reason:
        (refusal,) = look.refused
        assert reason in refusal
        assert refusal.isprintable()
        assert refusal.isascii()
    else:
        assert () == look.refused
    assert before == read_tree(tmp_path)


def test_a_device_in_the_inbox_is_refused(inbox: Path, tmp_path: Path) -> None:
    try:
        os.mknod(inbox / "people.csv", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only an administrator may make a device")

    look = scan_twice(tmp_path)

    assert () == look.waiting
    assert "not a regular file" in look.refused[0]


@pytest.mark.parametrize(
    "name", ["../outside.csv", "../../../outside.csv", "/outside.csv", "..", ""]
)
def test_a_path_outside_the_inbox_is_not_claimed(tmp_path: Path, inbox: Path, name: str) -> None:
    for folder in (tmp_path, inbox.parent):
        (folder / "outside.csv").write_text(SECRET, encoding="utf-8")
    before = read_tree(tmp_path)
    digest = hashlib.sha256(SECRET.encode()).hexdigest()

    for resource in ("candidates", "../inbox/candidates", "done"):
        with pytest.raises((Misused, SpreadsheetChanged)):
            preview_file(tmp_path, resource, name, digest)

    assert before == read_tree(tmp_path)


@pytest.mark.parametrize("pair", [("People.csv", "people.csv"), ("Zo\u00eb.csv", "Zoe\u0308.csv")])
def test_files_whose_names_differ_only_in_case_or_accents_wait(
    tmp_path: Path, inbox: Path, pair: tuple[str, str]
) -> None:
    for name in pair:
        (inbox / name).write_text(GOOD, encoding="utf-8")

    look = scan_twice(tmp_path)
    (inbox / pair[1]).rename(inbox / "other.csv")

    assert () == look.waiting
    assert 2 == len(look.refused)
    assert all(
        "has the same name as another file, except for case or accents" in each
        for each in look.refused
    )
    assert {pair[0], "other.csv"} == {each.name for each in scan_twice(tmp_path).waiting}


@pytest.mark.parametrize("which", ["inbox", "candidates", "done", "rejected"])
def test_a_linked_inbox_folder_is_refused(tmp_path: Path, which: str) -> None:
    real = tmp_path / "data" / "inbox" / "candidates"
    link = {"inbox": real.parent, "candidates": real}.get(which, real / which)
    elsewhere = tmp_path / "elsewhere"
    link.parent.mkdir(parents=True)
    (elsewhere / "candidates").mkdir(parents=True)
    for each in (elsewhere, elsewhere / "candidates"):
        (each / "people.csv").write_text(SECRET, encoding="utf-8")
    link.symlink_to(elsewhere, target_is_directory=True)
    if which in ("done", "rejected"):
        (real / "people.csv").write_text(SECRET, encoding="utf-8")
    before = read_tree(tmp_path)

    look = scan_twice(tmp_path)
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    with pytest.raises(Misused, match="is not a folder"):
        preview_file(tmp_path, "candidates", "people.csv", digest)

    assert () == look.waiting
    assert "is not a folder" in look.refused[0]
    assert before == read_tree(tmp_path)


def test_a_file_that_still_changes_waits(tmp_path: Path, inbox: Path) -> None:
    file, door = inbox / "people.csv", Inbox(tmp_path / "data")
    file.write_text(GOOD, encoding="utf-8")
    first = door.scan(None)
    with file.open("a", encoding="utf-8") as more:
        more.write("Bo,Ray,bo@example.com,permanent\n")
    second = door.scan(first.state)
    was = file.stat()
    file.write_bytes(file.read_bytes().replace(b"Bo", b"Al"))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    third = door.scan(second.state)
    fourth = door.scan(third.state)

    assert [(), (), ()] == [first.waiting, second.waiting, third.waiting]
    (found,) = fourth.waiting
    assert hashlib.sha256(file.read_bytes()).hexdigest() == found.digest


@pytest.mark.parametrize("seen", ["", "no JSON", "[]", '{"candidates/people.csv": 3}', "{"])
def test_a_scan_with_an_unreadable_memory_counts_as_the_first(
    tmp_path: Path, inbox: Path, seen: str
) -> None:
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")
    door = Inbox(tmp_path / "data")
    first = door.scan(seen)

    assert () == first.waiting
    assert 1 == len(door.scan(first.state).waiting)


def test_a_file_that_changed_after_the_scan_is_not_claimed(tmp_path: Path, inbox: Path) -> None:
    file, outside = inbox / "people.csv", tmp_path / "outside.csv"
    file.write_text(GOOD, encoding="utf-8")
    (found,) = scan_twice(tmp_path).waiting
    outside.write_text(GOOD, encoding="utf-8")

    def push_file() -> None:
        preview_file(tmp_path, "candidates", "people.csv", found.digest)

    file.write_text(BAD, encoding="utf-8")
    with pytest.raises(SpreadsheetChanged):
        push_file()
    file.unlink()
    with pytest.raises(SpreadsheetChanged):
        push_file()
    file.symlink_to(outside)
    with pytest.raises(Misused, match="is not a regular file"):
        push_file()


# -- push.toml ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('mode = "delete"', "create, update, upsert, convert"),
        ('match = "email"', "list of texts"),
        ("apply = 1", "apply must be true or false"),
        ('overwrite = "yes"', "overwrite must be true or false"),
        ("aply = true", "unknown setting 'aply'; allowed are mode, match, mapping,"),
        ("max_requests = 0", "must be a whole number, 1 or greater"),
        ("clear = 7", "clear must be text in quotes"),
        ('decimal = ","', "',' is not a decimal sign"),
        ('date_format = "D/D"', "'D/D' is not a date format"),
        ('mapping = "../map.toml"', BAD_NAME),
        ('mapping = "gone.toml"', "No such file"),
        ('mapping = "link.toml"', "is not a regular file"),
        ("mode = ", "Invalid value"),
        ("a = [" * 100_000, "too large"),
    ],
)
def test_an_invalid_push_toml_stops_the_files_of_its_folder(
    tmp_path: Path, inbox: Path, text: str, reason: str
) -> None:
    (tmp_path / "map.toml").write_text('resource = "candidates"', encoding="utf-8")
    (inbox / "link.toml").symlink_to(tmp_path / "map.toml")
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")
    (inbox / "push.toml").write_text(text, encoding="utf-8")

    look = scan_twice(tmp_path)

    assert () == look.waiting
    assert reason in look.refused[0]


def test_push_toml_sets_the_push_options_of_its_folder(tmp_path: Path, inbox: Path) -> None:
    (inbox / "people.csv").write_text(GOOD, encoding="utf-8")
    (inbox / "ours.toml").write_text('resource = "candidates"', encoding="utf-8")
    orders = 'mode = "upsert"\nmatch = ["email"]\napply = true\nmapping = "ours.toml"\n'
    (inbox / "push.toml").write_text(orders, encoding="utf-8")
    firms = inbox.parent / "companies"
    firms.mkdir()
    (firms / "firms.csv").write_text("name\nAcme\n", encoding="utf-8")

    firm, person = scan_twice(tmp_path).waiting

    assert ("companies", PushInstructions()) == (firm.resource, firm.instructions)
    mapped = inbox / "ours.toml"
    options = PushOptions("upsert", match=("email",), mapping_file=mapped)
    assert PushInstructions(options, applies=True) == person.instructions


def test_push_toml_accepts_every_push_option(inbox: Path) -> None:
    (inbox / "ours.toml").write_text('resource = "candidates"', encoding="utf-8")
    values = {
        "mode": '"update"',
        "match": '["email", "phone"]',
        "mapping": '"ours.toml"',
        "ignore": '["Notes"]',
        "content_type": '"news"',
        "sheet": '"Sheet 2"',
        "encoding": '"cp1252"',
        "delimiter": '"semicolon"',
        "header_row": "2",
        "date_format": '"DD/MM/YYYY"',
        "decimal": '"comma"',
        "region": '"GB"',
        "day_hours": '"09:00-17:30"',
        "set_values": '["booking_type=contract"]',
        "clear": '"(none)"',
        "accept_warnings": "true",
        "accept": '["odd_phone"]',
        "overwrite": "true",
        "resend": "true",
        "apply": "true",
        "pull": "false",
        "max_requests": "500",
    }
    text = "\n".join(f"{key} = {value}" for key, value in values.items())
    (inbox / "push.toml").write_text(text, encoding="utf-8")

    orders = read_instructions(inbox)

    assert set(KEYS) == set(values)
    assert (True, False, 500) == (orders.applies, orders.pulls, orders.budget)
    given = {name: getattr(orders.options, name) for name in PUSH_OPTIONS}
    untouched = {name: getattr(PushOptions("create"), name) for name in PUSH_OPTIONS}
    assert [] == [name for name in PUSH_OPTIONS if given[name] == untouched[name]]
    assert ("(none)", ("Notes",), inbox / "ours.toml") == tuple(
        given[name] for name in ("clear", "ignore", "mapping_file")
    )


def test_a_missing_inbox_is_reported_with_a_hint_to_create_it(tmp_path: Path) -> None:
    look = scan_twice(tmp_path)

    assert () == look.waiting
    assert "does not exist. Create it, with one folder for each resource" in look.refused[0]

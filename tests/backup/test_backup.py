"""Backups are complete, private and without a key. A damaged or foreign file changes nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import zipfile
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from connector.errors import ConnectorError, Misused, SettingsError, WarehouseError
from connector.operations.backup import Manifest, check_backup, make_backup, newest_backup, restore
from connector.settings import Settings, load_settings
from connector.state.database import Database
from connector.state.lock import LOCK_FILE
from connector.state.runs import latest_backups
from connector.warehouse import schema
from connector.warehouse.warehouse import Warehouse
from tests.support.command import KEY, call, variables
from tests.support.errors import has_code

AT = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
ADDRESS = "https://acme.example"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an account whose folder has every kind of connector file, and other files."""
    settings = load_settings({}, variables(ADDRESS, tmp_path / "data"), tmp_path)
    folder = settings.folder
    Warehouse(folder).prepare()
    (folder / "recruitment.duckdb").write_bytes(b"published")
    with Database(folder) as database:
        database.note("anything", 1)
    for name, text in {
        "seeds/seed_users.csv": "id,name\n1,Ann\n",
        "maps/candidates-1.toml": 'resource = "candidates"',
        "inbox/candidates/next.csv": "Email\na@b.example\n",
        "inbox/candidates/push.toml": 'mode = "create"\n',
        "inbox/candidates/done/last.csv": "Email\nb@b.example\n",
        "acme.key": KEY,
        "notes.txt": "mine",
        "acme/work.duckdb": "another account's",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "inbox" / "elsewhere").symlink_to(tmp_path)
    return settings


def make_backup_next_to_data(settings: Settings, hours: int = 0) -> Path:
    """Back up to the folder `backups` next to the data folder, dated `hours` after `AT`."""
    to = settings.data_dir.parent / "backups"
    made, _ = make_backup(settings, to, now=lambda: AT + timedelta(hours=hours))
    return made


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, except the lock and the state's log."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != LOCK_FILE and not path.name.startswith("state.sqlite-")
    }


def test_a_backup_and_a_restore_are_private_to_the_owner_under_any_umask(
    settings: Settings,
) -> None:
    former = os.umask(0)
    try:
        made = make_backup_next_to_data(settings)
        data = settings.data_dir
        data.rename(data.with_name("former"))
        restore(settings, made)
    finally:
        os.umask(former)

    assert 0o600 == stat.S_IMODE(made.stat().st_mode)
    assert 0o700 == stat.S_IMODE(made.parent.stat().st_mode)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in data.rglob("*")}
    wide = {path: oct(mode) for path, mode in modes.items() if mode & 0o077}
    assert {} == wide


def test_a_backup_contains_every_file_of_the_connector_and_no_key(settings: Settings) -> None:
    made = make_backup_next_to_data(settings)
    with zipfile.ZipFile(made) as archive:
        names = set(archive.namelist())

    assert {
        *("manifest.json", "work.duckdb", "state.sqlite", "recruitment.duckdb"),
        *("seeds/seed_users.csv", "maps/candidates-1.toml"),
        *("inbox/candidates/next.csv", "inbox/candidates/push.toml"),
        "inbox/candidates/done/last.csv",
    } == names
    assert KEY.encode() not in made.read_bytes()
    with Database(settings.folder) as database:
        (last,) = latest_backups(database)
    assert (AT, str(made)) == (last.began_at, last.file)
    assert last.ended_at is not None


def test_keep_deletes_older_backups_and_no_other_file(settings: Settings) -> None:
    to = settings.data_dir.parent / "backups"
    first, second = make_backup_next_to_data(settings), make_backup_next_to_data(settings, 1)
    others = [to / "connector-acme-20200101T000000Z.zip", to / "connector-unnamed-mine.zip"]
    for each in others:
        each.write_bytes(b"")
    third, removed = make_backup(settings, to, keep=2, now=lambda: AT + timedelta(hours=2))

    assert [first] == removed
    assert sorted([*others, second, third]) == sorted(to.iterdir())


def damage_backup(content: bytes) -> dict[str, bytes]:
    """Return damaged copies of a backup's bytes, by the name of the damage."""
    found = {
        "empty": b"",
        "no zip": b"work.duckdb" * 1000,
        "cut": content[: len(content) // 2],
        "cut in the manifest": content[:700],
        "cut in the last": content[:-500],
    }
    for place in (600, 1500, len(content) // 3, len(content) // 2, len(content) - 30_000):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        found[f"byte {place}"] = bytes(changed)
    # A tool that edits archives writes new checksums of the zip format.
    edited = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(edited, "w") as copy:
        for name in archive.namelist():
            more = b" " if name == "work.duckdb" else b""
            copy.writestr(name, archive.read(name) + more)
    found["edited"] = edited.getvalue()
    return found


def test_a_damaged_backup_is_rejected_and_changes_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    content = make_backup_next_to_data(settings).read_bytes()
    settings.folder.rename(tmp_path / "former")
    path = tmp_path / "damaged.zip"
    accepted = {}
    for name, bad in damage_backup(content).items():
        path.write_bytes(bad)
        for act in (check_backup, lambda p: restore(settings, p)):
            try:
                act(path)
            except ConnectorError:
                continue
            accepted[name] = "was accepted"

    assert {} == accepted
    assert {} == read_files(settings.folder)


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/outside", "seeds/../../outside", "seeds\\outside"]
)
def test_a_backup_with_a_file_outside_the_folder_is_rejected(
    name: str, settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "hostile.zip"
    manifest = Manifest(AT.isoformat(), None, "0.1.0", {name: hashlib.sha256(b"").hexdigest()})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps(asdict(manifest)))
        archive.writestr(name, b"")
    settings.folder.rename(tmp_path / "former")
    before = read_files(tmp_path)

    with pytest.raises(ConnectorError, match="unsafe path", check=has_code("backup_damaged")):
        restore(settings, path)

    assert before == read_files(tmp_path)


def test_a_restore_over_existing_files_or_of_another_account_is_refused(
    settings: Settings, tmp_path: Path
) -> None:
    made = make_backup_next_to_data(settings)
    before = read_files(settings.folder)
    with pytest.raises(Misused, match=r"is not empty: it contains .*work\.duckdb"):
        restore(settings, made)
    assert before == read_files(settings.folder)
    acme = load_settings({"account": "acme"}, variables(ADDRESS, tmp_path / "d2"), tmp_path)
    with pytest.raises(
        ConnectorError,
        match="a backup of the unnamed account, not of acme",
        check=has_code("backup"),
    ):
        restore(acme, made)


def test_a_leftover_log_of_a_database_refuses_a_restore(settings: Settings, tmp_path: Path) -> None:
    made = make_backup_next_to_data(settings)
    settings.folder.rename(tmp_path / "former")
    settings.folder.mkdir()
    (settings.folder / "work.duckdb.wal").write_bytes(b"of another file")

    with pytest.raises(Misused, match=r"it contains work\.duckdb\.wal"):
        restore(settings, made)


def test_two_backups_at_nearly_the_same_time_are_both_kept(settings: Settings) -> None:
    to = settings.data_dir.parent / "backups"
    times = iter([AT, AT, AT + timedelta(microseconds=1), AT])
    made = [make_backup(settings, to, now=lambda: next(times))[0] for _ in range(2)]

    assert made[0] != made[1]
    assert made[1] == newest_backup(to, None)
    assert 2 == len({check_backup(each).made_at for each in made})


def test_a_backup_of_a_newer_version_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    work = Warehouse(settings.folder).work
    with duckdb.connect(str(work)) as connection:
        connection.execute("UPDATE sync.schema_version SET version = 99")
    with monkeypatch.context() as newer:
        newer.setattr(schema, "SCHEMA_VERSION", 99)
        made = make_backup_next_to_data(settings)
    settings.folder.rename(tmp_path / "former")

    with pytest.raises(WarehouseError, match="version"):
        restore(settings, made)

    assert {} == {n: c for n, c in read_files(settings.folder).items() if "restoring" not in n}


@pytest.mark.parametrize("destination", [".", "backups", "seeds/x"])
def test_backups_into_the_data_folder_and_of_empty_folders_are_refused(
    settings: Settings, destination: str
) -> None:
    with pytest.raises(Misused, match="is inside the folder that is backed up"):
        make_backup(settings, settings.folder / destination)
    empty = load_settings({}, variables(ADDRESS, settings.folder / "none"), settings.folder)
    with pytest.raises(SettingsError, match="nothing to back up"):
        make_backup(empty, settings.folder.parent / "backups")


def test_a_restore_moves_waiting_inbox_files_aside_and_names_them(settings: Settings) -> None:
    """A waiting file may have been pushed since the backup was made. Orders and reports stay."""
    made = make_backup_next_to_data(settings)
    data = settings.data_dir
    data.rename(data.with_name("former"))

    done = restore(settings, made)

    assert ["next.csv"] == [path.name for path in done.waiting]
    assert ["done", "push.toml"] == sorted(
        each.name for each in (data / "inbox/candidates").iterdir()
    )
    assert done.waiting[0].read_text(encoding="utf-8").startswith("Email")


def test_backup_and_restore_print_their_results_and_never_the_key(
    tmp_path: Path, settings: Settings
) -> None:
    environ = variables(ADDRESS, settings.folder)
    to = tmp_path / "kept"
    made = call(["backup", str(to), "--keep", "3", "--json"], environ)
    file = made.object["file"]
    checked = call(["restore", file, "--check", "--json"], environ)
    refused = call(["restore", file], environ)
    settings.folder.rename(tmp_path / "former")
    done = call(["restore", file], environ)
    none = call(["restore", str(tmp_path / "none.zip"), "--check"], environ)
    every = call(["backup", str(to), "--all", "--json"], environ)

    assert (0, 0, 2, 3, 1) == tuple(each.status for each in (made, checked, refused, done, none)), (
        done.err
    )
    assert checked.object["whole"] is True
    assert "Move these files to another folder" in refused.err
    assert "Restored 8 files" in done.out
    assert "Run 'connector pull'" in done.err
    assert every.status in (0, 1)
    assert 1 == len(every.object["accounts"])
    assert all(KEY not in each.out + each.err for each in (made, done, every))


def test_the_newest_backup_of_the_account_in_a_folder_is_found(tmp_path: Path) -> None:
    names = [f"connector-unnamed-2026110{day}T000000.000000Z.zip" for day in (1, 2)]
    for name in (*names, "connector-acme-20261103T000000.000000Z.zip", "notes.txt"):
        (tmp_path / name).touch()
    found = newest_backup(tmp_path, None)

    assert tmp_path / names[1] == found
    assert found == newest_backup(found, None)
    with pytest.raises(ConnectorError, match="no backup of globex", check=has_code("backup")):
        newest_backup(tmp_path, "globex")

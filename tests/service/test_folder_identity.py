"""A data folder belongs to one workspace, and its files belong together."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import astuple, replace
from pathlib import Path

import duckdb
import pytest

from connector.sandbox.server import Sandbox
from connector.state.database import Database
from connector.state.runs import Identity
from connector.version import checkout_commit, full_version, program_version
from connector.warehouse.queries import read_identity
from connector.warehouse.warehouse import Warehouse
from tests.support.command import COUNTS, KEY, CommandResult, call, variables
from tests.tiers import only_fast

JOB = "title,location,employment_type,description\nNight nurse,Leeds,permanent,Text\n"


@pytest.fixture(scope="module")
def workspaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sandbox, Sandbox, Path]]:
    """Two servers that accept the same key, and a folder with a pull of each.

    The data folder of the first is `data`, that of the second `elsewhere`.
    """
    pulled = tmp_path_factory.mktemp("pulled")
    keys = {KEY: ("*",)}
    with (
        Sandbox(counts=COUNTS, keys=keys) as own,
        Sandbox(seed=9, counts=COUNTS, keys=keys) as other,
    ):
        for name, each in (("data", own), ("elsewhere", other)):
            assert 0 == call(["pull"], variables(each.base_url, pulled / name)).status
        yield own, other, pulled


@pytest.fixture
def sandbox(workspaces: tuple[Sandbox, Sandbox, Path]) -> Iterator[Sandbox]:
    """Server of the workspace in `data`. Jobs that the test creates are deleted afterwards."""
    own, _, _ = workspaces
    before = {*own.store.records("jobs")}
    yield own
    for created in {*own.store.records("jobs")} - before:
        own.store.delete("jobs", created)


@pytest.fixture
def other_workspace(workspaces: tuple[Sandbox, Sandbox, Path]) -> Sandbox:
    """Another workspace that accepts the same key."""
    return workspaces[1]


@pytest.fixture
def data(tmp_path: Path, workspaces: tuple[Sandbox, Sandbox, Path]) -> Path:
    """Data folder with a pull of the first workspace, copied for this test."""
    return shutil.copytree(workspaces[2] / "data", tmp_path / "data")


def count_published_candidates(folder: Path) -> int:
    """Return the number of candidates in the published file."""
    with duckdb.connect(str(folder / "recruitment.duckdb"), read_only=True) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM landing.candidates").fetchall()
    return int(count)


def read_checks(called: CommandResult) -> dict[str, dict[str, str]]:
    """Return the checks in the output of `doctor --json` by name."""
    return {each["name"]: each for each in called.object["checks"]}


@pytest.mark.parametrize(
    "command",
    [
        ("pull",),
        pytest.param(("pull", "--plan"), marks=pytest.mark.slow),
        pytest.param(("verify",), marks=pytest.mark.slow),
        ("push", "jobs", "jobs.csv", "--mode", "create", "--apply"),
        pytest.param(("undo", "last"), marks=pytest.mark.slow),
    ],
    ids=lambda words: words[0],
)
def test_a_folder_of_another_workspace_is_refused_before_the_first_request(
    data: Path, other_workspace: Sandbox, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    Path("jobs.csv").write_text(JOB)
    environ = variables(other_workspace.base_url, data)
    if command[0] == "undo":
        given = ["push", "jobs", "jobs.csv", "--mode", "create", "--apply"]
        own = Warehouse(data).read(read_identity)
        assert own is not None
        assert 0 == call(given, environ | {"CONNECTOR_BASE_URL": own[1]}).status
    before = other_workspace.log
    called = call(command, environ)

    assert 2 == called.status
    assert "other_workspace" in called.err
    assert other_workspace.base_url in called.err
    assert "CONNECTOR_DATA_DIR" in called.err
    assert before == other_workspace.log
    assert COUNTS["candidates"] == count_published_candidates(data)


def test_a_folder_without_records_takes_the_corrected_address(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    wrong = variables("http://127.0.0.1:9", tmp_path)
    failed = call(["pull"], wrong)
    corrected = call(["pull", "companies"], variables(sandbox.base_url, tmp_path))
    changed = call(["pull", "companies"], wrong)

    assert (1, 0) == (failed.status, corrected.status)
    assert "other_workspace" in changed.err


def test_doctor_compares_the_folder_with_the_configured_workspace(
    data: Path, sandbox: Sandbox, other_workspace: Sandbox
) -> None:
    before = other_workspace.log
    own = call(["doctor", "--json"], variables(sandbox.base_url, data))
    other = call(["doctor", "--json"], variables(other_workspace.base_url, data))

    assert (0, 1) == (own.status, other.status)
    assert "ok" == read_checks(own)["files"]["state"]
    assert "failed" == read_checks(other)["files"]["state"]
    assert before == other_workspace.log


def test_an_unknown_account_is_refused_unless_it_is_created(data: Path, sandbox: Sandbox) -> None:
    environ = variables(sandbox.base_url, data)
    before = len(sandbox.log)
    refused = call(["pull", "--account", "nobody"], environ)
    sent = len(sandbox.log)
    created = call(["pull", "jobs", "--account", "north", "--create"], environ)
    known = call(["status", "--account", "north"], environ)
    near = call(["status", "--account", "nort"], environ)

    assert (2, before) == (refused.status, sent)
    assert "'nobody'" in refused.err
    assert "Known: (unnamed)" in refused.err
    assert "--create" in refused.err
    assert not (data / "nobody").exists()
    assert (0, 0, 2) == (created.status, known.status, near.status)
    assert "Known: (unnamed), north" in near.err


# -- Files -----------------------------------------------------------------------------------------


def remove_file(path: Path, other_folder: Path) -> None:
    path.unlink()


def empty_file(path: Path, other_folder: Path) -> None:
    path.write_bytes(b"")


def truncate_file(path: Path, other_folder: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def replace_with_other_file(path: Path, other_folder: Path) -> None:
    shutil.copy(other_folder / path.name, path)


Fault = Callable[[Path, Path], None]
"""Damages the file at a path; the second path is the folder of another workspace."""

FAULTS: tuple[Fault, ...] = (remove_file, truncate_file, replace_with_other_file)


@pytest.fixture
def other_folder(workspaces: tuple[Sandbox, Sandbox, Path]) -> Path:
    """Data folder with a pull of the other workspace. Tests must not change it."""
    folder = workspaces[2] / "elsewhere"
    for suffix in ("-wal", "-shm"):
        assert not (folder / f"state.sqlite{suffix}").exists()
    return folder


@pytest.mark.parametrize("fault", only_fast(FAULTS, [replace_with_other_file]))
def test_a_state_of_another_folder_stops_pulls_and_pushes(
    data: Path, other_folder: Path, sandbox: Sandbox, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    Path("jobs.csv").write_text(JOB)
    environ = variables(sandbox.base_url, data)
    push = ["push", "jobs", "jobs.csv", "--mode", "create", "--apply"]
    assert 0 == call(push, environ).status
    assert 0 == call(["pull"], environ).status
    before = len(sandbox.log)
    fault(data / "state.sqlite", other_folder)
    backups = data.parent / "backups"

    for command in (["pull"], push, ["undo", "last"], ["backup", str(backups)]):
        called = call(command, environ)
        assert 1 == called.status, command
        assert "state.sqlite" in called.err
        assert "restore" in called.err
        assert "Do not push earlier files again" in called.err or fault is replace_with_other_file
    assert 1 == call(["status", "--check"], environ).status
    assert before == len(sandbox.log)
    assert "failed" == read_checks(call(["doctor", "--json"], environ))["files"]["state"]


@pytest.mark.parametrize("fault", only_fast([*FAULTS, empty_file], [replace_with_other_file]))
def test_a_work_file_of_another_folder_is_never_used(
    data: Path, other_folder: Path, sandbox: Sandbox, fault: Fault
) -> None:
    environ = variables(sandbox.base_url, data)
    fault(data / "work.duckdb", other_folder)
    called = call(["pull"], environ)

    assert 1 == called.status
    assert "work.duckdb" in called.err
    assert "restore" in called.err
    assert COUNTS["candidates"] == count_published_candidates(data)


def test_the_version_names_the_commit_of_a_checkout(tmp_path: Path) -> None:
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@x.example", "-C", str(tmp_path))
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "Begin")):
        subprocess.run((*git, *words), check=True)
    head = subprocess.run(
        (*git, "rev-parse", "--short", "HEAD"), check=True, capture_output=True, text=True
    ).stdout.strip()
    shown = call(["--version"], {})

    assert head == checkout_commit(tmp_path)
    assert checkout_commit(tmp_path / "nowhere") is None
    assert f"connector, version {full_version()}" == shown.out.strip()
    assert program_version() in shown.out


@pytest.mark.slow
def test_data_files_contain_the_version_that_wrote_them(data: Path, sandbox: Sandbox) -> None:
    with Database(data) as database:
        identity = database.fact_as(Identity, "identity")
        assert identity is not None
        database.note("identity", replace(identity, written_by="0.0.1"))
    call(["pull", "jobs"], variables(sandbox.base_url, data))
    work = Warehouse(data).read(read_identity)
    with Database(data) as database:
        counted = database.fact_as(Identity, "identity")

    assert counted is not None
    assert work == astuple(counted)
    assert program_version() == counted.written_by


def test_a_state_that_was_put_back_pushes_nothing_before_a_pull(
    data: Path, sandbox: Sandbox
) -> None:
    environ = variables(sandbox.base_url, data) | {"CONNECTOR_MODELS": "off"}
    file = data.parent / "people.csv"
    file.write_text("first_name,last_name,email,employment_type\nA,L,a@new.example,permanent\n")
    push = ["push", "candidates", str(file), "--mode", "create", "--apply"]
    shutil.copy(data / "state.sqlite", data.parent)
    assert 0 == call(push, environ).status
    assert 0 == call(["pull"], environ).status
    before = len(sandbox.store.records("candidates"))
    shutil.copy(data.parent / "state.sqlite", data)
    refused = call([*push, "--no-pull"], environ)
    pulled = call(["pull"], environ)
    repeated = call(push, environ)

    assert (1, 0, 3) == (refused.status, pulled.status, repeated.status)
    assert "restored_unpulled" in refused.err
    assert before == len(sandbox.store.records("candidates"))

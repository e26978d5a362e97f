"""The documents agree with the code and with each other: links, settings, commands of make."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from connector.settings.layers import CONFIG_VARIABLE
from connector.settings.model import ENVIRONMENT, load_settings
from tests.catalog.document import quoted, read_tables
from tests.house.tree import ROOT, Source, Tree

LOCKS = {"requirements-referee.txt": "referee", "requirements-site.txt": "site"} | {
    f"benchmarks/peers/requirements-{name}.txt": f"peer-{name}"
    for name in ("dlt", "singer", "airbyte")
}
"""The requirements of environments that have no part of the project, with their groups."""

DOCUMENTS = Tree(ROOT).select(".md")
SETTINGS_PAGE = (ROOT / "docs" / "SETTINGS.md").read_text(encoding="utf-8")


def anchors(page: str) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def broken_links(document: Source, root: Path) -> list[str]:
    """The relative links of a page that lead nowhere, each with what is missing."""
    broken = []
    text = re.sub(r"```.*?```", "", document.text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (root / document.path).parent / path if path else root / document.path
        if not file.exists():
            broken.append(f"{document.path}: {target}: there is no such file")
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            broken.append(f"{document.path}: {target}: there is no such heading")
    return broken


def test_every_relative_link_resolves() -> None:
    """Every link from one document to another finds its file and its heading."""
    assert [] == [each for document in DOCUMENTS for each in broken_links(document, ROOT)]


def test_broken_links_are_noticed(tmp_path: Path) -> None:
    """A link to a file or a heading that is not there is found; code and addresses are left out."""
    page = (
        "# A page, of *mine*\n[a](b.md) [b](#a-page-of-mine) [c](#gone) [d](https://acme.example)"
        "\n```\n[e](f.md)\n```\n[g](a.md#gone) [h](a.md)\n"
    )
    (tmp_path / "a.md").write_text(page, encoding="utf-8")

    assert [
        "a.md: b.md: there is no such file",
        "a.md: #gone: there is no such heading",
        "a.md: a.md#gone: there is no such heading",
    ] == broken_links(Source("a.md", page), tmp_path)


def test_variables_in_documents_exist() -> None:
    """Every CONNECTOR_* name in a document is a setting's variable."""
    known = {*ENVIRONMENT.values(), CONFIG_VARIABLE}
    unknown = [
        f"{document.path}: {name}"
        for document in DOCUMENTS
        for name in re.findall(r"\bCONNECTOR_[A-Z_]+\b", document.text)
        if name not in known
    ]

    assert [] == unknown


def test_settings_page_lists_every_setting() -> None:
    """The page of settings has a row for each setting, in order, with its variable."""
    table = next(t for t in read_tables(SETTINGS_PAGE) if t.header[0] == "Setting")
    stated = {quoted(row["Setting"])[0]: quoted(row["Variable"])[0] for row in table.records()}

    assert list(stated.items()) == list(ENVIRONMENT.items())
    assert CONFIG_VARIABLE in SETTINGS_PAGE


def test_settings_page_states_the_defaults_and_bounds(tmp_path: Path) -> None:
    """Each bound on the page is accepted, and each default is what nothing set gives."""
    table = next(t for t in read_tables(SETTINGS_PAGE) if t.header[0] == "Setting")
    shown = {name: value for name, value, _ in load_settings({}, {}, tmp_path).rows()}
    for row in table.records():
        (name,) = quoted(row["Setting"])
        bounds = re.fullmatch(r"(\d+) to (\d+)", row["Allowed"])
        for bound in bounds.groups() if bounds else ():
            settings = load_settings({name: bound}, {}, tmp_path)
            assert int(bound) == getattr(settings, name).value
        stated = re.fullmatch(r"`([^`]+)`|(\d+)", row["Default"])
        if stated:
            assert shown[name].endswith(stated[1] or stated[2])
        elif row["Default"] != "all three" and name in shown:
            assert shown[name] == "not set"


def test_project_file_of_the_page_is_accepted(tmp_path: Path) -> None:
    """The example on the page is a project file that loads as it stands."""
    (example,) = re.findall(r"```toml\n(.*?)```", SETTINGS_PAGE, re.DOTALL)
    (tmp_path / "connector.toml").write_text(example, encoding="utf-8")
    for name in ("acme", "globex"):
        (tmp_path / f"{name}.key").write_text(f"key-of-{name}\n", encoding="utf-8")
        (tmp_path / f"{name}.key").chmod(0o600)

    globex = load_settings({"account": "globex"}, {}, tmp_path)

    assert ("acme", "globex") == globex.accounts
    assert 10_000 == globex.monthly_requests.value
    assert "https://globex.example" == globex.connection().base_url
    assert () == globex.warnings


def test_make_help_lists_every_target() -> None:
    """`make` prints a line for every command that a person may give it."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = " ".join(re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE))

    shown = subprocess.run(
        ["make", "--no-print-directory"],  # noqa: S607 # the make that the reader has
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert phony.split() == re.findall(r"^  make (\w+) ", shown, re.MULTILINE)


def _named(asked: list[str]) -> set[str]:
    """The packages that requirements name, but for the project itself, whose extras they name."""
    names = {re.split(r"[\[<>=~!; ]", each, maxsplit=1)[0].lower() for each in asked}
    return names - {"recruitment-connector"}


@pytest.mark.parametrize("lock", ["requirements.txt", *LOCKS])
def test_lock_names_no_address_and_holds_every_dependency(lock: str) -> None:
    """A lock has a hash for each package, no address or index, and all that is asked for."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = {
        "requirements.txt": [
            *project["project"]["dependencies"],
            *project["project"]["optional-dependencies"]["dev"],
            *project["build-system"]["requires"],
        ],
        **{lock: project["dependency-groups"][group] for lock, group in LOCKS.items()},
    }
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    locked = {block.split("==")[0].lower() for block in blocks}

    assert [] == re.findall(r"^-.*|\w+://\S+", text, re.MULTILINE)
    assert set() == _named(asked[lock]) - locked
    assert [] == [block.split("\n")[0] for block in blocks if "--hash=sha256:" not in block]
    assert "duckdb" not in locked or "duckdb==1.5.5 " in text


@pytest.mark.parametrize(
    ("page", "most"), [("ARCHITECTURE.md", 150), ("DECISIONS.md", 180), ("../README.md", 120)]
)
def test_overview_stays_short(page: str, most: int) -> None:
    """The pages that a newcomer reads first stay short."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()

    assert len(lines) <= most
    assert lines[0].startswith("# ")


def test_the_evening_is_short() -> None:
    """The files that a newcomer reads first are there, and have at most 5,000 lines together."""
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    evening = page.partition("## The evening")[2].partition("##")[0]
    files = [ROOT / "connector" / name for name in re.findall(r"`(\w+/\w+\.py)`", evening)]

    assert len(files) >= 15
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= 5_000


def test_recipes_name_what_is_there() -> None:
    """Each file that a recipe names exists, and one of its row's files defines each function."""
    for line in (ROOT / "docs" / "RECIPES.md").read_text(encoding="utf-8").splitlines():
        names = re.findall(r"`([\w/]+/\w+\.py)`", line)
        files = [next(f for f in (ROOT / n, ROOT / "connector" / n) if f.exists()) for n in names]
        text = "".join(file.read_text(encoding="utf-8") for file in files)
        cell = line.split("|")[-2] if line.startswith("| ") else ""
        functions = re.findall(r"`([a-z_]+)`", cell)
        assert [] == [each for each in functions if f"def {each}(" not in text], line


def test_every_dependency_has_its_reason() -> None:
    """Each package that the project asks for stands in the table of decisions."""
    described = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = described["project"]
    asked = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
        *described["dependency-groups"]["referee"],
    ]
    page = (ROOT / "docs" / "DECISIONS.md").read_text(encoding="utf-8")
    table = next(t for t in read_tables(page) if t.header[0] == "Package")
    reasoned = {name for row in table.records() for name in row["Package"].split(", ")}

    assert _named(asked) == reasoned

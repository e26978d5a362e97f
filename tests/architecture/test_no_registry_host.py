"""No committed file names the host of a package registry, so that any mirror can be used."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.repository import ROOT, Repository, TextFile

# Split, so that this file names none.
_HOSTS = (
    *(("py" + "pi", "org"), ("python" + "hosted", "org"), ("npm" + "js", "org")),
    *(("npm" + "js", "com"), ("deb" + "ian", "org"), ("crates", "io")),
)
_HOST = re.compile("|".join(rf"\b{name}\.{end}\b" for name, end in _HOSTS))


def find_registry_hosts(file: TextFile) -> Iterator[str]:
    """Return each line that names the host of a package registry."""
    for number, line in enumerate(file.text.splitlines(), 1):
        if _HOST.search(line):
            yield f"{file.path}:{number}: remove the address of the package registry"


def test_no_file_names_a_package_registry_host() -> None:
    files = Repository(ROOT).files

    assert {"pyproject.toml", "docs/API_NOTES.md", ".ci/run"} <= {file.path for file in files}
    assert [] == [host for file in files for host in find_registry_hosts(file)]


def test_the_check_finds_a_package_registry_host() -> None:
    text = "index\n" + "https://files.python" + "hosted.org/x\n"

    assert ["a.txt:2: remove the address of the package registry"] == [
        *find_registry_hosts(TextFile("a.txt", text))
    ]

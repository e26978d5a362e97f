"""The documents put together as the pages of a site: `make site`, which MkDocs builds then.

The front page is README, a notebook becomes a page, links that lead out of the documents become
words, and whatever a table stands right under gets an empty line, as this Markdown wants it. A
made-up agency is pulled, and its report is a sample that works as a reader's own would.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from generate.files import ROOT
from generate.pictures import run_in_terminal, sandbox_environment

PAGES = ROOT / "dist" / "pages"
DOCUMENTS = ROOT / "docs"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_COPIED = ("pictures", "samples", "service")
_TOP = {
    "README.md": "index.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
}
"""Documents outside `docs`, and the page that each becomes."""
_SAMPLE = """# A report to try

[The report of a made-up agency](samples/report.html), as `connector report` writes it: one file
that opens from disk, prints with its first page for a director, and loads nothing. Its figures are
explained in [definitions of the marts](MARTS.md).

[The import page](PAGE.md) needs its server: `connector page` starts it, also with a sandbox.
"""


def main() -> int:
    """Write all pages and pictures of the site again."""
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    for folder in _COPIED:
        shutil.copytree(DOCUMENTS / folder, PAGES / folder)
    for name, page in _TOP.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        _write_page(page, text.replace("docs/", ""))
    for document in DOCUMENTS.glob("*.md"):
        name = "WHERE.md" if document.name == "README.md" else document.name
        _write_page(name, document.read_text(encoding="utf-8"))
    for notebook in DOCUMENTS.glob("*.ipynb"):
        _write_page(
            f"{notebook.stem}.md", notebook_to_markdown(notebook.read_text(encoding="utf-8"))
        )
    (PAGES / "SAMPLE.md").write_text(_SAMPLE, encoding="utf-8")
    with tempfile.TemporaryDirectory() as name, sandbox_environment(Path(name)) as environ:
        for command in ("pull", f"report --out {PAGES / 'samples' / 'report.html'}"):
            run_in_terminal(f"connector {command}", Path(name), environ)
    return 0


def notebook_to_markdown(notebook: str) -> str:
    """Return the notebook's texts unchanged and its code in blocks; outputs are omitted."""
    cells = []
    for cell in json.loads(notebook)["cells"]:
        text = "".join(cell["source"])
        cells.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    return "\n\n".join(cells) + "\n"


def _write_page(name: str, text: str) -> None:
    """Write a page of the site with adapted links and the empty lines that MkDocs needs."""
    text = re.sub(r"^( *<!--.*-->)\n(?=\S)", r"\1\n\n", text, flags=re.MULTILINE)
    text = re.sub(
        r"^(?![|\-*]|\d+\.|\s|$)(.*[^\s>])\n(?=[-*] |\d+\. |\|)",
        r"\1\n\n",
        text,
        flags=re.MULTILINE,
    )
    (PAGES / name).write_text(_LINK.sub(_rewrite_link, text), encoding="utf-8")


def _rewrite_link(link: re.Match[str]) -> str:
    """Return the link with its path on the site, or only its text if the site has no such page."""
    mark, words, target = link.groups()
    path, hash, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target) or not path:
        return link[0]
    if path == "README.md":
        path = "WHERE.md"
    path = _TOP.get(path.removeprefix("../"), path)
    path = re.sub(r"\.ipynb$", ".md", path)
    is_here = path in ("WHERE.md", *_TOP.values()) or (DOCUMENTS / path).is_file()
    is_here = is_here or (DOCUMENTS / path).with_suffix(".ipynb").is_file()
    return f"{mark}[{words}]({path}{hash}{anchor})" if is_here else words


if __name__ == "__main__":
    sys.exit(main())

"""Prints the figures of the house, what the smaller ones consist of, and the files passed through.

python -m tests.house
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.house.ratchets import measured, private_names, short_modules, with_one_importer
from tests.house.trace import passed_by_a_pull, passed_by_a_push
from tests.house.tree import ROOT, Tree


def main() -> None:
    """Print everything, the figures in the form of `ratchets.MOST`."""
    tree = Tree(ROOT)
    ours = tree.select(".py", inside="connector/")
    for name, value in measured(tree).items():
        print(f'    "{name}": {value:_},')
    for title, found in (
        ("modules with one importer", with_one_importer(ours)),
        ("modules under 60 lines", short_modules(ours)),
        ("names with a private word", (name for each in ours for name in private_names(each))),
    ):
        print(f"{title}\n  " + "\n  ".join(sorted(found)))
    for title, trace in (
        ("a pull of one changed record", passed_by_a_pull),
        ("one created row", passed_by_a_push),
    ):
        with tempfile.TemporaryDirectory() as folder:
            passed = trace(Path(folder))
        print(f"{title}: {len(passed)} files\n  " + "\n  ".join(sorted(passed)))


if __name__ == "__main__":
    main()

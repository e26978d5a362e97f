"""What publishing costs: a work file of one gigabyte, against a plain copy of it that lasts.

Without models, so that it is the copy, the record and the rename alone; both are done in turn, on
the same disk, and the medians are compared. How long the work file was held is told beside it:
for so long a pull and a push wait.
"""

from __future__ import annotations

import base64
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from connector.publishing.publication import publish
from connector.settings.model import load_settings
from connector.warehouse.duckdb_file import opened
from connector.warehouse.runs import Publication
from connector.warehouse.warehouse import Warehouse
from connector.warehouse.work_file import copy_work, remove

BYTES = int(os.environ.get("PUBLISHING_BYTES", str(1 << 30)))
ROUNDS = 3
RATIO_MAX = 1.5

_TEXT_BYTES = 192 * 1024
_TEXTS = 64


def main() -> int:
    """Measure, print, and return 0 if the target is met."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environ = {"CONNECTOR_DATA_DIR": name, "CONNECTOR_MODELS": "off"}
        settings = load_settings({}, environ, folder)
        warehouse = Warehouse(settings.folder)
        warehouse.prepare()
        _fill(warehouse.work)
        size = warehouse.work.stat().st_size
        copies, publications = [], []
        for _ in range(ROUNDS):
            copies.append(_timed(lambda: _copy(warehouse.work, folder / "copy.duckdb")))
            publications.append(_timed(lambda: publish(settings)))
        held = _timed(lambda: _hold(warehouse))
    copied, published = statistics.median(copies), statistics.median(publications)
    ratio = published / copied
    print(f"a work file of {size / 1e9:.2f} GB, {ROUNDS} rounds, medians")
    print(f"{'copied (cp) and synced':<32} {copied:6.2f} s")
    print(f"{'published':<32} {published:6.2f} s, {ratio:.2f} times the copy")
    print(f"{'of that, the work file is held':<32} {held:6.2f} s")
    print(f"target: {RATIO_MAX:g} times the copy: {'met' if ratio <= RATIO_MAX else 'MISSED'}")
    return 0 if ratio <= RATIO_MAX else 1


def _fill(work: Path) -> None:
    """Fill the landing with texts that no compression makes smaller."""
    with opened(work) as connection:
        while work.stat().st_size < BYTES:
            texts = [base64.b64encode(os.urandom(_TEXT_BYTES)).decode() for _ in range(_TEXTS)]
            connection.execute(
                "INSERT INTO landing.jobs (description) SELECT unnest(?::VARCHAR[])", [texts]
            )
            connection.execute("CHECKPOINT")


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", str(source), str(target)], check=True)  # noqa: S603, S607 # cp itself
    with target.open("rb") as copied:
        os.fsync(copied.fileno())
    target.unlink()


def _hold(warehouse: Warehouse) -> None:
    draft = warehouse.folder / "draft.duckdb"
    publication = Publication("held", warehouse.publications(1)[0].started_at)
    copy_work(warehouse.work, draft, publication, warehouse.published)
    remove(draft)


def _timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())

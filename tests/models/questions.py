"""Questions of `docs/QUERIES.md`: each query is followed by its result.

    python -m tests.models.questions

writes the results again.
"""

from __future__ import annotations

import re
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from connector.cli.demo import COUNTS
from connector.warehouse.user_query import query
from tests.models.demonstration import publish_generated_records

PAGE = Path(__file__).parents[2] / "docs" / "QUERIES.md"
_QUERY = re.compile(r"```sql\n(.*?)\n```\n\n?(?:\|[^\n]*\n)*\n?", re.DOTALL)


def parse_queries(text: str) -> list[str]:
    """Return the SQL queries of a Markdown page."""
    return [found[1] for found in _QUERY.finditer(text)]


def add_results(text: str, file: Path) -> str:
    """Return the Markdown page with the result of each query on the file below the query."""

    def answer(found: re.Match[str]) -> str:
        return f"```sql\n{found[1]}\n```\n\n{format_as_markdown(file, found[1])}\n"

    return _QUERY.sub(answer, text).rstrip("\n") + "\n"


def format_as_markdown(file: Path, sql: str) -> str:
    """Return the result of a query on the file as a Markdown table."""
    result = query(file, sql)
    lines = [result.columns, ["---"] * len(result.columns)]
    lines += [[format_value(each) for each in row] for row in result.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def format_value(value: Any) -> str:
    """Format a value for a cell of a Markdown table; None is empty."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Write the results of all queries into docs/QUERIES.md."""
    with tempfile.TemporaryDirectory() as folder:
        file = publish_generated_records(Path(folder), COUNTS)
        PAGE.write_text(add_results(PAGE.read_text(encoding="utf-8"), file), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    main()

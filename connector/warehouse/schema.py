"""Tables made from the declarations, and the numbered migrations of our own.

`landing` has one table per resource: every field that answers show, typed and commented, and then
the connector's own columns, which begin with an underscore. There is no primary key: staged
deletes and inserts are faster, and uniqueness is asserted. `history` has a table of the same name
for each resource, with the same documented columns and one row for every observed version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

from connector.catalog import CATALOG
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field
from connector.catalog.resource import Declaration
from connector.catalog.value import Kind
from connector.errors import NotAWarehouse
from connector.warehouse import column_texts as own_texts
from connector.warehouse.duckdb_file import literal, quoted, transaction

# -- Migrations ------------------------------------------------------------------------------------
# The numbered migrations of the connector's own tables. One that was released is never changed.


_SYNC = """
CREATE TABLE sync.runs (
    run_id VARCHAR, command VARCHAR, started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, outcome VARCHAR,
    seconds DOUBLE, waited_seconds DOUBLE, requests BIGINT, rate_limited BIGINT,
    error_code VARCHAR, message VARCHAR
);
CREATE TABLE sync.run_resources (
    run_id VARCHAR, resource VARCHAR, outcome VARCHAR, proven BOOLEAN, requests BIGINT, lists
    BIGINT, details BIGINT, "new" BIGINT, changed BIGINT, unchanged BIGINT, deleted BIGINT, live
    BIGINT, total BIGINT, pending BIGINT, bookmark_before TIMESTAMPTZ, bookmark_after TIMESTAMPTZ,
    error_code VARCHAR, message VARCHAR
);
CREATE TABLE sync.bookmarks (
    resource VARCHAR, parent VARCHAR, proven_at TIMESTAMPTZ, lateness_seconds DOUBLE,
    opened_at TIMESTAMPTZ, load_page BIGINT, verify_page BIGINT, is_sorted BOOLEAN, run_id VARCHAR
);
CREATE TABLE sync.queue (
    resource VARCHAR, parent VARCHAR, id VARCHAR, reason VARCHAR, created_at TIMESTAMPTZ
);
CREATE TABLE sync.events (
    run_id VARCHAR, seen_at TIMESTAMPTZ, resource VARCHAR, parent VARCHAR, id VARCHAR, kind VARCHAR,
    detail VARCHAR
); COMMENT ON TABLE sync.runs IS 'One row per run: how it ended, what it cost.'; COMMENT ON TABLE
sync.run_resources IS 'One row per run and resource: rows by fate, requests by kind.'; COMMENT ON
TABLE sync.bookmarks IS 'Per stream, up to which server time the landing is proven.'; COMMENT ON
TABLE sync.queue IS 'Records that must be read, or read again, and why.'; COMMENT ON TABLE
sync.events IS 'Deletions, unknown fields and values, and anything else to look up.';
"""

# A table with rows that is altered after an update cannot be committed: rows come last.
_SCRUB = """
ALTER TABLE sync.bookmarks ADD COLUMN scrubbed_to TIMESTAMPTZ;
ALTER TABLE sync.bookmarks ADD COLUMN total_offset BIGINT;
ALTER TABLE sync.bookmarks ADD COLUMN alarms BIGINT;
ALTER TABLE sync.bookmarks ADD COLUMN late_seconds_seen DOUBLE;
ALTER TABLE sync.bookmarks ADD COLUMN listed BIGINT;
ALTER TABLE sync.bookmarks ADD COLUMN closed_by VARCHAR;
ALTER TABLE sync.bookmarks ADD COLUMN closed_floor TIMESTAMPTZ;
ALTER TABLE sync.bookmarks ADD COLUMN clock_ahead_seconds DOUBLE;
UPDATE sync.bookmarks SET total_offset = 0, alarms = 0, late_seconds_seen = 0;
"""

_COST = """
ALTER TABLE sync.runs ADD COLUMN budget BIGINT;
ALTER TABLE sync.runs ADD COLUMN month_share DOUBLE;
ALTER TABLE sync.run_resources ADD COLUMN sweeps BIGINT DEFAULT 0;
ALTER TABLE sync.run_resources ADD COLUMN scrubs BIGINT DEFAULT 0;
ALTER TABLE sync.run_resources ADD COLUMN waited_seconds DOUBLE DEFAULT 0;
ALTER TABLE sync.run_resources ADD COLUMN rate_limited BIGINT DEFAULT 0;
ALTER TABLE sync.run_resources ADD COLUMN lateness_seconds DOUBLE;
ALTER TABLE sync.run_resources ADD COLUMN oldest_read_at TIMESTAMPTZ;
ALTER TABLE sync.run_resources ADD COLUMN anomalies JSON DEFAULT '{}';
ALTER TABLE sync.run_resources ADD COLUMN month_share DOUBLE;
CREATE TABLE sync.quota (
    cycle_begins DATE, day DATE, command VARCHAR, kind VARCHAR, requests BIGINT
);
COMMENT ON TABLE sync.quota IS
    'Requests spent with this folder''s key: one row per day (UTC), command and kind of request.';
COMMENT ON COLUMN sync.quota.cycle_begins IS
    'The first day of the billing cycle that the day belongs to.';
COMMENT ON COLUMN sync.quota.kind IS
    'The operation; unsettled: counted beforehand for a run that is under way or was cut off.';
COMMENT ON COLUMN sync.runs.budget IS 'The most requests that the run was given; null: no limit.';
COMMENT ON COLUMN sync.runs.month_share IS
    'Its requests as a part of the month''s; null where the plan''s figure is not set.';
COMMENT ON COLUMN sync.run_resources.message IS 'Why it is not proven, or what ended it early.';
COMMENT ON COLUMN sync.run_resources.sweeps IS
    'Those of the requests that looked for deleted and missing records.';
COMMENT ON COLUMN sync.run_resources.scrubs IS
    'Those of the requests that read again what seemed unchanged.';
COMMENT ON COLUMN sync.run_resources.rate_limited IS 'Answers with the status 429.';
COMMENT ON COLUMN sync.run_resources.waited_seconds IS
    'Waits for the rate limit, added up over requests that waited side by side.';
COMMENT ON COLUMN sync.run_resources.lateness_seconds IS
    'How late a write may become visible, by all that was seen so far.';
COMMENT ON COLUMN sync.run_resources.oldest_read_at IS
    'When the live row was last read whose last reading is longest ago.';
COMMENT ON COLUMN sync.run_resources.anomalies IS
    'The run''s events (sync.events) by kind, deletions left out.';
COMMENT ON COLUMN sync.run_resources.month_share IS
    'The requests as a part of the month''s; null where the plan''s figure is not set.';
"""

_PUSHES = """
CREATE SCHEMA IF NOT EXISTS push;
CREATE TABLE push.batches (
    batch VARCHAR, resource VARCHAR, mode VARCHAR, file VARCHAR, digest VARCHAR, terms JSON,
    run_id VARCHAR, begun_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, outcome VARCHAR,
    error_code VARCHAR, message VARCHAR, requests BIGINT, seconds DOUBLE, change BIGINT
);
CREATE TABLE push.rows (
    batch VARCHAR, number BIGINT, operation VARCHAR, state VARCHAR, outcome VARCHAR, code VARCHAR,
    record_id VARCHAR, updated_at TIMESTAMPTZ, same_batch VARCHAR, same_number BIGINT,
    undone_at TIMESTAMPTZ, moved_at TIMESTAMPTZ, change BIGINT
);
CREATE TABLE push.attempts (
    batch VARCHAR, number BIGINT, attempt BIGINT, step VARCHAR, method VARCHAR, path VARCHAR,
    body JSON, intended_at TIMESTAMPTZ, sent_after TIMESTAMPTZ, ended_at TIMESTAMPTZ, fate VARCHAR,
    reason VARCHAR, change BIGINT
);
CREATE TABLE push.problems (
    batch VARCHAR, number BIGINT, place BIGINT, code VARCHAR, message VARCHAR, field VARCHAR,
    "column" VARCHAR, received VARCHAR, found VARCHAR, allowed VARCHAR, fix VARCHAR
);
CREATE TABLE push.before_images (
    batch VARCHAR, number BIGINT, step VARCHAR, record JSON, noted_at TIMESTAMPTZ, change BIGINT
);
COMMENT ON TABLE push.batches IS
    'One row per pushed file: on which terms, how its last run ended, what all its runs cost.';
COMMENT ON COLUMN push.batches.digest IS 'SHA-256 of the file.';
COMMENT ON COLUMN push.batches.change IS
    'The number of the journal''s last change of it; greater is later, in all tables alike.';
COMMENT ON TABLE push.rows IS
    'One row per row of a pushed file: how it stands, and the record that it made or changed.';
COMMENT ON COLUMN push.rows.number IS 'The row as a spreadsheet counts: the headings are 1.';
COMMENT ON COLUMN push.rows.outcome IS 'What the report calls it.';
COMMENT ON COLUMN push.rows.updated_at IS
    'The record''s own, as the API showed it after the row''s last write.';
COMMENT ON COLUMN push.rows.same_number IS
    'With same_batch: the row that this one repeats, or ends as.';
COMMENT ON COLUMN push.rows.undone_at IS 'When it was undone; null where it was not.';
COMMENT ON TABLE push.attempts IS 'One row per attempt at a write, whatever came of it.';
COMMENT ON COLUMN push.attempts.body IS
    'What was sent, personal data included, as the landing has them; the ledger keeps its bytes.';
COMMENT ON COLUMN push.attempts.sent_after IS 'The server''s time before it was sent.';
COMMENT ON COLUMN push.attempts.fate IS
    'accepted, refused, limited, unsent (both without effect), or lost: nobody knows.';
COMMENT ON TABLE push.problems IS 'What is told of a row, in the order of place.';
COMMENT ON COLUMN push.problems.received IS 'What the row asked for.';
COMMENT ON COLUMN push.problems.found IS 'What the API shows in its place.';
COMMENT ON TABLE push.before_images IS
    'Records as they were before a row''s step: before an update, or as they were created.';
"""

_PUBLICATIONS = """
CREATE TABLE sync.publications (
    publication VARCHAR, started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, true_of TIMESTAMPTZ,
    run_id VARCHAR, outcome VARCHAR, models BIGINT, checks BIGINT, failed_checks VARCHAR[],
    personal VARCHAR, error_code VARCHAR, message VARCHAR, bytes BIGINT, seconds DOUBLE
);
COMMENT ON TABLE sync.publications IS
    'One row per attempt to publish; the latest is the file''s own, where this is a published one.';
COMMENT ON COLUMN sync.publications.true_of IS
    'The newest moment that a resource is proven up to (sync.bookmarks); "now" in the models.';
COMMENT ON COLUMN sync.publications.outcome IS
    'published, refused (checks that block have failed), failed or interrupted.';
COMMENT ON COLUMN sync.publications.models IS 'Models and seeds in the file.';
COMMENT ON COLUMN sync.publications.checks IS 'Tests and audits that were run.';
COMMENT ON COLUMN sync.publications.failed_checks IS
    'Names of those that failed; where it was published all the same, they only warn.';
COMMENT ON COLUMN sync.publications.personal IS
    'What became of personal fields: keep, drop or hash.';
COMMENT ON COLUMN sync.publications.bytes IS
    'Size of the file; null in the file itself, which cannot know it.';
"""

_ERASED = """
CREATE TABLE sync.erased (
    resource VARCHAR, id VARCHAR, erasure VARCHAR, erased_at TIMESTAMPTZ
);
COMMENT ON TABLE sync.erased IS
    'One row per record that tells of nobody any more, since the person was erased.';
COMMENT ON COLUMN sync.erased.resource IS
    'The resource, by the name of its table in `landing`.';
COMMENT ON COLUMN sync.erased.id IS 'The record; its row stays, so that counts are as before.';
COMMENT ON COLUMN sync.erased.erasure IS 'The erasure, by the name of its receipt.';
COMMENT ON COLUMN sync.erased.erased_at IS 'When the person was taken out of it.';
"""

_LAKEHOUSE = """
CREATE TABLE sync.lakehouse (
    started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, outcome VARCHAR, publication VARCHAR,
    snapshot BIGINT, tables BIGINT, inserted BIGINT, removed BIGINT, error_code VARCHAR,
    message VARCHAR
);
COMMENT ON TABLE sync.lakehouse IS
    'One row per attempt to bring a published file to the shared lakehouse.';
COMMENT ON COLUMN sync.lakehouse.started_at IS 'When it began.';
COMMENT ON COLUMN sync.lakehouse.ended_at IS 'When it ended.';
COMMENT ON COLUMN sync.lakehouse.outcome IS
    'published, unchanged (the lakehouse had it all) or failed.';
COMMENT ON COLUMN sync.lakehouse.publication IS
    'The file (`sync.publications.publication`); null where it failed.';
COMMENT ON COLUMN sync.lakehouse.snapshot IS 'The snapshot of the lakehouse that shows it.';
COMMENT ON COLUMN sync.lakehouse.tables IS 'Tables in which something has changed.';
COMMENT ON COLUMN sync.lakehouse.inserted IS 'Rows that are new or changed.';
COMMENT ON COLUMN sync.lakehouse.removed IS 'Rows that are gone or changed.';
COMMENT ON COLUMN sync.lakehouse.error_code IS
    'The code of what kept it from being done (docs/ERRORS.md).';
COMMENT ON COLUMN sync.lakehouse.message IS 'The same, in a sentence.';
"""

_OFFSET = (
    "COMMENT ON COLUMN sync.bookmarks.total_offset IS 'By how many the list''s rows exceed its own"
    " total; null while that was not measured, so that the total proves nothing.';"
)

MIGRATIONS: tuple[tuple[int, str, str], ...] = (
    (1, "bookkeeping of runs and streams", _SYNC),
    (2, "what the audit and the list scrub remember", _SCRUB),
    (3, "what runs cost, and the month's requests", _COST),
    (4, "what was pushed", _PUSHES),
    (5, "what was published", _PUBLICATIONS),
    (6, "what the columns mean", own_texts.statements()),
    (7, "whom rows told of that were erased", _ERASED),
    (8, "what went to the lakehouse", _LAKEHOUSE),
    (9, "what the offset of a total means", _OFFSET),
)
"""Numbered, in order; each commits with its record, and none is ever changed once released."""


# -- Schema ----------------------------------------------------------------------------------------
#


TYPES = {
    Kind.STRING: "VARCHAR",
    Kind.UUID: "VARCHAR",
    Kind.NUMBER: "DOUBLE",
    Kind.INTEGER: "BIGINT",
    Kind.BOOL: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMPTZ",
    Kind.VALUES: "JSON",
}
"""The column type of each kind; an array of parts has a table of its own."""

PARTS_TABLE = "content_type_fields"
"""Where the parts of a content type land."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a landing table: `field` is None for the connector's own."""

    name: str
    type: str
    comment: str
    field: Field | None = None


_PARENT = Column("_content_type_id", "VARCHAR", "The content type (`content_types.id`).")

OWN_COLUMNS = (
    Column("_record", "JSON", "The answer as received, with whatever it held beyond the columns."),
    Column(
        "_hydrated_at",
        "TIMESTAMPTZ",
        "The server's time of the detail that the row shows; null while it was only listed.",
    ),
    Column("_seen_at", "TIMESTAMPTZ", "The server's time of the last answer that showed it."),
    Column("_deleted_at", "TIMESTAMPTZ", "When the API first said that it is gone; null if live."),
    Column("_run_id", "VARCHAR", "The run that landed what the row shows (`sync.runs.run_id`)."),
)

HISTORY_COLUMNS = (
    Column(
        "_record",
        "JSON",
        "The detail as received; where lists alone showed the version, the list item, without "
        "values that stand in for one that lists cannot show.",
    ),
    Column("_version", "BIGINT", "Counts the record's versions from 1, without a gap."),
    Column(
        "_valid_from",
        "TIMESTAMPTZ",
        "The best single moment of its beginning: `updated_at`, where that lies between "
        "`_began_after` and `_began_before`; `_began_after` where it is earlier, and else when "
        "an answer first showed it.",
    ),
    Column(
        "_valid_to",
        "TIMESTAMPTZ",
        "The best single moment of its end: the next version's `_valid_from`, or when a deletion "
        "was first known. Null for the one version that is open while the record lives.",
    ),
    Column(
        "_observed_from",
        "TIMESTAMPTZ",
        "The server's time of the first answer that showed it: a detail, or a list where lists "
        "alone showed it. Server clocks show whole seconds, so the answer was made within the "
        "second that begins here.",
    ),
    Column(
        "_observed_to",
        "TIMESTAMPTZ",
        "The server's time of the last answer that showed it; the second that begins here.",
    ),
    Column(
        "_began_after",
        "TIMESTAMPTZ",
        "It began after this moment, when the record was last seen otherwise (a first version: not "
        "before it, the record's creation), and before `_began_before`.",
    ),
    Column(
        "_began_before",
        "TIMESTAMPTZ",
        "The end of the second in which an answer first showed it.",
    ),
    Column(
        "_ended_after",
        "TIMESTAMPTZ",
        "It ended after this moment, when it was last seen, and before `_ended_before`; null while "
        "it is open.",
    ),
    Column(
        "_ended_before",
        "TIMESTAMPTZ",
        "The end of the second in which the next version was first seen, or the record known to "
        "be gone; null while open.",
    ),
    Column("_ended_by", "VARCHAR", "How it ended: `change` or `deletion`; null while it is open."),
    Column(
        "_changed",
        "VARCHAR[]",
        "Names of the fields that changed from the version before, documented or not, "
        "`_deleted_at` first where the record had been deleted; null for a first version.",
    ),
    Column(
        "_hydrated_at",
        "TIMESTAMPTZ",
        "When a detail first showed it whole; null while it was seen in lists alone, and then "
        "fields that lists do not show are null: nobody knows them.",
    ),
    Column("_run_id", "VARCHAR", "The run that read what the row shows (`sync.runs.run_id`)."),
)


def columns(resource: Declaration) -> tuple[Column, ...]:
    """The columns of a resource's landing table, in their order."""
    own = (_PARENT, *OWN_COLUMNS) if resource.parent else OWN_COLUMNS
    return (*_columns(resource.detail_fields), *own)


def history_columns(resource: Declaration) -> tuple[Column, ...]:
    """The columns of a resource's history table, in their order."""
    own = (_PARENT, *HISTORY_COLUMNS) if resource.parent else HISTORY_COLUMNS
    return (*_columns(resource.detail_fields), *own)


def part_columns() -> tuple[Column, ...]:
    """The columns of the table of content type fields."""
    declared = tuple(ContentTypeField.fields_declared.values())
    return (*_columns(declared), _PARENT, *OWN_COLUMNS)


def _columns(fields: tuple[Field, ...]) -> Iterator[Column]:
    for each in fields:
        if each.kind is not Kind.PARTS:
            yield Column(each.name, TYPES[each.kind], each.about, each)


def landing_tables() -> dict[str, tuple[Column, ...]]:
    """Every landing table with its columns, in the API's order."""
    tables: dict[str, tuple[Column, ...]] = {}
    for resource in CATALOG.values():
        tables[resource.name] = columns(resource)
        if any(each.kind is Kind.PARTS for each in resource.detail_fields):
            tables[PARTS_TABLE] = part_columns()
    return tables


def history_tables() -> dict[str, tuple[Column, ...]]:
    """Every history table with its columns, in the API's order. The parts of a content type are
    in its `_record`.
    """
    return {resource.name: history_columns(resource) for resource in CATALOG.values()}


def migrate(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Bring the file's tables up to this version; does nothing where they are.

    Raises `NotAWarehouse` where the file holds tables of somebody else, or of a later version.
    """
    if _is_current(connection):
        return
    names = {
        f"{schema}.{table}"
        for schema, table in connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables()"
        ).fetchall()
    }
    if names and "sync.migrations" not in names:
        raise NotAWarehouse(f"{path} is a DuckDB database that the connector did not make")
    with transaction(connection):
        for schema in ("landing", "history", "sync"):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS sync.migrations "
            "(number BIGINT, name VARCHAR, applied_at TIMESTAMPTZ DEFAULT now())"
        )
        applied = {
            n for (n,) in connection.execute("SELECT number FROM sync.migrations").fetchall()
        }
        if applied - {number for number, _, _ in MIGRATIONS}:
            raise NotAWarehouse(
                f"{path} was made by a later version of the connector",
                action="Install that version again, or restore a backup that this one has made.",
            )
        for number, name, statements in MIGRATIONS:
            if number not in applied:
                connection.execute(statements)
                connection.execute(
                    f"INSERT INTO sync.migrations (number, name) VALUES ({number}, {literal(name)})"
                )
        for table, wanted in landing_tables().items():
            about = CATALOG[table].about if table in CATALOG else "The fields of each content type."
            _make(connection, "landing", table, wanted, about)
        for table, wanted in history_tables().items():
            about = f"Every observed version of the {table.replace('_', ' ')}, one row each."
            _make(connection, "history", table, wanted, about)
            _widen_intervals(connection, table)
            _begin_history(connection, table)
    # A schema change left in the log has made files unreadable; a checkpoint leaves none there.
    connection.execute("CHECKPOINT")


def is_migrated(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether all migrations are applied, told at once; `migrate` looks at every column as well."""
    return last_migration(connection) == MIGRATIONS[-1][0]


def last_migration(connection: duckdb.DuckDBPyConnection) -> int:
    """The number of the file's last migration; 0 where none was ever applied."""
    try:
        ((last,),) = connection.execute("SELECT max(number) FROM sync.migrations").fetchall()
    except duckdb.CatalogException:
        return 0
    return int(last or 0)


def _is_current(connection: duckdb.DuckDBPyConnection) -> bool:
    held = connection.execute(
        "SELECT schema_name, table_name, column_name FROM duckdb_columns() "
        "WHERE schema_name IN ('landing', 'history')"
    ).fetchall()
    schemas = {"landing": landing_tables(), "history": history_tables()}
    wanted = [
        (s, t, c.name) for s, tables in schemas.items() for t, cs in tables.items() for c in cs
    ]
    if not set(wanted) <= set(held):
        return False
    done = connection.execute("SELECT number FROM sync.migrations").fetchall()
    return {n for (n,) in done} == {number for number, _, _ in MIGRATIONS}


def _make(
    connection: duckdb.DuckDBPyConnection,
    schema: str,
    table: str,
    wanted: tuple[Column, ...],
    about: str,
) -> None:
    """Make the table, or add the columns that a newer declaration brings, with all comments."""
    name = f"{schema}.{quoted(table)}"
    defined = ", ".join(f"{quoted(c.name)} {c.type}" for c in wanted)
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({defined})")
    there = dict(
        connection.execute(
            "SELECT column_name, comment FROM duckdb_columns() "
            f"WHERE schema_name = {literal(schema)} AND table_name = {literal(table)}"
        ).fetchall()
    )
    statements = [f"COMMENT ON TABLE {name} IS {literal(about)}"]
    for column in wanted:
        if column.name not in there:
            statements.append(f"ALTER TABLE {name} ADD COLUMN {quoted(column.name)} {column.type}")
        if there.get(column.name) != column.comment:
            comment = literal(column.comment)
            statements.append(f"COMMENT ON COLUMN {name}.{quoted(column.name)} IS {comment}")
    connection.execute(";".join(statements))


def _widen_intervals(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Give the versions of a file that had no `_began_before` their intervals, as they are now.

    They were observed since a list had shown a part of them, ended as late as a list had shown
    the record, and at a second, not within it.
    """
    name = f"history.{quoted(table)}"
    # Rows are written once more, since an update takes far more memory.
    connection.execute(
        f"INSERT INTO {name} SELECT * REPLACE ("
        "coalesce(_hydrated_at, _observed_from) AS _observed_from, "
        "coalesce(_hydrated_at, _observed_from) + INTERVAL 1 SECOND AS _began_before, "
        "CASE WHEN _valid_to IS NOT NULL THEN _observed_to END AS _ended_after, "
        "_ended_before + INTERVAL 1 SECOND AS _ended_before) "
        f"FROM {name} WHERE _began_before IS NULL; "
        f"DELETE FROM {name} WHERE _began_before IS NULL"
    )


def _begin_history(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Make landed rows that have no history their records' first versions.

    When such a row was first seen is forgotten: its last detail is the earliest moment for which
    there is evidence, or the last list where there was no detail.
    """
    shared = ", ".join(
        f"held.{quoted(c.name)}"
        for c in columns(CATALOG[table])
        if c.name not in ("_hydrated_at", "_seen_at", "_deleted_at")
    )
    seen = "coalesce(held._hydrated_at, held._seen_at)"
    gone = "greatest(held._deleted_at, _observed_to)"
    dated = "TRUE" if CATALOG[table].lists_cursor else "held._hydrated_at IS NOT NULL"
    connection.execute(
        f"INSERT INTO history.{quoted(table)} BY NAME SELECT {shared}, held._hydrated_at, "
        f"1 AS _version, {seen} AS _observed_from, {seen} AS _observed_to, "
        "_observed_from + INTERVAL 1 SECOND AS _began_before, "
        # DuckDB's least and greatest pass over nulls.
        f"CASE WHEN held.created_at IS NOT NULL THEN least(held.created_at, {seen}) END "
        "AS _began_after, "
        f"greatest(_began_after, least(CASE WHEN {dated} THEN held.updated_at END, {seen})) "
        "AS _valid_from, "
        f"CASE WHEN held._deleted_at IS NOT NULL THEN {gone} END AS _valid_to, "
        "CASE WHEN held._deleted_at IS NOT NULL THEN _observed_to END AS _ended_after, "
        "_valid_to + INTERVAL 1 SECOND AS _ended_before, "
        "CASE WHEN held._deleted_at IS NOT NULL THEN 'deletion' END AS _ended_by "
        f"FROM landing.{quoted(table)} AS held "
        f"WHERE held.id NOT IN (SELECT id FROM history.{quoted(table)})"
    )

"""The numbered migrations of the connector's own tables. One that was released is never changed."""

from __future__ import annotations

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

_SCRUB = "ALTER TABLE sync.bookmarks ADD COLUMN scrubbed_to TIMESTAMPTZ;"

MIGRATIONS: tuple[tuple[int, str, str], ...] = (
    (1, "bookkeeping of runs and streams", _SYNC),
    (2, "how far the list scrub has come", _SCRUB),
)
"""Numbered, in order; each commits with its record, and none is ever changed once released."""

"""The numbered migrations of the connector's own tables. One that was released is never changed."""

from __future__ import annotations

from connector.warehouse import own_texts

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

"""Tables of the ledger.

Days are stored as `2026-11-21` and times as ISO 8601 in UTC, so that both can be sorted.
"""

from __future__ import annotations

LEDGER_VERSION = 1
"""`user_version` of a ledger with these tables. An older version of the connector refuses a newer
file.
"""

OPEN = """
    (state IN ('intent', 'unknown', 'settling', 'held', 'ambiguous')
     OR (state = 'planned' AND (is_begun = 1 OR is_in_doubt = 1)))
"""
"""Condition for a row whose write may have been applied, or was applied in part. No other row may
write the same.
"""

SCHEMA = f"""
-- Identity ------------------------------------------------------------------------------------

-- At most one row: which folder the ledger belongs to, and which workspace.
CREATE TABLE identity (
    only INTEGER PRIMARY KEY CHECK (only = 1), folder TEXT NOT NULL, address TEXT NOT NULL,
    written_by TEXT NOT NULL
);

-- Requests ------------------------------------------------------------------------------------

-- Requests that were sent, by day (UTC), command and operation.
CREATE TABLE spent (
    day TEXT NOT NULL, command TEXT NOT NULL, kind TEXT NOT NULL, requests INTEGER NOT NULL,
    PRIMARY KEY (day, command, kind)
) WITHOUT ROWID;
-- Requests counted before they are sent. The block of a killed run stays here, counted as a whole.
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY, run_id TEXT NOT NULL, command TEXT NOT NULL, day TEXT NOT NULL,
    requests INTEGER NOT NULL CHECK (requests > 0)
);
-- At most one row: the API reported that the month is used up. No request is sent until then.
CREATE TABLE exhaustion (
    only INTEGER PRIMARY KEY CHECK (only = 1), noted_at TEXT NOT NULL, until TEXT NOT NULL,
    is_told INTEGER NOT NULL
);
-- At most one row: the clock of the server and the rate limit per minute, by the last answers.
CREATE TABLE server (
    only INTEGER PRIMARY KEY CHECK (only = 1), offset_seconds REAL, limit_per_minute INTEGER
);

-- Leases --------------------------------------------------------------------------------------

-- One row for each kind of run that is running, or was interrupted.
CREATE TABLE leases (
    name TEXT PRIMARY KEY, run_id TEXT NOT NULL, command TEXT NOT NULL, pid INTEGER NOT NULL,
    born TEXT, host TEXT NOT NULL, boot TEXT, space TEXT, since TEXT NOT NULL,
    expires_at TEXT NOT NULL, requests INTEGER NOT NULL
);

-- Journal of pushes ---------------------------------------------------------------------------

-- Number of the last transaction of the journal. Rows that changed since have a greater number.
CREATE TABLE push_changes (
    only INTEGER PRIMARY KEY CHECK (only = 1), last INTEGER NOT NULL
);
INSERT INTO push_changes (only, last) VALUES (1, 0);
-- One file with its policy. `landed_before` are the ids that were loaded shortly before.
CREATE TABLE push_batches (
    batch TEXT PRIMARY KEY, resource TEXT NOT NULL, mode TEXT NOT NULL, file TEXT NOT NULL,
    digest TEXT NOT NULL, terms TEXT NOT NULL, landed_before TEXT NOT NULL,
    run_id TEXT NOT NULL, begun_at TEXT NOT NULL, ended_at TEXT, outcome TEXT, error_code TEXT,
    message TEXT, requests INTEGER NOT NULL, seconds REAL NOT NULL, change INTEGER NOT NULL
);
CREATE INDEX push_batches_of_a_file ON push_batches (digest, resource, mode);
-- One row of a file. `task` is null for a row that is not sent.
CREATE TABLE push_rows (
    batch TEXT NOT NULL REFERENCES push_batches, number INTEGER NOT NULL, operation TEXT,
    fingerprint TEXT, subject TEXT, state TEXT NOT NULL, code TEXT NOT NULL,
    is_begun INTEGER NOT NULL, is_in_doubt INTEGER NOT NULL, is_altered INTEGER NOT NULL,
    record_id TEXT, updated_at TEXT, same_batch TEXT, same_number INTEGER, undone_at TEXT,
    moved_at TEXT NOT NULL, change INTEGER NOT NULL, task TEXT,
    PRIMARY KEY (batch, number)
);
CREATE INDEX push_rows_of_a_fingerprint ON push_rows (fingerprint);
CREATE INDEX push_rows_of_a_record ON push_rows (record_id);
CREATE INDEX push_rows_since ON push_rows (change);
-- No write is open twice.
CREATE UNIQUE INDEX push_rows_open ON push_rows (fingerprint) WHERE {OPEN};
CREATE INDEX push_rows_open_about ON push_rows (subject) WHERE {OPEN};
-- A lead is converted once, over all batches, for ever.
CREATE UNIQUE INDEX push_rows_converted ON push_rows (fingerprint)
WHERE operation = 'convert' AND (state = 'applied' OR {OPEN});
-- One attempt, recorded before its first byte is sent, with the exact bytes of its body.
CREATE TABLE push_attempts (
    batch TEXT NOT NULL, number INTEGER NOT NULL, attempt INTEGER NOT NULL, step TEXT NOT NULL,
    method TEXT NOT NULL, path TEXT NOT NULL, body BLOB, intended_at TEXT NOT NULL,
    sent_after TEXT NOT NULL, ended_at TEXT, fate TEXT, reason TEXT, answer TEXT,
    change INTEGER NOT NULL, PRIMARY KEY (batch, number, attempt)
);
CREATE INDEX push_attempts_since ON push_attempts (change);
-- Problems of a row, in order.
CREATE TABLE push_problems (
    batch TEXT NOT NULL, number INTEGER NOT NULL, place INTEGER NOT NULL, code TEXT NOT NULL,
    message TEXT NOT NULL, field TEXT, "column" TEXT, received TEXT, found TEXT, allowed TEXT,
    fix TEXT, change INTEGER NOT NULL,
    PRIMARY KEY (batch, number, place)
);
-- Record before a step of a row, to compare with and to restore.
CREATE TABLE push_before (
    batch TEXT NOT NULL, number INTEGER NOT NULL, step TEXT NOT NULL, record TEXT NOT NULL,
    noted_at TEXT NOT NULL, change INTEGER NOT NULL,
    PRIMARY KEY (batch, number, step)
);

-- Purges --------------------------------------------------------------------------------------

-- One row for each purge of people: the ids of their records, and the emptied rows by table. A row
-- without `ended_at` is of an interrupted purge, which the next purge completes.
CREATE TABLE purges (at TEXT PRIMARY KEY, ids TEXT NOT NULL, ended_at TEXT, rows TEXT);

-- Backups -------------------------------------------------------------------------------------

-- One row for each backup of this folder, from its start. A row without `ended_at` is of a backup
-- that runs or was killed. A row without `file` is of a backup that failed.
CREATE TABLE backups (
    began_at TEXT PRIMARY KEY, ended_at TEXT, file TEXT, bytes INTEGER, message TEXT
) WITHOUT ROWID;
-- One row for each restore of this folder: time of the backup, and the server time up to which each
-- resource was verified then.
CREATE TABLE restores (
    restored_at TEXT PRIMARY KEY, made_at TEXT NOT NULL, proven TEXT NOT NULL
) WITHOUT ROWID;

-- Previews ------------------------------------------------------------------------------------

-- Time at which a person last saw the changes of a file: by a preview, or by a push with conflicts.
CREATE TABLE previews (
    digest TEXT NOT NULL, resource TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (digest, resource)
) WITHOUT ROWID;

-- Persons -------------------------------------------------------------------------------------

-- Last user of the import page who sent or undid a batch.
CREATE TABLE push_people (
    batch TEXT NOT NULL, action TEXT NOT NULL, person TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (batch, action)
) WITHOUT ROWID;
"""
"""Statements that create the tables."""

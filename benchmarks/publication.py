"""Publications with all models next to a copy of the same tables, at three sizes.

The agency is made in SQL: candidates with three versions each on average, and jobs, bookings, leads
and companies in proportion. The publication builds all models, runs all checks, and writes the file
for analysts.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb

from benchmarks.measure import (
    Bound,
    Line,
    account_environ,
    connector_command,
    measured_line,
    measured_rounds,
    module_command,
    run,
)
from connector.warehouse.warehouse import Warehouse

SIZES = (2_000, 20_000, 200_000)
_SECONDS = "The build of the models and the checks take most of the time."
_MEMORY = "A lower memory limit for DuckDB, 600 MB instead of 1 GB, does not reduce the peak."
_COPY = """
import duckdb, sys
old, new = sys.argv[1:]
with duckdb.connect() as connection:
    connection.execute(f"ATTACH '{old}' AS old (READ_ONLY)")
    connection.execute(f"ATTACH '{new}' AS new")
    connection.execute("COPY FROM DATABASE old TO new")
"""

_IDS = """
CREATE TEMP MACRO id_of(kind, n) AS kind || '-' || lpad((n)::VARCHAR, 32, '0');
CREATE TEMP MACRO draw(kind, n, below) AS (hash(kind, n) % below)::BIGINT;
CREATE TEMP MACRO day_of(kind, n) AS
    TIMESTAMPTZ '2023-01-02 08:00:00+00' + INTERVAL 1 MINUTE * draw(kind, n, 1440 * 1000);
CREATE TEMP MACRO user_of(kind, n) AS id_of('user', draw(kind || ' user', n, 60));
CREATE TEMP MACRO source_of(n) AS
    ['LinkedIn', 'Referral', 'Website', 'Job board', 'Event', ''][1 + draw('source', n, 6)];
"""

_COMPANIES = """
INSERT INTO landing.companies BY NAME SELECT
    id_of('company', n) AS id, 'Company ' || n AS name, 'active' AS status,
    day_of('company', n) AS created_at, created_at AS updated_at, 15 + draw('pct', n, 10)
    AS fee_percentage, 'percentage' AS fee_type, user_of('company', n) AS account_manager_id,
    '{}' AS _record, created_at AS _hydrated_at, created_at AS _seen_at, 'run' AS _run_id
FROM range($companies) AS t(n)
"""

_JOBS = """
INSERT INTO landing.jobs BY NAME SELECT
    id_of('job', n) AS id, 'Job ' || n AS title, day_of('job', n) AS created_at,
    created_at + INTERVAL 40 DAY AS updated_at, created_at AS published_at,
    ['published', 'filled', 'closed', 'cancelled', 'on_hold'][1 + draw('state', n, 5)] AS status,
    id_of('company', draw('of', n, $companies)) AS company_id, user_of('job', n) AS assigned_to,
    'permanent' AS employment_type, 30000 + 1000 * draw('pay', n, 60) AS salary_min,
    salary_min + 10000 AS salary_max, ['GBP', 'EUR', 'USD'][1 + draw('money', n, 3)]
    AS salary_currency, 'annual' AS salary_type, 1 + draw('places', n, 3) AS positions_available,
    '{}' AS _record, created_at AS _hydrated_at, created_at AS _seen_at, 'run' AS _run_id
FROM range($jobs) AS t(n)
"""

_CANDIDATES = """
INSERT INTO landing.candidates BY NAME SELECT
    id_of('candidate', n) AS id, 'Given' || n AS first_name, 'Family' || n AS last_name,
    'p' || n || '@people.example' AS email, 'permanent' AS employment_type,
    day_of('candidate', n) AS created_at,
    created_at + INTERVAL 20 DAY * draw('versions', n, 5) AS updated_at,
    CASE WHEN draw('fate', n, 4) = 0 AND draw('versions', n, 5) > 0 THEN 'rejected'
        ELSE ['new_lead', 'screening', 'submitted', 'interviewing', 'offer_made']
            [1 + draw('versions', n, 5)] END AS status,
    source_of(n) AS source, user_of('candidate', n) AS assigned_to, 'SQL, Python, tact' AS skills,
    '{}' AS _record, updated_at + INTERVAL 6 HOUR AS _hydrated_at, _hydrated_at AS _seen_at,
    'run' AS _run_id
FROM range($candidates) AS t(n)
"""

_CANDIDATE_HISTORY = """
INSERT INTO history.candidates BY NAME SELECT
    landed.* EXCLUDE (_seen_at, _deleted_at, status, updated_at, last_k),
    k + 1 AS _version, landed.created_at + INTERVAL 20 DAY * k AS _valid_from,
    _valid_from AS updated_at, _valid_from + INTERVAL 6 HOUR AS _observed_from,
    greatest(_valid_from - INTERVAL 6 HOUR, landed.created_at) AS _began_after,
    CASE WHEN k < last_k THEN _valid_from + INTERVAL 20 DAY END AS _valid_to,
    _observed_from + INTERVAL 1 SECOND AS _began_before,
    CASE WHEN k < last_k THEN _valid_to - INTERVAL 6 HOUR END AS _ended_after,
    CASE WHEN k < last_k THEN _valid_to + INTERVAL 6 HOUR END AS _ended_before,
    coalesce(_ended_after, _observed_from) AS _observed_to,
    CASE WHEN k < last_k THEN 'change' END AS _ended_by,
    CASE WHEN k < last_k
        THEN ['new_lead', 'screening', 'submitted', 'interviewing', 'offer_made'][1 + k]
        ELSE landed.status END AS status
FROM (
    SELECT *, (epoch(updated_at) - epoch(created_at))::BIGINT // 1728000 AS last_k
    FROM landing.candidates
) AS landed, range(last_k + 1) AS versions(k)
"""

_OTHER_HISTORY = """
INSERT INTO history.{table} BY NAME SELECT
    * EXCLUDE (_seen_at, _deleted_at), 1 AS _version, created_at AS _valid_from,
    _hydrated_at AS _observed_from, _hydrated_at AS _observed_to, created_at AS _began_after,
    _observed_from + INTERVAL 1 SECOND AS _began_before
FROM landing.{table}
"""

_BOOKINGS = """
INSERT INTO landing.bookings BY NAME SELECT
    id_of('booking', n) AS id, day_of('booking', n) AS created_at, created_at AS updated_at,
    ['interview', 'interview', 'interview', 'permanent', 'contract'][1 + draw('kind', n, 5)]
    AS booking_type,
    id_of('candidate', draw('of', n, $candidates)) AS candidate_id,
    id_of('job', draw('for', n, $jobs)) AS job_id, NULL AS company_id,
    ['scheduled', 'confirmed', 'completed', 'completed', 'cancelled', 'rescheduled']
    [1 + draw('booked', n, 6)] AS status, created_at + INTERVAL 10 DAY AS start_datetime,
    start_datetime + INTERVAL 1 DAY * draw('days', n, 400) AS end_datetime,
    (created_at AT TIME ZONE 'UTC')::DATE AS offer_accepted_date,
    CASE WHEN draw('fee', n, 3) > 0 THEN 1000 + draw('amount', n, 9000) END AS placement_fee,
    user_of('booking', n) AS assigned_to,
    '{}' AS _record, created_at AS _hydrated_at, created_at AS _seen_at, 'run' AS _run_id
FROM range($bookings) AS t(n)
"""

_LEADS = """
INSERT INTO landing.leads BY NAME SELECT
    id_of('lead', n) AS id, 'l' || n || '@people.example' AS email, 'lead' AS status,
    id_of('status', draw('lead', n, 5)) AS lead_status_id, day_of('lead', n) AS created_at,
    created_at AS updated_at, source_of(n) AS source, user_of('lead', n) AS assigned_to,
    '{}' AS _record, created_at AS _hydrated_at, created_at AS _seen_at, 'run' AS _run_id
FROM range($leads) AS t(n)
"""

_PROVEN = """
INSERT INTO sync.bookmarks BY NAME
    SELECT unnest(['jobs', 'candidates', 'companies', 'bookings', 'leads']) AS resource,
        '' AS parent, TIMESTAMPTZ '2026-01-05 00:00:00+00' AS proven_at, 0 AS total_offset
"""


def fill_account(folder: Path, candidates: int) -> None:
    """Create the work file of an account folder with an agency of this number of candidates."""
    warehouse = Warehouse(folder)
    warehouse.prepare()
    counts = {
        "candidates": candidates,
        "jobs": candidates // 20,
        "companies": candidates // 50,
        "bookings": candidates // 2,
        "leads": candidates // 5,
    }
    statements = [_COMPANIES, _JOBS, _CANDIDATES, _BOOKINGS, _LEADS, _CANDIDATE_HISTORY]
    others = ("companies", "jobs", "bookings", "leads")
    statements += [_OTHER_HISTORY.format(table=table) for table in others]
    with duckdb.connect(str(warehouse.work)) as connection:
        connection.execute(f"SET TimeZone = 'UTC'; {_IDS}")
        for statement in (*statements, _PROVEN):
            used = {name: n for name, n in counts.items() if f"${name}" in statement}
            connection.execute(statement, used)


def measure(is_quick: bool) -> Iterator[Line]:
    """Yield the lines for publications at each size, or only at the smallest."""
    sizes = SIZES[:1] if is_quick else SIZES
    for size in sizes:
        ours, copies = [], []
        with tempfile.TemporaryDirectory() as name:
            data = Path(name) / "data"
            run(module_command("publication", data, size))
            for number in measured_rounds(size, sizes):
                copy = Path(name) / f"copy{number}.duckdb"
                command = [sys.executable, "-c", _COPY, str(Warehouse(data).work), str(copy)]
                copies.append(run(command).processor)
                ours.append(run(connector_command("publish"), account_environ(data, models="on")))
                copy.unlink()
        what, shown, is_largest = (
            "publication, all models",
            f"{size:,} candidates",
            size == max(SIZES),
        )
        yield measured_line(
            what, shown, [each.processor for each in ours], copies, "copy of the tables"
        )
        wall = [each.wall for each in ours]
        bound = Bound(15, reason=_SECONDS) if is_largest else None
        yield measured_line(what, shown, wall, bound=bound, unit="s (wall)")
        memory = [each.memory for each in ours]
        bound = Bound(700, reason=_MEMORY) if is_largest else None
        yield measured_line(f"{what}: memory", shown, memory, bound=bound, unit="MB")


if __name__ == "__main__":
    fill_account(Path(sys.argv[1]), int(sys.argv[2]))

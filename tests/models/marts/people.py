"""Records of candidates in the pipeline, and of leads, for `test_people`.

The first pull is on 5 January 2026 at 09:00; now is 6 March 2026 at 00:00.
"""

from __future__ import annotations

from tests.models.marts.world import NOW, ModelWorld


def load_people(world: ModelWorld) -> None:
    """Load candidates, leads and content, pull by pull."""
    world.write_seed("people", "id,name,team", "u1,Ada,North", "u2,Ben,South")
    world.write_seed(
        "lead_statuses", "id,name,outcome", "s1,New,open", "s2,Won,won", "s3,Lost,lost"
    )
    world.write_seed(
        "source_groups",
        "source,source_group",
        "linkedin,Social network",
        "job board,Job board",
        "referral,Referral",
    )
    load_first_pulls(world)
    load_january(world)
    load_february(world)
    load_leads(world)
    load_content(world)
    load_conversions(world)
    world.mark_verified(NOW)
    load_runs(world)


def load_first_pulls(world: ModelWorld) -> None:
    """Load the pulls of 5 and 12 January."""
    # Created before the first pull, so no pull observed the entry to screening.
    world.load_details(
        "2026-01-05 09:00",
        candidates={
            "cat": {
                "created": "2024-05-01 09:00",
                "updated": "2025-12-01 09:00",
                "status": "screening",
                "first_name": "Cat",
                "last_name": "Jones",
                "assigned_to": "u1",
            }
        },
    )
    world.load_details(
        "2026-01-12 09:00",
        candidates={
            "ann": {
                "created": "2026-01-06 09:00",
                "status": "new_lead",
                "source": " LinkedIn",
                "assigned_to": "u1",
            },
            "bob": {
                "created": "2026-01-07 09:00",
                "status": "new_lead",
                "source": "Referral",
                "assigned_to": "u2",
            },
            "cat": {"updated": "2026-01-10 09:00", "status": "submitted"},
            "dan": {"created": "2026-01-08 09:00", "status": "screening", "assigned_to": "u2"},
            "fay": {
                "created": "2026-01-06 09:00",
                "status": "interviewing",
                "source": "Job Board",
                "assigned_to": "u2",
            },
            "gus": {
                "created": "2026-01-06 09:00",
                "status": "interviewing",
                "source": "linkedin",
                "assigned_to": "u1",
            },
        },
    )
    world.load_list_items(
        "2026-01-12 09:00",
        candidates={"eve": {"created": "2026-01-09 09:00", "status": "interviewing"}},
    )


def load_january(world: ModelWorld) -> None:
    """Load the pulls of 19 and 26 January."""
    world.load_details(
        "2026-01-19 09:00",
        candidates={
            "ann": {"updated": "2026-01-15 09:00", "status": "screening"},
            "bob": {},
            "fay": {"updated": "2026-01-16 09:00", "status": "offer_made"},
            "gus": {"updated": "2026-01-17 09:00", "status": "offer_accepted"},
        },
    )
    # Since the look before, ann was submitted and then interviewed; only the second shows.
    world.load_details(
        "2026-01-26 09:00",
        candidates={
            "ann": {"updated": "2026-01-23 09:00", "status": "interviewing"},
            "bob": {"updated": "2026-01-21 09:00", "status": "screening"},
            "cat": {"updated": "2026-01-22 09:00", "status": "offer_made"},
            "fay": {"updated": "2026-01-23 09:00", "status": "on_hold"},
        },
    )
    world.load_deletions("2026-01-26 09:00", candidates=("dan",))


def load_february(world: ModelWorld) -> None:
    """Load the pulls of 9 February and 2 March."""
    world.load_details(
        "2026-02-09 09:00",
        candidates={
            "ann": {"updated": "2026-02-02 09:00", "status": "offer_made"},
            "bob": {},
            "cat": {"updated": "2026-02-03 09:00", "status": "withdrawn"},
            "fay": {"updated": "2026-02-05 09:00", "status": "offer_made"},
        },
    )
    world.load_details(
        "2026-03-02 09:00",
        candidates={
            "ann": {"updated": "2026-02-20 09:00", "status": "placed"},
            "bob": {"updated": "2026-02-16 09:00", "status": "rejected"},
        },
    )


def load_content(world: ModelWorld) -> None:
    """Load posts, one of them deleted, pages without a name, and a deleted type with its item."""
    world.run_sql(
        """
        INSERT INTO landing.content_types (id, name, slug, is_active, _deleted_at) VALUES
            ('t1', 'Posts', 'posts', true, NULL), ('t2', NULL, 'pages', false, NULL),
            ('t3', 'Old', 'old', true, '2026-03-01 09:00');
        INSERT INTO landing.content_items
            (id, _content_type_id, status, published_at, updated_at, _deleted_at) VALUES
            ('i1', 't1', 'published', '2026-02-01 09:00', '2026-02-03 09:00', NULL),
            ('i2', 't1', 'published', '2026-02-02 09:00', '2026-02-02 09:00', NULL),
            ('i3', 't1', 'draft', NULL, '2026-02-05 09:00', NULL),
            ('i4', 't1', 'published', '2026-03-01 09:00', '2026-03-01 09:00', '2026-03-02 09:00'),
            ('i5', 't3', 'draft', NULL, '2026-02-05 09:00', NULL);
        """
    )
    for name in ("content_types", "content_items"):
        live = f"SELECT id FROM landing.{name} WHERE _deleted_at IS NULL"
        world.run_sql(f"INSERT INTO history.{name} BY NAME {live}")


def load_leads(world: ModelWorld) -> None:
    """Load eight leads, of which seven count, and two bookings of one of them.

    `load_conversions` deletes two of the leads later.
    """
    lead = {"created": "2026-01-31 09:00", "status": "lead", "source": "Referral"}
    world.load_details(
        "2026-02-09 09:00",
        leads={
            "pushed": {**lead, "lead_status_id": "s1", "assigned_to": "u1"},
            "recorded": {**lead, "created": "2026-02-05 09:00", "lead_status_id": "s1"},
            "won": {**lead, "lead_status_id": "s2", "assigned_to": "u2"},
            "open": {**lead, "lead_status_id": "s1", "source": "linkedin"},
            "lost": {**lead, "lead_status_id": "s3", "source": ""},
            "gone": {**lead, "lead_status_id": "s1"},
            "pushed-and-gone": {**lead, "lead_status_id": "s1", "assigned_to": "u1"},
        },
        bookings={
            "talk": {
                "created": "2026-02-01 09:00",
                "booking_type": "consultation",
                "lead_id": "pushed",
                "start_datetime": "2026-02-03T09:00:00Z",
                "status": "completed",
            },
            "no-talk": {
                "created": "2026-02-01 09:00",
                "booking_type": "consultation",
                "lead_id": "pushed",
                "start_datetime": "2026-02-04T09:00:00Z",
                "status": "cancelled",
            },
        },
    )
    world.load_list_items("2026-02-09 09:00", leads={"listed": {**lead, "source": "xing"}})


def load_conversions(world: ModelWorld) -> None:
    """Load a lead converted in the API, two converted by a push, and two deleted ones."""
    # The API does not document what a converted lead shows; this one says when it was converted.
    world.load_details(
        "2026-03-02 09:00",
        leads={
            "recorded": {
                "updated": "2026-02-25 09:00",
                "status": "active",
                "converted_at": "2026-02-25T09:00:00Z",
            }
        },
    )
    world.load_deletions("2026-03-02 09:00", leads=("gone", "pushed-and-gone"))
    world.run_sql(
        """
        INSERT INTO push.rows (batch, number, operation, state, outcome, record_id, moved_at) VALUES
            ('b1', 2, 'convert', 'done', 'converted', 'pushed', '2026-02-10 09:00:00Z'),
            ('b1', 3, 'convert', 'done', 'converted', 'pushed-and-gone', '2026-02-12 09:00:00Z'),
            ('b1', 4, 'convert', 'refused', 'rejected', 'open', '2026-02-12 09:00:00Z')
        """
    )


def load_runs(world: ModelWorld) -> None:
    """Load two pulls of candidates in the billing month, and one before it."""
    world.run_sql(
        """
        INSERT INTO sync.quota (cycle_begins, day) VALUES ('2026-02-15', '2026-03-02');
        INSERT INTO sync.runs (run_id, command, started_at) VALUES
            ('r1', 'pull', '2026-02-14 23:00:00Z'), ('r2', 'pull', '2026-02-15 01:00:00Z'),
            ('r3', 'pull', '2026-03-06 01:00:00Z');
        INSERT INTO sync.run_resources
            (run_id, resource, outcome, proven, requests, total, anomalies, message) VALUES
            ('r1', 'candidates', 'done', true, 100, 6, '{}', NULL),
            ('r2', 'candidates', 'done', true, 7, 6, '{}', NULL),
            ('r3', 'candidates', 'done', true, 5, 6, '{"silent": 2, "late": 1}', NULL),
            ('r3', 'leads', 'not_started', false, 0, NULL, '{}', 'stopped')
        """
    )

"""Column lineage of queries in many forms."""

from __future__ import annotations

import pytest

from connector.publishing.columns import TableColumns
from connector.publishing.lineage import Lineage
from connector.warehouse.schema import Column
from tests.publishing.small import FCT_JOBS, SmallProject

JOB_COLUMNS = ("id", "title", "status", "assigned_to")

QUERIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "passed on": ("select id as x from {jobs}", ("id",)),
    "in brackets": ("select (id) as x from {jobs}", ("id",)),
    "by a star": ("select * from (select id as x, title from {jobs}) as inside", ("id",)),
    "through two expressions": (
        "with a as (select id as y from {jobs}), b as (select y as x from a) select x from b",
        ("id",),
    ),
    "computed": ("select title || status as x from {jobs}", ("status", "title")),
    "cast": ("select id::integer as x from {jobs}", ("id",)),
    "counted": ("select count(*) as x from {jobs} where id = 'j1'", ()),
    "a constant": ("select 1 as x from {jobs}", ()),
    "of an alias": ("select upper(id) as y, y || '!' as x from {jobs}", ("id",)),
    "a window": (
        "select row_number() over (partition by status order by id) as x from {jobs}",
        ("id", "status"),
    ),
    "of a union": (
        "select id as x, 1 as n from {jobs} union all select title, 2 from {jobs}",
        ("id", "title"),
    ),
    "a subquery": (
        "select (select max(b.title) from {jobs} as b where b.id = a.id) as x from {jobs} as a",
        ("title",),
    ),
    "joined": (
        "select b.status as x from {jobs} as a left join {jobs} as b using (id)",
        ("status",),
    ),
    "unnested": (
        "select u.x from {jobs} as a, unnest(string_split(a.title, ' ')) as u(x)",
        ("title",),
    ),
}


def make_shapes(**more: tuple[str, ...]) -> TableColumns:
    """Return the columns of the small project's tables (and `more`), all of type text."""
    names = {
        "landing.jobs": JOB_COLUMNS,
        "seeds.people": ("id", "name", "since"),
        "staging.stg_jobs": ("job_id", "title", "status", "person_id"),
        "marts.fct_jobs": ("job_id", "title", "status", "person_id", "person_name"),
        "marts.sum_jobs": ("status", "jobs"),
        **more,
    }
    return {
        table: tuple(Column(column, "VARCHAR", "") for column in columns)
        for table, columns in names.items()
    }


@pytest.mark.parametrize("query_name", QUERIES)
def test_the_parents_of_a_column_are_the_columns_it_is_computed_from(
    small: SmallProject, query_name: str
) -> None:
    sql, columns = QUERIES[query_name]
    head = FCT_JOBS.partition("\n\n")[0]
    jobs = "{{ source('landing', 'jobs') }}"
    small.write("marts/fct_jobs.sql", f"{head}\n\n{sql.format(jobs=jobs)}\n")
    traced = Lineage(small.load_project(), make_shapes(**{"marts.fct_jobs": ("x",)}))
    parents = tuple(("landing.jobs", column) for column in columns)

    assert parents == traced.parents("marts.fct_jobs", "x")


def test_lineage_follows_models_down_to_landing_and_seeds(small: SmallProject) -> None:
    traced = Lineage(small.load_project(), make_shapes())

    assert (("marts.fct_jobs", "status"),) == traced.parents("marts.sum_jobs", "status")
    assert (("landing.jobs", "status"),) == traced.origins("marts.sum_jobs", "status")
    assert (("seeds.people", "name"),) == traced.origins("marts.fct_jobs", "person_name")
    assert () == traced.origins("marts.sum_jobs", "jobs") == traced.origins("landing.jobs", "id")

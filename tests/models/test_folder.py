"""Loading a project folder: errors name the file, the line and an action."""

from __future__ import annotations

import pytest

from connector.errors import ModelError, UnknownName
from tests.models.small import FCT_JOBS, SmallProject
from tests.support.errors import has_code


def test_the_build_order_puts_parents_before_children(small: SmallProject) -> None:
    assert ("people", "stg_jobs", "fct_jobs", "sum_jobs") == tuple(small.load_project().nodes)


BROKEN = {
    "{{ var('x') }}": "'var' is undefined",
    "{% if 1 %} x": "Unexpected end of template",
    "{{ ref('stg_jobs').up() }}": "has no attribute 'up'",
    "{{ ref('a', 'b') }}": "ref() takes 1 positional argument but 2 were given",
    "{{ config(materialized='incremental') }}": "'incremental'. Allowed: table, view",
    "{{ ref('stg_jobs')": "unexpected end of template",
}


@pytest.mark.parametrize("template", BROKEN)
def test_a_template_error_is_reported_with_file_and_line(
    small: SmallProject, template: str
) -> None:
    sql = f"{FCT_JOBS.partition('from')[0]}from {template}\n"
    path = small.write("marts/fct_jobs.sql", sql)

    with pytest.raises(
        ModelError, match="the template cannot be evaluated", check=has_code("model_invalid")
    ) as caught:
        small.load_project()

    assert (path, 4) == (caught.value.path, caught.value.line)
    assert BROKEN[template] in str(caught.value)
    assert "{{ ref('model') }}" in caught.value.action


WRONG = {
    "semicolon": ("marts/sum_jobs.sql", "group by status", "group by status;", 3, "semicolon"),
    "unknown test": ("marts/schema.yml", "[unique, not_null]", "[uniqe]", 5, "'uniqe'"),
    "other side": (
        *("marts/schema.yml", "ref('people')", "config(materialized='view')"),
        *(14, "'to' is not a ref or source"),
    ),
    "other side twice": (
        *("marts/schema.yml", "ref('people')", "\"ref('people') }}{{ ref('people')\""),
        *(14, "'to' is not a ref or source"),
    ),
    "tests in no list": ("marts/schema.yml", "[unique, not_null]", "5", 5, "valid list, not 5"),
    "test of no mapping": (
        "marts/schema.yml",
        "[unique, not_null]",
        "[{unique: 5}]",
        6,
        "is not a test",
    ),
    "test's argument": (
        *("staging/sources.yml", "[unique, not_null]", "[{unique: {where: x}}]"),
        *(6, "where: is not a key"),
    ),
    "severity": ("marts/schema.yml", "severity: warn", "severity: loud", 17, "'loud'"),
    "model config": (
        *("marts/schema.yml", "  - name: sum_jobs", "  - name: sum_jobs\n    config: {tags: x}"),
        *(16, "config.tags: is not a key"),
    ),
    "is not valid YAML": ("marts/schema.yml", "models:", "models: [", 2, "is not valid YAML"),
    "key twice": (
        "marts/schema.yml",
        "name: sum_jobs",
        "name: sum_jobs\n    name: x",
        16,
        "duplicate",
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_invalid_project_files_are_rejected_with_file_and_line(
    small: SmallProject, fault: str
) -> None:
    file, old, new, line, problem = WRONG[fault]
    path = small.replace(file, old, new)

    with pytest.raises(ModelError, check=has_code("model_invalid")) as caught:
        small.load_project()

    assert (str(path), line) == (str(caught.value.path), caught.value.line)
    assert problem in str(caught.value)


def test_an_unknown_reference_is_rejected_with_the_nearest_name(small: SmallProject) -> None:
    cases = (
        ("marts/fct_jobs.sql", "ref('stg_jobs')", "ref('stg_job')", 4, "stg_jobs"),
        ("staging/stg_jobs.sql", "'landing', 'jobs'", "'landing', 'jbos'", 4, "landing.jobs"),
        ("marts/schema.yml", "ref('people')", "ref('peple')", 14, "people"),
        ("marts/schema.yml", "name: sum_jobs", "name: sum_job", 15, "sum_jobs"),
    )
    for file, old, new, line, nearest in cases:
        small.replace(file, old, new)
        with pytest.raises(ModelError, check=has_code("reference_unknown")) as caught:
            small.load_project()
        small.replace(file, old, old)

        assert line == caught.value.line, new
        assert f"Did you mean {nearest!r}" in str(caught.value)


def test_a_circular_reference_is_rejected_and_the_cycle_is_named(small: SmallProject) -> None:
    small.replace(
        "staging/stg_jobs.sql", "{{ source('landing', 'jobs') }}", "{{ ref('sum_jobs') }}"
    )

    with pytest.raises(
        ModelError,
        match="fct_jobs -> stg_jobs -> sum_jobs -> fct_jobs",
        check=has_code("model_invalid"),
    ):
        small.load_project()


def test_a_duplicate_model_or_check_is_rejected(small: SmallProject) -> None:
    small.write("staging/fct_jobs.sql", FCT_JOBS)
    with pytest.raises(
        ModelError, match=r"fct_jobs is also .*fct_jobs\.sql", check=has_code("model_invalid")
    ):
        small.load_project()
    (small.folder / "staging/fct_jobs.sql").unlink()

    small.replace("marts/schema.yml", "[unique, not_null]", "[unique, unique]")
    with pytest.raises(ModelError, match="unique_fct_jobs_job_id", check=has_code("model_invalid")):
        small.load_project()


def test_models_are_selected_by_name_folder_parents_and_children(small: SmallProject) -> None:
    small.write("marts/other.sql", "select * from {{ ref('stg_jobs') }}")
    project = small.load_project()

    assert ("stg_jobs",) == project.selected(["stg_jobs"])
    assert {"fct_jobs", "sum_jobs", "other"} == {*project.selected(["marts"])}
    assert ("people", "stg_jobs", "fct_jobs") == project.selected(["+fct_jobs"])
    assert {*project.nodes} - {"people"} == {*project.selected(["stg_jobs+"])}
    assert ("people", "stg_jobs", "fct_jobs", "sum_jobs") == project.selected(["+fct_jobs+"])
    assert (*project.nodes,) == project.selected()
    with pytest.raises(UnknownName, match="Did you mean 'fct_jobs'"):
        project.selected(["fct_job"])


def test_jinja_variables_filters_and_comments_are_rendered(small: SmallProject) -> None:
    sql = "{% set wanted = ['open'] %}\nselect '{{ wanted | first }}' as status {# a note #}\n"
    small.write("marts/sum_jobs.sql", sql)

    assert "select 'open' as status" in small.load_project().nodes["sum_jobs"].sql

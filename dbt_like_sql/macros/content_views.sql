{# One typed view per content type: the statements are rows of the model content_views. #}
{% macro make_content_views() -%}
    {%- if execute -%}
        {%- set wanted = "select statement from staging.content_views order by view_name" -%}
        {%- for row in run_query(wanted) -%}
            {%- do run_query(row["statement"]) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{# A model's schema is the first folder of its path, a seed's the one that the project gives. #}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {%- if custom_schema_name is not none -%}
        {{ custom_schema_name | trim }}
    {%- else -%}
        {{ node.original_file_path.replace("\\", "/").split("/")[0] }}
    {%- endif -%}
{%- endmacro %}

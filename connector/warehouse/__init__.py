"""The warehouse: the tables of the loaded rows, and the files that they are in.

`work.duckdb` belongs to the connector alone. It is opened, committed and closed per batch, and
never held across a network wait. `recruitment.duckdb` is the copy for analysts, replaced whole.
"""

"""Local copy of one account in DuckDB.

`work.duckdb` belongs to the process that holds the account's lock. `recruitment.duckdb` is for
analysts, and each publication replaces it as a whole.
"""

"""Tables of the loaded rows, and the DuckDB files that contain them.

Only the connector uses `work.duckdb`. It is opened, committed and closed per batch, and never kept
open while waiting for the network. `recruitment.duckdb` is the copy for analysts and is replaced as
a whole.
"""

"""The ledger: the only room that knows SQLite.

`ledger.sqlite` holds what several processes must agree on before a request leaves: how many
requests were spent, and whose turn it is. Every commit is on the disk before it counts. The file is
never published, and analysts never read it: they get copies (`sync.quota`).

A file per concern: `file.py` opens it, `migrations.py` has its tables, `requests.py` and
`leases.py` are functions over an open connection, and `Ledger` holds their transactions. `Purse`
pays for one run's requests, and `Turn` keeps the run's lease as well.
"""

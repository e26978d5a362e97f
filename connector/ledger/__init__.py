"""Ledger of an account. Only this package uses SQLite.

`ledger.sqlite` has the data that several processes share before they send a request: the number of
requests used, the owner of the lease, and every row that is about to be written. A commit is on the
disk when it returns. The file is never published: analysts get copies (`sync.quota`, `push`).
"""

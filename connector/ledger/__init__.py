"""Ledger of an account. Only this package uses SQLite.

`ledger.sqlite` has what several processes must agree on before a request is sent: the number of
requests spent, who has the lease, and every row that is about to be written. Every commit is on the
disk before it counts. The file is never published: analysts get copies (`sync.quota`, `push`).
"""

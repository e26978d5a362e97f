"""Ledger of an account: the only room that knows SQLite.

`ledger.sqlite` holds what several processes must agree on before a request leaves: how many
requests were spent, who has the lease, and every row that is about to be written. Every commit is
on the disk before it counts. The file is never published: analysts get copies (`sync.quota`,
`push`).
"""

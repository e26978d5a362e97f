"""The shared lakehouse: where the published files of many accounts meet.

DuckLake, with its catalog in PostgreSQL and its files in a folder or in object storage. An account
publishes its own file as before, and a copy of what a group's analysts need goes here, keyed by
account. Publishers take turns under a lock of the catalog's; what each writes is one transaction.
"""

"""The shared lakehouse: one copy of the published files of many accounts.

The lakehouse is a DuckLake, with its catalog in PostgreSQL and its files in a folder or in object
storage. An account publishes its own file first. Then one transaction replaces the account's rows
in the lakehouse.
"""
